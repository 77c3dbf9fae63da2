"""The books of a run for the page, which prices them at the rates that its reader chooses.

The page computes the same as :mod:`bsplib.profiler.losses`, without asking the server. It gets the
cost of every group at every origin in nanoseconds, supersteps and bytes, and chooses by
itself which sub-groups are booked. Where there are too many groups, they are chosen here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.profiler.booking import price
from bsplib.profiler.leaders import RULES

if TYPE_CHECKING:
    from bsplib.profiler.booking import Books, Floats, Priced
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.rates import Rates

Json = dict[str, Any]

MOST_CELLS = 20_000
"""Where there are more cells, the sub-groups are chosen at the default rates."""


def describe_books(callgraph: CallGraph, rates: Rates) -> Json:
    """Return the books of a run.

    Args:
        callgraph: the call graph of the run.
        rates: the default rates.
    """
    books = callgraph.books
    if len(books.cells.origin) <= MOST_CELLS:
        return _groups(books)
    return _chosen(books, price(books, rates))


def _groups(books: Books) -> Json:
    """Return all groups, with what is booked for each of them."""
    cells = books.cells
    return {
        "groups": {
            "parent": books.parent.tolist(),
            "size": books.size.tolist(),
            "partition": books.partition_of.tolist(),
        },
        "partitions": {
            "parent": books.partitions.parent.tolist(),
            "origin": books.partitions.origin.tolist(),
        },
        "cells": {
            "group": cells.group.tolist(),
            "origin": cells.origin.tolist(),
            "w": cells.w.tolist(),
            "wLost": cells.w_lost.tolist(),
            "steps": cells.steps.tolist(),
            "h": {rule: cells.h[rule].tolist() for rule in RULES},
            "hLost": {rule: cells.h_lost[rule].tolist() for rule in RULES},
        },
        "waits": [],
    }


def _chosen(books: Books, priced: Priced) -> Json:
    """Return the groups that are booked as if they were one, and what others wait for them."""
    cells = books.cells
    booked = priced.booked[cells.group]
    origins = int(cells.origin.max()) + 1

    def total(values: Floats) -> list[float]:
        sums: list[float] = np.bincount(cells.origin, values * booked, origins).tolist()
        return sums

    return {
        "groups": {"parent": [-1], "size": [int(books.size[0])], "partition": [-1]},
        "partitions": {"parent": [], "origin": []},
        "cells": {
            "group": [0] * origins,
            "origin": list(range(origins)),
            "w": total(cells.w),
            "wLost": total(cells.w_lost),
            "steps": total(cells.steps),
            "h": {rule: total(cells.h[rule]) for rule in RULES},
            "hLost": {rule: total(cells.h_lost[rule]) for rule in RULES},
        },
        "waits": _waits(books, priced),
    }


def _waits(books: Books, priced: Priced) -> list[Json]:
    """Return what is waited for booked sub-groups: the quantities in seconds at any rates."""
    totals = _totals(books, priced)
    inside = np.flatnonzero(books.partition_of >= 0)
    which = books.partition_of[inside]
    shares = totals[inside] * (books.size[inside] / books.size[books.parent[inside]])[:, None]
    waited = totals[priced.costliest]
    np.subtract.at(waited, which, shares)
    waited *= priced.booked[books.partitions.parent][:, None]
    at = books.partitions.origin
    known = np.unique(at[at >= 0])
    waits = []
    for origin in known:
        mine = np.flatnonzero(at == origin)
        w, steps, *h = waited[mine].sum(axis=0).tolist()
        waits.append(
            {
                "origin": int(origin),
                "w": w,
                "steps": steps,
                "h": dict(zip(RULES, h, strict=True)),
            }
        )
    return waits


def _totals(books: Books, priced: Priced) -> Floats:
    """Return for each group what it and its booked sub-groups take: w, steps, h by each rule."""
    cells, groups = books.cells, len(books.parent)
    columns = (cells.w, cells.steps, *(cells.h[rule] for rule in RULES))
    totals = np.zeros((groups, len(columns)))
    for column, values in enumerate(columns):
        totals[:, column] = np.bincount(cells.group, values, groups)
    for group in np.sort(priced.costliest)[::-1]:  # the sub-groups of a group come after it
        totals[books.parent[group]] += totals[group]
    return totals
