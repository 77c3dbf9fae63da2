"""The processes of a run as their caller sees them: their outcomes, and where they are."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Collection, Mapping
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from bsplib.backends.launching import Death, Ended
from bsplib.backends.members import Whereabouts, from_stack
from bsplib.backends.outcomes import StoppedProcess
from bsplib.backends.shm.channel import Channel
from bsplib.backends.shm.control import (
    ABORT,
    ASLEEP,
    BEFORE,
    CELLS,
    DELIVERED,
    FIRST_BLOCK,
    LATEST,
    OS_PID,
    STACK_FILE,
    THREAD,
    WORD,
)
from bsplib.backends.shm.forking import Forked
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.waiting import look
from bsplib.backends.stacks import Answering, is_stopped, stacks_of
from bsplib.core.atomics import full_fence, wake_up
from bsplib.core.kinds import SUPERSTEP_SHIFT
from bsplib.core.meeting import Pause

_LOST = "was lost (the fork server, which watches it, has ended)"
_NO_STATUS = "ended (its status is unknown, since its caller handles SIGCHLD)"


class Observer:
    """Watches the processes of a run, or of a pool.

    Args:
        segment: shared memory of the run.
        by_fork_server: the fork server starts the processes, and reports their exit status.
        yields: looks for reports of the run of a pool, with a yield after each, before it sleeps.
    """

    def __init__(
        self,
        segment: Segment,
        *,
        by_fork_server: bool,
        yields: int,
    ) -> None:
        self.nprocs = segment.nprocs
        self.processes: list[BaseProcess | Forked] = []
        """The processes that have been started, by pid."""
        self.pipes: list[Channel] = []
        """The pipes through which their outcomes come, by pid."""
        self._segment = segment
        self._futexes = segment.futexes()
        self._by_fork_server = by_fork_server
        self._sources: dict[int, int] = {}  # pids, by the file descriptors of their pipes
        self._poll = select.poll()
        self._watched: set[int] = set()  # sources that are registered there
        self._missing: set[int] = set()  # processes whose outcome is not known yet
        self._last = False
        self._yields = yields
        self._pause: Pause | None = None
        self._read: Callable[[bytes, int], Ended | None]

    def watch(self) -> None:
        """Watch the processes that have been added to :attr:`processes` since the last call."""
        for pid in range(len(self._sources) // 2, len(self.processes)):
            process = self.processes[pid]
            if isinstance(process, Forked):
                process.watch()
            else:
                self._improve(process)
            self._sources[self.pipes[pid].fileno()] = self._sources[process.sentinel] = pid

    def _improve(self, process: BaseProcess) -> None:
        """Replace the sentinel of a process by a pidfd, where the system has them.

        Otherwise the sentinel is a pipe, which processes that the program forks hold open,
        too: it would become ready only when the last of them ends. (The fork server writes the
        exit status into its pipe, so that this does not matter there.)
        """
        if hasattr(os, "pidfd_open") and not self._by_fork_server:
            assert process.pid is not None  # it was started
            with contextlib.suppress(OSError):
                itself = os.pidfd_open(process.pid)
                os.dup2(itself, process.sentinel, inheritable=False)
                os.close(itself)

    # -- outcomes ---------------------------------------------------------------------------

    def begin(self, read: Callable[[bytes, int], Ended | None], *, last: bool) -> None:
        """Expect one outcome of each process from now on.

        Args:
            read: decodes the bytes that a process tells or reports; see :meth:`Work.read`.
            last: a process ends when it has reported.
        """
        self._read = read
        self._last = last
        if not last and self._pause is None:
            self._pause = Pause()
        self._missing = set(range(self.nprocs))
        for source in self._sources.keys() - self._watched:
            self._poll.register(source, select.POLLIN)
            self._watched.add(source)

    def news(self, timeout: float) -> Mapping[int, Ended | Death]:
        news: dict[int, Ended | Death] = {}
        if not self._last:  # such a run may end in less time than it takes to wake the caller
            look(lambda: self._poll.poll(0), self._pause, self._yields)
        for source, _ in self._poll.poll(1000 * timeout):
            pid = self._sources[source]
            if pid not in self._missing:
                self._ignore(source)  # the next run finds that it has ended
            elif (outcome := self._outcome(pid, source)) is not None:
                news[pid] = outcome
                self._missing.remove(pid)
                if self._last:
                    self._ignore(self.pipes[pid].fileno(), self.processes[pid].sentinel)
        return news

    def _outcome(self, pid: int, source: int) -> Ended | Death | None:
        """Return how a process ended of which a source is ready; None if it has not ended."""
        pipe = self.pipes[pid]
        has_come = source == pipe.fileno() or pipe.has_come()
        while has_come:
            report = received(pipe)
            if not report:
                return self.death(pid)
            if (ended := self._read(report, pid)) is not None:
                return ended
            has_come = pipe.has_come()
        return None if source == pipe.fileno() else self.death(pid)

    def _ignore(self, *sources: int) -> None:
        """Do not wait for these sources until the next run."""
        for source in sources:
            if source in self._watched:
                self._watched.remove(source)
                self._poll.unregister(source)

    def tell_to_stop(self) -> None:
        control = self._segment.control
        control[ABORT] = 1
        full_fence()  # a process that goes to sleep from now on finds ABORT set
        for pid, futex in enumerate(self._futexes):
            if control[self._segment.control_start(pid) // WORD + ASLEEP]:
                wake_up(futex)

    def stopped(self, ended: Collection[int]) -> list[StoppedProcess]:
        return [
            StoppedProcess(pid, process.pid or 0)
            for pid, process in enumerate(self.processes)
            if pid not in ended and self._is_stopped(pid)
        ]

    def death(self, pid: int) -> Death:
        """Describe the end of a process that sent no report."""
        status = end_of(self.processes[pid])
        superstep = self._superstep(pid)
        if self._is_lost(pid):
            return Death(pid, superstep, None, _LOST)
        return Death(pid, superstep, status, _NO_STATUS)

    def _is_lost(self, pid: int) -> bool:
        """Tell whether a process still runs, so that only the fork server has ended."""
        os_pid = self.processes[pid].pid
        if not self._by_fork_server or os_pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(os_pid, 0)
            return True
        return False

    # -- where they are ---------------------------------------------------------------------

    def whereabouts(self, ended: Collection[int]) -> list[Whereabouts]:
        """See :meth:`Observed.whereabouts`; the places come from the stacks of the processes."""
        supersteps = [self._superstep_begun(pid) for pid in range(self.nprocs)]
        missing = [pid for pid in range(self.nprocs) if pid not in ended]
        found = stacks_of({pid: self._answering(pid) for pid in missing})
        rows = []
        for pid, superstep in enumerate(supersteps):
            if pid in found:
                rows.append(from_stack(pid, superstep, found[pid]))
                continue
            how = "stopped by a signal" if self._is_stopped(pid) else "does not answer"
            how = "has ended" if pid in ended else how
            rows.append(Whereabouts(pid, superstep, "", how))
        return rows

    def _answering(self, pid: int) -> Answering:
        """Return where a process writes its stack."""
        start, control = self._segment.control_start(pid) // WORD, self._segment.control
        file = control[start + STACK_FILE] - 1
        return Answering(control[start + OS_PID], file, control[start + THREAD])

    def _is_stopped(self, pid: int) -> bool:
        os_pid = self.processes[pid].pid
        return os_pid is not None and is_stopped(os_pid)

    def _superstep(self, pid: int) -> int:
        """Return the superstep of the root group in which a process was."""
        start = self._segment.control_start(pid) // WORD
        block = start + FIRST_BLOCK
        control = self._segment.control
        ended = max(control[block + cell] >> SUPERSTEP_SHIFT for cell in CELLS)
        # The barrier before main is 1 there, the program's superstep 0 is 2.
        return max(max(ended, control[block + LATEST]) - control[start + BEFORE], 1) - 1

    def _superstep_begun(self, pid: int) -> int:
        """Return the superstep of the root group that a process has begun and not ended."""
        start = self._segment.control_start(pid) // WORD
        control = self._segment.control
        delivered = control[start + FIRST_BLOCK + DELIVERED] - control[start + BEFORE]
        return max(delivered, 1) - 1  # the barrier is 1 there


def received(pipe: Channel) -> bytes:
    """Return the report of a process; empty where the process ended before it was complete."""
    try:
        return pipe.receive()
    except (EOFError, OSError):
        return b""


def end_of(process: BaseProcess | Forked) -> int | None:
    """Wait until a process has ended; return its exit status, or None where it is not known.

    It is not known where the program ignores SIGCHLD, or waits for any child itself.
    """
    process.join()
    status = process.exitcode
    if status is None and isinstance(process, BaseProcess):
        wait([process.sentinel])
        process._popen.returncode = 0  # type: ignore[attr-defined]  # otherwise close() raises
    return status
