"""Transfers of an array that the sender has just written, and that the receiver then reads.

A copy that no process reads stays in the cache of the core that made it, and so does the
source of a copy if it never changes: such a copy is faster than any transfer that is of use.
Here each turn rewrites the source, transfers it, and reads the whole of what has come. Every
case does this work, which takes part of its time: bsplib, its peers and the copy that is the
limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import seconds_each

_VALUES = 251
"""The values that are written in turn. A prime number, so that they repeat at no other period."""

Bytes = NDArray[np.uint8]


def seconds_of_transfer(
    count: int, source: Bytes, targets: Sequence[Bytes], transfer: Callable[[int], object]
) -> float:
    """Return the seconds in which a source is rewritten, transferred and read by its receiver.

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
