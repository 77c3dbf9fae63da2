"""The threads of the BLAS libraries: one in each process of a run, all of them in its caller."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache

from threadpoolctl import ThreadpoolController

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _Blocks:
    """Keeps something set from the first of some blocks that begins to the last one that ends.

    Blocks overlap where several threads of the caller have a run each.

    Args:
        set_up: sets it, and returns what sets it as it was before.
    """

    def __init__(self, set_up: Callable[[], Callable[[], None]]) -> None:
        self._set_up = set_up
        self._lock = threading.Lock()
        self._restore: Callable[[], None] = _do_nothing
        self.open = 0
        """Number of blocks that have begun and not ended."""

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Keep it set in a block."""
        with self._lock:
            if self.open == 0:
                self._restore = self._set_up()
            self.open += 1
        try:
            yield
        finally:
            with self._lock:
                self.open -= 1
                if self.open == 0:
                    self._restore()


def _do_nothing() -> None:
    pass


def set_by_user() -> dict[str, str]:
    """Return the variables by which the user has set the number of threads, with their values."""
    if _IN_ENVIRONMENT.open:
        return {}
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


@contextlib.contextmanager
def one_thread_where_loaded() -> Iterator[None]:
    """Let processes that start in the block load BLAS with one thread.

    What the user has set by a variable is kept.
    """
    with contextlib.nullcontext() if set_by_user() else _IN_ENVIRONMENT.block():
        yield


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let this process, and those forked in the block, compute with one BLAS thread there.

    What the user has set by a variable is kept. Virtual time counts the CPU time of one thread.

    OpenBLAS ends its threads before a fork, and starts them again at the end of the block. Where
    the system does not allow the threads, it says so and raises SIGINT: end the processes before.
    """
    with contextlib.nullcontext() if set_by_user() else _WHERE_LOADED.block():
        yield


@contextlib.contextmanager
def one_thread_in_main() -> Iterator[None]:
    """Let ``main`` compute with one BLAS thread in this process, with any BLAS that it loads, too.

    What the user has set by a variable is kept.
    """
    with one_thread(), one_thread_where_loaded():
        yield


def _say_one() -> Callable[[], None]:
    """Let a library that is loaded from now on have one thread; return what undoes this."""
    before = {pool.filepath for pool in _thread_pools(len(sys.modules)).lib_controllers}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))

    def restore() -> None:
        for name in _VARIABLES:
            os.environ.pop(name, None)
        for pool in _thread_pools(len(sys.modules)).lib_controllers:
            if pool.filepath not in before:
                pool.set_num_threads(len(os.sched_getaffinity(0)))

    return restore


def _limit_to_one() -> Callable[[], None]:
    """Let BLAS compute with one thread; return what gives it the threads of before back."""
    limits = _thread_pools(len(sys.modules)).limit(limits=1)
    restore: Callable[[], None] = limits.restore_original_limits
    return restore


_IN_ENVIRONMENT, _WHERE_LOADED = _Blocks(_say_one), _Blocks(_limit_to_one)


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> ThreadpoolController:  # noqa: ARG001  # part of the key
    """Return the BLAS libraries; they are searched again when more modules are loaded."""
    return ThreadpoolController()
