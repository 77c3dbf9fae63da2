"""A column of a relation: its values, and which of them are NULL.

There are four kinds. Integers and floats are stored directly, dates as days
(``datetime64[D]``). Strings are stored as numbers: positions among the distinct strings of
the column, its *words*, which are sorted and complete on every process. So strings are
compared, sorted, grouped and sent as integers, and every process can look them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.sql.errors import QueryError

Values = NDArray[Any]
Mask = NDArray[np.bool_]
Words = NDArray[np.object_]

KINDS = {"i": "integer", "u": "integer", "f": "float", "M": "date"}
"""Kinds of columns, by numpy's kind of dtype; strings are integers with words."""
CHUNK = 1 << 16
"""Number of rows processed at a time, so that intermediate results stay in the cache."""
CODE = np.dtype(np.int32)
"""Dtype of the positions of strings among their words."""


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

    def same_words(self, other: Column) -> bool:
        """Tell whether equal strings have equal numbers in both; true of no strings."""
        if self.words is None or other.words is None:
            return self.words is other.words
        return self.words is other.words or np.array_equal(self.words, other.words)

    def with_words(self, words: Words) -> Column:
        """Return the same strings as positions among other words, which contain its own."""
        assert self.words is not None
        if words is self.words or len(self.words) == 0:
            return Column(self.values, self.valid, words)
        moved = np.searchsorted(words, self.words).astype(CODE)
        return Column(moved[self.values], self.valid, words)


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
