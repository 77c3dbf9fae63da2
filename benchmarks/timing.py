"""The method of taking a sample, which is the same in bsplib and in the ranks of an MPI."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

_BATCHES = 10


def seconds_each(count: int, turn: Callable[[], object]) -> float:
    """Call a function many times; return the seconds of one call.

    The calls are made in batches, and the result is the median of all batches but the first.
    The first does not count, because the system often wakes blocked processes on the same
    core and takes milliseconds to distribute them.
    """
    batches = min(_BATCHES, count)
    each = count // batches
    return statistics.median([_batch(each, turn) for _ in range(batches + 1)][1:])


def _batch(count: int, turn: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(count):
        turn()
    return (time.perf_counter() - began) / count


def seconds_of(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
