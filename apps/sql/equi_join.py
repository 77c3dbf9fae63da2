"""Joins on equal values: by owner, and by a sort of one relation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.kernels.numbering import KeyNumbers
from bsplib.apps.sql.exchange import exchange, to_owners
from bsplib.apps.sql.keys import Encoding, Keys, agree
from bsplib.apps.sql.relation import Relation, alike, beside
from bsplib.apps.sql.sorting import SampleSort, sort_rows
from bsplib.apps.work import charge_sort, charge_values

Rows = NDArray[np.intp]
Pairs = tuple[Rows, Rows]
"""Pairs of rows, by position on either side."""


def equi_join(bsp: bsplib.Group, left: Relation, right: Relation, name: str) -> Relation:
    """Pair the rows of two relations that are equal in a column (``JOIN USING``).

    The rows of both are sent to the owners of their values, unless they are there already.

    Args:
        bsp: the group.
        left: the rows of this process of one relation.
        right: those of the other relation, which has no other column of a name that ``left`` has.
        name: column of both; NULL is equal to nothing.

    Returns:
        The column that is joined on, then those of ``left``, then those of ``right``.

    Raises:
        QueryError: a column is missing, stands on both sides, is of two kinds, or holds
            NaN.

    Supersteps: 2.
    Cost: h = the rows of both that are not placed; w = O(rows and pairs). Where one value
        is in many rows of both relations its owner has all their pairs.
    """
    left, right, encoding = _comparable(bsp, left, right, name)
    left, right = to_owners(bsp, [left, right], name)
    keys = encoding.keys(left[name]), encoding.keys(right[name])
    return _paired(bsp, left, right, _equal_pairs(encoding, *keys), name)


def sorted_join(
    bsp: bsplib.Group, left: Relation, right: Relation, name: str, sort: SampleSort
) -> Relation:
    """Pair the rows of two relations that are equal in a column, by sorting ``left``.

    Every process sends its least and its greatest value to all, and receives the rows of
    ``right`` with values between these. A value in many rows of ``left`` is on several
    processes, each of which pairs its part of them: so skew in ``left`` is balanced.

    Args, Returns, Raises: as :func:`equi_join`, with the rows in the order of the column that is
    joined on.

    Supersteps: 5, and those of the sample sort.
    Cost: of the sample sort with the rows of ``left``; then h = the rows of ``right``.
    """
    left, right, encoding = _comparable(bsp, left, right, name)
    keys, left = sort_rows(bsp, encoding.keys(left[name]), left, sort)
    right = _spread(bsp, keys, encoding.keys(right[name]), right)
    return _paired(bsp, left, right, _equal_pairs(encoding, keys, encoding.keys(right[name])), name)


def _comparable(
    bsp: bsplib.Group, left: Relation, right: Relation, name: str
) -> tuple[Relation, Relation, Encoding]:
    """Leave out rows with NULL, and agree on keys; strings become positions among the same words.

    Supersteps: 1.
    """
    left, right = left.without_nulls(name), right.without_nulls(name)
    one, other = alike([left[name], right[name]], f"a join on {name!r}")
    if one.words is not left[name].words:
        left = left.plus(**{name: one})
    if other.words is not right[name].words:
        right = right.plus(**{name: other})
    return left, right, agree(bsp, [one, other])


def _spread(bsp: bsplib.Group, keys: Keys, others: Keys, rows: Relation) -> Relation:
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
        start, stop = 0, 0
        if len(wanted):
            start = int(ordered.searchsorted(wanted[0], "left"))
            stop = int(ordered.searchsorted(wanted[1], "right"))
        parts.append(rows.take(order[start:stop]))
    charge_values(bsp, sum(part.values for part in parts))
    return exchange(bsp, parts)[0]


def _paired(
    bsp: bsplib.Group, left: Relation, right: Relation, pairs: Pairs, name: str
) -> Relation:
    """Lay out pairs of rows: what they agree in, the columns of one, those of the other."""
    first = left.only([name, *(other for other in left.columns if other != name)])
    second = right.only(other for other in right.columns if other != name)
    whole = beside(first.take(pairs[0]), second.take(pairs[1]), f"a join on {name!r}")
    charge_values(bsp, left.rows + right.rows + whole.values)  # found, and laid out
    return replace(whole, placed_by=left.placed_by or right.placed_by)


def _equal_pairs(encoding: Encoding, left: Keys, right: Keys) -> Pairs:
    """Return all pairs of equal keys, in the order of the left side.

    Cost: w = O(left + right + pairs), with one random access each.
    """
    span = encoding.span
    if not encoding.is_dense(len(left) + len(right)):
        numbers = KeyNumbers()
        right = numbers.number(right.astype(np.uint64, copy=False))
        left = numbers.find(left.astype(np.uint64, copy=False))  # -1, the last place, for none
        span = numbers.count
    counts = np.bincount(right, minlength=span + 1)
    if counts.max() <= 1:  # each row of the left side has one partner, or none: -1
        table = np.full(span + 1, -1, np.intp)
        table[right] = np.arange(len(right))
        found = table[left]
        hit = np.flatnonzero(found >= 0)
        return hit, found[hit]
    starts = np.cumsum(counts) - counts
    order = np.argsort(right, kind="stable")
    return np.repeat(np.arange(len(left)), counts[left]), order[runs(starts[left], counts[left])]


def runs(starts: Rows, counts: Rows) -> Rows:
    """Return ``starts[0], starts[0] + 1, ...``, ``counts[0]`` of them, then the next run's."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
