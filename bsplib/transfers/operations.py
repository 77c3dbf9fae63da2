"""The operations that combine values: by name, and on Python's own numbers.

A ufunc turns Python's numbers into numpy's, which overflow. Two values of Python's own
are therefore combined as Python does it: integers of any size, strings that add.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
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
"""Operations by name."""

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
"""What ufuncs do, as Python does it."""

_NUMBERS = (bool, int, float, complex)
_OWN = (*_NUMBERS, str, bytes)


def resolve(op: Any) -> Any:
    """Return the operation that a name stands for; anything but a known name as it is."""
    return NAMED.get(op, op) if isinstance(op, str) else op


def on_scalars(ufunc: np.ufunc) -> Op:
    """Return a ufunc as a function of two scalars, of Python or of numpy.

    Of two bools the result is a bool, of two other values of Python's own one of
    Python's own, and otherwise what numpy makes of them.
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


def _has_nan(a: Any, b: Any) -> bool:
    """Tell whether a value is no number: numpy's minimum and maximum return it."""
    return bool(a != a or b != b)  # noqa: PLR0124  # that is how one knows it


def scalar_of(x: Any) -> Any | None:
    """Return the scalar that a value is: its own type, or numpy's; None if it is none."""
    if type(x) in _OWN:
        return x
    if isinstance(x, np.generic) and not isinstance(x, np.void):
        return x
    if isinstance(x, np.ndarray) and x.ndim == 0 and not x.dtype.hasobject:
        return x[()]
    return None


def to_wire(scalar: Any) -> Any:
    """Return what travels for a scalar: an array without axes for a number of Python's own."""
    if type(scalar) in _NUMBERS:
        values = np.asarray(scalar)
        return scalar if values.dtype.hasobject else values
    return scalar


def from_wire(payload: Any) -> Any:
    """Return the scalar for which something has travelled."""
    return payload.item() if type(payload) is np.ndarray else payload
