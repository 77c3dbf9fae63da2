"""The order of records, and the sort of the records, or numbers, of one process.

A record is an element of an array: it is a key itself, or has several fields, some of which
are the key. Keys are compared as numpy sorts them, NaN last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.typing import NDArray

from bsplib import core
from bsplib.apps.kernels import radix

Records = NDArray[Any]
Kind = Literal["stable"] | None

_QUICK = {"i": (4, 8), "u": (4, 8), "f": (4, 8)}
"""Kinds and sizes of numbers that numpy sorts by vector instructions: this is faster than
merging many runs."""


@dataclass(frozen=True)
class Order:
    """An order of records."""

    fields: tuple[str, ...] = ()
    """Names of the fields that are the key, in the order of comparison; if empty, all of them."""
    stable: bool = False
    """Whether records with equal keys keep their order."""

    def keys(self, records: Records) -> Records:
        """Return the key of each record: a view if it is one field or the whole record."""
        if not self.fields:
            return records
        if len(self.fields) == 1:
            return records[self.fields[0]]
        return repack_fields(records[list(self.fields)])

    def sort(self, records: Records, out: Records, runs: int = 0) -> None:
        """Sort records.

        Args:
            records: in one dimension; not changed, unless they are ``out``.
            out: as many, for the result.
            runs: number of sorted runs of which the records consist; 0 if it is not known.

        Cost: w = O(m log m); O(m log runs) where there are runs.
        """
        kind: Kind = "stable" if self.stable or merges(records.dtype, runs) else None
        if records.dtype.names is None and kind is None:
            sort_numbers(records, out)
            return
        if records.dtype.names is None:
            if out is not records:
                out[...] = records
            out.sort(kind=kind)
            return
        index = self._argsort(records, kind)
        if out is records:
            records = records.copy()
        np.take(records, index, out=out, mode="clip")  # other modes would copy once more

    def _argsort(self, records: Records, kind: Kind) -> NDArray[np.intp]:
        names = self.fields or records.dtype.names
        assert names is not None
        columns = [records[name] for name in names]
        if len(columns) == 1:
            return columns[0].argsort(kind=kind)
        if any(column.ndim > 1 or column.dtype.names for column in columns):
            return self.keys(records).argsort(kind="stable")
        return np.lexsort(columns[::-1])  # column by column: no comparison of whole records


def merges(dtype: np.dtype[Any], runs: int) -> bool:
    """Tell whether the stable sort, which merges existing runs, is faster than the other."""
    if not runs:
        return False
    return runs <= 2 or dtype.itemsize not in _QUICK.get(dtype.kind, ())


def order_of(dtype: np.dtype[Any], key: str | Sequence[str] | None, *, stable: bool) -> Order:
    """Return the order of records of a dtype.

    Args:
        dtype: dtype of the records.
        key: a field, several fields, or None for all of a record.
        stable: see :class:`Order`.

    Raises:
        ValueError: there is no such field.
    """
    if key is None:
        return Order((), stable)
    fields = (key,) if isinstance(key, str) else tuple(key)
    names = dtype.names or ()
    unknown = [field for field in fields if field not in names]
    if unknown or not fields:
        has = f"the fields {', '.join(names)}" if names else f"none, their dtype is {dtype}"
        what = f"{unknown[0]!r} is no field" if unknown else "a key has at least one field"
        raise ValueError(f"key: {what} of the records; they have {has}")
    return Order(fields, stable)


# -- the sort of the numbers of one process: by numpy, or by digits where that is faster ----------


_LEAST = 1 << 12
"""Fewer numbers are sorted by numpy."""
_MEASURED = 1 << 13
"""How many numbers are sorted in both ways to find out which is faster."""
_TIMES = 3


def sort_numbers(numbers: NDArray[Any], out: NDArray[Any]) -> None:
    """Sort numbers in the order of numpy; which one of equal numbers comes first is open.

    Args:
        numbers: in one dimension; not changed, unless they are ``out``.
        out: as many, for the result.

    Cost: w = O(m log m), or O(m) and memory for as many numbers where they are sorted by digits.
    """
    if BY_DIGITS and len(numbers) >= _LEAST and _fits(numbers) and _fits(out):
        radix.sort_numbers(numbers, out)
        return
    if out is not numbers:
        out[...] = numbers
    out.sort()


def _fits(numbers: NDArray[Any]) -> bool:
    """Tell whether numbers can be sorted by their digits."""
    return numbers.flags.c_contiguous and numbers.flags.aligned and radix.can_sort(numbers.dtype)


def _is_faster_by_digits() -> bool:
    """Tell whether the compiled core sorts faster than numpy, after a millisecond or two."""
    if core.BUILD != "compiled":
        return False
    numbers = np.random.default_rng(0).random(_MEASURED)
    out = np.empty_like(numbers)

    def by_numpy() -> None:
        out[...] = numbers
        out.sort()

    by_digits = _least_ns(lambda: radix.sort_numbers(numbers, out))
    return by_digits < _least_ns(by_numpy)


def _least_ns(sort: Callable[[], None]) -> int:
    taken = []
    for _ in range(_TIMES):
        began = time.thread_time_ns()
        sort()
        taken.append(time.thread_time_ns() - began)
    return min(taken)


BY_DIGITS = _is_faster_by_digits()
"""Measured when this module is imported, so that it counts in the time of no process."""
