"""Aggregates of all rows."""

from __future__ import annotations

import numpy as np

import bsplib
from bsplib.apps.sql.aggregates import (
    Aggregate,
    Grouping,
    accumulate,
    check,
    combine,
    finish,
    parts_of,
)
from bsplib.apps.sql.exchange import exchange
from bsplib.apps.sql.relation import Relation
from bsplib.apps.work import charge_sums


def aggregate(bsp: bsplib.Group, relation: Relation, **aggregates: Aggregate) -> Relation:
    """Aggregate all rows (``SELECT SUM(units) FROM ...``).

    Args:
        bsp: the group.
        relation: the rows of this process.
        **aggregates: the aggregates, by the names of their columns; at least one.

    Returns:
        One row, on process 0. If there are no rows, its counts are 0 and all other
        aggregates NULL.

    Raises:
        QueryError: there is no such column, a column to add is not numeric, or a sum
            exceeds 64 bits.

    Supersteps: 1.
    Cost: w = O(n/p) for each aggregate; h = p times 8 bytes for each part of one, and 1
        where it may be NULL.
    """
    check(relation, aggregates, "aggregate")
    parts = parts_of(aggregates)
    charge_sums(bsp, relation.rows * len(parts))
    made = accumulate(_all_in_one(relation.rows), relation, parts).null_where_absent()
    mine = Relation({f"part {number}": made[part] for number, part in enumerate(parts)})
    (come,) = exchange(bsp, [mine, *[mine.take(slice(0))] * (bsp.nprocs - 1)])
    partial = {part: come[f"part {number}"] for number, part in enumerate(parts)}
    result = combine(_all_in_one(come.rows), partial).parts
    return Relation(finish(aggregates, result)).take(slice(1 if bsp.pid == 0 else 0))


def _all_in_one(rows: int) -> Grouping:
    return Grouping(rows, lambda start, stop: np.zeros(stop - start, np.int64), lambda: 1)
