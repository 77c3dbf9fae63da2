"""A job: the ranks that one mpiexec has started, as their driver sees them."""

from __future__ import annotations

import math
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import TextIO
from weakref import WeakSet

from bsplib.backends import blas
from bsplib.backends.launching import Carrier, Death, Ended, JobRunner, Report, Work
from bsplib.backends.members import Whereabouts, from_stack
from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import Message
from bsplib.backends.mpi.hub import Hub, News
from bsplib.backends.mpi.installations import LIBRARY, Starter
from bsplib.backends.mpi.launcher import Launcher
from bsplib.backends.mpi.launcher_environment import may_share_memory, may_share_payloads_only
from bsplib.backends.outcomes import Limit, StoppedProcess, await_outcomes
from bsplib.backends.proc_visibility import system_key
from bsplib.backends.signals import let_through
from bsplib.backends.stacks import ANSWER_S
from bsplib.errors import StartError

START_S = float(os.environ.get("BSP_MPI_START_S", "60"))
"""Seconds within which all ranks have to have joined."""
_LOOK_S = 0.2
_WORDS_S = 0.3
"""Seconds for the last words of mpiexec."""
_RENEW_S = 5.0
"""Seconds for ranks to receive what a failed run has sent."""
_LEAVE_S = 5.0
"""Seconds for ranks to leave MPI in peace, and then for mpiexec to end."""
_KILL_S = 0.7
"""Seconds for watchers to kill their ranks, and then for mpiexec to end."""
_PLACE_S = ANSWER_S + 2
"""Seconds to wait until all watchers have said where their ranks are, after they have asked."""
_DOUBT_S = 0.25
"""Seconds from news of a death that may be a consequence until it counts as the reason. Where a
rank or a host is lost, the MPI of other hosts may end the ranks there, and mpiexec all watchers."""
_DIED, _LOST, _GIVEN_UP = range(3)
"""Kinds of evidence, the best first: a watcher saw its rank end; the connection ended; the rank
ended with a status by which an MPI gives up."""
_ABORTED = (14, 15, 16, 17, -signal.SIGTERM)
"""Such statuses: MPI_ERR_UNKNOWN, MPI_ERR_OTHER and MPI_ERR_INTERN of Open MPI and MPICH."""


class Job:
    """Ranks that run one piece of work after the other; see :class:`KeptProcesses`.

    Args:
        size: number of ranks.
        starter: how they are started.
    """

    def __init__(self, size: int, starter: Starter) -> None:
        self.size = self.nprocs = size
        self.starter = starter
        self._loads = _loads(starter)
        self.busy = False
        self.started = False
        self._ended = False
        self._runner: JobRunner | None = None  # the one that the ranks have
        self._run = 0
        self._memory = 0
        self._memory_of = 0
        """The run that has made the memory which ranks may share, and its number of processes."""
        self._read: Callable[[bytes, int], Ended | None]
        self._is_stopping = False
        self._doubtful: list[tuple[int, Death]] = []  # deaths, with the kind of evidence
        self._doubtful_until = math.inf
        self._places: dict[int, Whereabouts] = {}
        self._found: dict[int, Ended | Death] = {}  # for the next look at outcomes
        self._conditions: dict[int, int] = {}
        """The states of the links of ranks after a run; see :data:`control.REPORTED`."""
        self._renewing: set[int] = set()
        """Ranks that have not yet got rid of what a failed run has left."""
        self._hub = Hub(size)
        self._launcher: Launcher | None = None
        self._streams: tuple[TextIO, TextIO] | None = None
        """Where the ranks print; None for the streams of this process."""
        _open.add(self)

    @property
    def usable(self) -> bool:
        """Whether it can do work."""
        return self.started and not self.busy and not self._ended

    _first = 0
    """The first rank that is another process."""

    def fits(self, nprocs: int, starter: Starter) -> bool:
        """Tell whether a run of ``nprocs`` processes, started in this way, can have its ranks."""
        same = (self.starter.command, self._loads) == (starter.command, _loads(starter))
        return self.size >= nprocs and same

    def is_sound(self) -> bool:
        """Tell whether all ranks that wait for work are there, and nothing of a failed run."""
        deadline = time.monotonic() + _RENEW_S
        while True:
            left = deadline - time.monotonic()
            for rank, message, *_ in self._wait(left if self._renewing else 0.0):
                if message is None or message.kind == control.DIED:
                    return False
                if message.kind == control.RENEWED:
                    self._renewing.discard(rank)
            if not self._renewing or left <= 0:
                return not self._renewing

    # -- the start --------------------------------------------------------------------------

    def start(self) -> None:
        """See :meth:`KeptProcesses.start`."""
        self.busy = True
        self._launcher = launcher = Launcher(self.starter, self.size)
        launcher.begin(self._hub)
        ready: set[int] = set()
        with let_through():
            deadline = time.monotonic() + START_S
            while len(ready) < self.size:
                ready.update(self._note_start(news) for news in self._wait(_LOOK_S))
                if why := launcher.why_ended():
                    raise self._start_error(why)
                if time.monotonic() > deadline:
                    missing = self.size - len(ready)
                    raise self._start_error(f"{missing} have not joined within {START_S:g} s")
        launcher.show()
        self.busy, self.started = False, True

    def _note_start(self, news: News) -> int:
        """Return the rank that has joined."""
        if news.message is None:
            raise self._start_error(f"process {news.rank} {news.why}")
        if news.message.kind == control.DIED:
            status, _ = control.ENDED.unpack(news.message.content)
            raise self._start_error(f"process {news.rank} ended with status {status}")
        return news.rank

    def _start_error(self, why: str) -> StartError:
        assert self._launcher is not None
        self._wait(_WORDS_S)
        sentence, words = self._launcher.last_words()
        if sentence:
            return StartError(f"run: {sentence}")
        return StartError(
            f"run: {self.starter.text()} has not started {self.size} processes: {why}"
            + (f"; its last words: {words}" if words else "")
        )

    # -- a run ------------------------------------------------------------------------------

    def run(self, work: Work, timeout: float | None) -> Report:
        """See :meth:`KeptProcesses.run`."""
        return self.run_on(self.size, work, timeout)

    def run_on(self, nprocs: int, work: Work, timeout: float | None) -> Report:
        """Let the first ranks do some work; see :meth:`KeptProcesses.run`."""
        self.busy = True
        self.nprocs = nprocs
        self._is_stopping = False
        limit = Limit(timeout)
        with let_through():
            self._send(work)
            outcomes = await_outcomes(self, limit)
            if not any(outcome.failed for outcome in outcomes.values()):
                self.busy = False
            elif self._all_came_back(outcomes):
                self._renew()
                self.busy = False
            else:
                self.stop()
        return Report(outcomes, hosts=self._host_names())

    def _all_came_back(self, outcomes: Mapping[int, Ended | Death]) -> bool:
        """Tell whether the ranks of a failed run can serve the next one."""
        is_broken = control.BROKEN in self._conditions.values()
        some_died = any(isinstance(outcome, Death) for outcome in outcomes.values())
        lost = is_broken or some_died or bool(self._doubtful)
        return len(outcomes) == self.nprocs and not lost

    def _renew(self) -> bool:
        """After a failed run, let all ranks prepare for the next one; return whether afresh."""
        afresh = control.INTERRUPTED in self._conditions.values()
        self._renewing = set(range(self._first, self.size))
        self._hub.send_all(control.RENEW, bytes([afresh]))
        self._memory_of = 0  # no rank has the memory of this run any more
        return afresh

    def _send(self, work: Work) -> None:
        """Send some work to the ranks that do it."""
        runner = work.job_runner
        if runner != self._runner:
            self._hub.send_all(control.RUNNER, pickle.dumps(runner, 5))
            self._runner = runner
        self._run += 1
        self._found = {}
        self._conditions.clear()
        self._read = work.read
        head = control.RUN.pack(self._run, self.nprocs, self._choose_memory())
        jobs = Jobs(work, self._hub.systems, self._hub.os_pid)
        for rank in range(self._first, self.nprocs):
            self._hub.send(rank, control.JOB, head, jobs.of(rank))

    def _choose_memory(self) -> int:
        """Return which run made the memory for the run that begins; see :data:`control.RUN`."""
        if not may_share_memory():
            return 0
        if self._memory_of != self.nprocs:
            self._memory, self._memory_of = self._run, self.nprocs
        return -self._memory if may_share_payloads_only() else self._memory

    def _wait(self, seconds: float) -> list[News]:
        """Wait for news; show what the ranks and mpiexec have written."""
        news = self._hub.wait(seconds)
        if self._launcher is not None:
            self._launcher.read()
        for each in news:
            if each.message is not None and each.message.kind == control.OUTPUT:
                _show(each.message, *(self._streams or (sys.stdout, sys.stderr)))
        return [
            each for each in news if each.message is None or each.message.kind != control.OUTPUT
        ]

    # -- its outcomes -----------------------------------------------------------------------

    def news(self, timeout: float) -> Mapping[int, Ended | Death]:
        """See :meth:`Observed.news`."""
        deadline = time.monotonic() + timeout
        outcomes, self._found = self._found, {}
        while not outcomes:
            until = min(deadline, self._doubtful_until)
            for news in self._wait(until - time.monotonic()):
                if news.rank < self.nprocs and (outcome := self._outcome(news)) is not None:
                    outcomes.setdefault(news.rank, outcome)
            if not outcomes:
                outcomes |= self._no_longer_in_doubt()
            if time.monotonic() >= deadline:
                break
        return outcomes

    def _outcome(self, news: News) -> Ended | Death | None:
        """Return how a rank ended; None where it has not, or something else may be the reason."""
        message, rank, host = news.message, news.rank, self._host(news.rank)
        if message is None:
            self._doubt(_LOST, Death(rank, news.superstep, None, news.why, host, or_later=True))
        elif message.kind == control.REPORT:
            run, condition = control.REPORTED.unpack_from(message.content)
            if run == self._run:
                self._conditions[rank] = condition
                return self._read(message.content[control.REPORTED.size :], rank)
        elif message.kind == control.DIED:
            status, superstep = control.ENDED.unpack(message.content)
            death = Death(rank, superstep, status, host=host)
            if not host:
                return death
            self._doubt(_GIVEN_UP if status in _ABORTED else _DIED, death)
        elif message.kind == control.PLACE:
            superstep, stopped, stack = pickle.loads(message.content)  # from a proved watcher
            how = "stopped by a signal" if stopped else "does not answer"
            here = Whereabouts(rank, superstep, "", how)
            self._places[rank] = from_stack(rank, superstep, stack) if stack else here
        return None

    def _doubt(self, kind: int, death: Death) -> None:
        """Keep a death that may be the consequence of another one, which is not known yet."""
        if not self._doubtful:
            self._doubtful_until = time.monotonic() + _DOUBT_S
        self._doubtful.append((kind, death))

    def _no_longer_in_doubt(self) -> dict[int, Death]:
        """Return the death that is the reason of the others; none where the run failed before."""
        if time.monotonic() < self._doubtful_until:
            return {}
        _, death = min(self._doubtful, key=lambda each: each[0])  # the first of the best kind
        self._doubtful.clear()
        self._doubtful_until = math.inf
        return {} if self._is_stopping else {death.pid: death}

    def _host_names(self) -> Mapping[int, str] | None:
        """Return the names of the hosts of all ranks where there are several."""
        hosts = self._hub.hosts
        return hosts if len(set(hosts.values())) > 1 else None

    def _host(self, rank: int) -> str:
        """Return the name of the host of a rank where there are several."""
        return (self._host_names() or {}).get(rank, "")

    def tell_to_stop(self) -> None:
        """See :meth:`Observed.tell_to_stop`."""
        self._is_stopping = True
        self._hub.send_all(control.STOP_NOW)

    def stopped(self, ended: Collection[int]) -> list[StoppedProcess]:
        """See :meth:`Observed.stopped`."""
        return [
            StoppedProcess(rank, self._hub.os_pid(rank), self._host(rank))
            for rank in range(self.nprocs)
            if rank not in ended and self._hub.is_stopped(rank)
        ]

    def whereabouts(self, ended: Collection[int]) -> list[Whereabouts]:
        """See :meth:`Observed.whereabouts`."""
        self._places = self._own_whereabouts()
        for rank in range(self._first, self.nprocs):
            superstep = self._hub.superstep(rank)
            if rank in ended:
                self._places[rank] = Whereabouts(rank, superstep, "", "has ended")
            else:
                self._hub.send(rank, control.WHERE)
        deadline = time.monotonic() + _PLACE_S
        while len(self._places) < self.nprocs and time.monotonic() < deadline:
            for news in self._wait(deadline - time.monotonic()):
                if (outcome := self._outcome(news)) is not None:
                    self._found.setdefault(news.rank, outcome)
        return [
            self._places.get(rank)
            or Whereabouts(rank, self._hub.superstep(rank), "", "does not answer")
            for rank in range(self.nprocs)
        ]

    def _own_whereabouts(self) -> dict[int, Whereabouts]:
        """Return where a process is that runs in this one."""
        return {}

    # -- the end ----------------------------------------------------------------------------

    def stop(self) -> None:
        """See :meth:`KeptProcesses.stop`."""
        if not self._ended:
            self._ended = True
            if self._launcher is not None:
                self._launcher.hide()  # it says that ranks were killed
            self._hub.send_all(control.KILL)
            self._await_end(_KILL_S)
        self.busy = False

    def close(self) -> None:
        """See :meth:`KeptProcesses.close`."""
        if self.busy:
            self.stop()
        if not self._ended:
            self._ended = True
            self._hub.send_all(control.END)
            self._await_end(_LEAVE_S)
        self._hub.close()

    def _await_end(self, seconds: float) -> None:
        """Wait until all watchers have gone, but not for long; then end mpiexec."""
        deadline = time.monotonic() + seconds
        while self._hub.connected() and time.monotonic() < deadline:
            self._wait(_LOOK_S)
        if self._launcher is not None:
            if self._hub.connected():
                self._launcher.hide()
            self._hub.close()  # so that watchers that are left kill their ranks
            self._launcher.end(seconds)
            self._launcher = None

    def forget(self) -> None:
        """In a forked process: close what belongs to the parent, and end nothing.

        While it were open here, watchers would not see the end of the driver.
        """
        self._hub.close()
        if self._launcher is not None:
            self._launcher.forget()
        self._launcher, self._ended = None, True


def _show(output: Message, out: TextIO | None, err: TextIO | None) -> None:
    """Write what a rank has printed to one of two streams."""
    stream = err if output.content[0] == 2 else out
    if stream is not None:
        stream.write(output.content[1:].decode(errors="backslashreplace"))
        stream.flush()


def _loads(starter: Starter) -> tuple[str | None, dict[str, str]]:
    """Return what decides how ranks load libraries: that of MPI, and the threads of BLAS."""
    library = dict(starter.variables).get(LIBRARY, os.environ.get(LIBRARY))
    return library, blas.set_by_user()


_open: WeakSet[Job] = WeakSet()
"""All jobs of this process."""


def _forget_all() -> None:
    for job in [*_open]:
        job.forget()


os.register_at_fork(after_in_child=_forget_all)


# -- the job of a run for each of its ranks: a shared array is brought to one rank of each host ---


class Jobs:
    """Makes the job of each rank.

    Args:
        work: what the ranks do.
        systems: the :func:`system_key` of each rank.
        os_pid: returns the number of a rank in its system.
    """

    def __init__(
        self, work: Work, systems: Mapping[int, bytes], os_pid: Callable[[int], int]
    ) -> None:
        self._work = work
        self._systems = systems
        self._os_pid = os_pid
        self._here = work.job()
        self._carriers: dict[bytes, Carrier] = {}
        self._others: dict[bytes, bytes] = {}
        """By system, the job of ranks that are brought nothing."""

    def of(self, rank: int) -> bytes:
        """Return the job of a rank."""
        system = self._systems[rank]
        if not self._work.has_shared or system == system_key():
            return self._here
        carrier = self._carriers.get(system)
        if carrier is None:
            self._carriers[system] = carrier = Carrier(self._os_pid(rank), brings=True)
            return self._work.job(carrier)
        if system not in self._others:
            self._others[system] = self._work.job(carrier._replace(brings=False))
        return self._others[system]
