"""Joins on one value being less than another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.equi_join import runs
from bsplib.apps.sql.exchange import rebalance, replicate
from bsplib.apps.sql.keys import ordinals
from bsplib.apps.sql.relation import Column, Relation, alike, beside
from bsplib.apps.work import charge_search, charge_sort, charge_values

_UNEVEN = 1.1
"""Rows are moved before pairing if one process would have this many times the average."""
_WEIGHT = "number of pairs"
"""A name that no column can have, since it contains spaces."""


def less_than_join(
    bsp: bsplib.Group, left: Relation, right: Relation, lesser: str, greater: str
) -> Relation:
    """Pair each row of one relation with those of another in which a value is greater.

    (``JOIN ... ON lesser < greater``.) The result may have as many rows as the product of
    both; its size is limited only by the memory of the processes.

    Args:
        bsp: the group.
        left: the rows of this process of one relation, better the smaller one.
        right: those of the other relation, which has no column of a name that ``left`` has.
        lesser: column of ``left``; NULL is less than nothing.
        greater: column of ``right``, of the same kind.

    Returns:
        The columns of ``left``, then those of ``right``.

    Raises:
        QueryError: a column is missing or stands on both sides, the two are of two
            kinds, or a float is NaN.

    Supersteps: 2; 4 where the pairs would be spread unevenly.
    Cost: h = ``left``, which goes to all processes, and at most n/p rows of ``right``;
        w = O(m log m) to sort the m rows of ``left``, O(log m) for each of the n/p of
        ``right``, O(1) for each pair.
    """
    left, right = left.without_nulls(lesser), right.without_nulls(greater)
    one, other = alike([left[lesser], right[greater]], f"less_than_join of {lesser!r}")
    left, right = left.plus(**{lesser: one}), right.plus(**{greater: other})
    beside(left.take(slice(0)), right.take(slice(0)), "less_than_join")  # names that clash
    left = replicate(bsp, left)
    charge_sort(bsp, left.rows)
    charge_values(bsp, left.values)
    left = left.take(np.argsort(ordinals(left[lesser]), kind="stable"))
    charge_search(bsp, right.rows, left.rows)
    counts = ordinals(left[lesser]).searchsorted(ordinals(right[greater]), "left")
    right, counts = _spread(bsp, right, counts)
    left = left.take(runs(np.zeros_like(counts), counts))
    right = right.take(np.repeat(np.arange(len(counts)), counts))
    charge_values(bsp, left.values + right.values)
    return beside(left, right, "less_than_join")


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
