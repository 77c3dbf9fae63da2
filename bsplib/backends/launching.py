"""How a run is started on a backend, and what the backend reports of it.

A backend knows nothing of programs, records or Machines. What its processes do is
handed to it as :class:`Work`, and it reports how each of them ended:

* where each process has an interpreter of its own, the backend calls :meth:`Work.alone`
  in it, carries the bytes that this returns to the caller, and opens them there with
  :meth:`Work.read`;
* where all processes live inside the caller, it works with :meth:`Work.inside`.

Once a process has failed, the others go on to their next sync and no further; real
processes are ended :data:`~bsplib.backends.outcomes.GRACE_S` later where they have not
come to it. So the outcomes are those of every process that failed by itself.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bsplib.backends.base import Port
from bsplib.backends.whereabouts import Whereabouts
from bsplib.errors import ProcessDiedError

OpenPort = Callable[[], Port]
"""Opens the port of a process to the group of the whole run."""


class Ended(Protocol):
    """How a process ended."""

    @property
    def failed(self) -> bool:
        """Whether it failed by itself: the run is over then."""


class JobRunner(Protocol):
    """What kept processes are told once; it can be pickled, and compared."""

    def run(self, job: bytes, pid: int, open_port: OpenPort) -> bytes:
        """Do what :meth:`Work.alone` does for the work that the job was made of."""


class Work(Protocol):
    """What every process of a run does."""

    @property
    def job_runner(self) -> JobRunner:
        """What kept processes need besides the job; it is sent where it differs from before."""

    def job(self) -> bytes:
        """Return what kept processes need for this run alone."""

    def alone(self, pid: int, open_port: OpenPort) -> bytes:
        """Do it in a process of its own; return how it ended. Nothing is raised."""

    def read(self, said: bytes, pid: int) -> Ended:
        """Return how a process ended from what it said. Nothing is raised."""

    def inside(self) -> InsideWork:
        """Return the same for processes that live inside the caller.

        Raises:
            Exception: the arguments cannot be copied for each of them.
        """


class InsideWork(Protocol):
    """What every process does where all live inside the caller."""

    def run(self, pid: int, open_port: OpenPort) -> Ended:
        """Do it.

        Raises:
            BaseException: whatever the program raises; :meth:`describe` knows what it means.
        """

    def describe(self, error: BaseException, pid: int) -> Ended:
        """Return how a process ended from what :meth:`run` raised."""

    def whole_lines(self, who: Callable[[], int | None]) -> AbstractContextManager[None]:
        """Keep lines apart that processes print inside the block.

        Args:
            who: tells which process prints; None for none.
        """


class Prices(Protocol):
    """What communication costs in virtual time."""

    def empty(self) -> float:
        """Return the seconds of a superstep in which nothing is communicated."""

    def superstep(
        self, h_in: Sequence[int], h_out: Sequence[int], links: Iterable[tuple[int, int]]
    ) -> float:
        """Return the seconds of a superstep of a whole group.

        Args:
            h_in: bytes that come to each process, by pid.
            h_out: bytes that leave each process, by pid.
            links: who sends to whom.
        """

    def oblivious(self, relations: Iterable[tuple[int, int]]) -> float:
        """Return the seconds of an oblivious superstep of one process.

        Args:
            relations: bytes that come and bytes that leave, of the process and of all that
                have sent to it.
        """


@dataclass(frozen=True)
class Options:
    """How a run is to be done: a backend heeds what means something there."""

    nprocs: int
    start_method: str | None = None
    """Of multiprocessing; None for what suits the caller."""
    wait_by: str = "auto"
    """How processes wait for each other: ``auto``, ``spin`` or ``block``."""
    timeout: float | None = None
    """Seconds that the run may take; None for as long as it takes."""
    seed: int = 0
    """Of the order in which virtual processors run."""
    scale: float = 1.0
    """Virtual seconds for each second of CPU time that a process computes here."""
    prices: Prices | None = None
    """Of communication, where time is virtual."""


class Times(NamedTuple):
    """What a run would take, in seconds, on processors that are not there.

    Source: Chittor 1995, section 5.1: what the simulator Multi reports.
    """

    parallel_s: float
    """Of the run: T(p)."""
    computation_s: float
    """All that the processes computed, added up. A program for one process may need more
    or less than that."""

    def __str__(self) -> str:
        return (
            f"virtual time: parallel {self.parallel_s:.4g} s, total computation "
            f"{self.computation_s:.4g} s"
        )


class Death(NamedTuple):
    """The end of a process that said nothing."""

    pid: int
    superstep: int
    """Of the root group, in which it was."""
    status: int | None
    """With which it exited; negative: the signal that killed it; None: nobody knows."""
    unknown: str = ""
    """What happened where nobody knows the status, in words that follow ``process 3``."""

    @property
    def failed(self) -> bool:
        """Whether the run is over: it is."""
        return True

    def error(self) -> ProcessDiedError:
        """Return the error for it."""
        if self.status is None:
            how = self.unknown
        elif self.status < 0:
            how = f"was killed by {_signal_name(-self.status)}"
        else:
            how = f"exited with status {self.status}"
        error = ProcessDiedError(f"process {self.pid} {how} in superstep {self.superstep}")
        error.pid, error.superstep = self.pid, self.superstep
        return error


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # realtime signals have no names of their own
        least = getattr(signal, "SIGRTMIN", number)
        return f"signal {number} (SIGRTMIN+{number - least})" if number > least else str(number)


class Report(NamedTuple):
    """How a run ended."""

    outcomes: Mapping[int, Ended | Death]
    """By pid; there is none of a process that was ended because another one failed."""
    times: Times | None = None
    """Where time is virtual."""


class TimeIsOver(Exception):  # noqa: N818  # no error: the caller makes one of it
    """The run has taken longer than its timeout.

    Args:
        rows: where its processes were.
    """

    def __init__(self, rows: Sequence[Whereabouts]) -> None:
        super().__init__(rows)
        self.rows = rows


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has ended the run.

    Args:
        interrupt: as it was raised.
        rows: where the processes of the run were.
    """

    def __init__(self, interrupt: KeyboardInterrupt, rows: Sequence[Whereabouts]) -> None:
        super().__init__(interrupt, rows)
        self.interrupt = interrupt
        self.rows = rows


class KeptProcesses(Protocol):
    """Processes that run one piece of work after the other."""

    busy: bool
    """They start or work: they cannot be asked to end."""

    def start(self) -> None:
        """Start them.

        Raises:
            BaseException: they could not be started; call :meth:`stop` and :meth:`close`.
        """

    def run(self, work: Work, timeout: float | None) -> Report:
        """Have them do some work; all are stopped where one of them fails.

        Raises:
            TimeIsOver: it took longer than ``timeout`` seconds.
            Interrupted: Ctrl-C came.
        """

    def stop(self) -> None:
        """Bring them to an end by force."""

    def close(self) -> None:
        """Give everything back; those that wait for work end."""


@dataclass(frozen=True)
class Backend:
    """What the runtime knows of a backend.

    A backend is used once it is registered in :mod:`bsplib.backends.table`.
    """

    name: str
    summary: str
    """Its processes in a few words, for help texts."""
    launch: Callable[[Work, Options], Report]
    """Runs some work in processes of its own.

    Raises :class:`TimeIsOver` and :class:`Interrupted` where the run is ended from outside,
    and any error for which it could not start."""
    most_processes: int
    machine: str
    """Name of the Machine that a program sees where the caller names none."""
    usual_processes: Callable[[], int]
    """How many processes a run has where the caller does not say."""
    keep: Callable[[Options], KeptProcesses] | None = None
    """Makes the processes of a pool; None where there are no pools."""
    is_virtual: bool = False
    """Its time is virtual: runs report :class:`Times`, and ``Options.prices`` is needed."""
    source: str | None = None
    """File of its code, or folder with a separator at the end, where it is no part of bsplib:
    the frames in it are no frames of the program."""
    probed_over: str | None = None
    """What its processes communicate over, in words for a Machine that is measured there;
    None where there is nothing to be measured."""
