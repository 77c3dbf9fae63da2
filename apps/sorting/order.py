"""The order of records, and the sort of the records, or numbers, of one process.

A record is an element of an array: it is a key itself, or has several fields, one of which may
be the key. Keys are compared as numpy sorts them, NaN last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Records = NDArray[Any]
Kind = Literal["stable"] | None

_QUICK = {"i": (4, 8), "u": (4, 8), "f": (4, 8)}
"""Kinds and sizes of numbers that numpy sorts by vector instructions: this is faster than
merging many runs."""


@dataclass(frozen=True)
class Order:
    """An order of records."""

    field: str | None = None
    """Name of the field that is the key; None for the whole record."""
    stable: bool = False
    """Whether records with equal keys keep their order."""

    def keys(self, records: Records) -> Records:
        """Return the key of each record, a view."""
        return records if self.field is None else records[self.field]

    def sort(self, records: Records, out: Records, runs: int = 0) -> None:
        """Sort records.

        Args:
            records: in one dimension; not changed, unless they are ``out``.
            out: as many, for the result.
            runs: number of sorted runs of which the records consist; 0 if it is not known.

        Cost: w = O(m log m); O(m log runs) where there are runs.
        """
        kind: Kind = "stable" if self.stable or merges(records.dtype, runs) else None
        if records.dtype.names is None:
            if out is not records:
                out[...] = records
            out.sort(kind=kind)
            return
        index = self.keys(records).argsort(kind=kind)
        if out is records:
            records = records.copy()
        np.take(records, index, out=out, mode="clip")  # other modes would copy once more


def merges(dtype: np.dtype[Any], runs: int) -> bool:
    """Tell whether the stable sort, which merges existing runs, is faster than the other."""
    if not runs:
        return False
    return runs <= 2 or dtype.itemsize not in _QUICK.get(dtype.kind, ())


def order_of(dtype: np.dtype[Any], key: str | None, *, stable: bool) -> Order:
    """Return the order of records of a dtype.

    Args:
        dtype: dtype of the records.
        key: a field, or None for all of a record.
        stable: see :class:`Order`.

    Raises:
        ValueError: there is no such field.
    """
    names = dtype.names or ()
    if key is not None and key not in names:
        has = f"the fields {', '.join(names)}" if names else f"none, their dtype is {dtype}"
        raise ValueError(f"key: {key!r} is no field of the records; they have {has}")
    return Order(key, stable)
