"""A relation: columns of equal length, with the rows that this process has of it.

The rows of a relation are distributed over the processes; their order has no meaning unless
a primitive defines it. Relations are values: no primitive changes its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bsplib.apps.sql.column import Column, Mask
from bsplib.apps.sql.errors import QueryError


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows of this process."""

    columns: Mapping[str, Column]
    placed_by: tuple[str, ...] | None = None
    """Columns whose values decide on which process a row is (:mod:`bsplib.apps.sql.owner`)."""

    @property
    def rows(self) -> int:
        """Number of rows on this process."""
        return next((len(column) for column in self.columns.values()), 0)

    @property
    def values(self) -> int:
        """Number of values on this process: rows times columns."""
        return self.rows * len(self.columns)

    def __getitem__(self, name: str) -> Column:
        """Return a column.

        Raises:
            QueryError: there is none of that name.
        """
        if name not in self.columns:
            raise QueryError(f"there is no column {name!r}; there are {', '.join(self.columns)}")
        return self.columns[name]

    def among(self, names: Iterable[str]) -> list[Column]:
        """Return the columns with some names, in the order of the names."""
        return [self[name] for name in names]

    def only(self, names: Sequence[str]) -> Relation:
        """Return the relation with some of its columns, in the order that is named."""
        return replace(self, columns={name: self[name] for name in names})

    def take(self, rows: Any) -> Relation:
        """Return some rows of this process: indices, a mask, or a slice."""
        taken = {name: column.take(rows) for name, column in self.columns.items()}
        return replace(self, columns=taken)

    def plus(self, **columns: Column) -> Relation:
        """Return the relation with more columns, or with others in place of its own."""
        placed = None if set(columns) & set(self.placed_by or ()) else self.placed_by
        return Relation({**self.columns, **columns}, placed)

    def known(self, names: Iterable[str]) -> Mask | None:
        """Return which rows have no NULL in some columns; None where all of them."""
        masks = [column.valid for column in self.among(names) if column.valid is not None]
        return np.logical_and.reduce(masks) if masks else None


def without_nulls(relation: Relation, names: Iterable[str]) -> Relation:
    """Return the rows of this process that have no NULL in some columns."""
    known = relation.known(names)
    return relation if known is None else relation.take(known)


def stacked(parts: Sequence[Relation]) -> Relation:
    """Return the rows of several relations that have the same columns, one after the other."""
    names = parts[0].columns
    return Relation({name: _joined([part[name] for part in parts]) for name in names})


def _joined(columns: Sequence[Column]) -> Column:
    values = np.concatenate([column.values for column in columns])
    if all(column.valid is None for column in columns):
        return Column(values, None, columns[0].words)
    return Column(values, np.concatenate([c.known() for c in columns]), columns[0].words)


def beside(left: Relation, right: Relation, what: str) -> Relation:
    """Return the columns of two relations of as many rows, side by side.

    Raises:
        QueryError: a name stands on both sides.
    """
    both = [name for name in right.columns if name in left.columns]
    if both:
        raise QueryError(
            f"{what}: both sides have a column {both[0]!r}; rename it on one of them (project)"
        )
    return Relation({**left.columns, **right.columns}, left.placed_by)
