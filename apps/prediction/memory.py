"""What memory delays a program by, by how much of it is used again and again.

A small working set stays in the caches of a core, a larger one in a cache that is
shared, the largest ones in none. Formulas that are fitted to small runs know nothing of
what lies beyond: this is measured instead, once for a computer, by the butterflies of a
Fourier transform, which compute a little with all that they read.

Source: Gonzalez et al., section 2.1: a database of the costs of memory accesses, from
which the segments of the constants follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import bsplib
from apps.fourier.common import combine

WORKING_SETS = tuple(round(2 ** (steps / 2)) for steps in range(38, 55))
"""Bytes."""
LINE = 64
"""Bytes that memory is read by."""

_TURNS = 15
_PASS_BYTES = 2**24
"""A turn streams as much as this at least."""


class Stream(NamedTuple):
    """Bytes that a program goes through in a row."""

    bytes: float
    working_set: float
    """Bytes that it went through since it had them last: what a cache must hold."""
    apart: bool = False
    """Lines that are not next to each other, of which not all is used."""


@dataclass(frozen=True)
class Memory:
    """Seconds a byte, by working set."""

    working_sets: tuple[int, ...]
    """Bytes; rising."""
    seconds_a_byte: tuple[float, ...]
    apart_s: float
    """Seconds for each byte of lines that are not next to each other, in the largest."""

    def delay(self, streams: Iterable[Stream]) -> float:
        """Return how much longer it takes to go through bytes than if they were in a cache.

        Between the working sets that were measured it is interpolated over their
        logarithms, beyond them it is that of the last.
        """
        return sum(stream.bytes * self._delay(stream) for stream in streams)

    def _delay(self, stream: Stream) -> float:
        sizes = np.log2(self.working_sets)
        delays = np.array(self.seconds_a_byte) - self.seconds_a_byte[0]
        if stream.apart and delays[-1] > 0:
            delays *= (self.apart_s - self.seconds_a_byte[0]) / delays[-1]
        return float(np.interp(np.log2(stream.working_set), sizes, delays))


def main(bsp: bsplib.Group) -> list[float]:
    """Measure all working sets, on all processes at once where they are real.

    Returns:
        Seconds a byte of this process, for ``WORKING_SETS``, and for lines that are not
        next to each other: the least of some turns.

    Cost: 1 superstep for each.
    """
    return [*(_combining(bsp, size) for size in WORKING_SETS), _reading_apart(bsp)]


def _combining(bsp: bsplib.Group, working_set: int) -> float:
    """Combine two halves of an array by roots, which make the working set together."""
    half = working_set // 48
    out, roots = np.zeros(2 * half, np.complex128), np.ones(half, np.complex128)
    out[:] = 1  # the system gives memory when it is written
    passes = max(_PASS_BYTES // working_set, 1)

    def turn() -> None:
        for _ in range(passes):
            combine(out, out[:half], out[half:], roots)

    return _seconds(bsp, turn) / passes / working_set


def _reading_apart(bsp: bsplib.Group) -> float:
    """Read one value of every fourth line of the largest working set."""
    whole = np.ones(WORKING_SETS[-1] // 16, np.complex128)
    some = whole[:: 4 * LINE // 16]
    out = np.ones(len(some), np.complex128)
    return _seconds(bsp, lambda: np.copyto(out, some)) / len(some) / LINE


def _seconds(bsp: bsplib.Group, turn: Callable[[], object]) -> float:
    bsp.sync()
    best = np.inf
    for _ in range(_TURNS):
        began = bsp.time()
        turn()
        best = min(best, bsp.time() - began)
    return float(best)


def memory_of(runs: Sequence[Sequence[Sequence[float]]]) -> Memory:
    """Return what :func:`main` has found.

    Args:
        runs: results of all processes, of one run or more. Of a run the slowest process
            counts, and of all runs the quickest: where the system puts the pages of a run,
            they may fit into a cache or not.
    """
    *quickest, apart = np.min([np.max(results, axis=0) for results in runs], axis=0).tolist()
    # What was disturbed took longer: a smaller working set takes no more than a larger.
    rates = np.minimum.accumulate(quickest[::-1])[::-1]
    return Memory(WORKING_SETS, tuple(rates.tolist()), max(apart, float(rates[-1])))
