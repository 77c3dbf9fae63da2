"""Transfers of rows between processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.column import Column
from bsplib.apps.sql.owner import owners
from bsplib.apps.sql.relation import Relation, stacked
from bsplib.apps.work import charge_values

Parts = Sequence[Relation]
"""The rows for each process."""


def to_owners(
    bsp: bsplib.Group, relations: Sequence[Relation], names: Sequence[str]
) -> list[Relation]:
    """Move all rows that are equal in some columns to the same process.

    Rows of a relation that is distributed in this way already stay where they are.

    Supersteps: 1, or none if all relations stay.
    Cost: h = the rows that go, about (p - 1)/p of a process's, and those that come: as
        many where no value is in more than n/p rows. w = O(rows).
    """
    wanted = tuple(names)
    moving = [relation for relation in relations if relation.placed_by != wanted]
    parts = [
        by_goal(bsp, relation, owners(relation.among(names), bsp.nprocs)) for relation in moving
    ]
    moved = iter(exchange(bsp, *parts) if parts else [])
    return [
        relation if relation.placed_by == wanted else replace(next(moved), placed_by=wanted)
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

    Every column is a message, and so is the mask of a column with NULLs; for no rows no
    message is sent.

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
    slots = [slot for number, parts in enumerate(outgoing) for slot in _slots(number, parts[0])]
    for pid in [*range(bsp.pid + 1, bsp.nprocs), *range(bsp.pid)]:
        _send(bsp, pid, [parts[pid] for parts in outgoing], slots)
    bsp.sync()
    come: dict[tuple[int, int], _Arrays] = {}
    while (message := bsp.hpmove()) is not None:
        source, place = divmod(message[0], len(slots))
        number, name, is_mask = slots[place]
        come.setdefault((number, source), {})[name, is_mask] = message[1]
    received = [_received(bsp, number, parts, come) for number, parts in enumerate(outgoing)]
    charge_values(bsp, sum(relation.values for relation in received))
    return received


_Slot = tuple[int, str, bool]
"""Number of a relation, a column of it, and whether it is its mask."""
_Arrays = dict[tuple[str, bool], NDArray[Any]]


def _slots(number: int, like: Relation) -> list[_Slot]:
    return [(number, name, is_mask) for name in like.columns for is_mask in (False, True)]


def _send(bsp: bsplib.Group, pid: int, parts: Sequence[Relation], slots: Sequence[_Slot]) -> None:
    """Send what goes to one process; the tags say from whom, and into which slot."""
    for place, (number, name, is_mask) in enumerate(slots):
        column = parts[number][name]
        array = column.valid if is_mask else column.values
        if array is not None and len(array):
            bsp.send(pid, array, bsp.pid * len(slots) + place)


def _received(
    bsp: bsplib.Group, number: int, parts: Parts, come: Mapping[tuple[int, int], _Arrays]
) -> Relation:
    """Put together the rows of all sources, this process among them."""
    own = parts[bsp.pid]
    found = [
        own if pid == bsp.pid else _viewed(come[number, pid], own)
        for pid in range(bsp.nprocs)
        if pid == bsp.pid or (number, pid) in come
    ]
    return stacked(found)


def _viewed(arrays: _Arrays, like: Relation) -> Relation:
    """Return the rows of one source, as views until the next sync."""
    return Relation(
        {
            name: Column(arrays[name, False], arrays.get((name, True)), column.words)
            for name, column in like.columns.items()
        }
    )
