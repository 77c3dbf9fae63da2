"""The time until a run across four hosts ends after a loss, and until no rank of it is left.

``python -m benchmarks.bench_mpi_faults`` writes ``benchmarks/results/mpi_faults.json``. Each sample
starts a run of its own, with one process on each host (:mod:`tests.hosts`). In ``facts`` stands the
longest time from the error until no rank was left on any host, and how many files in ``/dev/shm``
were left.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from tests.hosts.hosts import Hosts, why_not
from tests.hosts.launching import on_ranks_of
from tests.mpi_installations import ALL, Mpi

HOSTS = 4
LOST = 2
NAMED_S = 2.0
"""Seconds within which a process that fails has to be named."""
REPEATS = 3
_MOST_S = 60.0
_PROGRAM = """
import os, signal, sys, time
import bsplib

WAYS = {
    "raises": lambda: 1 / 0,
    "sys.exit": lambda: sys.exit(3),
    "os._exit": lambda: os._exit(3),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
}

def main(bsp, how, lost):
    bsp.sync()
    if bsp.pid == 0:
        print("runs", flush=True)
    if bsp.pid == lost and how in WAYS:
        time.sleep(0.3)  # the others wait
        print("failed", time.time(), flush=True)
        time.sleep(0.1)
        WAYS[how]()
    while True:
        bsp.sync()

if __name__ == "__main__":
    try:
        bsplib.run(main, sys.argv[1], int(sys.argv[2]), nprocs=int(sys.argv[3]), backend="mpi")
    except Exception:
        print("named", time.time(), flush=True)
        raise
"""


class Losses:
    """Runs that lose a process in one way.

    Args:
        hosts: where they are.
        mpi: of their ranks.
        how: what happens.
        program: the file of the program.
    """

    def __init__(self, hosts: Hosts, mpi: Mpi, how: str, program: Path) -> None:
        self._hosts = hosts
        self._how = how
        words = program, how, LOST, HOSTS
        self._line = on_ranks_of(hosts, mpi, 1, *words)
        self._left_s = 0.0
        self._left: set[str] = set()

    def sample(self) -> float:
        """Lose it; return the seconds until all ranks have the error, or the job has ended."""
        with subprocess.Popen(
            self._line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                return self._lose(process)
            finally:
                process.kill()

    def _lose(self, process: subprocess.Popen[str]) -> float:
        assert process.stdout is not None
        failed = named = 0.0
        for line in process.stdout:
            if "failed " in line:
                failed = float(line.split()[-1]) + 0.1
            elif "named " in line:
                named = named or float(line.split()[-1])
        if not failed:
            raise RuntimeError(f"the run has ended without an error after: {self._how}")
        self._await_end()
        return (named or time.time()) - failed

    def _await_end(self) -> None:
        """Note how long ranks are left, and what in shared memory."""
        began = time.monotonic()
        while self._ranks() and time.monotonic() < began + _MOST_S:
            time.sleep(0.02)
        self._left_s = max(self._left_s, time.monotonic() - began)
        for host in range(HOSTS):
            self._left.update(self._hosts.shared_memory_left(host))

    def _ranks(self) -> list[str]:
        lines = [line for host in range(HOSTS) for line in self._hosts.processes_left(host)]
        return [line for line in lines if "bsplib run" in line]

    def facts(self) -> dict[str, Any]:
        """Return what is known of all samples."""
        return {"ranks_left_s": round(self._left_s, 3), "left_in_shared_memory": len(self._left)}


def ways(mpi: Mpi, stack: ExitStack) -> Sequence[Case]:
    """Lose a process in each way."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    program = folder / "program.py"
    program.write_text(_PROGRAM, encoding="utf-8")
    hosts = stack.enter_context(Hosts(HOSTS, 1e9, 1e-3))
    of_process = {f"process {how}": how for how in ("raises", "sys.exit", "os._exit", "SIGKILL")}
    cases = []
    for title, how in of_process.items():
        losses = Losses(hosts, mpi, how, program)
        goal = Goal.seconds(NAMED_S)
        cases.append(Case(title, losses.sample, goals=(goal,), facts=losses.facts))
    return cases


SECTIONS = tuple(
    Section(
        f"A loss among processes that sync on {mpi.name}, p = {HOSTS}, across {HOSTS} hosts",
        "loss",
        partial(ways, mpi),
        repeats=REPEATS,
        warm_up=0,
    )
    for mpi in ALL
    if mpi.is_here()
)

BENCHMARK = Benchmark("mpi_faults", SECTIONS)

if __name__ == "__main__":
    if reason := why_not():
        raise SystemExit(reason)
    run([BENCHMARK])
