"""Joins on one value being less than another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.column import Column, alike
from bsplib.apps.sql.exchange import replicate
from bsplib.apps.sql.keys import ordinals
from bsplib.apps.sql.match import runs
from bsplib.apps.sql.rebalance import rebalance
from bsplib.apps.sql.relation import Relation, beside, without_nulls
from bsplib.apps.work import charge_search, charge_sort, charge_values

_UNEVEN = 1.1
"""Rows are moved before pairing if one process would have this many times the average."""


def less_than_join(
    bsp: bsplib.Group, left: Relation, right: Relation, lesser: str, greater: str
) -> Relation:
    """Pair each row of one relation with those of another in which a value is greater.

    (``JOIN ... ON lesser < greater``.) The result may have as many rows as the product of
    both; its size is limited only by the memory of the processes.

    Args:
        bsp: the group.
        left: the rows of this process of one relation.
        right: those of the other relation, which has no column of a name that ``left`` has.
        lesser: column of ``left``; NULL is less than nothing.
        greater: column of ``right``, of the same kind.

    Returns:
        The columns of ``left``, then those of ``right``.

    Raises:
        QueryError: a column is missing or stands on both sides, the two are of two
            kinds, or a float is NaN.

    Supersteps: 3; 5 where the pairs would be spread unevenly.
    Cost: h = the smaller relation, which goes to all processes, and at most n/p rows of
        the larger; w = O(m log m) to sort the m rows of the smaller, O(log m) for each
        of the n/p of the larger, O(1) for each pair.
    """
    left, right = without_nulls(left, [lesser]), without_nulls(right, [greater])
    one, other = alike([left[lesser], right[greater]], f"less_than_join of {lesser!r}")
    left, right = left.plus(**{lesser: one}), right.plus(**{greater: other})
    beside(left.take(slice(0)), right.take(slice(0)), "less_than_join")  # names that clash
    sizes = bsp.allreduce(np.array([left.rows, right.rows]))
    if sizes[0] <= sizes[1]:
        small = _ordered(bsp, replicate(bsp, left), lesser)
        charge_search(bsp, right.rows, small.rows)
        counts = ordinals(small[lesser]).searchsorted(ordinals(right[greater]), "left")
        right, counts = _spread(bsp, right, counts)
        rows, others = _pairs(np.zeros_like(counts), counts)
        return _beside(bsp, small.take(others), right.take(rows))
    small = _ordered(bsp, replicate(bsp, right), greater)
    charge_search(bsp, left.rows, small.rows)
    starts = ordinals(small[greater]).searchsorted(ordinals(left[lesser]), "right")
    left, counts = _spread(bsp, left, small.rows - starts)
    rows, others = _pairs(small.rows - counts, counts)
    return _beside(bsp, left.take(rows), small.take(others))


def _beside(bsp: bsplib.Group, left: Relation, right: Relation) -> Relation:
    charge_values(bsp, left.values + right.values)
    return beside(left, right, "less_than_join")


def _ordered(bsp: bsplib.Group, relation: Relation, name: str) -> Relation:
    charge_sort(bsp, relation.rows)
    charge_values(bsp, relation.values)
    return relation.take(np.argsort(ordinals(relation[name]), kind="stable"))


def _pairs(
    starts: NDArray[np.intp], counts: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.repeat(np.arange(len(counts)), counts), runs(starts, counts)


def _spread(
    bsp: bsplib.Group, relation: Relation, counts: NDArray[np.intp]
) -> tuple[Relation, NDArray[np.intp]]:
    """Move rows so that all processes have about equally many pairs: 1 superstep or 3."""
    each = bsp.allgather(np.int64(counts.sum()))
    if max(each) * bsp.nprocs <= _UNEVEN * sum(each):
        return relation, counts
    weighed = relation.plus(**{_WEIGHT: Column(counts)})
    moved = rebalance(bsp, weighed, counts)
    return moved.only(list(relation.columns)), moved[_WEIGHT].values


_WEIGHT = "number of pairs"
"""A name that no column can have, since it contains spaces."""
