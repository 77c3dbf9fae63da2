"""Indices of an irregular exchange that count along axes, as numpy's index arrays do.

A tuple has an index array for each axis of the array there, or for its first axes: then
whole sub-arrays are meant, such as rows of a matrix. Here they become indices of single
elements in C order, which is all that :mod:`bsplib.transfers.irregular` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bsplib.errors import BoundsError, PlaceError, RegistrationError
from bsplib.transfers.casting import as_array
from bsplib.transfers.irregular import broadcast, no_process
from bsplib.transfers.place import Array
from bsplib.transfers.registry import Registration


class Elements(NamedTuple):
    """Single elements that an index names."""

    pids: Array
    """Of each element, as far as they broadcast; one without axes for all."""
    indices: Array
    """Of each element in C order."""
    inner: tuple[int, ...] | None = None
    """Shape of the arrays there without their first axis, where that is not known yet but
    assumed; None otherwise."""


def elements(
    operation: str, registration: Registration, pids: ArrayLike, indices: Any, nprocs: int
) -> Elements:
    """Return the elements that the indices of a call name.

    Args:
        operation: the primitive, for errors.
        registration: the array.
        pids: as in :meth:`Group.put_at`.
        indices: an array of indices in C order, or a tuple of index arrays.
        nprocs: number of processes of the group.

    Raises:
        PlaceError: there are more index arrays than axes, or they are no integers, or do not
            broadcast; or the shapes there do not tell how large a sub-array is.
        BoundsError: an index is negative, or lies outside the array there.
        ProcessRangeError: a pid is no process.
        RegistrationError: a process registered None.
        DtypeError: pids or indices are a masked array.
    """
    if not isinstance(indices, tuple):
        return Elements(as_array(operation, pids), as_array(operation, indices))
    whose = as_array(operation, pids)
    to, *parts = broadcast(operation, whose, *_integers(operation, indices))
    shapes = _shapes(operation, registration, to, nprocs)
    axes = len(shapes[0])
    if len(parts) > axes:
        raise PlaceError(
            f"{operation}: {len(parts)} index arrays are given for an array of {axes} axes"
        )
    rows = {shape[len(parts) :] for shape in shapes}
    if len(rows) > 1:
        raise PlaceError(
            f"{operation}: sub-arrays of shapes {sorted(rows)} cannot be named in one call; give "
            f"an index array for each axis, or one call for each process"
        )
    known = registration.announced is not None
    flat = np.zeros(parts[0].shape, np.int64)
    for axis, part in enumerate(parts):
        sizes = _for_each([shape[axis] for shape in shapes], to)
        _check(operation, part, axis, sizes if known or axis else None, to)
        flat += part.astype(np.int64) * _for_each([prod(shape[axis + 1 :]) for shape in shapes], to)
    (row,) = rows
    if row:
        ones = (1,) * len(row)
        flat = flat.reshape(flat.shape + ones) + np.arange(prod(row)).reshape(row)
        to = to.reshape(to.shape + ones) if to.ndim else to
    return Elements(to, flat, None if known else shapes[0][1:])


def check_axes(
    operation: str, registration: Registration, pids: ArrayLike, indices: Any, values: ArrayLike
) -> None:
    """Raise if whole rows seem to be meant by indices that name single elements.

    Raises:
        PlaceError: the array has several axes, and there are values of more axes than
            indices in C order.
    """
    array = registration.array
    if isinstance(indices, tuple) or array is None or array.ndim < 2:
        return
    named = max(np.ndim(pids), np.ndim(indices))
    if np.ndim(values) > named > 0:  # several values may meet in one element
        raise PlaceError(
            f"{operation}: values of shape {np.shape(values)} are given for {np.size(indices)} "
            f"single elements of an array of {array.ndim} axes; name whole rows by a tuple, "
            f"(rows,), or elements by an index array for each axis"
        )


def _integers(operation: str, indices: tuple[Any, ...]) -> list[Array]:
    """Return index arrays as such."""
    if not indices:
        raise PlaceError(f"{operation}: indices is an empty tuple; it has an index for each axis")
    parts = [as_array(operation, part) for part in indices]
    for given, part in zip(indices, parts, strict=True):
        if part.dtype.kind not in "iu" and (part.size or part.dtype.hasobject):
            what = repr(given) if part.ndim == 0 else f"an array of {part.dtype}"
            raise PlaceError(
                f"{operation}: indices in a tuple are integers or arrays of them, not {what}"
            )
    return [part if part.size else part.astype(np.int64) for part in parts]


def _shapes(
    operation: str, registration: Registration, pids: Array, nprocs: int
) -> list[tuple[int, ...]]:
    """Return the shape there: one for all processes if it is the same, otherwise by pid.

    Where it is not announced yet, it is assumed to be that of the array here.
    """
    array, announced = registration.array, registration.announced
    if announced is None:
        if array is None:
            raise RegistrationError(
                f"{operation}: this process registered None there, so that the shapes are known "
                f"after the next sync only"
            )
        return [array.shape]
    if registration.alike:
        there = announced[0]
        assert there is not None  # or they would not be alike
        return [there.shape]
    if pids.dtype.kind not in "iu":
        return [next(there.shape for there in announced if there is not None)]  # refused later
    if pids.size and not (pids.min() >= 0 and pids.max() < nprocs):
        raise no_process(operation, pids, nprocs)
    used = set(np.unique(pids).tolist())
    shapes = []
    for pid, there in enumerate(announced):
        if there is None and pid in used:
            raise RegistrationError(f"{operation}: process {pid} registered None there")
        shapes.append(there.shape if there is not None and pid in used else None)
    some = next((shape for shape in shapes if shape is not None), ())
    filled = [some if shape is None else shape for shape in shapes]
    if len({len(shape) for shape in filled}) > 1:
        raise PlaceError(
            f"{operation}: the arrays on these processes have different numbers of axes; use "
            f"indices in C order, or one call for each process"
        )
    return filled


def _for_each(values: Sequence[int], pids: Array) -> Any:
    """Return for each element the value of its process."""
    return values[0] if len(values) == 1 else np.array(values)[pids]


def _check(operation: str, part: Array, axis: int, sizes: Any, pids: Array) -> None:
    """Raise if indices along an axis are negative, or not less than the sizes there.

    Args:
        operation: the primitive.
        part: the indices.
        axis: that they count along.
        sizes: of that axis: one, or one for each index; None if they are not known.
        pids: of each index, or one for all.
    """
    if not part.size:
        return
    if (least := int(part.min())) < 0:
        raise BoundsError(f"{operation}: index {least} on axis {axis} is negative")
    outside = np.zeros(part.shape, bool) if sizes is None else part >= sizes
    if outside.any():
        first = np.unravel_index(int(outside.argmax()), part.shape)
        pid = int(pids[first]) if pids.ndim else int(pids)
        size = np.broadcast_to(sizes, part.shape)[first]
        raise BoundsError(
            f"{operation}: {int(outside.sum())} of {part.size} indices fall outside the array, the "
            f"first one on process {pid} (index {part[first]} on axis {axis}, size {size})"
        )
