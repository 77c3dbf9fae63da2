"""Rows on their way from process to process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from apps.sql.column import Column
from apps.sql.owner import owners
from apps.sql.relation import Relation, stacked


def to_owners(bsp: bsplib.Group, relation: Relation, names: Sequence[str]) -> Relation:
    """Bring together on one process all rows that are equal in some columns.

    Rows that are placed so already stay.

    Supersteps: 1, or none.
    Cost: h = the rows that go, about (p - 1)/p of a process's, and those that come: as
        many where no value is in more than n/p rows. w = O(rows).
    """
    if relation.placed_by == tuple(names):
        return relation
    moved = to_processes(bsp, relation, owners(relation.among(names), bsp.nprocs))
    return replace(moved, placed_by=tuple(names))


def to_processes(bsp: bsplib.Group, relation: Relation, goal: NDArray[np.intp]) -> Relation:
    """Send each row to the process that is named for it: 1 superstep, h = the rows.

    Args:
        bsp: the group.
        relation: what is here.
        goal: a pid for each row.

    Returns:
        What has come, by source; of one source in the order that it had there.
    """
    if bsp.nprocs == 1:
        return relation
    narrow = goal.astype(np.uint8 if bsp.nprocs <= 256 else np.uint16)  # sorted by radix
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(goal, minlength=bsp.nprocs))
    return to_ranges(bsp, relation.take(order), [0, *map(int, ends)])


def to_ranges(bsp: bsplib.Group, relation: Relation, bounds: Sequence[int]) -> Relation:
    """Send each process the rows from one bound to the next: 1 superstep, h = the rows.

    Args:
        bsp: the group.
        relation: what is here.
        bounds: process i is sent rows ``bounds[i] .. bounds[i + 1] - 1``; ranges may
            overlap, and leave rows out.
    """
    return exchange(
        bsp, [relation.take(slice(*bounds[pid : pid + 2])) for pid in range(bsp.nprocs)]
    )


def replicate(bsp: bsplib.Group, relation: Relation) -> Relation:
    """Give every process all rows: 1 superstep, h = (p - 1) times a process's rows."""
    return exchange(bsp, [relation] * bsp.nprocs)


def exchange(bsp: bsplib.Group, parts: Sequence[Relation]) -> Relation:
    """Send each process its part, and return what has come, by source.

    Every column is a message, and so is the mask of one that has NULLs there; nothing
    travels for no rows.

    Args:
        bsp: the group.
        parts: one for each process, of the same columns everywhere.

    Supersteps: 1.
    Cost: h = the bytes of the columns, one byte for each value of a column with NULLs.
    """
    names = list(parts[0].columns)
    for pid in [*range(bsp.pid + 1, bsp.nprocs), *range(bsp.pid)]:
        _send(bsp, pid, parts[pid])
    bsp.sync()
    arrays: dict[int, dict[int, NDArray[Any]]] = {}
    while (message := bsp.hpmove()) is not None:
        source, place = divmod(message[0], 2 * len(names))
        arrays.setdefault(source, {})[place] = message[1]
    own = parts[bsp.pid]
    come = {source: _received(names, found, own) for source, found in arrays.items()} | {
        bsp.pid: own
    }
    return stacked([come[source] for source in sorted(come)])


def _send(bsp: bsplib.Group, pid: int, part: Relation) -> None:
    if part.rows == 0:
        return
    first = bsp.pid * 2 * len(part.columns)
    for place, column in enumerate(part.columns.values()):
        bsp.send(pid, column.values, first + 2 * place)
        if column.valid is not None:
            bsp.send(pid, column.valid, first + 2 * place + 1)


def _received(names: Sequence[str], arrays: Mapping[int, NDArray[Any]], like: Relation) -> Relation:
    """Return the rows of one source, as views until the next sync."""
    return Relation(
        {
            name: Column(arrays[2 * place], arrays.get(2 * place + 1), like[name].words)
            for place, name in enumerate(names)
        }
    )
