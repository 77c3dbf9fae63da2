"""Runs inside processes that a launcher has started: ``mpiexec ... python -m bsplib run ...``.

Rank 0 runs the script: it is the driver and the hub of the job, and process 0 of each run. The
other ranks serve. While process 0 computes, a thread attends to the hub. mpiexec is not a child
of this process, so that ranks that are killed cannot be replaced: after that the job is broken.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Collection
from types import FrameType
from typing import TYPE_CHECKING

from bsplib import call_site
from bsplib.backends.base import Port, Stopped
from bsplib.backends.blas import one_thread_in_main
from bsplib.backends.interrupter import Interrupter
from bsplib.backends.launching import Death, Ended, Interrupted, Report, TimeIsOver, Work
from bsplib.backends.members import Whereabouts, from_stack
from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import Message
from bsplib.backends.mpi.hub import News
from bsplib.backends.mpi.installations import Starter
from bsplib.backends.mpi.job import Job
from bsplib.backends.mpi.launcher_environment import Seat, take_seat
from bsplib.backends.mpi.rank import Beginning, be_rank, join, pass_barrier
from bsplib.backends.mpi.watcher import Page
from bsplib.backends.outcomes import GRACE_S, Limit, Outcomes, await_outcomes
from bsplib.backends.signals import let_through
from bsplib.errors import ProcessRangeError, StartError
from bsplib.extras import need

if TYPE_CHECKING:
    from bsplib.backends.mpi.link import Link

_AGAIN_S = 0.1
"""Seconds after which process 0 is interrupted again."""
_SIGNAL = signal.SIGRTMAX - 8
_LOOK_S = 0.2
_LEAVE_S = 5.0
_ENDED = "a process has ended since the last run"
_HASHES = (
    "hash() of a text and the order of a set differ between the ranks; to make them equal, put "
    "PYTHONHASHSEED=0 into the environment of mpiexec"
)

current: ForeignJob | None = None
"""The job of this process; None where no launcher has started it."""


def enter(seat: Seat) -> None:
    """Return in rank 0, where runs have the other ranks from now on; serve in all others.

    Args:
        seat: the place of this process.

    Raises:
        BspError: the ranks do not find each other.
    """
    need("mpi4py")
    take_seat()
    if seat.rank:
        be_rank(seat.size, seat.rank)
        sys.exit()
    lead(seat.size)


def lead(size: int) -> ForeignJob:
    """Be rank 0: let runs have the other ranks from now on.

    Args:
        size: number of ranks.

    Raises:
        BspError: the ranks do not find each other.
    """
    global current  # noqa: PLW0603  # a process is in one job
    page = Page()
    current = ForeignJob(size, page, join(None, page, size))
    current.start()
    atexit.register(current.close)
    return current


class ForeignJob(Job):
    """The ranks that a launcher has started, of which this process is number 0.

    Args:
        size: number of ranks.
        page: what a rank shares with its watcher.
        link: connections of MPI.
    """

    _first = 1

    def __init__(self, size: int, page: Page, link: Link) -> None:
        super().__init__(size, Starter(()))
        self._hub.hosts[0] = socket.gethostname()
        self._page = page
        self._link = link
        self._streams = sys.stdout, sys.stderr  # those of the driver, while process 0 has its own
        self._broken = ""
        self._thread = 0
        self._reported: set[int] = set()
        self._own: list[bytes] = []
        self._done = threading.Event()  # process 0 has ended
        self._wakes, self._wakes_it = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._hub.also(self._wakes, watch=True)

    def start(self) -> None:
        """Let the other ranks connect."""
        beginning = Beginning(self._hub.address(), sys.path, sys.argv, os.getcwd())
        self._link.comm.bcast(pickle.dumps(beginning))
        if not pass_barrier(self._link):
            frame = call_site.caller()
            where = (frame.f_code.co_filename, frame.f_lineno) if frame else ("bsplib", 0)
            warnings.warn_explicit(_HASHES, RuntimeWarning, *where)
        ready = {0}
        while len(ready) < self.size:
            for news in self._wait(_LOOK_S):
                if news.message is None:
                    raise StartError(f"run: process {news.rank} {news.why}")
                ready.add(news.rank)
        self.started = True

    # -- a run ------------------------------------------------------------------------------

    def run_on(self, nprocs: int, work: Work, timeout: float | None) -> Report:
        """Let the first ranks do some work; this process is the first of them."""
        self._check(nprocs)
        self.nprocs = nprocs
        self._is_stopping = False
        self._thread = threading.get_ident()
        self._reported.clear()
        self._own.clear()
        self._done.clear()
        self._page.begin()
        self._page.stop[0] = 0
        outcomes: Outcomes = {}
        errors: list[BaseException] = []
        limit = Limit(timeout)
        self._send(work)
        self._link.begin(self._run, nprocs, self._choose_memory())
        from bsplib.backends.mpi.port import open_root  # noqa: PLC0415  # it imports MPI

        def open_port() -> Port:
            port = open_root(self._link)
            if note := self._link.note():
                self._page.read_elsewhere(note, lambda: self._page.map(os.getpid(), note))
            return port

        interrupter = Interrupter(_SIGNAL, Stopped, _is_in_link)
        thread = threading.Thread(
            target=self._attend, args=(limit, outcomes, errors, interrupter), daemon=True
        )
        with one_thread_in_main(), let_through(), interrupter.handling():
            thread.start()
            try:
                report, _ = work.job_runner.run(work.job(), 0, open_port, self._tell)
                self._own.append(report)
            except Stopped:  # it was interrupted after main
                pass
            finally:
                self._done.set()
                os.write(self._wakes_it, b"x")
            self._await(thread)
        self._link.end()
        if errors or any(outcome.failed for outcome in outcomes.values()):
            self._recover(outcomes)
        if errors:
            raise errors[0]
        return Report(outcomes, hosts=self._host_names())

    def _check(self, nprocs: int) -> None:
        if self._broken:
            raise StartError(f"run: {self._broken}, and only mpiexec can start it again")
        if nprocs > self.size:
            raise ProcessRangeError(
                f"nprocs is {nprocs}; mpiexec has started {self.size} processes: ask for fewer, "
                f"or start more"
            )
        if not self.is_sound():
            self._broken = _ENDED
            self._check(nprocs)

    def _await(self, thread: threading.Thread) -> None:
        try:
            while thread.is_alive():
                thread.join(_LOOK_S)
        except KeyboardInterrupt as interrupt:
            rows = [Whereabouts(0, self._page.superstep, "", "has ended")]
            self._page.stop[0] = 1
            self._break_up("the last run was interrupted")
            raise Interrupted(interrupt, rows) from None

    def _attend(
        self,
        limit: Limit,
        outcomes: Outcomes,
        errors: list[BaseException],
        interrupter: Interrupter,
    ) -> None:
        """In a thread: wait for all outcomes; then let process 0 end."""
        try:
            outcomes |= await_outcomes(self, limit)
        except TimeIsOver as error:
            self.tell_to_stop()
            errors.append(error)
        except BaseException as error:  # noqa: BLE001  # raised by the thread that waits
            errors.append(error)
        while not self._done.wait(_AGAIN_S if self._page.stop[0] else None):
            interrupter.fire()

    def _wait(self, seconds: float) -> list[News]:
        news = super()._wait(seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakes, 64)
        while self._own:
            head = control.REPORTED.pack(self._run, self._link.condition)
            report = head + self._own.pop(0)
            news.append(News(0, Message(control.REPORT, report)))
        return news

    def _outcome(self, news: News) -> Ended | Death | None:
        outcome = super()._outcome(news)
        if outcome is not None or news.message is None or news.message.kind == control.DIED:
            self._reported.add(news.rank)
        return outcome

    def _tell(self, told: bytes) -> None:
        """Tell the caller, which is another thread of this process, what process 0 says."""
        self._own.append(told)
        os.write(self._wakes_it, b"x")

    def tell_to_stop(self) -> None:
        """See :meth:`Observed.tell_to_stop`."""
        self._page.stop[0] = 1
        super().tell_to_stop()

    def _own_whereabouts(self) -> dict[int, Whereabouts]:
        """Return where process 0 is."""
        frame = sys._current_frames().get(self._thread)
        superstep = self._page.superstep
        if frame is None or self._done.is_set():
            return {0: Whereabouts(0, superstep, "", "has ended")}
        return {0: from_stack(0, superstep, call_site.stack_of(frame))}

    def tell_all(self, result: bytes) -> None:
        """Tell all ranks what a call of ``bsplib.run`` returns or raises, if they are there."""
        if self._broken:
            return
        self._hub.send_all(control.RESULT, result)
        while self._hub.has_unsent():
            if any(news.message is None for news in self._wait(_LOOK_S)):
                self._broken = _ENDED

    # -- after a run that failed ------------------------------------------------------------

    def _recover(self, outcomes: Outcomes) -> None:
        """Let all ranks come to the end of the run; kill those that do not."""
        dead = [pid for pid, outcome in outcomes.items() if isinstance(outcome, Death)]
        self._conditions[0] = self._link.condition
        self.tell_to_stop()
        deadline = time.monotonic() + GRACE_S
        while not dead and self._late() and time.monotonic() < deadline:
            self.news(_LOOK_S)
        if dead:
            self._break_up(f"process {dead[0]} of this job has died")
        elif late := self._late():
            self._break_up(f"process {min(late)} of this job was killed, as it did not stop")
        elif control.BROKEN in self._conditions.values():
            self._break_up("an error has left the MPI of a process in a state that is not known")
        else:
            self._link.renew(afresh=self._renew())

    def _late(self) -> Collection[int]:
        return set(range(1, self.nprocs)) - self._reported

    def _break_up(self, why: str) -> None:
        self._broken = why
        self._hub.send_all(control.KILL)
        self._hub.close()

    # -- the end ----------------------------------------------------------------------------

    def stop(self) -> None:
        """Do nothing: a run that failed has stopped already."""
        self.busy = False

    def close(self) -> None:
        """At the end of the program: let all ranks leave MPI."""
        if self._ended or self._broken:
            return
        self._ended = True
        if not self.is_sound():
            self._break_up(_ENDED)
            return
        self._hub.send_all(control.END)
        self._link.leave()
        deadline = time.monotonic() + _LEAVE_S
        while self._hub.connected() and time.monotonic() < deadline:
            self._wait(_LOOK_S)
        self._hub.close()


def _is_in_link(frame: FrameType | None) -> bool:
    """Tell whether a frame, or one that has called it since the run began, is of this room.

    There process 0 is not interrupted: the link looks itself whether the run ends, and its sends
    and receives could not be told any more after an error at any line.
    """
    while frame is not None and (module := str(frame.f_globals.get("__name__"))) != __name__:
        if module.startswith(f"{__package__}."):
            return True
        frame = frame.f_back
    return False
