"""Starts the processes of a run or a pool, gives them work, and ends them."""

from __future__ import annotations

import contextlib
import errno
import logging
import multiprocessing
import os
import pickle
import resource
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any

from bsplib.backends.blas import one_thread, one_thread_where_loaded
from bsplib.backends.hash_seed import one_seed
from bsplib.backends.launching import JobRunner, Options, Report, Work
from bsplib.backends.outcomes import Limit, await_outcomes
from bsplib.backends.shm.channel import Channel, parts_of
from bsplib.backends.shm.child import END, READY, RUNNER, run_process
from bsplib.backends.shm.forking import (
    CAN_FORK,
    Forked,
    Lifeline,
    Prepared,
    fork_all,
    fork_warning_hidden,
)
from bsplib.backends.shm.observer import Observer, end_of, received
from bsplib.backends.shm.segment import AREA_BYTES, Segment
from bsplib.backends.signals import (
    held_back,
    let_through,
    quit_ignored_by_children,
    without_interrupt,
)
from bsplib.core.meeting import YIELDS
from bsplib.errors import StartError, UsageError

_PER_PROCESS = 3
"""File descriptors that the caller needs for each process: a pipe, and two of multiprocessing."""
_FOR_ALL = 12
"""File descriptors for the segment, the lifeline, and for a moment while a process starts."""


def launch(work: Work, options: Options) -> Report:
    """Do some work in new processes; see :attr:`Backend.launch`."""
    with held_back():
        processes = keep(options)
        try:
            return processes.run_once(work, options.timeout)
        finally:
            processes.close()


def keep(options: Options) -> Processes:
    """Make processes that are kept; see :attr:`Backend.keep`."""
    return Processes(options.nprocs, options.start_method, options.wait_by)


class Processes:
    """The processes of one run, or of a pool.

    Args:
        nprocs: number of processes.
        start_method: of multiprocessing; None for fork where this process has one
            thread, else forkserver.
        wait_by: how they wait for each other: ``auto``, ``spin`` or ``block``.
    """

    def __init__(self, nprocs: int, start_method: str | None, wait_by: str) -> None:
        check_guard()
        self._start_method = start_method or _usual_start_method()
        self._context = multiprocessing.get_context(self._start_method)
        self._forks = self._start_method == "fork"
        self._nprocs = nprocs
        self._wait_by = wait_by
        self._runner: JobRunner | None = None  # the one that the processes have
        self._have_ended = False
        self.busy = False
        """See :attr:`KeptProcesses.busy`."""
        with ExitStack() as given:
            check_descriptors(nprocs, _PER_PROCESS * nprocs + _FOR_ALL)
            check_file_size(nprocs, AREA_BYTES)
            self._segment = Segment(nprocs)
            given.callback(self._segment.close)
            self._lifeline = Lifeline()
            given.callback(self._lifeline.close)
            self._segment.reserve_control()
            self._observer = Observer(
                self._segment,
                by_fork_server=self._start_method == "forkserver",
                yields=0 if wait_by == "block" else YIELDS,
            )
            self._given = given.pop_all()
        self._processes = self._observer.processes
        self._pipes = self._observer.pipes

    # -- a run ----------------------------------------------------------------------------

    def run_once(self, work: Work, timeout: float | None) -> Report:
        """Start the processes for one piece of work; return how they ended.

        Raises:
            TimeIsOver: it took longer than ``timeout`` seconds.
            Interrupted: Ctrl-C ended it.
        """
        limit = Limit(timeout)
        if not self._forks:
            self.start()
            return self._run_kept(work, limit)
        with one_thread():
            try:
                self._start(work)
                with let_through():
                    return self._finish(work, limit, last=True)
            except BaseException:
                self.stop()  # so that the threads of BLAS can be started again
                raise

    def start(self) -> None:
        self.busy = True
        with one_thread() if self._forks else nullcontext():
            try:
                self._start(None)
            except BaseException:
                self.stop()  # so that the threads of BLAS can be started again
                raise
        with let_through():
            for pid, (process, pipe) in enumerate(zip(self._processes, self._pipes, strict=True)):
                wait([pipe.fileno(), process.sentinel])
                if not pipe.has_come() or received(pipe) != READY:
                    death = self._observer.death(pid)
                    raise missing_guard() if process.exitcode == STATUS else death.error()
        self.busy = False

    def run(self, work: Work, timeout: float | None) -> Report:
        return self._run_kept(work, Limit(timeout))

    def _run_kept(self, work: Work, limit: Limit) -> Report:
        self.busy = True
        with let_through():
            runner = work.job_runner
            if runner != self._runner:
                self._send(RUNNER + pickle.dumps(runner, 5))
                self._runner = runner
            self._send(work.job())
            report = self._finish(work, limit, last=False)
            self.busy = False
        return report

    def _send(self, message: bytes) -> None:
        parts = parts_of(message)
        for pipe in self._pipes:
            with contextlib.suppress(OSError):  # a dead process is found by its sentinel
                for part in parts:
                    pipe.write(part)

    def _start(self, work: Work | None) -> None:
        every = range(self._nprocs)
        at_a_time = [every] if self._forks and CAN_FORK else [[pid] for pid in every]
        with ExitStack() as needed:
            needed.enter_context(one_thread_where_loaded())
            needed.enter_context(nullcontext() if self._forks else one_seed())
            needed.enter_context(fork_warning_hidden())
            needed.enter_context(quit_ignored_by_children())
            if self._start_method == "forkserver":
                forkserver.ensure_running()  # SIGINT not blocked: it serves other code, too
            for pids in at_a_time:
                with let_through():
                    pass  # starting hundreds of processes takes seconds: handle Ctrl-C
                try:
                    self._start_some(pids, work)
                except (OSError, EOFError) as error:  # EOFError: the fork server has ended
                    raise not_started(len(self._processes), self._nprocs, error) from error

    def _start_some(self, pids: Sequence[int], work: Work | None) -> None:
        """Start the next processes: fork them all at once, or start the only one."""
        ends = [self._context.Pipe() for _ in pids]
        self._pipes += [Channel(ours) for ours, _ in ends]
        with ExitStack() as given:
            pipes = [given.enter_context(theirs) for _, theirs in ends]
            if self._forks and CAN_FORK:
                self._fork_some(pids, pipes, work)
            else:
                self._start_one(pids[0], pipes[0], work)
        self._observer.watch()

    def _fork_some(
        self, pids: Sequence[int], pipes: Sequence[Connection], work: Work | None
    ) -> None:
        prepared = [
            Prepared(f"{PREFIX}{pid}", run_process, self._arguments(pid, pipe, work), pipe)
            for pid, pipe in zip(pids, pipes, strict=True)
        ]
        started: list[int] = []
        try:
            with without_interrupt():
                fork_all(prepared, self._lifeline.reads, started)
        finally:
            self._processes += map(Forked, started)

    def _start_one(self, pid: int, pipe: Connection, work: Work | None) -> None:
        process = self._context.Process(  # type: ignore[attr-defined]
            target=run_process, args=self._arguments(pid, pipe, work), name=f"{PREFIX}{pid}"
        )
        with without_interrupt():
            process.start()
        self._processes.append(process)

    def _arguments(self, pid: int, pipe: Connection, work: Work | None) -> tuple[Any, ...]:
        """Return the arguments of :func:`run_process`."""
        return self._segment, pid, self._wait_by, self._lifeline, pipe, work

    def _finish(self, work: Work, limit: Limit, *, last: bool) -> Report:
        """Wait for all outcomes; stop all processes if one of them is a failure."""
        self._observer.begin(work.read, last=last)
        outcomes = await_outcomes(self._observer, limit)
        if any(outcome.failed for outcome in outcomes.values()):
            self.stop()
        elif last:
            self._await_ends()
        return Report(outcomes)

    # -- the end --------------------------------------------------------------------------

    def stop(self) -> None:
        """End all processes by force."""
        if self._processes:
            self._observer.tell_to_stop()
        self._lifeline.cut()
        for process in self._processes:
            process.kill()  # it may not be bound to the lifeline yet
        self._await_ends()
        self.busy = False

    def _await_ends(self) -> None:
        for process in self._processes:
            end_of(process)
        self._have_ended = True

    def close(self) -> None:
        """End processes that wait for tasks, stop the others, and free all resources."""
        if self.busy:
            self.stop()
        if not self._have_ended:
            self._send(END)
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            end_of(process)
            process.close()
        self._pipes.clear()
        self._processes.clear()
        self._given.close()


def _usual_start_method() -> str:
    threads = threading.active_count()
    if threads == 1:
        return "fork"
    logging.getLogger("bsplib").info(
        "fallback: the processes are started by a fork server, since this process has %d threads, "
        "and they import what main needs",
        threads,
    )
    return "forkserver"


# -- scripts that call ``run`` when they are imported: ``if __name__ == "__main__"`` is missing ---
# A process that is not forked imports the script of its caller before anything else. If the
# script calls ``run`` outside the guard, each process would start a run of its own. Instead,
# it exits with a special status, for which its caller raises an error that explains this.


STATUS = 97
"""Exit status of a process that imports such a script."""
PREFIX = "bsp-"
"""Beginning of the names of processes of a run."""


def check_guard() -> None:
    """End this process, or raise, if it is importing the script of its caller.

    Raises:
        UsageError: it is, and was not started by bsplib.
    """
    process = multiprocessing.current_process()
    if not getattr(process, "_inheriting", False):
        return
    if process.name.startswith(PREFIX):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STATUS)
    raise missing_guard()


def missing_guard() -> UsageError:
    """Return the error for the caller of such a script."""
    return UsageError(
        "run: the script calls bsplib.run as it is imported, and each process that is not "
        'forked imports it; write the call below if __name__ == "__main__":'
    )


# -- limits of the system on a run, and the errors for exceeding them -----------------------------


def check_descriptors(nprocs: int, needed: int) -> None:
    """Check, before any process starts, that the caller may open enough files.

    Args:
        nprocs: number of processes.
        needed: number of file descriptors that the caller needs for them.

    Raises:
        StartError: the limit is too low.
    """
    taken: list[int] = []
    try:
        taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        taken.extend(os.dup(taken[0]) for _ in range(needed - 1))
    except OSError:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise StartError(
            f"run: {nprocs} processes need {needed} file descriptors, and this process may open "
            f"{len(taken)} more (ulimit -n is {limit}); raise the limit or ask for fewer processes"
        ) from None
    finally:
        for descriptor in taken:
            os.close(descriptor)


def check_file_size(nprocs: int, area_bytes: int) -> None:
    """Check, before any process starts, that files may be as large as that of shared memory.

    Args:
        nprocs: number of processes.
        area_bytes: of the area that each process has in the file, which is almost all holes.

    Raises:
        StartError: the limit is too low.
    """
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if 0 <= limit < (nprocs + 1) * area_bytes:
        raise StartError(
            f"run: the shared memory of {nprocs} processes is one large file with holes, and files "
            f"may have {limit} bytes only (ulimit -f); lift the limit by ulimit -f unlimited, or "
            f"use virtual processors (--backend sim)"
        )


def not_started(pid: int, nprocs: int, error: Exception) -> StartError:
    """Return the error for a process that the system did not start."""
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.EAGAIN:
        limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
        allowed = "" if limit < 0 else f" (ulimit -u is {limit})"
        why = (
            f"there may be no more processes and threads{allowed}; raise the limit or ask for "
            f"fewer processes"
        )
    elif code == errno.ENOMEM:
        why = "there is no memory for it; ask for fewer processes"
    elif code is None or isinstance(error, ConnectionError):
        why = "the fork server that starts it has ended; see what it has printed, and run again"
    else:
        why = str(error)
    return StartError(f"run: process {pid} of {nprocs} cannot be started: {why}")
