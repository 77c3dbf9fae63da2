"""What memory delays a program by, by how much of it is used again and again.

A small working set stays in the caches of a core, a larger one in a cache that is
shared, the largest ones in none. Formulas that are fitted to small runs know nothing of
what lies beyond: this is measured instead, once for a computer, by the butterflies of a
Fourier transform, which compute a little with all that they read.

Source: Gonzalez et al., section 2.1: a database of the costs of memory accesses, from
which the segments of the constants follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import bsplib
from apps._metered import Metered
from apps.fourier import combine

WORKING_SETS = tuple(round(2 ** (steps / 2)) for steps in range(38, 55))
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

    def delay(self, streamed_bytes: float, working_set: float) -> float:
        """Return how much longer it takes to go through bytes than if they were in a cache.

        Between the working sets that were measured it is interpolated over their
        logarithms, beyond them it is that of the last.
        """
        rate = np.interp(np.log2(working_set), np.log2(self.working_sets), self.seconds_a_byte)
        return float(streamed_bytes * (rate - self.seconds_a_byte[0]))


def main(bsp: bsplib.Group) -> list[float]:
    """Measure all working sets, on all processes at once where they are real.

    Returns:
        Seconds a byte of this process, for ``WORKING_SETS``: the least of some turns.

    Cost: 1 superstep for each working set.
    """
    bsp.charge(0)  # virtual processors: what counts is what is charged
    return [_seconds_a_byte(bsp, size) for size in WORKING_SETS]


def _seconds_a_byte(bsp: bsplib.Group, working_set: int) -> float:
    """Combine two halves of an array by roots, which make the working set together."""
    half = working_set // 48
    out, roots = np.zeros(2 * half, np.complex128), np.ones(half, np.complex128)
    out[:] = 1  # the system gives memory when it is written
    passes = max(_PASS_BYTES // working_set, 1)
    bsp.sync()
    metered = Metered(bsp)
    best = np.inf
    for _ in range(_TURNS):
        began = metered.time()
        for _ in range(passes):
            combine(out, out[:half], out[half:], roots)
        best = min(best, metered.time() - began)
    return float(best) / passes / working_set


def memory_of(results: Sequence[Sequence[float]]) -> Memory:
    """Return what :func:`main` has found on all processes: the slowest of them counts."""
    slowest = np.max(results, axis=0)
    # What was disturbed took longer: a smaller working set takes no more than a larger.
    rates = np.minimum.accumulate(slowest[::-1])[::-1]
    return Memory(WORKING_SETS, tuple(rates.tolist()))
