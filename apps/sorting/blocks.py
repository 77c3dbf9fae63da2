"""The blocks of keys in a file: the order in which they are compared, and their positions.

This is the network of :mod:`bsplib.apps.sorting.bitonic_sort` with blocks in a file instead of
processes. The least and the greatest key of every block are known. If all keys of one block
come before those of the other, the two need not be read: they stay, or exchange their
positions in the table. So random keys are read in one or two splits of a merge instead of
all log2(span).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[Any]


class Pair(NamedTuple):
    """Two blocks to split, the lower keys into the first."""

    first: int
    second: int
    """The second block; equal to the first if that has no partner."""

    def positions(self) -> list[int]:
        """Return the blocks, in order."""
        return sorted({self.first, self.second})


class SplitLevel(NamedTuple):
    """Splits that are independent of each other."""

    span: int
    """Blocks of the lists into which pairs of sorted lists are merged."""
    distance: int
    """Distance of the partners; 0 if each block is paired with its mirror image."""

    def partner(self, block: int) -> int:
        """Return with which block another is split; perhaps there is none of this number."""
        return block ^ (self.distance or self.span - 1)

    def pairs(self, count: int) -> Iterator[Pair]:
        """Return the pairs among ``count`` blocks."""
        for first in range(count):
            second = self.partner(first)
            if first < second < count:
                yield Pair(first, second)


def levels(count: int, sorted_span: int) -> list[SplitLevel]:
    """Return all levels that sort ``count`` blocks.

    Args:
        count: number of blocks.
        sorted_span: length in blocks of the lists that are sorted already; a power of 2.
    """
    found, span = [], sorted_span
    while span < count:
        span *= 2
        found.append(SplitLevel(span, 0))
        found += [SplitLevel(span, span >> shift) for shift in range(2, span.bit_length())]
    return found


@dataclass
class BlockTable:
    """All blocks, by their position among the sorted keys; the same on all processes."""

    size: int
    """Number of keys."""
    length: int
    """Keys of a block; the last may have fewer."""
    slots: NDArray[np.int64]
    """Position of each block in the file, counted in blocks."""
    ends: NDArray[Any]
    """The least and the greatest key of each block, with its position."""

    @classmethod
    def of(cls, size: int, length: int, dtype: np.dtype[Any]) -> BlockTable:
        """Return the table of blocks in the order of the file; their keys are unknown."""
        count = -(-size // length)
        news = np.dtype([("position", np.int64), ("least", dtype), ("greatest", dtype)])
        return cls(size, length, np.arange(count), np.empty(count, news))

    def __len__(self) -> int:
        return len(self.slots)

    def keys_of(self, position: int) -> int:
        """Return how many keys a block has."""
        return min(self.length, self.size - position * self.length)

    def keys_of_pair(self, pair: Pair) -> int:
        """Return how many keys two blocks have."""
        return sum(map(self.keys_of, pair.positions()))

    def learn(self, news: NDArray[Any]) -> None:
        """Update the entries of blocks that have changed."""
        self.ends[news["position"]] = news

    def to_split(self, level: SplitLevel) -> list[Pair]:
        """Return the pairs of a level that have to be read; the others exchange positions."""
        found = []
        for pair in level.pairs(len(self)):
            first, second = self.ends[pair.first], self.ends[pair.second]
            if not_greater(first["greatest"], second["least"]):
                continue
            full = self.keys_of(pair.second) == self.length  # the first one is always full
            if full and not_greater(second["greatest"], first["least"]):
                self._exchange(pair)
            else:
                found.append(pair)
        return found

    def _exchange(self, pair: Pair) -> None:
        both, crossed = list(pair), list(reversed(pair))
        self.slots[both] = self.slots[crossed]
        for name in ("least", "greatest"):
            self.ends[name][both] = self.ends[name][crossed]


def not_greater(one: Any, other: Any) -> bool:
    """Tell whether a key may come before another in numpy's order, NaN last."""
    row = np.array([other], np.asarray(other).dtype)
    return bool(row.searchsorted(one) == 0)
