"""The delay of a program by memory, as a function of its working set.

A small working set stays in the caches of a core, a larger one in a shared cache, and the
largest ones in no cache. Formulas that are fitted to small runs do not contain the delays of
larger working sets. So these are measured once for a computer, by the butterflies of a
Fourier transform, which do a little computation with all that they read.

Source: Gonzalez et al., section 2.1: a database of the costs of memory accesses, from
which the segments of the constants follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import bsplib
from bsplib.apps.fourier.common import combine

WORKING_SETS = tuple(round(2 ** (steps / 2)) for steps in range(38, 55))
"""Bytes."""
LINE = 64
"""Bytes of a cache line."""

_TURNS = 15
_PASS_BYTES = 2**24
"""Least number of bytes for one measurement."""


class ByteStream(NamedTuple):
    """Bytes that a program reads or writes in sequence."""

    bytes: float
    working_set: float
    """Bytes accessed since the last access to the same ones: a cache must hold all of these."""
    apart: bool = False
    """Whether its cache lines are not adjacent, and only a part of each is used."""


@dataclass(frozen=True)
class MemorySpeed:
    """Seconds for a byte, by working set."""

    working_sets: tuple[int, ...]
    """Working sets in bytes, in rising order."""
    seconds_a_byte: tuple[float, ...]
    apart_s: float
    """Seconds for a byte of cache lines that are not adjacent, in the largest working set."""

    def delay(self, streams: Iterable[ByteStream]) -> float:
        """Return the additional time of accesses, compared with data in the fastest cache.

        Between the measured working sets the time is interpolated over their logarithms;
        beyond the last one, it is that of the last one.
        """
        return sum(stream.bytes * self._delay(stream) for stream in streams)

    def _delay(self, stream: ByteStream) -> float:
        sizes = np.log2(self.working_sets)
        delays = np.array(self.seconds_a_byte) - self.seconds_a_byte[0]
        if stream.apart and delays[-1] > 0:
            delays *= (self.apart_s - self.seconds_a_byte[0]) / delays[-1]
        return float(np.interp(np.log2(stream.working_set), sizes, delays))


def main(bsp: bsplib.Group) -> list[float]:
    """Measure all working sets, on all processes at the same time if they are real.

    Returns:
        Seconds for a byte on this process, for each of ``WORKING_SETS`` and for cache lines
        that are not adjacent: the least of several measurements.

    Cost: 1 superstep for each.
    """
    return [*(_combining(bsp, size) for size in WORKING_SETS), _reading_apart(bsp)]


def _combining(bsp: bsplib.Group, working_set: int) -> float:
    """Combine two halves of an array with roots; together they are the working set."""
    half = working_set // 48
    out, roots = np.zeros(2 * half, np.complex128), np.ones(half, np.complex128)
    out[:] = 1  # the system provides memory when it is first written
    passes = max(_PASS_BYTES // working_set, 1)

    def turn() -> None:
        for _ in range(passes):
            combine(out, out[:half], out[half:], roots)

    return _seconds(bsp, turn) / passes / working_set


def _reading_apart(bsp: bsplib.Group) -> float:
    """Read one value of every fourth cache line of the largest working set."""
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


def memory_of(runs: Sequence[Sequence[Sequence[float]]]) -> MemorySpeed:
    """Combine the results of :func:`main`.

    Args:
        runs: results of all processes, of one or more runs. In a run the slowest process
            counts, and of all runs the fastest: whether the pages of a run fit into a cache
            depends on their addresses.
    """
    *quickest, apart = np.min([np.max(results, axis=0) for results in runs], axis=0).tolist()
    # A smaller working set takes no more time than a larger one: otherwise it was disturbed.
    rates = np.minimum.accumulate(quickest[::-1])[::-1]
    return MemorySpeed(WORKING_SETS, tuple(rates.tolist()), max(apart, float(rates[-1])))
