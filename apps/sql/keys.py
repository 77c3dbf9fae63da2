"""One key for each row, made of one or more columns, ordered as SQL orders the rows.

A key is an integer where the ranges of the columns leave room for all of them in 63
bits: each column is a digit with its own base, NULL a digit before or after the others.
Otherwise it is a sequence of bytes: for each column one byte for NULL, then the eight bytes
of the value, high byte first. In both forms keys compare as the rows do, and the columns can
be computed from them. The processes exchange the ranges in one superstep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.column import CHUNK, Column, Mask
from bsplib.apps.sql.errors import QueryError
from bsplib.apps.work import charge_values

Keys = NDArray[Any]
Ordinals = NDArray[np.uint64]

ROOM = 2**63
"""Keys below it are integers."""
_TOP = np.uint64(1 << 63)
_ALL = np.uint64(2**64 - 1)
_BYTES = 9
"""Size of a column in a key of bytes."""
_DENSE = 4
"""Keys are dense if there are at most this many possible ones for each row."""


@dataclass(frozen=True)
class By:
    """A column to order by."""

    name: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Digit:
    """The part of a key that a column contributes."""

    low: int
    """Least ordinal of all rows of all processes."""
    size: int
    """Number of ordinals from the least to the greatest; 0 if there are no values."""
    nulls: bool
    """Whether some process has a NULL."""
    descending: bool
    nulls_first: bool

    @property
    def base(self) -> int:
        """How many digits there are."""
        return max(self.size + self.nulls, 1)


@dataclass(frozen=True)
class Encoding:
    """The form of the keys of some columns, equal on all processes."""

    digits: tuple[Digit, ...]

    @property
    def span(self) -> int:
        """Keys in the form of integers are less than this number."""
        span = 1
        for digit in self.digits:
            span *= digit.base
        return span

    @property
    def packed(self) -> bool:
        """Whether keys are integers."""
        return self.span < ROOM

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest possible dtype of the keys."""
        if not self.packed:
            return np.dtype(f"S{_BYTES * len(self.digits)}")
        return np.dtype(np.int32) if self.span < 2**31 else np.dtype(np.int64)

    def is_dense(self, rows: int) -> bool:
        """Tell whether a table with a place for each possible key is small enough.

        Otherwise keys are numbered: :class:`bsplib.apps.sql.numbering.Numbering`.
        """
        return self.packed and self.span <= max(_DENSE * rows, CHUNK)

    def keys(self, columns: Sequence[Column]) -> Keys:
        """Return the key of each row."""
        if not self.packed:
            return self._bytes(columns)
        keys = _digits(self.digits[0], columns[0], self.dtype)
        for digit, column in zip(self.digits[1:], columns[1:], strict=True):
            keys = keys * keys.dtype.type(digit.base) + _digits(digit, column, self.dtype)
        return keys

    def columns(self, keys: Keys, like: Sequence[Column]) -> list[Column]:
        """Return the columns from which keys were computed.

        Args:
            keys: some of them, in any order.
            like: columns of the same kinds, dtypes and words.
        """
        if not self.packed:
            return self._from_bytes(keys, like)
        columns = []
        for digit, column in list(zip(self.digits, like, strict=True))[:0:-1]:
            keys, here = np.divmod(keys, keys.dtype.type(digit.base))
            columns.append(_undigit(digit, here, column))
        columns.append(_undigit(self.digits[0], keys, like[0]))
        return columns[::-1]

    def _bytes(self, columns: Sequence[Column]) -> Keys:
        count, width = len(columns[0]), _BYTES * len(columns)
        whole = np.zeros((count, width), np.uint8)
        for position, (digit, column) in enumerate(zip(self.digits, columns, strict=True)):
            part = whole[:, position * _BYTES : (position + 1) * _BYTES]
            ordinal = ordinals(column)
            ordinal = ~ordinal if digit.descending else ordinal
            known = column.known()
            part[:, 0] = known if digit.nulls_first else ~known
            part[:, 1:] = np.where(known, ordinal, 0).astype(">u8").view(np.uint8).reshape(-1, 8)
        return whole.reshape(-1).view(self.dtype)

    def _from_bytes(self, keys: Keys, like: Sequence[Column]) -> list[Column]:
        width = _BYTES * len(like)
        whole = np.ascontiguousarray(keys).view(np.uint8).reshape(-1, width)
        columns = []
        for position, (digit, column) in enumerate(zip(self.digits, like, strict=True)):
            part = whole[:, position * _BYTES : (position + 1) * _BYTES]
            ordinal = np.ascontiguousarray(part[:, 1:]).view(">u8")[:, 0].astype(np.uint64)
            ordinal = ~ordinal if digit.descending else ordinal
            known = (part[:, 0] != 0) == digit.nulls_first
            columns.append(_from_ordinals(ordinal, known, column))
        return columns


def agree(
    bsp: bsplib.Group, sides: Sequence[Sequence[Column]], order: Sequence[By] | None = None
) -> tuple[Encoding, list[int]]:
    """Choose the form of keys for the columns of one or more relations.

    Args:
        bsp: the group.
        sides: the key columns of each relation; the first columns of all are compared
            with one another, the second, and so on.
        order: order of each column; default: ascending, NULL last.

    Returns:
        The encoding, and the total number of rows of each relation.

    Raises:
        QueryError: a float is NaN.

    Supersteps: 1.
    Cost: 24 bytes for each column and 8 for each relation to each process; w = O(rows).
    """
    charge_values(bsp, sum(len(column) for columns in sides for column in columns))
    mine = [_range_of(columns) for columns in zip(*sides, strict=True)]
    counts = [len(columns[0]) for columns in sides]
    vector = [number for numbers in mine for number in numbers] + counts
    vectors = np.array(bsp.allgather(np.array(vector, np.uint64)))
    ranges = vectors[:, : 3 * len(mine)].reshape(bsp.nprocs, len(mine), 3)
    low, high = ranges[:, :, 0].min(axis=0), ranges[:, :, 1].max(axis=0)
    nulls = ranges[:, :, 2].max(axis=0)
    order = order or [By("")] * len(mine)
    digits = [
        Digit(*_from_zero(int(low[i]), int(high[i])), bool(nulls[i]), *_way(order[i]))
        for i in range(len(mine))
    ]
    totals = vectors[:, 3 * len(mine) :].sum(axis=0)
    return Encoding(tuple(digits)), [int(total) for total in totals]


def ordinals(column: Column) -> Ordinals:
    """Return integers in the same order as the values; for NULL any integer.

    Raises:
        QueryError: a float is NaN, which is neither less nor greater than another.
    """
    values = column.values
    if column.kind != "float":
        signed = values.astype(np.int64) if values.dtype.kind != "M" else values.view(np.int64)
        return signed.view(np.uint64) ^ _TOP
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    if np.isnan(values).any():
        raise QueryError("a float is NaN, which cannot be ordered; use NULL for unknown values")
    return np.where(bits & _TOP, ~bits, bits ^ _TOP)


def _from_zero(low: int, high: int) -> tuple[int, int]:
    """Return the least ordinal and the number of ordinals: from integer 0 on if that is near.

    An integer then is its own digit.
    """
    zero = int(_TOP)
    if zero <= low and low - zero <= high - low + 1:
        low = zero
    return low, max(high - low + 1, 0)


def _way(by: By) -> tuple[bool, bool]:
    return by.descending, by.nulls_first


def _range_of(columns: Sequence[Column]) -> tuple[int, int, int]:
    """Least and greatest ordinal of the columns of all sides, and whether one has a NULL."""
    lows, highs, nulls = [int(_ALL)], [0], 0
    for column in columns:
        values = column.values if column.valid is None else column.values[column.valid]
        nulls |= int(len(values) < len(column))
        if len(values):
            ends = Column(_ends(values), None, column.words)
            low, high = ordinals(ends)
            lows.append(int(low))
            highs.append(int(high))
    return min(lows), max(highs), nulls


def _ends(values: NDArray[Any]) -> NDArray[Any]:
    """Return the least and the greatest of some values, which come from memory once; or NaN."""
    chunks = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    ends = np.array([[chunk.min(), chunk.max()] for chunk in chunks])
    return np.array([ends[:, 0].min(), ends[:, 1].max()])


def _digits(digit: Digit, column: Column, dtype: np.dtype[Any]) -> Keys:
    """Return the digit of each row."""
    shift = int(digit.nulls and digit.nulls_first)
    if column.kind == "float":
        here = (ordinals(column) - np.uint64(digit.low)).astype(dtype)
    else:
        low = digit.low - int(_TOP)
        whole = column.values if column.values.dtype.kind != "M" else column.values.view(np.int64)
        here = _less(whole, low, dtype)
    if digit.descending:
        here = dtype.type(digit.size - 1) - here
    if shift:
        here = here + dtype.type(shift)
    if column.valid is None:
        return here
    return np.where(column.valid, here, dtype.type(0 if digit.nulls_first else digit.size))


def _less(values: NDArray[Any], low: int, dtype: np.dtype[Any]) -> Keys:
    """Return integers less their lowest, which fit the dtype; where NULL stands, anything."""
    if low == 0:
        return values.astype(dtype, copy=False)
    return (values.astype(np.int64) - np.int64(low)).astype(dtype)


def _undigit(digit: Digit, here: Keys, like: Column) -> Column:
    """Return the column that digits were made of."""
    wide = here.astype(np.int64)
    known = None
    if digit.nulls:
        known = wide != (0 if digit.nulls_first else digit.size)
        wide = wide - int(digit.nulls_first)
    if digit.descending:
        wide = digit.size - 1 - wide
    return _from_ordinals(wide.view(np.uint64) + np.uint64(digit.low), known, like)


def _from_ordinals(ordinal: Ordinals, known: Mask | None, like: Column) -> Column:
    """Return the column of some ordinals; no value is NULL if ``known`` is None."""
    if like.kind == "float":
        bits = np.where(ordinal & _TOP, ordinal ^ _TOP, ~ordinal)
        values = bits.view(np.float64).astype(like.values.dtype)
    else:
        signed = (ordinal ^ _TOP).view(np.int64)
        dtype = like.values.dtype
        values = signed.view(dtype) if dtype.kind == "M" else signed.astype(dtype)
    column = Column(values, None, like.words)
    return column if known is None else column.where(known)
