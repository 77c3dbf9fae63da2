"""What work on rows costs a virtual processor: seconds for each value, comparison and sum.

On the backend ``sim`` the sorts and the relational operators advance the virtual time by
these functions, which count rows (:meth:`bsplib.Group.charge`). So a run takes the same time
whenever it is repeated, and its computation is as balanced as its rows. On real processes the
functions do nothing.

The seconds are those of numpy on one core of an AMD EPYC, medians of nine, rounded to two digits,
with 2^17 values of 8 B, about the share of a core in the caches: ``x.take`` of a random
permutation, ``x.argsort(kind="stable")``, and ``np.add.at`` into 2^14 sums.
"""

from __future__ import annotations

import math

import bsplib

VALUE_S = 1.4e-9
"""Copying a value of 8 B from a random position."""
COMPARISON_S = 4.8e-9
"""Sorting n keys of 8 B, divided by n log2 n."""
SUM_S = 1.6e-9
"""Adding a value of 8 B to the sum of its group."""
SPEED = 1e9
"""Operations a second of the core of these figures, to scale them to the speed of a Machine: a
round figure, since a copy, a comparison or a sum takes it one to five nanoseconds. Its vector
units do several floating-point operations in that time, which sorts cannot use."""


def charge_values(bsp: bsplib.Group, count: int) -> None:
    """Charge for values that are read, copied or calculated.

    Args:
        bsp: the group.
        count: number of values: rows times columns.
    """
    bsp.charge(VALUE_S * count)


def charge_sort(bsp: bsplib.Group, count: int, runs: int | None = None) -> None:
    """Charge for a sort: n log2 n comparisons.

    Args:
        bsp: the group.
        count: n, the number of rows.
        runs: number of sorted runs to merge, in n log2 runs comparisons; default: n.
    """
    bsp.charge(COMPARISON_S * count * _log2(count if runs is None else runs))


def charge_search(bsp: bsplib.Group, count: int, among: int) -> None:
    """Charge for binary searches.

    Args:
        bsp: the group.
        count: number of values to find.
        among: number of sorted values among which each is searched.
    """
    bsp.charge(COMPARISON_S * count * _log2(among))


def charge_sums(bsp: bsplib.Group, count: int) -> None:
    """Charge for values that are added to the sums, counts or minima of their groups.

    Args:
        bsp: the group.
        count: number of values: rows times aggregates.
    """
    bsp.charge(SUM_S * count)


def _log2(count: int) -> float:
    return math.log2(count) if count > 1 else 1.0
