"""What it takes to stream through memory, by how much of it is used again and again.

A small working set stays in the caches of a core, a larger one in a cache that is
shared, the largest ones in none. Formulas that are fitted to small runs know nothing of
what lies beyond: this is measured instead, once for a computer, by adding two arrays.

Source: Gonzalez et al., section 2.1: a database of the costs of memory accesses, from
which the segments of the constants follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import bsplib
from apps._metered import Metered

WORKING_SETS = tuple(2**power for power in range(15, 28))
"""Bytes."""

_TURNS = 15
_PASS_BYTES = 2**24
"""A turn streams as much as this at least."""


@dataclass(frozen=True)
class Memory:
    """Seconds a byte, by working set."""

    working_sets: tuple[int, ...]
    """Bytes; rising."""
    seconds_a_byte: tuple[float, ...]

    def seconds(self, streamed_bytes: float, working_set: float) -> float:
        """Return what it takes to read or write bytes of a working set.

        Between the working sets that were measured it is interpolated over their
        logarithms, beyond them it is that of the last.
        """
        rate = np.interp(np.log2(working_set), np.log2(self.working_sets), self.seconds_a_byte)
        return float(streamed_bytes * rate)


def main(bsp: bsplib.Group) -> list[float]:
    """Measure all working sets, on all processes at once where they are real.

    Returns:
        Seconds a byte of this process, for ``WORKING_SETS``: the least of some turns.

    Cost: 1 superstep for each working set.
    """
    bsp.charge(0)  # virtual processors: what counts is what is charged
    return [_seconds_a_byte(bsp, size) for size in WORKING_SETS]


def _seconds_a_byte(bsp: bsplib.Group, working_set: int) -> float:
    """Add two arrays into a third, all three of which make the working set."""
    one, other, total = (np.ones(working_set // 24) for _ in range(3))
    passes = max(_PASS_BYTES // working_set, 1)
    bsp.sync()
    metered = Metered(bsp)
    best = np.inf
    for _ in range(_TURNS):
        began = metered.time()
        for _ in range(passes):
            np.add(one, other, out=total)
        best = min(best, metered.time() - began)
    return float(best) / passes / working_set


def memory_of(results: Sequence[Sequence[float]]) -> Memory:
    """Return what :func:`main` has found on all processes: the slowest of them counts."""
    slowest = np.max(results, axis=0)
    # What was disturbed took longer: a smaller working set takes no more than a larger.
    rates = np.minimum.accumulate(slowest[::-1])[::-1]
    return Memory(WORKING_SETS, tuple(rates.tolist()))
