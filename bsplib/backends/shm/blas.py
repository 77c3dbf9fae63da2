"""The threads of the BLAS libraries: one in each process of a run, all of them in its caller."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache

from threadpoolctl import ThreadpoolController

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _is_set_by_user() -> bool:
    """Tell whether the user has set the number of threads."""
    return any(name in os.environ for name in _VARIABLES)


@contextlib.contextmanager
def one_thread_where_loaded() -> Iterator[None]:
    """Let processes that start in the block load BLAS with one thread, unless the user set more."""
    if _is_set_by_user():
        yield
        return
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        yield
    finally:
        for name in _VARIABLES:
            os.environ.pop(name, None)


@contextlib.contextmanager
def one_thread_where_forked() -> Iterator[None]:
    """Let processes forked in the block compute with one BLAS thread, unless the user set more.

    OpenBLAS ends its threads before a fork, and starts them again at the end of this
    block. Where the system does not allow that, it raises SIGINT: end the processes
    before, or make sure that the threads can be started.
    """
    if _is_set_by_user():
        yield
        return
    with _thread_pools(len(sys.modules)).limit(limits=1):
        yield


def threads_to_come() -> int:
    """Return the greatest number of threads that BLAS starts after a fork."""
    if _is_set_by_user():
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
