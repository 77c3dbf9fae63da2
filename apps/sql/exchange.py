"""Transfers of rows between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.keys import owners
from bsplib.apps.sql.relation import Column, Mask, Relation, Values, stacked
from bsplib.apps.work import charge_values

Parts = Sequence[Relation]
"""The rows for each process."""


def to_owners(bsp: bsplib.Group, relations: Sequence[Relation], name: str) -> list[Relation]:
    """Move all rows that are equal in a column to the same process.

    Rows of a relation that is distributed in this way already stay where they are.

    Supersteps: 1, or none if all relations stay.
    Cost: h = the rows that go, about (p - 1)/p of a process's, and those that come: as
        many where no value is in more than n/p rows. w = O(rows).
    """
    moving = [relation for relation in relations if relation.placed_by != name]
    parts = [by_goal(bsp, relation, owners(relation[name], bsp.nprocs)) for relation in moving]
    moved = iter(exchange(bsp, *parts) if parts else [])
    return [
        relation if relation.placed_by == name else replace(next(moved), placed_by=name)
        for relation in relations
    ]


def replicate(bsp: bsplib.Group, relation: Relation) -> Relation:
    """Give every process all rows: 1 superstep, h = (p - 1) times a process's rows."""
    return exchange(bsp, [relation] * bsp.nprocs)[0]


def by_goal(bsp: bsplib.Group, relation: Relation, goal: NDArray[np.intp]) -> Parts:
    """Divide rows by the process that is named for each; they keep their order."""
    if bsp.nprocs == 1:
        return [relation]
    charge_values(bsp, relation.values + relation.rows)
    narrow = goal.astype(np.uint8 if bsp.nprocs <= 256 else np.uint16)  # sorted by radix
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(goal, minlength=bsp.nprocs))
    return by_bounds(relation.take(order), [0, *ends.tolist()])


def by_bounds(relation: Relation, bounds: Sequence[int]) -> Parts:
    """Divide rows: those from one bound to the next are for one process."""
    return [relation.take(slice(start, stop)) for start, stop in pairwise(bounds)]


def exchange(bsp: bsplib.Group, *outgoing: Parts) -> list[Relation]:
    """Send each process its parts of one or more relations, and return the received rows.

    All columns for a process are one message; for no rows no message is sent.

    Args:
        bsp: the group.
        *outgoing: for each relation one part for each process, of the same columns
            everywhere; they may overlap.

    Returns:
        Of each relation the rows that have come, in the order of their sources; of one
        source in the order that they had there.

    Supersteps: 1.
    Cost: h = the bytes of the columns, one byte for each value of a column with NULLs;
        w = O(rows that come).
    """
    for pid in [*range(bsp.pid + 1, bsp.nprocs), *range(bsp.pid)]:
        parts = [each[pid] for each in outgoing]
        if any(part.rows for part in parts):
            # Without words, which all processes have.
            arrays = [[(c.values, c.valid) for c in part.columns.values()] for part in parts]
            bsp.send(pid, arrays)
    bsp.sync()
    own = [parts[bsp.pid] for parts in outgoing]
    come = {bsp.pid: own}
    for source, _, arrays in bsp.messages():
        come[source] = [_rows(*pair) for pair in zip(arrays, own, strict=True)]
    received = [stacked(rows) for rows in zip(*(come[pid] for pid in sorted(come)), strict=True)]
    charge_values(bsp, sum(relation.values for relation in received))
    return received


def _rows(arrays: Sequence[tuple[Values, Mask | None]], like: Relation) -> Relation:
    """Return the rows of one source, whose columns are those of ``like``."""
    pairs = zip(arrays, like.columns.items(), strict=True)
    return Relation({name: Column(*array, column.words) for array, (name, column) in pairs})


def rebalance(
    bsp: bsplib.Group, relation: Relation, weights: NDArray[np.int64] | None = None
) -> Relation:
    """Give every process the same number of rows, or the same weight.

    The rows keep their order: those of process 0 come first.

    Args:
        bsp: the group.
        relation: the rows of this process.
        weights: weight of each row, 0 or more; default: 1.

    Returns:
        The rows of this process afterwards. The numbers of rows of two processes differ by
        at most one; with weights, their weights by at most that of the heaviest row.

    Supersteps: 2.
    Cost: h = the excess or missing rows of a process; before, 8 bytes to each process.
    Source: Jarvis et al. 2002, section 4.1: the load balancing functions added by hand.
    """
    before, total = _before(bsp, relation.rows if weights is None else int(weights.sum()))
    if weights is None:
        goals = [total * pid // bsp.nprocs - before for pid in range(bsp.nprocs + 1)]
        bounds = [min(max(goal, 0), relation.rows) for goal in goals]
    else:
        middles = before + np.cumsum(weights) - weights // 2
        goals = [-(-total * pid // bsp.nprocs) for pid in range(1, bsp.nprocs)]
        bounds = [0, *np.searchsorted(middles, goals).tolist(), relation.rows]
    return exchange(bsp, by_bounds(relation, bounds))[0]


def _before(bsp: bsplib.Group, mine: int) -> tuple[int, int]:
    """Return what the processes before this one have together, and what all have."""
    each = bsp.allgather(np.int64(mine))
    return int(sum(each[: bsp.pid])), int(sum(each))
