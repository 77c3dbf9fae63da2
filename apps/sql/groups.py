"""Groups of rows: their common columns as keys, and the parts of their aggregates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

import bsplib
from bsplib.apps.sql.aggregates import (
    Aggregate,
    Grouping,
    Made,
    PartialValue,
    accumulate,
    combine,
    finish,
    numbered_rows,
)
from bsplib.apps.sql.column import Column
from bsplib.apps.sql.keys import Encoding, Keys
from bsplib.apps.sql.numbering import Numbering
from bsplib.apps.sql.relation import Relation
from bsplib.apps.work import charge_sums


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

        def keys(start: int, stop: int) -> Keys:
            return self.encoding.keys([column.take(slice(start, stop)) for column in columns])

        is_dense = self.encoding.is_dense(relation.rows)
        self._charge(bsp, relation.rows, parts, has_numbers=is_dense)
        return self._of_keys(
            keys, relation.rows, lambda grouping: accumulate(grouping, relation, parts)
        )

    def of_runs(
        self, bsp: bsplib.Group, keys: Keys, relation: Relation, parts: Sequence[PartialValue]
    ) -> Partial:
        """Aggregate rows of this process that are in the order of their keys."""
        self._charge(bsp, len(keys), parts, has_numbers=True)
        first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        distinct = keys[first]
        grouping = numbered_rows(np.cumsum(first) - 1, len(distinct))
        return Partial(distinct, accumulate(grouping, relation, parts))

    def merged(self, bsp: bsplib.Group, partial: Partial) -> Partial:
        """Combine the parts of groups from several processes."""
        keys, parts = partial.keys, partial.made.parts
        is_dense = self.encoding.is_dense(len(keys))
        self._charge(bsp, len(keys), list(parts), has_numbers=is_dense)
        return self._of_keys(
            lambda start, stop: keys[start:stop],
            len(keys),
            lambda grouping: combine(grouping, parts),
        )

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

    def _of_keys(
        self, keys: Callable[[int, int], Keys], rows: int, made_of: Callable[[Grouping], Made]
    ) -> Partial:
        """Return groups of rows with their parts; a dense key is the number of its group.

        Args:
            keys: returns the keys of a range of rows.
            rows: number of rows.
            made_of: computes the parts.
        """
        encoding = self.encoding
        if not encoding.is_dense(rows):
            numbering = Numbering(encoding.dtype)
            made = made_of(
                Grouping(
                    rows,
                    lambda start, stop: numbering.number(keys(start, stop)),
                    lambda: numbering.count,
                )
            )
            return Partial(numbering.keys(), made)
        made = made_of(
            Grouping(
                rows,
                lambda start, stop: keys(start, stop).astype(np.int64, copy=False),
                lambda: encoding.span,
            )
        )
        there = np.flatnonzero(made.present)  # without the keys that no row has
        return Partial(there.astype(encoding.dtype), made.of(there))
