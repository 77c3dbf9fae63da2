"""A relation: columns of equal length, with the rows that this process has of it.

The rows of a relation are distributed over the processes; their order has no meaning unless
a primitive defines it. Relations are values: no primitive changes its arguments.

There are four kinds of columns. Integers and floats are stored directly, dates as days
(``datetime64[D]``). Strings are stored as numbers: positions among the distinct strings of
the column, its *words*, which are sorted and complete on every process. So strings are
compared, sorted, grouped and sent as integers, and every process can look them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Mask = NDArray[np.bool_]
Words = NDArray[np.object_]

KINDS = {"i": "integer", "u": "integer", "f": "float", "M": "date"}
"""Kinds of columns, by numpy's kind of dtype; strings are integers with words."""
CODE = np.dtype(np.int32)
"""Dtype of the positions of strings among their words."""


class QueryError(ValueError):
    """A relation, a column or a query cannot be what was asked for; one sentence says why."""


@dataclass(frozen=True, eq=False)
class Column:
    """Values of this process, one for each of its rows."""

    values: Values
    """Values; where a value is NULL, a harmless one such as 0."""
    valid: Mask | None = None
    """False where a value is NULL; None if no value is NULL."""
    words: Words | None = None
    """All distinct strings of a column of strings, ascending, the same on all processes."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> str:
        """``integer``, ``float``, ``date`` or ``string``."""
        return KINDS[self.values.dtype.kind] if self.words is None else "string"

    def take(self, rows: Any) -> Column:
        """Return the values at some positions: indices, a mask, or a slice."""
        valid = None if self.valid is None else self.valid[rows]
        return Column(self.values[rows], valid, self.words)

    def where(self, known: Mask) -> Column:
        """Return the values, NULL wherever ``known`` is false besides."""
        valid = known if self.valid is None else self.valid & known
        if valid.all():
            return Column(self.values, None, self.words)
        harmless = np.zeros((), self.values.dtype)
        return Column(np.where(valid, self.values, harmless), valid, self.words)

    def known(self) -> Mask:
        """Return for each row whether it has a value; unlike ``valid``, this is never None."""
        return np.ones(len(self), bool) if self.valid is None else self.valid

    def with_words(self, words: Words) -> Column:
        """Return the same strings as positions among other words, which contain its own."""
        assert self.words is not None
        if words is self.words or len(self.words) == 0:
            return Column(self.values, self.valid, words)
        moved = np.searchsorted(words, self.words).astype(CODE)
        return Column(moved[self.values], self.valid, words)


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows of this process."""

    columns: Mapping[str, Column]
    placed_by: str | None = None
    """Column whose values decide on which process a row is (:func:`.keys.owners`)."""

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

    def numbers(self, name: str) -> Column:
        """Return a column to calculate with.

        Raises:
            QueryError: there is none of that name, or it has no integers or floats.
        """
        kind = self[name].kind
        if kind not in ("integer", "float"):
            raise QueryError(f"{name!r} is a {kind}; a calculation is of integers or floats")
        return self[name]

    def only(self, names: Iterable[str]) -> Relation:
        """Return the relation with some of its columns, in the order that is named."""
        return replace(self, columns={name: self[name] for name in names})

    def take(self, rows: Any) -> Relation:
        """Return some rows of this process: indices, a mask, or a slice."""
        taken = {name: column.take(rows) for name, column in self.columns.items()}
        return replace(self, columns=taken)

    def plus(self, **columns: Column) -> Relation:
        """Return the relation with more columns, or with others in place of its own."""
        placed = None if self.placed_by in columns else self.placed_by
        return Relation({**self.columns, **columns}, placed)

    def without_nulls(self, name: str) -> Relation:
        """Return the rows of this process that have no NULL in a column."""
        valid = self[name].valid
        return self if valid is None else self.take(valid)


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
        raise QueryError(f"{what}: both sides have a column {both[0]!r}; rename it on one of them")
    return Relation({**left.columns, **right.columns}, left.placed_by)


def alike(columns: Sequence[Column], what: str) -> list[Column]:
    """Return columns whose values may be compared with each other.

    Strings are made positions among the words of all; nothing is communicated, since
    every process has all words.

    Args:
        columns: of one kind.
        what: the primitive and the columns, for the error.

    Raises:
        QueryError: they are of different kinds.
    """
    kinds = [column.kind for column in columns]
    if len(set(kinds)) > 1:
        raise QueryError(f"{what}: {' and '.join(dict.fromkeys(kinds))} cannot be compared")
    if kinds[0] != "string":
        return list(columns)
    words = union([column.words for column in columns if column.words is not None])
    return [column.with_words(words) for column in columns]


def union(words: Sequence[Words]) -> Words:
    """Return all distinct strings of some ascending rows of distinct strings, ascending."""
    first = words[0]
    if all(other is first or np.array_equal(other, first) for other in words[1:]):
        return first
    return np.unique(np.concatenate(words))
