"""Joins on equal values.

Rows that agree must be on the same process. There are two methods, and the one that moves
fewer rows is used: either the smaller relation is sent to all processes, and the other stays;
or the rows of both are sent to the owners of their values, unless they are there already. A
third method, by *sort*, is in :mod:`bsplib.apps.sql.sorted_join`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import bsplib
from bsplib.apps.sql.column import Column, alike
from bsplib.apps.sql.exchange import replicate, to_owners
from bsplib.apps.sql.keys import agree
from bsplib.apps.sql.match import Pairs, equal_pairs
from bsplib.apps.sql.relation import Relation, beside, without_nulls
from bsplib.apps.work import charge_values


def equi_join(bsp: bsplib.Group, left: Relation, right: Relation, names: Sequence[str]) -> Relation:
    """Pair the rows of two relations that are equal in some columns (``JOIN USING``).

    Args:
        bsp: the group.
        left: the rows of this process of one relation.
        right: those of the other relation, which has no other column of a name that ``left`` has.
        names: columns of both, at least one; NULL is equal to nothing.

    Returns:
        The columns that are joined on, then those of ``left``, then those of ``right``.

    Raises:
        QueryError: a column is missing, stands on both sides, is of two kinds, or holds
            NaN.

    Supersteps: 2.
    Cost: h = the lesser of p times a process's rows of the smaller relation, and its
        rows of both that are not placed; w = O(rows and pairs). Where one value
        is in many rows of both relations its owner has all their pairs.
    """
    left, right = without_nulls(left, names), without_nulls(right, names)
    left, right = comparable(left, right, names, "equi_join")
    encoding, sizes = agree(bsp, [left.among(names), right.among(names)])
    left, right = _together(bsp, left, right, names, sizes)
    keys = [encoding.keys(side.among(names)) for side in (left, right)]
    pairs = equal_pairs(encoding, *keys)
    return paired(bsp, left, right, pairs, names, "equi_join")


def comparable(
    left: Relation, right: Relation, names: Sequence[str], what: str
) -> tuple[Relation, Relation]:
    """Make the columns to join on comparable: strings become positions among the same words."""
    for name in names:
        one, other = alike([left[name], right[name]], f"{what} on {name!r}")
        left, right = _put(left, name, one), _put(right, name, other)
    return left, right


def _put(relation: Relation, name: str, column: Column) -> Relation:
    """Put a column in place of one with the same values, perhaps in other numbers."""
    placed = relation.placed_by if column.same_words(relation[name]) else None
    return Relation({**relation.columns, name: column}, placed)


def _together(
    bsp: bsplib.Group, left: Relation, right: Relation, names: Sequence[str], sizes: Sequence[int]
) -> tuple[Relation, Relation]:
    """Move rows that may agree to the same process, by the cheaper method: 1 superstep."""
    placed = [side.placed_by == tuple(names) for side in (left, right)]
    moved = sum(size for size, stays in zip(sizes, placed, strict=True) if not stays)
    if min(sizes) * bsp.nprocs < moved:
        if sizes[0] < sizes[1]:
            return replicate(bsp, left), right
        return left, replicate(bsp, right)
    left, right = to_owners(bsp, [left, right], names)
    return left, right


def paired(
    bsp: bsplib.Group,
    left: Relation,
    right: Relation,
    pairs: Pairs,
    names: Sequence[str],
    what: str,
) -> Relation:
    """Lay out pairs of rows: what they agree in, the columns of one, those of the other."""
    common = left.only(names)
    first = left.only([name for name in left.columns if name not in names])
    second = right.only([name for name in right.columns if name not in names])
    whole = beside(beside(common, first, what).take(pairs.left), second.take(pairs.right), what)
    charge_values(bsp, left.rows + right.rows + whole.values)  # found, and laid out
    return replace(whole, placed_by=left.placed_by or right.placed_by)
