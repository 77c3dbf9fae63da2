"""Joins on equal values that keep rows without a partner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import bsplib
from bsplib.apps.sql.column import Column
from bsplib.apps.sql.equi_join import comparable, paired
from bsplib.apps.sql.exchange import replicate, to_owners
from bsplib.apps.sql.keys import agree
from bsplib.apps.sql.match import equal_pairs
from bsplib.apps.sql.relation import Relation, stacked, without_nulls


def left_join(bsp: bsplib.Group, left: Relation, right: Relation, names: Sequence[str]) -> Relation:
    """Pair the rows of two relations that are equal in some columns (``LEFT JOIN USING``).

    A row of ``left`` without an equal row is kept, with NULL in the columns of ``right``.

    Args, Returns, Raises: as :func:`bsplib.apps.sql.equi_join.equi_join`.

    Supersteps: 2.
    Cost: as that of an equi-join, where ``right`` alone may go to all processes.
    """
    right = without_nulls(right, names)
    left, right = comparable(left, right, names, "left_join")
    encoding, sizes = agree(bsp, [left.among(names), right.among(names)])
    stays = left.placed_by == tuple(names)
    if sizes[1] * bsp.nprocs < sizes[1] + (0 if stays else sizes[0]):
        right = replicate(bsp, right)
    else:
        left, right = to_owners(bsp, [left, right], names)
    known = left.known(names)
    able = np.arange(left.rows) if known is None else np.flatnonzero(known)
    keys = [encoding.keys(side.among(names)) for side in (left.take(able), right)]
    pairs = equal_pairs(encoding, *keys)
    pairs = pairs._replace(left=able[pairs.left])
    joined = paired(bsp, left, right, pairs, names, "left_join")
    single = np.ones(left.rows, bool)
    single[pairs.left] = False
    return Relation(stacked([joined, _alone(left.take(single), joined)]).columns, joined.placed_by)


def _alone(left: Relation, like: Relation) -> Relation:
    """Return rows of the left side without a partner, with NULL in the other columns."""
    nothing = np.zeros(left.rows, bool)
    return Relation(
        {
            name: left[name]
            if name in left.columns
            else Column(np.zeros(left.rows, column.values.dtype), nothing, column.words)
            for name, column in like.columns.items()
        }
    )
