"""How a sample is taken, the same way here and in the ranks of an MPI."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

_BATCHES = 10


def seconds_each(count: int, turn: Callable[[], object]) -> float:
    """Call something many times; return the seconds of one.

    The calls go in batches, of which the first does not count; of the others it is the
    median. Processes that were blocked before are often woken on one core, and it takes
    the system milliseconds to spread them.
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
