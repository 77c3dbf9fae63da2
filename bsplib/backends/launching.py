"""How a run is started on a backend, and what the backend reports of it.

A backend knows nothing of programs, records or Machines. It is given a :class:`Work`, which
its processes execute, and reports how each of them ended:

* where each process has an interpreter of its own, the backend calls :meth:`Work.alone`
  in it, sends the bytes that this tells and returns to the caller, in this order, and decodes them
  there with :meth:`Work.read`;
* where all processes are inside the caller's process, the backend uses :meth:`Work.inside`.

Once a process has failed, the others go on to their next sync and no further; real
processes that have not come to it :data:`~bsplib.backends.outcomes.GRACE_S` after the last
outcome are killed. So the outcomes contain the error of every process that failed by itself.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from bsplib.backends.base import Port
from bsplib.backends.members import Whereabouts
from bsplib.errors import ProcessDiedError

OpenPort = Callable[[], Port]
"""Opens the port of a process to the root group."""

Tell = Callable[[bytes], None]
"""Sends bytes to the caller at once. They come there before the report of the process."""


class Ended(Protocol):
    """How a process ended."""

    @property
    def failed(self) -> bool:
        """Whether it failed by itself, which ends the run."""


class JobRunner(Protocol):
    """What kept processes need for several jobs; it can be pickled, and compared."""

    def run(self, job: bytes, pid: int, open_port: OpenPort, tell: Tell) -> tuple[bytes, bool]:
        """Do what :meth:`Work.alone` does for the work from which the job was made.

        Returns:
            The report, and whether it ends the run: the process has failed or was stopped.
        """

    def prepare(self, port: Port) -> None:
        """Prepare for the next job, for which this port will be opened; nobody waits for it.

        A backend may call it between two jobs, if the first has not ended its run.
        """


class Carrier(NamedTuple):
    """A process by which those of its host get the shared arrays of a caller on another host."""

    os_pid: int
    """Its number in the system."""
    brings: bool
    """The job is for this process, and has the values; that of others has none."""


class Work(Protocol):
    """What every process of a run does."""

    @property
    def has_shared(self) -> bool:
        """Whether the job may have arrays in shared memory, so that it depends on the host."""

    @property
    def job_runner(self) -> JobRunner:
        """What kept processes need besides the job; it is sent only if it has changed."""

    def job(self) -> bytes:
        """Return what kept processes of the host of the caller need for this run only."""

    def alone(self, pid: int, open_port: OpenPort, tell: Tell) -> bytes:
        """Do the work in a process of its own; return its report as bytes. Nothing is raised."""

    def arguments(self, carrier: Carrier | None = None) -> bytes:
        """Return what other processes need that execute the same program, and have its ``main``.

        Args:
            carrier: None for processes that can map the memory of the caller.
        """

    def with_arguments(
        self, arguments: bytes, pid: int, open_port: OpenPort, tell: Tell
    ) -> tuple[bytes, bool]:
        """Do the work in such a process; see :meth:`JobRunner.run`.

        Its report is to be given to :meth:`complete`.
        """

    def complete(self, report: bytes, pid: int) -> bytes:
        """Return the report that :meth:`read` reads, once all processes have come to the end."""

    def words(self, report: bytes, pid: int, hosts: Mapping[int, str]) -> tuple[int, str] | None:
        """Return the superstep and the error, as it is printed, of a process that has failed.

        Args:
            report: of the process.
            pid: the process.
            hosts: names of the hosts of all processes, where there are several.

        Returns:
            None for one that has not failed by itself.
        """

    def read(self, told: bytes, pid: int) -> Ended | None:
        """Return how a process ended from the bytes of its report; None where they are no report.

        Raises:
            Warning: the process warns, and the caller wants this to be an error.
        """

    def inside(self) -> InsideWork:
        """Return the work for processes that are inside the caller's process.

        Raises:
            Exception: the arguments cannot be copied for each process.
        """


class InsideWork(Protocol):
    """What every process does where all are inside the caller's process."""

    def run(self, pid: int, open_port: OpenPort) -> Ended:
        """Do the work of one process.

        Raises:
            BaseException: any error of the program; :meth:`describe` makes an outcome of it.
        """

    def describe(self, error: BaseException, pid: int) -> Ended:
        """Return how a process ended from what :meth:`run` raised."""

    def whole_lines(self, current_pid: Callable[[], int | None]) -> AbstractContextManager[None]:
        """Write what processes print inside the block in whole lines.

        Args:
            current_pid: returns the pid of the process that prints; None outside every process.
        """


class Transfer(NamedTuple):
    """What a process transfers to or from another one in one direction, in a superstep."""

    caller: int
    """Pid in the group, as for the partner."""
    partner: int
    direction: int
    """A ``Direction``."""
    nbytes: int
    calls: int
    """How many transfers."""


class ObliviousPrices(Protocol):
    """What an oblivious superstep of a group costs each of its processes."""

    def add(self, transfers: Sequence[Transfer]) -> None:
        """Add what a process sends, once it has come to the end of the superstep."""

    def price(self, pids: Sequence[int]) -> float:
        """Return the seconds that the superstep takes for one process.

        Args:
            pids: the process, and each that has sent to it; all of them were added.
        """


class Prices(Protocol):
    """What communication costs in virtual time."""

    def empty(self, nprocs: int) -> float:
        """Return the seconds of a superstep in which a group communicates nothing."""

    def superstep(self, transfers: Sequence[Transfer], nprocs: int) -> float:
        """Return the seconds of a superstep of a whole group.

        Args:
            transfers: of all processes.
            nprocs: number of processes of the group.
        """

    def oblivious(self, nprocs: int) -> ObliviousPrices:
        """Return what prices an oblivious superstep of a group, by its number of processes."""


class Options(NamedTuple):
    """The options of a run; a backend ignores those that mean nothing there."""

    nprocs: int
    start_method: str | None = None
    """Start method of multiprocessing; None lets the backend choose."""
    wait_by: str = "auto"
    """How processes wait for each other: ``auto``, ``spin`` or ``block``."""
    timeout: float | None = None
    """Seconds that the run may take; None where there is no limit."""
    seed: int = 0
    """Seed of the order in which virtual processors run."""
    scale: float = 1.0
    """Virtual seconds for each second of CPU time that a process computes here."""
    prices: Prices | None = None
    """Prices of communication, where time is virtual."""
    own: Mapping[str, Any] = {}  # never changed
    """What the caller gives by ``backend_options``: those of :attr:`Backend.own_options`."""


class Times(NamedTuple):
    """What a run would take, in seconds, on the processors that were simulated.

    Source: Chittor 1995, section 5.1: what the simulator Multi reports.
    """

    parallel_s: float
    """Time of the run until the last process came to the end of main: T(p)."""
    computation_s: float
    """Sum of the computation of all processes. The same program on one process may compute more
    or less than that."""

    def __str__(self) -> str:
        return (
            f"virtual time: parallel {self.parallel_s:.4g} s, total computation "
            f"{self.computation_s:.4g} s"
        )


class Death(NamedTuple):
    """The end of a process that sent no report."""

    pid: int
    superstep: int
    """Superstep of the root group in which it ended."""
    status: int | None
    """Its exit status; the negative number of the signal that killed it; None if unknown."""
    unknown: str = ""
    """Where the status is unknown: what happened, as text that follows ``process 3``."""

    @property
    def failed(self) -> bool:
        """True: a process that sent no report has failed."""
        return True

    def error(self) -> ProcessDiedError:
        """Return the error for it."""
        if self.status is None:
            how = self.unknown
        elif self.status < 0:
            how = f"was killed by {_signal_name(-self.status)}"
        else:
            how = f"exited with status {self.status}"
        when = f"in superstep {self.superstep}"
        error = ProcessDiedError(f"process {self.pid} {how} {when}{self._advice()}")
        error.pid, error.superstep = self.pid, self.superstep
        return error

    def _advice(self) -> str:
        """Return how to find the line, where code that is not Python has crashed."""
        if self.status is None or -self.status not in _CRASHES:
            return ""
        return (
            "; compiled code crashed: with PYTHONFAULTHANDLER=1 in the environment Python shows "
            "the line that called it"
        )


_CRASHES = [
    getattr(signal, name, None)  # Windows has no SIGBUS
    for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")
]
"""Signals that end a process because of a fault of its own, in compiled code."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # realtime signals have no names of their own
        least = int(signal.SIGRTMIN)
        return f"signal {number} (SIGRTMIN+{number - least})" if number > least else str(number)


class Report(NamedTuple):
    """How a run ended."""

    outcomes: Mapping[int, Ended | Death]
    """By pid; a process that was killed because another one failed has none."""
    times: Times | None = None
    """None where time is real."""
    hosts: Mapping[int, str] | None = None
    """Names of the hosts of the processes, by pid; None where all are on one host."""


class TimeIsOver(Exception):  # noqa: N818  # the caller raises an error in its place
    """The run has taken longer than its timeout.

    Args:
        rows: where the processes of the run were.
    """

    def __init__(self, rows: Sequence[Whereabouts]) -> None:
        super().__init__(rows)
        self.rows = rows


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has ended the run.

    Args:
        interrupt: the exception that Ctrl-C raised.
        rows: where the processes of the run were.
    """

    def __init__(self, interrupt: KeyboardInterrupt, rows: Sequence[Whereabouts]) -> None:
        super().__init__(interrupt, rows)
        self.interrupt = interrupt
        self.rows = rows


class KeptProcesses(Protocol):
    """Processes that run one piece of work after the other."""

    busy: bool
    """They are starting or working, so that they can only be ended by force."""

    def start(self) -> None:
        """Start them.

        Raises:
            BaseException: they could not be started; call :meth:`stop` and :meth:`close`.
        """

    def run(self, work: Work, timeout: float | None) -> Report:
        """Let them do some work; all are stopped if one of them fails.

        Raises:
            TimeIsOver: it took longer than ``timeout`` seconds.
            Interrupted: Ctrl-C ended it.
        """

    def stop(self) -> None:
        """End them by force."""

    def close(self) -> None:
        """End processes that wait for work, and free all resources."""


class NothingKept:
    """:class:`KeptProcesses` of which nothing is kept: they are there, or are made in no time.

    Args:
        launch: lets them do some work; see :meth:`KeptProcesses.run`.
    """

    busy = False

    def __init__(self, launch: Callable[[Work, float | None], Report]) -> None:
        self._launch = launch

    def start(self) -> None:
        """Do nothing."""

    def run(self, work: Work, timeout: float | None) -> Report:
        return self._launch(work, timeout)

    def stop(self) -> None:
        """Do nothing: a run that failed has stopped already."""

    def close(self) -> None:
        """Do nothing."""


MOST_SHARING = 256
"""Processes that may share memory: each looks at the words of all others."""


class Backend(NamedTuple):
    """What the runtime knows of a backend.

    A backend can be used after it is registered in :mod:`bsplib.backends.table`.
    """

    name: str
    summary: str
    """Its processes in a few words, for help texts."""
    launch: Callable[[Work, Options], Report]
    """Runs some work in new processes.

    Raises :class:`TimeIsOver` or :class:`Interrupted` where the timeout or Ctrl-C ends the
    run, or the error because of which it could not start."""
    keep: Callable[[Options], KeptProcesses]
    """Makes the processes of a pool."""
    most_processes: int
    machine: str
    """Name of the Machine of a run whose caller names none."""
    usual_processes: Callable[[], int]
    """Returns the number of processes of a run whose caller gives none."""
    is_virtual: bool = False
    """Time is virtual: runs report :class:`Times`, and need ``Options.prices``."""
    is_spread: bool = False
    """Its processes may be on several hosts."""
    own_options: tuple[str, ...] = ()
    """Names of options that only this backend has; they come to it as ``Options.own``."""
    source: str | None = None
    """File of its code, or folder with a separator at the end; None for a backend of bsplib.
    Frames of this code are not counted as frames of the program."""
    probed_over: Callable[[int], str] | None = None
    """Returns what its processes communicate over on a number of hosts, such as ``shared memory``:
    text for a Machine that ``bsp machine probe`` measures. None: there is nothing to measure."""
