"""Joins on equal values by a sort of one relation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import bsplib
from bsplib.apps.sql.equi_join import comparable, paired
from bsplib.apps.sql.exchange import exchange
from bsplib.apps.sql.keys import Keys, agree
from bsplib.apps.sql.match import equal_pairs
from bsplib.apps.sql.relation import Relation, without_nulls
from bsplib.apps.sql.sorting import SampleSort, sort_rows
from bsplib.apps.work import charge_sort, charge_values


def sorted_join(
    bsp: bsplib.Group,
    left: Relation,
    right: Relation,
    names: Sequence[str],
    sort: SampleSort,
) -> Relation:
    """Pair the rows of two relations that are equal in some columns, by sorting ``left``.

    Every process sends its least and its greatest value to all, and receives the rows of
    ``right`` with values between these. A value in many rows of ``left`` is on several
    processes, each of which pairs its part of them: so skew in ``left`` is balanced.

    Args, Returns, Raises: as :func:`bsplib.apps.sql.equi_join.equi_join`, with the rows in the
    order of the columns that are joined on.

    Supersteps: 5, and those of the sample sort.
    Cost: of the sample sort with the rows of ``left``; then h = the rows of ``right``.
    """
    left, right = without_nulls(left, names), without_nulls(right, names)
    left, right = comparable(left, right, names, "sorted_join")
    encoding, _ = agree(bsp, [left.among(names), right.among(names)])
    keys, left = sort_rows(bsp, encoding.keys(left.among(names)), left, sort)
    right = to_ranges_of(bsp, keys, encoding.keys(right.among(names)), right)
    pairs = equal_pairs(encoding, keys, encoding.keys(right.among(names)))
    return paired(bsp, left, right, pairs, names, "sorted_join")


def to_ranges_of(bsp: bsplib.Group, keys: Keys, others: Keys, rows: Relation) -> Relation:
    """Send each process the rows whose keys lie between its least and its greatest one.

    Args:
        bsp: the group.
        keys: of this process, ascending.
        others: of the rows.
        rows: to be sent.

    Supersteps: 2.
    """
    ends = bsp.allgather(keys[[0, -1]] if len(keys) else keys)
    charge_sort(bsp, len(others))
    order = np.argsort(others, kind="stable")
    ordered = others[order]
    parts = []
    for wanted in ends:
        if len(wanted):
            start = int(ordered.searchsorted(wanted[0], "left"))
            stop = int(ordered.searchsorted(wanted[1], "right"))
            parts.append(rows.take(order[start:stop]))
        else:
            parts.append(rows.take(order[:0]))
    charge_values(bsp, sum(part.values for part in parts))
    return exchange(bsp, parts)[0]
