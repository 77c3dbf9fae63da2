"""The processes of a run, seen from their parent: started, watched, brought to an end."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FunctionType
from typing import Any

import cloudpickle
import numpy as np

from bsplib.backends.shm import fork_warning
from bsplib.backends.shm.blas import (
    check_room,
    one_thread_where_forked,
    one_thread_where_loaded,
    threads_to_come,
)
from bsplib.backends.shm.child import END, FRAME, READY, be_process
from bsplib.backends.shm.control import (
    ABORT,
    ASLEEP,
    FIRST_BLOCK,
    LATEST,
    PAGE,
    SLOTS,
    SUPERSTEP_SHIFT,
    TURNED,
    WORD,
)
from bsplib.backends.shm.doorbell import Doorbell, doorbells
from bsplib.backends.shm.fences import full_fence
from bsplib.backends.shm.guard import PREFIX, STATUS, check_guard, missing_guard
from bsplib.backends.shm.lifeline import Lifeline
from bsplib.backends.shm.limits import check_descriptors, close_pipes, no_threads, not_started
from bsplib.backends.shm.locate import stacks
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.waiting import is_stopped
from bsplib.backends.signals import let_through, without_interrupt
from bsplib.backends.whereabouts import Whereabouts, from_stack, interrupted, overdue
from bsplib.errors import ProcessDiedError
from bsplib.running.failures import Failure, raise_first, read_outcome
from bsplib.running.seeds import Seeds
from bsplib.running.task import Task

_LOOK_S = 2.0
"""Without news for so long the parent asks whether somebody is stopped."""
_GRACE_S = 0.5
"""Between the first failure and the end of those who do not notice it."""


class Processes:
    """The processes of one run, or of a pool.

    Args:
        nprocs: how many.
        start_method: of multiprocessing; None for fork where this process has one
            thread, else forkserver.
        wait_by: how they wait for each other: ``auto``, ``spin`` or ``block``.
    """

    def __init__(self, nprocs: int, start_method: str | None, wait_by: str) -> None:
        check_guard()
        self._context = multiprocessing.get_context(start_method or _start_method())
        self._nprocs = nprocs
        self._wait_by = wait_by
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        self._frame: Task | None = None  # that the processes were told
        self._told: set[int] = set()
        self._sources: dict[int, int] = {}  # pid, by what its news comes through
        self.busy = False
        """Processes start or run a task; they cannot be asked to end."""
        with ExitStack() as given:
            check_descriptors(nprocs)
            self._segment = Segment(nprocs)
            given.callback(self._segment.close)
            self._lifeline = Lifeline()
            given.callback(self._lifeline.close)
            self._doorbells = self._reserve_control()
            self._given = given.pop_all()

    def _forks(self) -> bool:
        return self._context.get_start_method() == "fork"

    def _reserve_control(self) -> list[Doorbell]:
        """Reserve what is written before anything can be checked: labels, the root's block."""
        self._segment.reserve(0, PAGE)
        for pid in range(self._nprocs):
            self._segment.reserve(self._segment.control_start(pid), PAGE)
        bells = doorbells(self._segment, self._nprocs)
        for bell in bells:
            bell.initialise()
        return bells

    # -- a run ----------------------------------------------------------------------------

    def run_once(self, task: Task, timeout: float | None = None) -> list[Any]:
        """Start the processes for one task, return its results by pid."""
        limit = Limit(timeout)
        if not self._forks():
            self.start()
            return self.run(task, limit)
        with one_thread_where_forked():
            try:
                self._start(task)
                with let_through():
                    return self._finish(limit, last=True)
            except BaseException:
                self.stop()  # gives room to the threads of BLAS
                raise

    def start(self) -> None:
        """Start processes that wait for tasks."""
        self.busy = True
        if self._forks():
            self._fork_all()
        else:
            self._start(None)
        with let_through():
            for pid, pipe in enumerate(self._pipes):
                wait([pipe, self._processes[pid].sentinel])
                if not pipe.poll() or _received(pipe) != READY:
                    death = self._death(pid).error
                    raise missing_guard() if self._processes[pid].exitcode == STATUS else death
        self.busy = False

    def run(self, task: Task, limit: Limit) -> list[Any]:
        """Give a task to processes that wait for one, return its results by pid."""
        frame = replace(task, main=_nothing, args=(), kwargs={}, seeds=Seeds())
        self.busy = True
        with let_through():
            if frame != self._frame:
                self._send(FRAME + pickle.dumps(frame, 5))
                self._frame = frame
            self._send(_dump((task.main, task.args, task.kwargs, task.seeds)))
            results = self._finish(limit, last=False)
            self.busy = False
        return results

    def _send(self, work: bytes) -> None:
        for pipe in self._pipes:
            with contextlib.suppress(OSError):  # a dead process is found by its sentinel
                pipe.send_bytes(work)

    def _fork_all(self) -> None:
        """Fork processes that wait for tasks; the threads of BLAS come back at once."""
        threads = threads_to_come()
        with one_thread_where_forked():
            try:
                self._start(None)
                check_room(threads)
            except BaseException as error:
                self.stop()
                if isinstance(error, RuntimeError):
                    raise no_threads(threads, self._nprocs) from error
                raise

    def _start(self, task: Task | None) -> None:
        with one_thread_where_loaded(), fork_warning.hidden():
            if self._context.get_start_method() == "forkserver":
                forkserver.ensure_running()  # not with SIGINT blocked: it serves others, too
            for pid in range(self._nprocs):
                with let_through():
                    pass  # to start hundreds of processes takes seconds: Ctrl-C ends it here
                try:
                    self._start_one(pid, task)
                except (OSError, EOFError) as error:  # EOFError: the fork server has ended
                    close_pipes(error)
                    raise not_started(pid, self._nprocs, error) from error

    def _start_one(self, pid: int, task: Task | None) -> None:
        ours, theirs = self._context.Pipe()
        self._pipes.append(ours)
        with theirs, without_interrupt():
            process = self._context.Process(  # type: ignore[attr-defined]
                target=be_process,
                args=(
                    self._segment,
                    pid,
                    self._nprocs,
                    self._lifeline,
                    theirs,
                    self._wait_by,
                    task,
                ),
                name=f"{PREFIX}{pid}",
            )
            process.start()
        self._processes.append(process)
        self._watch(process)
        self._sources[ours.fileno()] = self._sources[process.sentinel] = pid

    def _watch(self, process: BaseProcess) -> None:
        """Let the sentinel of a process be the process itself, where the system can do that.

        Otherwise it is a pipe, which processes that the program forks hold open, too: it
        would tell of the end of the last one of them. (The fork server writes into its
        pipe how a process ended, whoever else has it.)
        """
        if hasattr(os, "pidfd_open") and self._context.get_start_method() != "forkserver":
            assert process.pid is not None  # it was started
            with contextlib.suppress(OSError):
                itself = os.pidfd_open(process.pid)
                os.dup2(itself, process.sentinel, inheritable=False)
                os.close(itself)

    def _finish(self, limit: Limit, *, last: bool) -> list[Any]:
        """Wait for all outcomes; stop everybody once one of them is a failure."""
        outcomes: dict[int, Any] = {}  # pid -> (result,) or Failure or Halt
        try:
            failed = self._await(outcomes, limit)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(interrupted(self._whereabouts(outcomes)))
            raise
        if failed:
            self.stop()
        elif last:
            for process in self._processes:
                _end_of(process)
        raise_first(outcomes)
        return [outcomes[pid][0] for pid in range(self._nprocs)]

    def _await(self, outcomes: dict[int, Any], limit: Limit) -> bool:
        """Wait for all outcomes, or a while after the first failure; return whether one is."""
        deadline: float | None = None
        news = self._news()
        while len(outcomes) < self._nprocs:
            if limit.is_over() and deadline is None:
                raise overdue(limit.seconds, self._whereabouts(outcomes))
            timeout = limit.cut(_LOOK_S) if deadline is None else deadline - time.monotonic()
            if timeout <= 0:
                break
            if not self._collect(news, outcomes, timeout) and deadline is None:
                self._say_who_is_stopped(outcomes)
            if deadline is None and any(isinstance(o, Failure) for o in outcomes.values()):
                self._tell_to_stop()
                deadline = time.monotonic() + _GRACE_S
        return deadline is not None

    def _whereabouts(self, outcomes: dict[int, Any]) -> list[Whereabouts]:
        """Ask the processes that have not ended where they are."""
        supersteps = [self._superstep_begun(pid) for pid in range(self._nprocs)]
        missing = [pid for pid in range(self._nprocs) if pid not in outcomes]
        controls = {pid: self._segment.control_start(pid) // WORD for pid in missing}
        found = stacks(self._segment.control, controls)
        rows = []
        for pid, superstep in enumerate(supersteps):
            if pid in found:
                rows.append(from_stack(pid, superstep, found[pid]))
                continue
            how = "stopped by a signal" if self._is_stopped(pid) else "does not answer"
            how = "has ended" if pid in outcomes else how
            rows.append(Whereabouts(pid, superstep, "", how))
        return rows

    def _news(self) -> select.poll:
        """Return what tells of news of processes."""
        news = select.poll()
        for source in self._sources:
            news.register(source, select.POLLIN)
        return news

    def _collect(self, news: select.poll, outcomes: dict[int, Any], timeout: float) -> bool:
        """Wait for news of processes, and take it down; return whether there was any."""
        ready = {self._sources[source] for source, _ in news.poll(1000 * timeout)}
        for pid in ready:
            pipe = self._pipes[pid]
            said = _received(pipe) if pipe.poll() else b""
            outcomes[pid] = read_outcome(said, pid) if said else self._death(pid)
            news.unregister(pipe.fileno())
            news.unregister(self._processes[pid].sentinel)
        return bool(ready)

    def _say_who_is_stopped(self, outcomes: dict[int, Any]) -> None:
        """Tell, once, of a stopped process for which nobody waits but the run itself."""
        missing = [pid for pid in range(self._nprocs) if pid not in outcomes]
        if not all(map(self._is_stopped, missing)):
            return  # somebody else says so
        for pid in missing:
            if pid not in self._told:
                self._told.add(pid)
                sys.stderr.write(
                    f"bsplib: the run waits for process {pid}, which is stopped; continue it "
                    f"(kill -CONT {self._processes[pid].pid}) or end the run\n"
                )
                sys.stderr.flush()

    def _is_stopped(self, pid: int) -> bool:
        os_pid = self._processes[pid].pid
        return os_pid is not None and is_stopped(os_pid)

    def _death(self, pid: int) -> Failure:
        """Describe the end of a process that said nothing."""
        status = _end_of(self._processes[pid])
        superstep = self._superstep(pid)
        if self._is_lost(pid):
            how = "was lost, since the fork server, which watches it, has ended"
        elif status is None:
            how = "ended, nobody knows how, since its caller does not wait for it (SIGCHLD)"
        elif status < 0:
            how = f"was killed by {_signal_name(-status)}"
        else:
            how = f"exited with status {status}"
        error = ProcessDiedError(f"process {pid} {how} in superstep {superstep}")
        error.pid, error.superstep = pid, superstep
        return Failure(pid, superstep, error)

    def _is_lost(self, pid: int) -> bool:
        """Tell whether a process lives whose end is known: the fork server said nothing."""
        os_pid = self._processes[pid].pid
        if self._context.get_start_method() != "forkserver" or os_pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(os_pid, 0)
            return True
        return False

    def _superstep(self, pid: int) -> int:
        """Return the superstep of the root group that a process was in."""
        block = self._segment.control_start(pid) // WORD + FIRST_BLOCK
        control = self._segment.control
        ended = max(control[block + slot] >> SUPERSTEP_SHIFT for slot in SLOTS)
        # The barrier before main is 1 there, the program's superstep 0 is 2.
        return max(ended, control[block + LATEST], 1) - 1

    def _superstep_begun(self, pid: int) -> int:
        """Return the superstep of the root group whose end a process has not passed."""
        block = self._segment.control_start(pid) // WORD + FIRST_BLOCK
        return max(self._segment.control[block + TURNED], 1) - 1  # the barrier is 1 there

    # -- the end --------------------------------------------------------------------------

    def _tell_to_stop(self) -> None:
        self._segment.control[ABORT] = 1
        full_fence()  # who sleeps from now on finds ABORT set
        for pid, bell in enumerate(self._doorbells):
            if self._segment.control[self._segment.control_start(pid) // WORD + ASLEEP]:
                bell.release()

    def stop(self) -> None:
        """Bring all processes to an end, by force where they are not at one."""
        if self._processes:
            self._tell_to_stop()
        self._lifeline.cut()
        for process in self._processes:
            process.kill()  # it may not be bound to the lifeline yet
        for process in self._processes:
            _end_of(process)
        self.busy = False

    def close(self) -> None:
        """Give everything back; processes that wait for tasks end, others are stopped."""
        if self.busy:
            self.stop()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):  # it has ended already
                pipe.send_bytes(END)
            pipe.close()
        for process in self._processes:
            _end_of(process)
            process.close()
        self._pipes, self._processes, self._doorbells = [], [], []
        self._sources.clear()
        self._given.close()


def _end_of(process: BaseProcess) -> int | None:
    """Wait until a process has ended; return how, None where somebody else was told.

    That is so where the program ignores SIGCHLD, or waits for any child itself.
    """
    process.join()
    status = process.exitcode
    if status is None:
        wait([process.sentinel])
        process._popen.returncode = 0  # type: ignore[attr-defined]  # else it cannot be closed
    return status


class Limit:
    """The time that a run may take, from now on.

    Args:
        seconds: None for as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._ends = time.monotonic() + self.seconds

    def is_over(self) -> bool:
        """Tell whether it has passed."""
        return time.monotonic() >= self._ends

    def cut(self, seconds: float) -> float:
        """Return a time to wait that ends not much later than the limit."""
        return min(seconds, self._ends - time.monotonic() + 0.001)


def _received(pipe: Connection) -> bytes:
    """Return what a process said; nothing where it ended before it had said all."""
    try:
        return pipe.recv_bytes()
    except (EOFError, OSError):
        return b""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # realtime signals have no names of their own
        least = getattr(signal, "SIGRTMIN", number)
        return f"signal {number} (SIGRTMIN+{number - least})" if number > least else str(number)


def _start_method() -> str:
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "forkserver"


def _nothing(bsp: Any) -> None:
    """Stand for a main that is told later."""


_PLAIN = (int, float, complex, str, bytes, type(None), np.ndarray, np.generic)


def _dump(work: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Seeds]) -> bytes:
    """Pickle main and its arguments: by name where they can be found so, or by value."""
    main, args, kwargs, _ = work
    is_named = isinstance(main, FunctionType) and main.__module__ != "__main__"
    if is_named and all(isinstance(value, _PLAIN) for value in (*args, *kwargs.values())):
        with contextlib.suppress(pickle.PicklingError, AttributeError):  # a function in a function
            return pickle.dumps(work, 5)
    by_value: bytes = cloudpickle.dumps(work)
    return by_value
