"""How samples are taken, in bsplib, in its peers and in the ranks of an MPI."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_BATCHES = 10
_VALUES = 251
"""Values that are transferred in turn. A prime number: they repeat at no other period."""

Bytes = NDArray[np.uint8]


def seconds_of(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def peak_bytes() -> int:
    """Return the greatest memory that this process has had.

    ``getrusage`` has that of the process that started it where this was greater: it is kept when a
    forked process begins to execute another program.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def seconds_each(count: int, turn: Callable[[], object]) -> float:
    """Call a function many times; return the seconds of one call.

    The calls are made in batches, and the result is the median of all batches but the first.
    The first does not count, because the system often wakes blocked processes on the same
    core and takes milliseconds to distribute them.
    """
    batches = min(_BATCHES, count)
    each = count // batches

    def batch() -> None:
        for _ in range(each):
            turn()

    return statistics.median([seconds_of(batch) / each for _ in range(batches + 1)][1:])


def seconds_of_transfer(
    count: int, source: Bytes, targets: Sequence[Bytes], transfer: Callable[[int], object]
) -> float:
    """Return the seconds in which a source is rewritten, transferred and read by its receiver.

    A copy that no process reads stays in the cache of the core that made it, and so does the
    source of a copy if it never changes: such a copy is faster than any transfer that is of use.

    Args:
        count: number of transfers.
        source: what this process transfers.
        targets: arrays that are used in turn, into which others transfer theirs.
        transfer: called with the number of the target; returns when the transfers of all
            processes have come.
    """
    largest, number = np.maximum.reduce, 0

    def turn() -> None:
        nonlocal number
        number += 1
        value, target = number % _VALUES, number % len(targets)
        source.fill(value)
        transfer(target)
        if largest(targets[target]) != value:
            raise RuntimeError("the values of another transfer have arrived")

    seconds = seconds_each(count, turn)
    if not np.array_equal(targets[number % len(targets)], source):
        raise RuntimeError("the values that were transferred have not arrived")
    return seconds
