"""The forms of payloads: what the head of a message says of its content.

A form consists of plain values, is computed from the payload at hand, and says all that a receiver
needs to know. An array may be changed in place, and so may the names of the fields of its dtype.
Hence forms are the only keys of what is remembered of payloads, and every head is made of one.
"""

from __future__ import annotations

import marshal
import pickle
from functools import lru_cache
from typing import Any

import numpy as np

DtypeCode = str | bytes | tuple[Any, ...]
Form = tuple[Any, ...]

BYTES, ARRAY, NUMBER, PICKLE = "bytes", "array", "number", "pickle"
"""Kinds of payloads: the first part of a form. The other parts are shape and dtype of an array, the
dtype of a number of numpy's, or the sizes of a pickle and of its buffers."""
FORM_OF_BYTES: Form = (BYTES,)

_NUMBERS = "?bBhHiIlLqQefdgFDG"
_MOST_OF_NUMPY = np.dtype(np.half).num
"""The greatest type number of numpy's own dtypes. Those of others may have the same letters."""


def encode_dtype(dtype: np.dtype[Any]) -> DtypeCode:
    """Return a dtype as a plain value."""
    fields = dtype.fields
    if dtype.names and fields and dtype.type is np.void and dtype.metadata is None:
        each = tuple((encode_dtype(fields[name][0]), *fields[name][1:]) for name in dtype.names)
        if all(type(code) is str and not more for code, _, *more in each):
            return dtype.names, each, dtype.itemsize, dtype.isalignedstruct
        return pickle.dumps(dtype, 5)
    if dtype.num > _MOST_OF_NUMPY or dtype.kind in "VO" or dtype.metadata is not None:
        return pickle.dumps(dtype, 5)
    if dtype.kind in "SUmM":
        return dtype.str
    return dtype.str[0] + dtype.char  # two types of one size have the same str


def decode_dtype(code: DtypeCode) -> np.dtype[Any]:
    """Return the dtype of a code that :func:`encode_dtype` made; a new one if it can be changed."""
    dtype = DTYPES.get(code)
    if dtype is not None:
        return dtype
    if isinstance(code, tuple):
        return _record(code).newbyteorder("|")  # a copy, which costs less than to make it
    return np.dtype(code) if isinstance(code, str) else pickle.loads(code)  # of the same run


@lru_cache(maxsize=256)
def _record(code: tuple[Any, ...]) -> np.dtype[Any]:
    """Return the dtype of records of numbers, for this module only."""
    names, fields, itemsize, aligned = code
    formats, offsets = zip(*((decode_dtype(kind), at) for kind, at in fields), strict=True)
    described = {"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize}
    return np.dtype(described, align=aligned)  # type: ignore[call-overload, no-any-return]


def are_equal(one: DtypeCode, other: DtypeCode) -> bool:
    """Tell whether two codes are of dtypes that are equal to numpy."""
    return one == other or decode_dtype(one) == decode_dtype(other)


def form_of_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Form:
    """Return the form of an array."""
    return ARRAY, shape, encode_dtype(dtype)


def head_of_collective(tag: tuple[str, Any], form: Form) -> bytes:
    """Return the encoded head of a message of a collective."""
    return marshal.dumps((tuple(tag), False, form))


DTYPES: dict[DtypeCode, np.dtype[Any]] = {
    encode_dtype(dtype): dtype
    for number in map(np.dtype, _NUMBERS)
    for dtype in (number, number.newbyteorder())
}
"""The dtypes of numbers, which nobody can change, by their codes."""
FLOAT64, INT64 = (encode_dtype(np.dtype(kind)) for kind in (np.float64, np.int64))
