"""Arrays that collectives cut into blocks along an axis, or join from blocks."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bsplib.backends.members import named
from bsplib.errors import DtypeError, ShapeError, UsageError
from bsplib.transfers.casting import as_array
from bsplib.transfers.place import Array

_ROOT = defaultdict(str, scatter="; the root gives it, which is process 0 unless root= names one")
"""What to look at, by collective, where there is no array."""


def block(operation: str, x: Any, axis: Any) -> Array:
    """Return a value as an array that has an axis.

    Args:
        operation: the collective.
        x: what ``numpy.asarray`` takes.
        axis: of the array; a negative one counts from the last.

    Raises:
        UsageError: ``axis`` is no integer, or ``x`` is None.
        ShapeError: the array has no such axis.
        DtypeError: the array holds Python objects, or is a masked one.
    """
    values = as_array(operation, x)
    try:
        number = operator.index(axis)
    except TypeError:
        raise UsageError(f"{operation}: axis is {axis!r}; it is an integer, or None") from None
    if x is None:
        raise UsageError(f"{operation}: there is None where an array is needed{_ROOT[operation]}")
    if values.dtype.hasobject:
        raise DtypeError(
            f"{operation}: x is no array of numbers or strings (its dtype is {values.dtype}); "
            f"leave out axis={axis}, which is for arrays"
        )
    if not -values.ndim <= number < values.ndim:
        raise ShapeError(f"{operation}: an array of shape {values.shape} has no axis {axis}")
    return values


def two_axes(axis: Any) -> tuple[Any, Any]:
    """Return the axis along which an array is cut, and that along which blocks are joined."""
    if isinstance(axis, tuple) and len(axis) == 2 and None not in axis:
        return axis
    return axis, axis


def cut(operation: str, x: Any, axis: Any, nprocs: int) -> list[Array]:
    """Return the blocks of an array: as ``numpy.array_split``, the first ones are longer by one.

    Raises:
        Exception: what :func:`block` raises.
    """
    return np.array_split(block(operation, x, axis), nprocs, axis=axis)


def joined_form(
    operation: str, blocks: Sequence[Array], axis: int
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of the array that blocks make along an axis.

    Raises:
        Exception: what :func:`join` raises.
    """
    arrays = [np.asarray(each) for each in blocks]
    if len({each.ndim for each in arrays}) > 1:
        join(operation, arrays, axis)  # raises
    along = axis % arrays[0].ndim
    # Without elements along the axis the result has the same dtype, and the shape but for it.
    none = join(operation, [each[(slice(None),) * along + (slice(0),)] for each in arrays], axis)
    length = sum(each.shape[along] for each in arrays)
    return (*none.shape[:along], length, *none.shape[along + 1 :]), none.dtype


def join(operation: str, blocks: Sequence[Array], axis: int) -> Array:
    """Return the array that blocks make along an axis.

    Args:
        operation: the collective.
        blocks: by pid.
        axis: that all of them have.

    Raises:
        ShapeError: they differ along another axis.
        DtypeError: they have no common dtype.
    """
    try:
        return np.concatenate(blocks, axis)
    except ValueError:
        shapes = by_process({pid: np.shape(each) for pid, each in enumerate(blocks)})
        raise ShapeError(
            f"{operation}: blocks of these shapes cannot be joined along axis {axis}: {shapes}"
        ) from None
    except TypeError:
        dtypes = by_process({pid: np.asarray(each).dtype for pid, each in enumerate(blocks)})
        raise DtypeError(
            f"{operation}: blocks of these dtypes cannot be joined: {dtypes}"
        ) from None


def by_process(properties: Mapping[int, Any]) -> str:
    """Return in words each property that values have, and the processes whose value has it."""
    pids: dict[str, list[int]] = {}
    for pid in sorted(properties):
        pids.setdefault(str(properties[pid]), []).append(pid)
    return "; ".join(f"{words} on {named(pids[words])}" for words in pids)
