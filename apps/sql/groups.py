"""Groups of rows: their common columns as keys, and the parts of their aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import bsplib
from bsplib.apps.sql.aggregates import (
    Aggregate,
    Index,
    Made,
    PartialValue,
    accumulate,
    combine,
    finish,
    slices_of,
)
from bsplib.apps.sql.column import CHUNK, Column
from bsplib.apps.sql.keys import Encoding, Keys, numbered
from bsplib.apps.sql.relation import Relation
from bsplib.apps.work import charge_sums

_MOST_KEYS_FOR_A_ROW = 4
"""Greatest number of possible keys for each row, for groups to be numbered by their key."""


class Partial(NamedTuple):
    """Groups, with the parts of their aggregates computed so far."""

    keys: Keys
    made: Made


class Groups:
    """The groups of a relation: the form of their keys, and the columns of the keys.

    Attributes:
        encoding: of the keys.
        names: columns that rows of a group have in common.
    """

    def __init__(self, encoding: Encoding, like: Mapping[str, Column]) -> None:
        self.encoding = encoding
        self.names = list(like)
        self._like = list(like.values())

    def columns(self, keys: Keys) -> list[Column]:
        """Return the columns that groups have in common."""
        return self.encoding.columns(keys, self._like)

    def of_rows(
        self, bsp: bsplib.Group, relation: Relation, parts: Sequence[PartialValue]
    ) -> Partial:
        """Aggregate rows of this process: w = O(rows)."""
        columns = relation.among(self.names)
        self._charge(bsp, relation.rows, parts, has_numbers=self._is_dense(relation.rows))
        if not self._is_dense(relation.rows):
            return self._of_keys(self.encoding.keys(columns), relation, parts)

        def index(start: int, stop: int) -> Index:
            some = [column.take(slice(start, stop)) for column in columns]
            return self.encoding.keys(some).astype(np.int64, copy=False)

        return self._of_all(accumulate(index, relation.rows, relation, parts, self.encoding.span))

    def of_runs(
        self, bsp: bsplib.Group, keys: Keys, relation: Relation, parts: Sequence[PartialValue]
    ) -> Partial:
        """Aggregate rows of this process that are in the order of their keys."""
        self._charge(bsp, len(keys), parts, has_numbers=True)
        first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        index = np.cumsum(first) - 1
        distinct = keys[first]
        made = accumulate(slices_of(index), len(keys), relation, parts, len(distinct))
        return Partial(distinct, made)

    def merged(self, bsp: bsplib.Group, partial: Partial) -> Partial:
        """Combine the parts of groups from several processes."""
        keys, parts = partial.keys, partial.made.parts
        self._charge(bsp, len(keys), list(parts), has_numbers=self._is_dense(len(keys)))
        if self._is_dense(len(keys)):
            return self._of_all(combine(keys.astype(np.int64), parts, self.encoding.span))
        firsts, index = numbered(keys)
        return Partial(keys[firsts], combine(index, parts, len(firsts)))

    def as_rows(self, partial: Partial) -> Relation:
        """Lay out groups as rows, to be sent."""
        parts = enumerate(partial.made.parts.values())
        return Relation(
            {"key": Column(partial.keys), **{f"part {number}": part for number, part in parts}}
        )

    def from_rows(self, rows: Relation, parts: Sequence[PartialValue]) -> Partial:
        """Return the groups from rows of :meth:`as_rows`."""
        made = {part: rows[f"part {number}"] for number, part in enumerate(parts)}
        return Partial(rows["key"].values, Made(np.ones(rows.rows, bool), made))

    def relation(
        self,
        partial: Partial,
        aggregates: Mapping[str, Aggregate],
        placed_by: tuple[str, ...] | None = None,
    ) -> Relation:
        """Return one row for each group: its common columns, and the aggregates."""
        common = dict(zip(self.names, self.columns(partial.keys), strict=True))
        return Relation({**common, **finish(aggregates, partial.made.parts)}, placed_by)

    def _charge(
        self, bsp: bsplib.Group, rows: int, parts: Sequence[PartialValue], *, has_numbers: bool
    ) -> None:
        """Charge for the aggregates of rows, and for the numbers of their groups."""
        charge_sums(bsp, rows * (len(parts) + (not has_numbers)))

    def _of_keys(self, keys: Keys, relation: Relation, parts: Sequence[PartialValue]) -> Partial:
        firsts, index = numbered(keys)
        made = accumulate(slices_of(index), len(keys), relation, parts, len(firsts))
        return Partial(keys[firsts], made)

    def _of_all(self, made: Made) -> Partial:
        """Leave out the keys that no row has."""
        there = np.flatnonzero(made.present)
        return Partial(there.astype(self.encoding.dtype), made.of(there))

    def _is_dense(self, rows: int) -> bool:
        """Tell whether there may be so few keys that each may have a place of its own."""
        return self.encoding.packed and self.encoding.span <= max(
            _MOST_KEYS_FOR_A_ROW * rows, CHUNK
        )
