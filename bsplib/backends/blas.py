"""The threads of the BLAS libraries: one in each process of a run, all of them in its caller."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache

from threadpoolctl import LibController, ThreadpoolController

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def set_by_user() -> dict[str, str]:
    """Return the variables by which the user has set the number of threads, with their values."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


@contextlib.contextmanager
def one_thread_where_loaded() -> Iterator[None]:
    """Let processes that start in the block load BLAS with one thread, unless the user set more."""
    if set_by_user():
        yield
        return
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        yield
    finally:
        for name in _VARIABLES:
            os.environ.pop(name, None)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let this process, and those forked in the block, compute with one BLAS thread there.

    What the user has set is kept. Virtual time counts the CPU time of one thread.

    OpenBLAS ends its threads before a fork, and starts them again when the caller needs them. A
    call that sets their number would start them at once, and for 30 ms they would look for work
    without a pause, on the cores that the new processes need. So the variable that holds the
    number is set where it can be found. Where it cannot, the call is made. Where the system does
    not allow the threads, OpenBLAS raises SIGINT: end the processes before, or make sure that
    the threads can be started.
    """
    if set_by_user():
        yield
        return
    _ONE.begin()
    try:
        yield
    finally:
        _ONE.end()


class _OneThread:
    """Sets numbers of BLAS threads to one, until the last of some blocks has ended.

    Blocks overlap where several threads of the caller have a run each.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._restore: Callable[[], None] | None = None

    def begin(self) -> None:
        """Begin a block."""
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                self._restore = _limit_to_one()

    def end(self) -> None:
        """End a block."""
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._restore is not None:
                self._restore()


def _limit_to_one() -> Callable[[], None]:
    """Let BLAS compute with one thread; return what gives it the threads of before back."""
    counts = _counts(len(sys.modules))
    if counts is None:
        limit: Callable[[], None] = (
            _thread_pools(len(sys.modules)).limit(limits=1).restore_original_limits
        )
        return limit
    before = [(count, count.value) for count in counts]

    def restore() -> None:
        for count, value in before:
            count.value = value

    for count in counts:
        count.value = 1
    return restore


_ONE = _OneThread()


@lru_cache(maxsize=1)
def _counts(modules: int) -> list[ctypes.c_int] | None:
    """Return the numbers of threads of all BLAS libraries; None where one is not found."""
    found = map(_count_of, _thread_pools(modules).lib_controllers)
    counts = [count for count in found if count is not None]
    return counts if len(counts) == len(_thread_pools(modules).lib_controllers) else None


def _count_of(pool: LibController) -> ctypes.c_int | None:
    """Return the variable that holds the number of threads of a BLAS library.

    Returns:
        None where it is not known, or has another meaning.
    """
    if pool.internal_api != "openblas" or getattr(pool, "threading_layer", "") != "pthreads":
        return None
    try:
        count = ctypes.c_int.in_dll(ctypes.CDLL(pool.filepath), "blas_cpu_number")
    except (OSError, ValueError):
        return None
    before = count.value
    if before != pool.get_num_threads():
        return None
    count.value = 1  # right at any moment, whoever computes
    try:
        return count if pool.get_num_threads() == 1 else None
    finally:
        count.value = before


def threads_to_come() -> int:
    """Return the greatest number of threads that BLAS starts after a fork."""
    if set_by_user():
        return 0
    pools = _thread_pools(len(sys.modules)).lib_controllers
    return sum(pool.num_threads - 1 for pool in pools)


def check_room(threads: int) -> None:
    """Check that a number of threads can be started.

    Raises:
        RuntimeError: the system does not allow it.
    """
    over = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(threads):
            thread = threading.Thread(target=over.wait, name="bsp-room", daemon=True)
            thread.start()
            started.append(thread)
    finally:
        over.set()
        for thread in started:
            thread.join()


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> ThreadpoolController:  # noqa: ARG001  # part of the key
    """Return the BLAS libraries; they are searched again when more modules are loaded."""
    return ThreadpoolController()
