"""Starting the processes of a run, watching them, and bringing them to an end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Semaphore
from typing import Any

import cloudpickle
from threadpoolctl import ThreadpoolController

from bsplib.backends.shm.control import (
    ABORT,
    ASLEEP,
    FIRST_BLOCK,
    LATEST,
    SLOTS,
    SUPERSTEP_SHIFT,
    WORD,
)
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.seat import Seat, Stopped
from bsplib.backends.shm.segment import PAGE, Segment
from bsplib.body import Failure, Task, failure_of, run_task, unpicklable_result
from bsplib.errors import BspError, ProcessDiedError
from bsplib.labels import label_streams

MOST_PROCESSES = 256

_GRACE_S = 0.5
"""Between the first failure and the end of those who do not notice it."""

_BLAS_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class RemoteTraceback(Exception):  # noqa: N818  # shown as a cause, never raised
    """The traceback of the process in which an error was raised."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def launch(task: Task, nprocs: int, start_method: str | None = None) -> list[Any]:
    """Run a task in ``nprocs`` processes; return what they return, by pid.

    Args:
        task: what to run.
        nprocs: 1 to 256.
        start_method: of multiprocessing; None for fork where this process has one
            thread, else forkserver.

    Raises:
        BaseException: the error of the lowest (superstep, pid), in its own type.
    """
    context = multiprocessing.get_context(start_method or _start_method())
    machine = _Machine(context, nprocs)
    try:
        machine.start(task)
        machine.watch()
    except BaseException:
        machine.stop(grace_s=0)
        raise
    finally:
        machine.close()
    return machine.results()


def _start_method() -> str:
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "forkserver"


class _Machine:
    """The processes of one run, seen from their parent."""

    def __init__(self, context: BaseContext, nprocs: int) -> None:
        self._context = context
        self._nprocs = nprocs
        self._segment = Segment(nprocs)
        self._forked = context.get_start_method() == "fork"
        if self._forked:
            self._segment.unlink()  # the processes inherit the mapping
        try:
            self._reserve_control()
        except BspError:
            self._close_segment()
            raise
        self._doorbells: list[Semaphore] = [context.Semaphore(0) for _ in range(nprocs)]
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        self._outcomes: dict[int, Any] = {}  # pid -> (result,) or Failure or None if stopped

    def _reserve_control(self) -> None:
        self._segment.reserve(0, PAGE)
        for pid in range(self._nprocs):
            # The labels, the root's block: what is written before anything can be checked.
            self._segment.reserve(self._segment.area(pid), PAGE)

    def start(self, task: Task) -> None:
        """Start all processes."""
        work = task if self._forked else cloudpickle.dumps(task)
        with _one_blas_thread(), warnings.catch_warnings():
            # 3.12 and later warn of threads that numpy's BLAS has; it survives a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            for pid in range(self._nprocs):
                ours, theirs = self._context.Pipe(duplex=False)
                process = self._context.Process(  # type: ignore[attr-defined]
                    target=_child,
                    args=(self._segment, pid, self._doorbells, theirs, work),
                    name=f"bsp-{pid}",
                )
                process.start()
                theirs.close()
                self._processes.append(process)
                self._pipes.append(ours)
        if not self._forked:
            self._wait_until_attached()
            self._segment.unlink()

    def _wait_until_attached(self) -> None:
        for pid, pipe in enumerate(self._pipes):
            wait([pipe, self._processes[pid].sentinel])
            if not pipe.poll() or pipe.recv_bytes() != _ATTACHED:
                return  # it died: watch() finds out how

    def watch(self) -> None:
        """Wait until all processes have ended; stop them when one fails."""
        deadline: float | None = None
        running = set(range(self._nprocs))
        while running:
            timeout = None if deadline is None else max(deadline - time.monotonic(), 0)
            self._collect(running, timeout)
            failed = any(isinstance(outcome, Failure) for outcome in self._outcomes.values())
            if failed and deadline is None:
                self._tell_to_stop()
                deadline = time.monotonic() + _GRACE_S
            if deadline is not None and time.monotonic() >= deadline:
                self.stop(grace_s=0)
                return
        for process in self._processes:
            process.join()

    def _collect(self, running: set[int], timeout: float | None) -> None:
        """Wait for news of running processes, and take it down."""
        sources: dict[Any, int] = {}
        for pid in running:
            sources[self._pipes[pid]] = sources[self._processes[pid].sentinel] = pid
        for pid in {sources[source] for source in wait(list(sources), timeout)}:
            try:
                news = self._pipes[pid].recv_bytes() if self._pipes[pid].poll() else b""
            except (EOFError, OSError):
                news = b""
            if news == _ATTACHED:
                continue
            if news:
                self._outcomes[pid] = pickle.loads(news)  # from a process of this run
            else:
                self._processes[pid].join()
                self._outcomes[pid] = self._death(pid)
            running.discard(pid)

    def _death(self, pid: int) -> Failure:
        """Describe the end of a process that said nothing."""
        status = self._processes[pid].exitcode
        assert status is not None
        superstep = self._superstep(pid)
        if status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        else:
            how = f"exited with status {status}"
        error = ProcessDiedError(f"process {pid} {how} in superstep {superstep}")
        error.pid, error.superstep = pid, superstep
        return Failure(pid, superstep, error)

    def _superstep(self, pid: int) -> int:
        """Return the superstep of the root group that a process was in."""
        block = self._segment.area(pid) // WORD + FIRST_BLOCK
        words = self._segment.words
        ended = max(words[block + slot] >> SUPERSTEP_SHIFT for slot in SLOTS)
        # The barrier before main is 1 there, the program's superstep 0 is 2.
        return max(ended, words[block + LATEST], 1) - 1

    def _tell_to_stop(self) -> None:
        self._segment.words[ABORT] = 1
        for pid, bell in enumerate(self._doorbells):
            if self._segment.words[self._segment.area(pid) // WORD + ASLEEP]:
                bell.release()

    def stop(self, grace_s: float) -> None:
        """Bring all processes to an end, by force after ``grace_s`` seconds."""
        self._tell_to_stop()
        deadline = time.monotonic() + grace_s
        for process in self._processes:
            process.join(max(deadline - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
        for process in self._processes:
            process.join()

    def close(self) -> None:
        """Give everything back."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.close()
        self._close_segment()

    def _close_segment(self) -> None:
        if not self._forked:
            with contextlib.suppress(FileNotFoundError):  # all had attached: the name is gone
                self._segment.unlink()
        self._segment.close()

    def results(self) -> list[Any]:
        """Return the results by pid, or raise the error of the lowest (superstep, pid)."""
        failures = [outcome for outcome in self._outcomes.values() if isinstance(outcome, Failure)]
        if failures:
            first = min(failures, key=lambda failure: (failure.superstep, failure.pid))
            if first.traceback:
                raise first.error from RemoteTraceback(first.traceback)
            raise first.error
        return [self._outcomes[pid][0] for pid in range(self._nprocs)]


_ATTACHED = b"attached"


def _child(
    segment: Segment,
    pid: int,
    doorbells: Sequence[Semaphore],
    pipe: Connection,
    work: Task | bytes,
) -> None:
    """Be one process of the run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    _end_with_parent()
    if isinstance(work, bytes):
        pipe.send_bytes(_ATTACHED)
    outcome: Any
    try:
        task = pickle.loads(work) if isinstance(work, bytes) else work
        if task.label:
            sys.stdout, sys.stderr = label_streams(lambda: pid)
        port = ShmPort.of_root(Seat(segment, pid, doorbells))
        outcome = (run_task(task, port),)
    except Stopped:
        outcome = None
    except BaseException as error:  # noqa: BLE001  # whatever it is, the parent is told
        outcome = failure_of(error, pid)
    pipe.send_bytes(_pickled(outcome, pid))
    pipe.close()


def _pickled(outcome: Any, pid: int) -> bytes:
    try:
        return pickle.dumps(outcome, 5)
    except Exception as reason:  # noqa: BLE001  # anything may go wrong in a foreign __reduce__
        return pickle.dumps(failure_of(unpicklable_result(pid, reason), pid), 5)


def _end_with_parent() -> None:
    """End this process when its parent is gone, in whatever way it went."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="bsp-parent", daemon=True).start()


class _one_blas_thread:  # noqa: N801  # reads as what it does: with _one_blas_thread()
    """Let processes started inside compute with one BLAS thread, unless told otherwise."""

    def __enter__(self) -> None:
        self._limits = None
        self._variables: list[str] = []
        if any(name in os.environ for name in _BLAS_VARIABLES):
            return
        self._limits = ThreadpoolController().limit(limits=1)
        self._variables = list(_BLAS_VARIABLES)
        os.environ.update(dict.fromkeys(self._variables, "1"))

    def __exit__(self, *_: object) -> None:
        for name in self._variables:
            os.environ.pop(name, None)
        if self._limits is not None:
            self._limits.restore_original_limits()
