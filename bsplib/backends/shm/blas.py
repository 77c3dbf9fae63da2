"""The threads of the BLAS libraries: one in each process of a run, all in its caller."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from functools import lru_cache

from threadpoolctl import ThreadpoolController

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _is_told() -> bool:
    """Tell whether the user has said how many threads there are to be."""
    return any(name in os.environ for name in _VARIABLES)


@contextlib.contextmanager
def one_thread_where_loaded() -> Iterator[None]:
    """Let processes started inside load BLAS with one thread, unless told otherwise."""
    if _is_told():
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
    """Let processes forked inside compute with one BLAS thread, unless told otherwise.

    OpenBLAS ends its threads before a fork, and starts them again at the end of this
    block. Where the system does not allow that, it raises SIGINT: end the processes
    first, or see that there is room for the threads.
    """
    if _is_told():
        yield
        return
    with _thread_pools(len(sys.modules)).limit(limits=1):
        yield


def threads_to_come() -> int:
    """Return how many threads BLAS starts after a fork, at most."""
    if _is_told():
        return 0
    pools = _thread_pools(len(sys.modules)).lib_controllers
    return sum(pool.num_threads - 1 for pool in pools)


def check_room(threads: int) -> None:
    """Make sure that so many threads can be started.

    Raises:
        RuntimeError: they cannot.
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
    """Return the BLAS libraries; they are looked for again once more modules are there."""
    return ThreadpoolController()
