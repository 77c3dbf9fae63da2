"""Ranks of an MPI that take samples on request."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from tests.mpi_installations import ALL, Mpi

_START_S = 60.0
_SAMPLE_S = 120.0
"""A rank that takes longer counts as hanging."""
_END_S = 10.0
_LOOK_S = 0.5


class MpiError(RuntimeError):
    """Ranks did not start, or stopped answering."""


def absence() -> str:
    """Return a sentence that names the MPIs that are not installed; empty if all are."""
    missing = [mpi.title for mpi in ALL if not mpi.is_here()]
    if not missing:
        return ""
    return (
        f"no comparison with {' and '.join(missing)}, which can be installed by: "
        "pip install -e '.[bench]'"
    )


def started(stack: ExitStack, nprocs: int) -> Iterator[tuple[str, Any]]:
    """Start ranks of each MPI that is installed; yield its title and what takes their samples."""
    for mpi in filter(Mpi.is_here, ALL):
        try:
            yield mpi.title, stack.enter_context(Ranks(mpi, nprocs)).sample
        except MpiError as error:
            print(f"without {mpi.name}: {error}")


class Ranks:
    """Processes of an MPI on this computer that take samples on request.

    Each runs :mod:`benchmarks.mpi_peer`, which connects to a socket and answers requests.

    Args:
        mpi: the implementation.
        nprocs: number of ranks.

    Raises:
        MpiError: they do not start.
    """

    def __init__(self, mpi: Mpi, nprocs: int) -> None:
        self._name = f"{mpi.title} on {nprocs} ranks"
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self._output = folder / "output"
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(folder / "socket"))
            listener.listen(nprocs)
            program = sys.executable, "-m", "benchmarks.mpi_peer", str(folder / "socket")
            with self._output.open("wb") as output:
                self._launcher = subprocess.Popen(
                    mpi.start(nprocs, *program),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=mpi.whole_environment(nprocs),
                )
            self._ranks: list[Connection] = []
            stack.callback(self._end)
            deadline = time.monotonic() + _START_S
            while len(self._ranks) < nprocs:
                self._ranks.append(self._accept(listener, deadline))
            self._stack = stack.pop_all()

    def _accept(self, listener: socket.socket, deadline: float) -> Connection:
        listener.settimeout(_LOOK_S)
        while True:
            try:
                return Connection(listener.accept()[0].detach())
            except TimeoutError:
                self._check(deadline)

    def _check(self, deadline: float) -> None:
        if self._launcher.poll() is not None:
            raise MpiError(f"{self._name} did not start: {self._last_line()}")
        if time.monotonic() > deadline:
            raise MpiError(f"{self._name} did not start within {_START_S:.0f} s")

    def _last_line(self) -> str:
        lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines()
        words = [line.strip() for line in lines if any(map(str.isalnum, line))]
        return words[-1] if words else f"its launcher ended with {self._launcher.returncode}"

    def sample(self, program: str, **arguments: Any) -> float:
        """Run a program of the peers on all of them; return the seconds of rank 0.

        Raises:
            MpiError: a rank ended, or hangs.
        """
        try:
            for rank in self._ranks:
                rank.send((program, arguments))
            answers = dict(self._answer(rank) for rank in self._ranks)  # wait until all are done
        except (OSError, EOFError) as error:
            raise MpiError(f"{self._name} stopped in {program}: {self._last_line()}") from error
        return answers[0]

    def _answer(self, rank: Connection) -> tuple[int, float]:
        if not rank.poll(_SAMPLE_S):
            raise TimeoutError
        answer: tuple[int, float] = rank.recv()
        return answer

    def _end(self) -> None:
        for rank in self._ranks:
            with suppress(OSError):
                rank.send(None)  # a forked process may have the connection open, too
            rank.close()
        try:
            self._launcher.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._launcher.terminate()
            self._launcher.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
