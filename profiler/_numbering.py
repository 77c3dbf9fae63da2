"""Tables in place of sorts: ranks and positions of whole numbers; segments of sorted columns.

A run may have ten million records, and far fewer supersteps and stacks. A pass over the
records with a table of all possible values is ten times as fast as a sort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bsplib.profiler._arrays import Bools, Ints, Numbers

_TABLE_PER_ROW = 4
"""A table with a place for each possible value replaces a sort of the rows up to this length."""


def is_small(table: float, rows: int) -> bool:
    """Tell whether a table of this length is in proportion to the rows for which it is made."""
    return table <= _TABLE_PER_ROW * rows


def ranked(values: Ints) -> tuple[Ints, Ints]:
    """Return the different values in rising order, and the position of each value among them.

    This is ``np.unique`` with the inverse, for values that are not negative.
    """
    position = values.copy()
    return rank_in_place(position), position


def rank_in_place(values: Ints) -> Ints:
    """Replace each value by its position among the different values; return these.

    New memory for ten million records takes longer than the computation.
    """
    end = int(values.max(initial=-1)) + 1
    if len(values) and int(values.min()) == end - 1:  # all of them are equal
        values[:] = 0
        return np.array([end - 1], np.int64)
    if not is_small(end, len(values)):
        different, values[:] = np.unique(values, return_inverse=True)
        return different
    present = np.zeros(end, bool)
    present[values] = True
    if present.all():  # each value is its own position
        return np.arange(end)
    position = np.cumsum(present) - 1
    values[:] = position[values]
    return np.flatnonzero(present)


def stable_order(values: Ints) -> Ints:
    """Return the positions of values that are not negative in rising order of the values."""
    different, rank = ranked(values)
    digits = np.uint16 if len(different) <= 2**16 else np.int64  # numpy sorts uint16 by radix
    order: Ints = np.argsort(rank.astype(digits), kind="stable")
    return order


def preceding(keys: Ints) -> Ints:
    """Return for each row the position of the one before it with the same key; -1 for the first.

    Args:
        keys: of the rows; none is negative.
    """
    order = stable_order(keys)
    before = np.full(len(order), -1, np.int64)
    same = keys[order[1:]] == keys[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before


def finder(keys: Ints, end: int) -> Callable[[Ints], Ints]:
    """Return a function that finds the positions of keys, -1 for keys that are not there.

    Args:
        keys: distinct.
        end: no key, and none that is looked for, is negative or as great as this.
    """
    if is_small(end, len(keys)):
        table = np.full(end, -1, np.int32 if len(keys) < 2**31 else np.int64)
        table[keys] = np.arange(len(keys))
        return lambda wanted: table[wanted].astype(np.int64)
    order = np.argsort(keys)
    ordered = keys[order]

    def find(wanted: Ints) -> Ints:
        place = np.searchsorted(ordered, wanted).clip(max=len(order) - 1)
        return np.where(ordered[place] == wanted, order[place], -1)

    return find


def narrow(values: Ints) -> NDArray[np.integer]:
    """Return values that are not negative in 32 bits if they fit, since there are many."""
    return values.astype(np.int32 if int(values.max(initial=0)) < 2**31 else np.int64)


# -- segments of sorted columns: where a new key begins ------------------------------------------


def changes(*keys: NDArray[np.integer]) -> Bools:
    """Mark, in sorted keys, where the combination differs from the one before."""
    marks = np.ones(len(keys[0]), bool)
    marks[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return marks


def starts(*keys: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the positions, in sorted keys, where a new combination begins."""
    return np.flatnonzero(changes(*keys))


class SumsByKey:
    """Columns of sums by key, in the order of the keys; the values are whole numbers."""

    def __init__(self, rows: int, dtype: DTypeLike = np.int64) -> None:
        self.keys: Ints = np.zeros(0, np.int64)
        self.sums: Numbers = np.zeros((rows, 0), dtype)

    def add(self, keys: Ints, rows: Iterable[Numbers]) -> None:
        """Add columns to those of the same keys.

        Args:
            keys: of the columns; several may have the same.
            rows: each as long as ``keys``.
        """
        place = keys.copy()
        found = rank_in_place(place)
        if len(found) == 0:
            return
        sums = np.zeros((len(self.sums), len(found)))
        # Those of one process after another are summed up ten times as fast.
        begins = starts(place) if (place[1:] >= place[:-1]).all() else None
        for total, values in zip(sums, rows, strict=True):
            if not values.any():
                continue
            if begins is None:
                total[:] = np.bincount(place, values, len(found))
            else:
                total[:] = np.add.reduceat(values, begins)
        keys = np.append(self.keys, found)
        order = np.argsort(keys, kind="stable")
        begins = starts(keys[order])
        self.keys = keys[order[begins]]
        every = np.append(self.sums, sums.astype(self.sums.dtype), axis=1)
        self.sums = np.add.reduceat(every[:, order], begins, axis=1)
