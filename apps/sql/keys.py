"""Keys: a column's values as integers from 0 on, in the same order, and equal everywhere.

The processes exchange the least and the greatest value in one superstep. A key is the distance
of a value from the least one; NULL is behind the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.apps.sql.relation import Column, QueryError
from bsplib.apps.work import charge_values

Keys = NDArray[Any]
Ordinals = NDArray[np.uint64]

CHUNK = 1 << 16
"""Number of rows processed at a time, so that intermediate results stay in the cache."""
_TOP = np.uint64(1 << 63)
_DENSE = 4
"""Keys are dense if there are at most this many possible ones for each row."""


def ordinals(column: Column) -> Ordinals:
    """Return integers in the same order as the values; for NULL any integer.

    Raises:
        QueryError: a float is NaN, which is neither less nor greater than another.
    """
    values = column.values
    if column.kind != "float":
        return integers(values).astype(np.int64, copy=False).view(np.uint64) ^ _TOP
    if np.isnan(values).any():
        raise QueryError("a float is NaN, which cannot be ordered; use NULL for unknown values")
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    return np.where(bits & _TOP, ~bits, bits ^ _TOP)


def integers(values: NDArray[Any]) -> NDArray[Any]:
    """Return dates as numbers of days, and other values as they are."""
    return values.view(np.int64) if values.dtype.kind == "M" else values


@dataclass(frozen=True)
class Encoding:
    """The form of the keys of a column, equal on all processes."""

    low: int
    """Least ordinal of all rows of all processes."""
    size: int
    """Number of ordinals from the least to the greatest; 0 if there are no values."""
    nulls: bool
    """Whether some process has a NULL."""

    @property
    def span(self) -> int:
        """Keys are less than this number."""
        return max(self.size + self.nulls, 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest dtype of the keys."""
        if self.span <= 2**31:
            return np.dtype(np.int32)
        return np.dtype(np.int64 if self.span <= 2**63 else np.uint64)

    def is_dense(self, rows: int) -> bool:
        """Tell whether a table with a place for each possible key is small enough."""
        return self.span <= max(_DENSE * rows, CHUNK)

    def keys(self, column: Column) -> Keys:
        """Return the key of each row."""
        low = self.low - int(_TOP)
        if column.kind == "float":
            keys = (ordinals(column) - np.uint64(self.low)).astype(self.dtype)
        elif low == 0:
            keys = integers(column.values).astype(self.dtype, copy=False)
        else:  # modulo 2**64, where NULL stands and where the keys are unsigned
            whole = integers(column.values).astype(np.int64, copy=False)
            keys = (whole - np.int64(low)).astype(self.dtype)
        if column.valid is None:
            return keys
        return np.where(column.valid, keys, self.dtype.type(min(self.size, self.span - 1)))

    def column(self, keys: Keys, like: Column) -> Column:
        """Return the column from which keys were computed.

        Args:
            keys: some of them, in any order.
            like: a column of the same kind, dtype and words.
        """
        ordinal = keys.astype(np.uint64) + np.uint64(self.low)
        dtype = like.values.dtype
        if like.kind == "float":
            bits = np.where(ordinal & _TOP, ordinal ^ _TOP, ~ordinal)
            values = bits.view(np.float64).astype(dtype)
        else:
            signed = (ordinal ^ _TOP).view(np.int64)
            values = signed.view(dtype) if dtype.kind == "M" else signed.astype(dtype)
        column = Column(values, None, like.words)
        return column.where(keys != self.size) if self.nulls else column


def agree(bsp: bsplib.Group, columns: Sequence[Column]) -> Encoding:
    """Choose the form of keys for columns that are compared with one another.

    Raises:
        QueryError: a float is NaN, or integers take all 64 bits beside NULL.

    Supersteps: 1.
    Cost: 24 bytes to each process; w = O(rows).
    """
    charge_values(bsp, sum(map(len, columns)))
    lows, highs, nulls = [2**64 - 1], [0], False
    for column in columns:
        values = column.values if column.valid is None else column.values[column.valid]
        nulls |= len(values) < len(column)
        if len(values):
            ends = np.array([values.min(), values.max()])
            low, high = ordinals(Column(ends, None, column.words)).tolist()
            lows.append(low)
            highs.append(high)
    told = np.array(bsp.allgather(np.array([min(lows), max(highs), nulls], np.uint64)))
    low, high, nulls = int(told[:, 0].min()), int(told[:, 1].max()), bool(told[:, 2].any())
    zero = int(_TOP)
    if zero <= low and low - zero <= high - low + 1:
        low = zero  # an integer near 0 is its own key
    size = max(high - low + 1, 0)
    if size + nulls > 2**64:
        raise QueryError("integers take all 64 bits beside NULL; convert them to floats")
    return Encoding(low, size, nulls)


# -- the owner of a row: the process to which its value is assigned -------------------------------
#
# The owner is a hash of the value only, and so equal in every relation: rows that one primitive
# has moved to their owners need not be moved again by the next.

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: its multiples are spread evenly, whatever step they come in."""
_NULL = np.uint64(0x5851F42D4C957F2D)
_HIGH = np.uint64(32)


def owners(column: Column, nprocs: int) -> NDArray[np.intp]:
    """Return for each row the process that its value belongs to; NULL is a value like any other.

    Source: Knuth, The Art of Computer Programming 3, section 6.4: hashing by the
        golden ratio.
    """
    plain = ordinals(column)
    if column.valid is not None:
        plain = np.where(column.valid, plain, _NULL)
    owner = ((plain * _GOLDEN >> _HIGH) * np.uint64(nprocs)) >> _HIGH
    return owner.astype(np.intp)
