"""What recording an mpi4py program costs for each call.

One rank calls itself: the cost of a call is that of the recorder and of the least that MPI does.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.measure import Case, Section
from tests.mpi_installations import ALL, Mpi

_PROGRAM = """
import sys
from time import perf_counter as now
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
x, y = np.zeros(1), np.zeros(1)
def allreduce(): comm.Allreduce(x, y)
def sendrecv(): comm.Sendrecv(x, 0, 0, y, 0, 0)
TIMES, BATCHES = 100, 30
for line in sys.stdin:
    call = globals()[line.strip()]
    batches = []
    for _ in range(BATCHES):
        begin = now()
        for _ in range(TIMES): call()
        batches.append((now() - begin) / TIMES)
    print(sorted(batches[1:])[len(batches) // 2], flush=True)
"""
_CALLS = {
    "allreduce": "Allreduce of 8 B",
    "sendrecv": "Sendrecv of 8 B",
}
"""Titles by the function of the program."""

_RECORDED = "import sys\nfrom bsplib.record import command\ncommand.JOIN = 'nosuch'\n"
_WAYS = {"bare": None, "shim": _RECORDED + "command.main(sys.argv[1:])"}


class _Rank:
    """A rank that makes calls on request.

    Args:
        stack: ends it.
        mpi: the MPI.
        code: what records the program, if anything does.
    """

    def __init__(self, stack: ExitStack, mpi: Mpi, code: str | None) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "program.py").write_text(_PROGRAM, encoding="utf-8")
        words = [str(folder / "program.py")]
        if code is not None:
            words = ["-c", code, str(folder / "out.bsp"), *words]
        self._process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=mpi.whole_environment(1),
            )
        )
        assert self._process.stdin is not None
        stack.callback(self._process.stdin.close)

    def sample(self, call: str) -> float:
        """Return the seconds of a call."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{call}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def _calls(mpi: Mpi, call: str, stack: ExitStack) -> Sequence[Case]:
    """Compare a call with and without recording."""
    return [Case(way, partial(_Rank(stack, mpi, code).sample, call)) for way, code in _WAYS.items()]


SECTIONS = tuple(
    Section(f"Recorded {title}, {mpi.title}", "call", partial(_calls, mpi, call), 15)
    for mpi in ALL
    if mpi.is_here()
    for call, title in _CALLS.items()
)
