"""The rows with the least values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.keys import Ordinals, ordinals
from bsplib.apps.sql.relation import QueryError, Relation
from bsplib.apps.work import charge_values

_FEW = 4096
"""Number of values that may be sent to every process, whatever the number of rows."""


def lowest(bsp: bsplib.Group, relation: Relation, name: str, fraction: float = 0.01) -> Relation:
    """Keep the rows whose value is among the lowest 1% (``IN 'low 1%'``).

    With n values that are not NULL, and k = the fraction of n rounded up, these are the
    rows whose value is no greater than the k-th: more than k where values are equal.

    Args:
        bsp: the group.
        relation: the rows of this process.
        name: column, of any kind; NULL is among no values.
        fraction: 0 to 1.

    Raises:
        QueryError: there is no such column, the fraction is none, or a float is NaN.

    Supersteps: 3, and 2 for each round of the selection: none where p^2 k <= n, else
        O(log p).
    Cost: w = O(n/p); h = (p - 1) max(n/p, 4096) values at most.
    """
    if not 0 <= fraction <= 1:
        raise QueryError(f"lowest: the fraction is {fraction}; it is 0 to 1")
    charge_values(bsp, relation.rows)
    known = relation.without_nulls(name)
    values = ordinals(known[name])
    total = int(bsp.allreduce(np.int64(len(values))))
    rank = math.ceil(total * Fraction(str(fraction)))  # 0.01 of 700 is 7, no bit more
    if rank == 0:
        return known.take(slice(0))
    return known.take(values <= select(bsp, values, rank))


def select(bsp: bsplib.Group, values: Ordinals, rank: int) -> np.uint64:
    """Return the value of a rank among those of all processes.

    In each round every process computes the median of its remaining values. At least a
    quarter of all remaining values are on each side of the weighted median of these medians;
    one of the two sides is discarded.

    Args:
        bsp: the group.
        values: of this process; not changed.
        rank: 1 for the least; at most as many as there are.

    Supersteps: 2, and 2 for each round.
    Source: Saukas and Song 1999, "A note on parallel selection on coarse-grained
        multicomputers", Algorithmica 24.
    """
    charge_values(bsp, len(values))
    values = _least(values, rank)
    limit = None
    while True:
        middle = np.partition(values, len(values) // 2)[len(values) // 2] if len(values) else 0
        told = np.array(bsp.allgather(np.array([middle, len(values)], np.uint64)))
        total = int(told[:, 1].sum())
        limit = limit or max(total // bsp.nprocs, _FEW)
        if total <= limit:
            return np.uint64(
                np.partition(np.concatenate(bsp.allgather(values)), rank - 1)[rank - 1]
            )
        pivot = _weighted_median(told)
        charge_values(bsp, len(values))
        less, equal = values < pivot, values == pivot
        below, same = map(int, bsp.allreduce(np.array([less.sum(), equal.sum()])))
        if below < rank <= below + same:
            return pivot
        if rank <= below:
            values = values[less]
        else:
            values, rank = values[~less & ~equal], rank - below - same


def _least(values: Ordinals, rank: int) -> Ordinals:
    """Return the values that may be among the ``rank`` least of all processes."""
    return values if rank >= len(values) else np.partition(values, rank - 1)[:rank]


def _weighted_median(told: NDArray[np.uint64]) -> np.uint64:
    """Return the median of which each process has a value and a number of values."""
    ordered = told[np.argsort(told[:, 0])]
    reached = np.cumsum(ordered[:, 1])
    return np.uint64(ordered[np.searchsorted(reached * 2, reached[-1]), 0])
