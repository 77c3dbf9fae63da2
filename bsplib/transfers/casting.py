"""Casts of values to the dtype of an array, by numpy's rule same_kind, with no string cut."""

from __future__ import annotations

import sys
from math import prod
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.errors import BoundsError, DtypeError, PlaceError
from bsplib.transfers.place import Array

_NUMBERS = (float, int, bool, complex)
"""Types of the numbers of Python."""


def as_array(operation: str, values: ArrayLike) -> Array:
    """Return values as an array.

    Raises:
        DtypeError: they are a masked array, or a list of such, which would lose its mask.
    """
    if type(values) is np.ndarray:
        return values
    masked = sys.modules.get("numpy.ma")  # numpy imports it when it is first used
    if masked is not None and _has_mask(values, masked.MaskedArray):
        raise DtypeError(
            f"{operation}: a masked array would lose its mask; fill it by numpy.ma.filled(x, value)"
        )
    return np.asarray(values)


def _has_mask(values: Any, masked: type) -> bool:
    """Tell whether values are a masked array, or nested lists of such.

    Of a list that begins with a number only this is looked at, since lists of numbers are long.
    """
    if isinstance(values, list | tuple):
        nested = len(values) > 0 and type(values[0]) not in _NUMBERS
        return nested and any(_has_mask(each, masked) for each in values)
    return isinstance(values, masked)


def cast_values(
    operation: str, src: ArrayLike, dtype: np.dtype[Any], *, exact: bool = False
) -> Array:
    """Return values as an array of the given dtype.

    Args:
        operation: name of the primitive.
        src: the values.
        dtype: of the result.
        exact: refuse integers that the dtype cannot hold, and finite numbers that become
            infinite.

    Raises:
        DtypeError: they cannot be cast by the rule same_kind, strings would be cut, or src is
            a masked array; with ``exact``, a value does not survive the cast.
    """
    values = src if type(src) is np.ndarray else as_array(operation, src)
    if values.dtype == dtype:
        return values
    if values.size == 0 and not isinstance(src, np.ndarray):
        return values.astype(dtype)  # an empty list has no dtype of its own
    integers = values.dtype.kind in "iu" and dtype.kind in "iu"
    if integers and not isinstance(src, np.ndarray | np.generic):
        try:
            values = np.asarray(src, dtype)  # raises if an integer does not fit
        except (OverflowError, TypeError, ValueError):
            raise _does_not_fit(operation, values, dtype) from None
    elif values.dtype.kind == "O" and not isinstance(src, np.ndarray):
        raise _is_no_value(operation, values, dtype)
    elif not _can_cast(values.dtype, dtype):
        raise _cannot_cast(operation, values.dtype, dtype)
    if exact:
        return check_survival(operation, values, dtype)
    return values.astype(dtype)


def check_survival(
    operation: str, values: Array, dtype: np.dtype[Any], way_out: str = "make the array"
) -> Array:
    """Cast numbers, and return the result.

    Args:
        operation: name of the primitive.
        values: the numbers.
        dtype: of the result.
        way_out: begins the text of what to do, which continues with the dtype of the values.

    Raises:
        DtypeError: an integer or a time becomes another one, or a finite number becomes
            infinite.
    """
    with np.errstate(all="ignore"):
        cast = values.astype(dtype)
        lost = _lost(values, cast)
    if lost.any():
        first, number = values[lost].reshape(-1)[0], np.count_nonzero(lost)
        raise DtypeError(
            f"{operation}: {number} of {values.size} values of dtype {values.dtype} do not fit "
            f"into dtype {dtype}: {first} would become {cast[lost].reshape(-1)[0]}; {way_out} "
            f"of dtype {values.dtype}, or cast them yourself by astype where this is meant"
        )
    return cast


def _lost(values: Array, cast: Array) -> NDArray[np.bool_]:
    """Tell of each value whether it has not survived its cast; rounding is allowed."""
    kind, to = values.dtype.kind, cast.dtype.kind
    if values.dtype.names is not None and cast.dtype.names is not None:
        fields = zip(values.dtype.names, cast.dtype.names, strict=False)
        each = [_lost(values[here], cast[there]) for here, there in fields]
        axes = [tuple(range(values.ndim, lost.ndim)) for lost in each]  # of fields that are arrays
        by_field = [lost.any(axis) for lost, axis in zip(each, axes, strict=True)]
        return np.asarray(np.logical_or.reduce(by_field))
    if kind in "iu" and to in "iufc":
        lost = (cast.real.astype(values.dtype) != values) | ((cast.real < 0) != (values < 0))
    elif kind in "fc" and to in "fc":
        lost = np.isfinite(values) & ~np.isfinite(cast)
    elif kind in "mM" and to in "mM" and np.can_cast(values.dtype, cast.dtype, "safe"):
        lost = (cast.astype(values.dtype) != values) & ~np.isnat(values)
    else:
        lost = np.zeros(values.shape, np.bool_)
    return np.asarray(lost)


def _can_cast(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Tell whether values can be cast by the rule same_kind, with no string cut short."""
    return np.can_cast(source, target, "same_kind") and not _cuts_strings(source, target)


def _cuts_strings(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Tell whether a cast may lose the end of strings or numerals, which same_kind allows."""
    if source.names is not None and target.names is not None:
        pairs = zip(source.names, target.names, strict=False)
        return any(_cuts_strings(source[here], target[there]) for here, there in pairs)
    if source.subdtype is not None and target.subdtype is not None:
        return _cuts_strings(source.base, target.base)
    return target.kind in "SU" and np.promote_types(source, target).itemsize > target.itemsize


def check_out(
    operation: str, out: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Return the array for values of a shape and dtype: ``out``, or a new one.

    Raises:
        BoundsError: there are more values than an array can have.
        PlaceError: ``out`` cannot be written, or has another shape.
        DtypeError: ``out`` cannot take the values.
    """
    if out is None:
        try:
            return np.empty(shape, dtype)
        except ValueError:
            raise BoundsError(
                f"{operation}: no array has {prod(shape)} elements of dtype {dtype}"
            ) from None
    as_array(operation, out)
    if not isinstance(out, np.ndarray) or not out.flags.writeable:
        raise PlaceError(f"{operation}: the destination {type(out).__name__} is no writable array")
    if shape != out.shape and out.size:
        raise PlaceError(
            f"{operation}: the destination has shape {out.shape}, what is named has shape {shape}"
        )
    if not _can_cast(dtype, out.dtype):
        raise _cannot_cast(operation, dtype, out.dtype)
    return out


def _cannot_cast(operation: str, source: np.dtype[Any], target: np.dtype[Any]) -> DtypeError:
    if np.can_cast(source, target, "same_kind"):
        return DtypeError(
            f"{operation}: values of dtype {source} would be cut to dtype {target}; shorten them "
            f"first, or make the array of dtype {source}"
        )
    way_out = "convert them first"
    if target.names is not None and source.names is None:
        way_out = "make an array of that dtype of them first, as numpy.array(records, dtype)"
    return DtypeError(
        f"{operation}: values of dtype {source} cannot be cast to dtype {target} "
        f"without loss of kind; {way_out}"
    )


def _does_not_fit(operation: str, integers: Array, target: np.dtype[Any]) -> DtypeError:
    """Return the error for integers of which one is too small or too large for a dtype."""
    least, greatest = np.iinfo(target).min, np.iinfo(target).max
    first = next(each for each in integers.flat if not least <= int(each) <= greatest)
    return DtypeError(
        f"{operation}: values of dtype {integers.dtype} do not fit into dtype {target}: {first} is "
        f"not in {least} to {greatest}; make the array of dtype {integers.dtype}"
    )


def _is_no_value(operation: str, values: Array, target: np.dtype[Any]) -> DtypeError:
    """Return the error for values of which one is neither a number nor a string."""
    objects = (each for each in values.flat if np.asarray(each).dtype.kind == "O")
    first = next(objects, values.flat[0])
    return DtypeError(
        f"{operation}: {short(first)}, of type {type(first).__name__}, cannot be cast to dtype "
        f"{target}; give numbers that the array can hold, or send it as a message"
    )
