"""Which blocks of keys are to be compared when, and where each of them lies.

The network of :mod:`apps.sorting.bitonic_sort`, with blocks in a file in the place of
processes. Of every block the least and the greatest key are known, so that two
blocks of which one is wholly before the other need not be read: they stay as they
are, or change their names. Random keys thus meet the others of their magnitude
in one or two splits of a merge rather than in all log2(span) of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[Any]


class Pair(NamedTuple):
    """Two blocks that are to be split, the lower keys into the first."""

    first: int
    second: int
    """The first one where it is alone."""

    def positions(self) -> list[int]:
        """Return the blocks, in order."""
        return sorted({self.first, self.second})


class Level(NamedTuple):
    """Splits that may be done side by side."""

    span: int
    """Blocks of the lists into which pairs of sorted lists are merged."""
    distance: int
    """Of the partners; 0 where each block meets its mirror image in the other list."""

    def pairs(self, count: int) -> Iterator[Pair]:
        """Return the partners among so many blocks."""
        flip = self.distance or self.span - 1
        for first in range(count):
            second = first ^ flip
            if first < second < count:
                yield Pair(first, second)


def levels(count: int, sorted_span: int) -> list[Level]:
    """Return all levels that sort ``count`` blocks.

    Args:
        count: of the blocks.
        sorted_span: how many blocks in a row are a sorted list already; a power of 2.
    """
    found, span = [], sorted_span
    while span < count:
        span *= 2
        found.append(Level(span, 0))
        distance = span // 4
        while distance:
            found.append(Level(span, distance))
            distance //= 2
    return found


def news_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of what is told of blocks that have changed."""
    return np.dtype([("position", np.int64), ("least", dtype), ("greatest", dtype)])


@dataclass
class Table:
    """All blocks, by their position among the sorted keys; the same on all processes."""

    size: int
    """Number of keys."""
    length: int
    """Keys of a block; the last may have fewer."""
    slots: NDArray[np.int64]
    """Where in the file each block lies, counted in blocks."""
    ends: NDArray[Any]
    """The least and the greatest key of each block, with its position."""

    @classmethod
    def of(cls, size: int, length: int, dtype: np.dtype[Any]) -> Table:
        """Return the table of keys in the order of the file, the keys still unknown."""
        count = -(-size // length)
        return cls(size, length, np.arange(count), np.empty(count, news_dtype(dtype)))

    def __len__(self) -> int:
        return len(self.slots)

    def keys_of(self, position: int) -> int:
        """Return how many keys a block has."""
        return min(self.length, self.size - position * self.length)

    def keys_of_pair(self, pair: Pair) -> int:
        """Return how many keys two blocks have."""
        return sum(map(self.keys_of, pair.positions()))

    def learn(self, news: NDArray[Any]) -> None:
        """Take note of blocks that have changed."""
        self.ends[news["position"]] = news

    def to_split(self, level: Level) -> list[Pair]:
        """Return the pairs of a level that have to be read; let the others change their names."""
        found = []
        for pair in level.pairs(len(self)):
            first, second = self.ends[pair.first], self.ends[pair.second]
            if not_greater(first["greatest"], second["least"]):
                continue
            full = self.keys_of(pair.second) == self.length  # the first always is
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
    """Tell whether a key may stand before another as numpy sorts them, NaN last."""
    row = np.empty(1, np.asarray(other).dtype)
    row[0] = other
    return bool(row.searchsorted(one) == 0)
