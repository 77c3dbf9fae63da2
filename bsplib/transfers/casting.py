"""Casts of values to the dtype of an array, by numpy's rule same_kind, with no string cut."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bsplib.errors import DtypeError, PlaceError
from bsplib.transfers.place import Array


def as_array(operation: str, values: ArrayLike) -> Array:
    """Return values as an array.

    Raises:
        DtypeError: they are a masked array, which would lose its mask.
    """
    masked = sys.modules.get("numpy.ma")  # numpy imports it when it is first used
    if masked is not None and isinstance(values, masked.MaskedArray):
        raise DtypeError(
            f"{operation}: a masked array would lose its mask; fill it by numpy.ma.filled(x, value)"
        )
    return np.asarray(values)


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
    values = as_array(operation, src)
    if values.dtype == dtype:
        return values
    if values.size == 0 and not isinstance(src, np.ndarray):
        return values.astype(dtype)  # an empty list has no dtype of its own
    integers = values.dtype.kind in "iu" and dtype.kind in "iu"
    if integers and not isinstance(src, np.ndarray | np.generic):
        try:
            values = np.asarray(src, dtype)  # raises if an integer does not fit
        except (OverflowError, TypeError, ValueError):
            raise _cannot_cast(operation, values.dtype, dtype) from None
    elif not _can_cast(values.dtype, dtype):
        raise _cannot_cast(operation, values.dtype, dtype)
    if exact:
        return check_survival(operation, values, dtype)
    return values.astype(dtype)


def check_survival(operation: str, values: Array, dtype: np.dtype[Any]) -> Array:
    """Cast numbers, and return the result.

    Raises:
        DtypeError: an integer becomes another number, or a finite number becomes infinite.
    """
    with np.errstate(all="ignore"):
        cast = values.astype(dtype)
        if values.dtype.kind in "iu" and dtype.kind in "iufc":
            lost = (cast.real.astype(values.dtype) != values) | ((cast.real < 0) != (values < 0))
        elif values.dtype.kind in "fc" and dtype.kind in "fc":
            lost = np.isfinite(values) & ~np.isfinite(cast)
        else:
            return cast
    if lost.any():
        first, number = values[lost].reshape(-1)[0], np.count_nonzero(lost)
        raise DtypeError(
            f"{operation}: {number} of {values.size} values of dtype {values.dtype} do not fit "
            f"into dtype {dtype}: {first} would become {cast[lost].reshape(-1)[0]}; make the array "
            f"of dtype {values.dtype}, or cast them yourself by astype where this is meant"
        )
    return cast


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
        PlaceError: ``out`` cannot be written, or has another shape.
        DtypeError: ``out`` cannot take the values.
    """
    if out is None:
        return np.empty(shape, dtype)
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
    return DtypeError(
        f"{operation}: values of dtype {source} cannot be cast to dtype {target} "
        f"without loss of kind; convert them first"
    )
