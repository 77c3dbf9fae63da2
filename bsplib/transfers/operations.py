"""The operations that combine values: their names, and how they combine Python's own values.

A ufunc converts Python's numbers to numpy's, which overflow. Two of Python's own values are
therefore combined by Python: integers have any size, strings are joined.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

Op = Callable[[Any, Any], Any]

NAMED: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "all": np.logical_and,
    "any": np.logical_or,
}
"""Operations by name; the names of numpy's own, such as ``"add"``, are understood, too."""

_REDUCTIONS: dict[Any, np.ufunc] = {
    builtins.sum: np.add,
    builtins.all: np.logical_and,
    builtins.any: np.logical_or,
    np.sum: np.add,
    np.prod: np.multiply,
    np.min: np.minimum,
    np.max: np.maximum,
    np.all: np.logical_and,
    np.any: np.logical_or,
}
"""Functions that combine the elements of one value, by what is meant: they would take the second
of two values for something else, such as the start of a sum, or the axis."""

_PYTHON: dict[Any, Op] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.minimum: min,
    np.maximum: max,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
}
"""The function of Python that does the same as a ufunc, where there is one."""

_NUMBERS = (bool, int, float, complex)
_OWN = (*_NUMBERS, str, bytes)
_NUMPYS = frozenset(np.dtype(code).type for code in "?bBhHiIlLefdFD")


def resolve(op: Any) -> Any:
    """Return the operation of a name, or of a function that combines the elements of a value.

    Anything else is returned unchanged.
    """
    if isinstance(op, str):
        found = NAMED.get(op) or getattr(np, op, None)
        return found if isinstance(found, np.ufunc) else op
    is_hashable = type(op).__hash__ is not None
    return _REDUCTIONS.get(op, op) if is_hashable else op


@lru_cache(maxsize=64)
def on_scalars(ufunc: np.ufunc) -> Op:
    """Return a ufunc as a function of two scalars, of Python or of numpy.

    The result is a bool for two bools, one of Python's own values for two others of these,
    and numpy's result otherwise.
    """
    python = _PYTHON.get(ufunc)

    def combine(a: Any, b: Any) -> Any:
        if type(a) not in _OWN or type(b) not in _OWN:
            return ufunc(a, b)
        if type(a) is type(b) is bool:
            return bool(ufunc(a, b))
        if python is not None and not _has_nan(a, b):
            return python(a, b)
        result = ufunc(a, b)
        return result.item() if isinstance(result, np.generic) else result

    return combine


def identity(ufunc: np.ufunc, value: Any) -> Any:
    """Return what a ufunc combines with any value to that value, in the form of a value.

    Args:
        ufunc: combines two values.
        value: scalar of Python or of numpy, or array.

    Returns:
        A scalar or an array like the result for two such values; None if there is no identity.
    """
    if isinstance(value, str | bytes) and not isinstance(value, np.generic):
        return type(value)() if ufunc is np.add else None
    if type(value) in _NUMBERS:
        one = type(value)(1)
        kind = type(on_scalars(ufunc)(one, one))
        return None if ufunc.identity is None else kind(ufunc.identity)
    empty = np.empty(0, np.asarray(value).dtype)
    if empty.dtype.kind in "SU":
        return np.zeros(np.shape(value), empty.dtype)[()] if ufunc is np.add else None
    if ufunc.identity is None:
        return None
    return np.full(np.shape(value), ufunc.identity).astype(ufunc(empty, empty).dtype)[()]


def _has_nan(a: Any, b: Any) -> bool:
    """Tell whether a value is NaN, which numpy's minimum and maximum return."""
    return bool(a != a or b != b)  # noqa: PLR0124  # NaN differs from itself


def scalar_of(x: Any) -> Any | None:
    """Return a value as a scalar of Python or of numpy; None if it is no scalar."""
    if type(x) in _OWN:
        return x
    if isinstance(x, np.generic) and not isinstance(x, np.void):
        return x
    if isinstance(x, np.ndarray) and x.ndim == 0 and not x.dtype.hasobject:
        return x[()]
    return None


def counted(x: Any) -> Any:
    """Return truth values as 0 and 1, so that their sum is their number; other values unchanged."""
    if type(x) is bool:
        return int(x)
    is_numpys = isinstance(x, np.ndarray | np.generic) and x.dtype == np.bool_
    return x.astype(np.int64) if is_numpys else x


def to_wire(scalar: Any) -> Any:
    """Return the payload of a scalar: a number becomes an array, which needs no pickle.

    The array of a number of Python's own has no axes, that of a number of numpy's has one.
    """
    if type(scalar) in _NUMBERS:
        values = np.asarray(scalar)
        return scalar if values.dtype.hasobject else values
    if type(scalar) in _NUMPYS:
        return np.asarray(scalar).reshape(1)
    return scalar


def from_wire(payload: Any) -> Any:
    """Return the scalar of a payload that :func:`to_wire` made."""
    if type(payload) is not np.ndarray:
        return payload
    return payload[0] if payload.ndim else payload.item()
