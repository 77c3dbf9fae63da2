"""The time of a part of a program that several processes run together.

It lasts from the first process that begins to the last one that ends. Where there are more
processes than cores, a process may begin late, and its own time from beginning to end tells
nothing of its waiting.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import bsplib
from bsplib.backends.table import own_cores
from bsplib.running.options import Wait

Span = tuple[float, float]
"""When a process began, and when it ended, in seconds since the run began."""


_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
"""Numbers of options in glibc's ``malloc.h``."""


def keep_memory() -> None:
    """Let this process keep the memory that it frees, so that it is touched first only once.

    A large array is otherwise given back to the system when it is freed, or not, depending on
    what was freed before. The next one then begins with new pages, which may take longer than
    the work on them, and one program is no measure of another one. Programs in C, as those of
    the papers, have their arrays before their times begin.

    Where the C library is not glibc, nothing happens.
    """
    option = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(_M_MMAP_MAX, 0)
        option(_M_TRIM_THRESHOLD, -1)


def waiting(nprocs: int) -> Wait:
    """Return how processes that are timed wait for each other.

    Where each has a core, they spin: a process that gives up its core while it waits, as it does
    by default after some time, gets it back later, by how much depends on what else runs.
    """
    return "spin" if nprocs <= own_cores() else "auto"


def timed(bsp: bsplib.Group, work: Callable[[], object]) -> Span:
    """Wait for all processes, work, and return when this process began and ended.

    Cost: a superstep, and those of the work.
    """
    bsp.sync()
    began = bsp.time()
    work()
    return began, bsp.time()


def least(spans: Sequence[Sequence[Span]]) -> float:
    """Return the least time of a part, in seconds: other work only makes it longer.

    Args:
        spans: of each process, the spans of the part each time it was run.
    """
    return min(
        max(end for _, end in found) - min(began for began, _ in found)
        for found in zip(*spans, strict=True)
    )
