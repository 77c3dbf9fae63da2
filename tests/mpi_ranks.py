"""Ranks of an MPI that stay for all tests of a run of pytest: one ``mpiexec -n 4`` for each MPI.

A test calls ``bsplib.run(main, backend="mpi")`` in the process of pytest, where no launcher has
started anything. So the backend ``mpi`` is replaced by one that sends the run to the ranks, which
execute this module, and do what ranks of every program do.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Listener
from typing import Any

import pytest

from bsplib.backends import table
from bsplib.backends.hash_seed import VARIABLE, seed
from bsplib.backends.launching import Ended, NothingKept, OpenPort, Options, Report, Tell, Work
from bsplib.backends.mpi.installations import LIBRARY
from bsplib.backends.mpi.ranks import DIRECT, INSIDE
from bsplib.errors import ProcessDiedError

from .mpi_installations import MPICH, OPEN_MPI, Mpi

MPIS = {"mpi-mpich": MPICH, "mpi-openmpi": OPEN_MPI}
"""The MPIs on which tests run, by the names of their cases."""
LEAST = 4
"""Ranks that are started; more where a test needs them. To start, and to wait, takes the cores."""
AS_ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
"""Open MPI refuses to run as root, as tests do in containers, without these."""
_started: dict[str, Any] = {}
"""The ranks that stay, at most those of one MPI, by ``ranks``; what they were started for by
``key``."""


class Started:
    """Ranks that have been started.

    Args:
        mpi: of which they are.
        size: their number.
    """

    def __init__(self, mpi: Mpi, size: int) -> None:
        listener = Listener(family="AF_UNIX")
        self.size = size
        self._process = subprocess.Popen(
            mpi.start(size, sys.executable, "-m", "tests.mpi_ranks", str(listener.address)),
            env=mpi.whole_environment(size) | {VARIABLE: seed()},
            stdin=subprocess.DEVNULL,
        )
        listener._listener._socket.settimeout(60)  # type: ignore[attr-defined]  # of a start
        try:
            self._connection = listener.accept()
        finally:
            listener.close()
        self._connection.send((sys.path, sys.argv))

    def run(self, work: Work, options: Options) -> Report:
        """Let the first ranks do some work."""
        content = pickle.dumps((work.job_runner, work.job()), 5)
        try:
            self._connection.send((content, options, os.environ.get(INSIDE)))
            everything = self._connection.recv()
        except (EOFError, OSError):
            end()
            raise ProcessDiedError("the ranks have ended: a process did not come back") from None
        outcomes: dict[int, Ended] = {}
        for pid, told in everything.items():
            for each in told:
                if (outcome := work.read(each, pid)) is not None:
                    outcomes[pid] = outcome
        return Report(outcomes)

    def end(self) -> None:
        """Let them leave MPI."""
        with suppress(OSError):
            self._connection.send(None)
        self._connection.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def end() -> None:
    """End the ranks that are there."""
    if ranks := _started.pop("ranks", None):
        ranks.end()


@contextmanager
def ranks_of(mpi: Mpi, least: int = LEAST) -> Iterator[str]:
    """Let runs on the backend ``mpi`` be those of ranks that stay.

    Args:
        mpi: of which they are.
        least: how many there are at least.

    Yields:
        The name of the backend.
    """
    if not mpi.is_here():
        pytest.skip(f"{mpi.title} is not installed: pip install -e '.[dev]'")

    def launch(work: Work, options: Options) -> Report:
        key = mpi.name, least, os.environ.get(DIRECT)
        ranks = _started.get("ranks") if _started.get("key") == key else None
        size = max(least, options.nprocs)
        if ranks is None or ranks.size != size:  # many ranks that only wait would take the cores
            end()
            _started["key"] = key
            ranks = _started["ranks"] = Started(mpi, size)
        return ranks.run(work, options)

    def keep(options: Options) -> NothingKept:
        return NothingKept(lambda work, timeout: launch(work, options._replace(timeout=timeout)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LIBRARY, str(mpi.file(mpi.library)))  # of programs that the test starts
        for name in AS_ROOT:
            patch.setenv(name, "1")
        patch.setenv("BSP_MPI_TOGETHER_S", "15")  # other tests may have the cores
        before = table.find("mpi")
        table.register(before._replace(launch=launch, keep=keep))
        try:
            yield "mpi"
        finally:
            table.register(before)


# -- in the ranks ---------------------------------------------------------------------------------


class _Sent:
    """A run that was sent to rank 0; see :class:`Work`."""

    has_shared = False

    def __init__(self, content: bytes = b"") -> None:
        self._content = content
        self.told: dict[int, list[bytes]] = {}

    def arguments(self, _: object = None) -> bytes:
        return self._content

    def with_arguments(
        self, arguments: bytes, pid: int, open_port: OpenPort, tell: Tell
    ) -> tuple[bytes, bool]:
        runner, job = pickle.loads(arguments)
        report: tuple[bytes, bool] = runner.run(job, pid, open_port, tell)
        return report

    def complete(self, report: bytes, _: int) -> bytes:
        return report

    def words(self, report: bytes, pid: int, _: object) -> tuple[int, str] | None:
        from bsplib.running.failures import Failure, words_of  # noqa: PLC0415
        from bsplib.running.task import read_outcome  # noqa: PLC0415

        outcome = read_outcome(report, pid)
        return (outcome.superstep, words_of(outcome, {})) if isinstance(outcome, Failure) else None

    def read(self, told: bytes, pid: int) -> None:
        self.told.setdefault(pid, []).append(bytes(told))


def serve(address: str) -> None:
    """Be a rank, until there are no more runs."""
    from bsplib.backends.mpi.ranks import joined  # noqa: PLC0415  # pytest is no rank

    seat = table.own_seat()
    assert seat is not None
    ranks = joined(*seat, None)
    os.environ[table.TAKEN] = "1"
    connection = None if ranks.rank else Client(address)

    def lead() -> Any:
        assert connection is not None
        message = connection.recv()
        if message is not None and isinstance(message[0], bytes):
            content, options, inside = message
            os.environ.pop(INSIDE, None)
            os.environ.update({} if inside is None else {INSIDE: inside})
            work = _Sent(content)
            ranks.launch(work, options)  # type: ignore[arg-type]  # what ranks need of it
            connection.send(work.told)
        return message and message[:2]

    path, arguments = ranks.share(lead, _Sent)  # type: ignore[arg-type]  # as above
    sys.path[:], sys.argv[:] = path, arguments
    while ranks.share(lead, _Sent):  # type: ignore[arg-type]  # as above
        pass


if __name__ == "__main__":
    serve(sys.argv[1])
