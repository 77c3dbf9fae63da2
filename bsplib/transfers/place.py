"""Which elements of a registered array a transfer names, here and on another process.

A view is described by start, step and count along each axis of its array; these name the
same indices of the array on another process, even if it has another shape there. The
functions only compute with addresses: they do not read or write elements.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
WireIndex = tuple[Any, ...]
"""A basic index as plain values: an int, a (start, stop, step) or None for Ellipsis."""


class Region(NamedTuple):
    """Some indices of an array: along each axis ``start, start + step, ...``."""

    start: tuple[int, ...]
    step: tuple[int, ...]
    count: tuple[int, ...]  # type: ignore[assignment]  # hides tuple.count, which is not used
    shape: tuple[int, ...]
    """Shape of the view that was given."""
    order: tuple[int, ...]
    """Axes of the view, without those of length 1, in the order of the array's axes."""

    def spread(self, values: Array) -> Array:
        """Rearrange values that broadcast to the view, in the order of the array's axes."""
        if values.shape == self.shape and len(self.shape) == len(self.order) < 2:
            return values
        full = np.broadcast_to(values, self.shape)
        ones = tuple(axis for axis, size in enumerate(self.shape) if size == 1)
        return full.squeeze(ones).transpose(self.order)

    def gather(self, values: Array) -> Array:
        """Rearrange values in the order of the array's axes into the shape of the view."""
        inverse = np.argsort(self.order)
        long = [self.count[axis] for axis in range(len(self.count)) if self.count[axis] > 1]
        return values.reshape(long).transpose(inverse).reshape(self.shape)

    def overshoot(self, shape: tuple[int, ...]) -> str | None:
        """Return text on how the region leaves an array of another shape; None if it does not."""
        if len(shape) != len(self.start):
            return f"an array of {len(self.start)} axes here, of {len(shape)} there"
        for axis, size in enumerate(shape):
            first = self.start[axis]
            last = first + self.step[axis] * (self.count[axis] - 1)
            if max(first, last) >= size:
                return f"index {max(first, last)} on axis {axis} of shape {shape}"
        return None

    def outside(self, shape: tuple[int, ...]) -> int:
        """Return how many of its elements an array of another shape lacks."""
        if len(shape) != len(self.start):
            return prod(self.count)
        inside = 1
        for axis, size in enumerate(shape):
            indices = self.start[axis] + self.step[axis] * np.arange(self.count[axis])
            inside *= int((indices < size).sum())
        return prod(self.count) - inside

    def flat(self, shape: tuple[int, ...]) -> int | None:
        """Return its first element in C order, if it is contiguous in an array of a shape."""
        broken = False
        position, weight = 0, 1
        for axis in range(len(shape) - 1, -1, -1):
            count = self.count[axis]
            if count > 1 and (broken or self.step[axis] != 1):
                return None
            broken = broken or count != shape[axis]
            position += self.start[axis] * weight
            weight *= shape[axis]
        return position

    def wire(self) -> WireIndex:
        """Return the index that selects it, with single elements as numbers."""
        parts: list[Any] = []
        for start, step, count in zip(self.start, self.step, self.count, strict=True):
            if count == 1:
                parts.append(start)
            else:
                stop = start + step * count
                parts.append((start, stop if stop >= 0 else None, step))
        return tuple(parts)


def whole(array: Array) -> Region:
    """Return the region of all elements."""
    shape = array.shape
    order = tuple(axis for axis, size in enumerate(s for s in shape if s > 1))
    return Region((0,) * len(shape), (1,) * len(shape), shape, shape, order)


def line_of(array: Array) -> Any:
    """Return the elements of an array, to be read and written by their numbers in C order."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


def address(array: Array) -> int:
    """Return the address of the element with index 0, 0, ..."""
    return int(array.__array_interface__["data"][0])


def memory_range(array: Array) -> tuple[int, int]:
    """Return the first byte of an array in memory, and the first byte behind it."""
    low = high = address(array)
    for size, stride in zip(array.shape, array.strides, strict=True):
        if size == 0:
            return low, low
        reach = stride * (size - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize


def region_of(array: Array, view: Array) -> Region | None:
    """Return the region of an array that is a view; None if basic slices cannot make the view.

    Args:
        array: registered array, with any strides.
        view: array that has elements, whose memory lies in that of ``array``.
    """
    if view.dtype != array.dtype:
        return None
    origin = address(view)
    start = _index_at(array, origin)
    if start is None:
        return None
    step, count = [1] * array.ndim, [1] * array.ndim
    axes = []
    for size, stride in zip(view.shape, view.strides, strict=True):
        if size == 1:
            continue
        axis = _axis_along(array, start, origin + stride)
        if axis is None or axis in axes:
            return None
        following = _index_at(array, origin + stride)
        assert following is not None  # _axis_along found it
        step[axis], count[axis] = following[axis] - start[axis], size
        if not 0 <= start[axis] + step[axis] * (size - 1) < array.shape[axis]:
            return None
        axes.append(axis)
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return Region(start, tuple(step), tuple(count), view.shape, order)


def _axis_along(array: Array, start: tuple[int, ...], where: int) -> int | None:
    """Return the one axis along which the element at an address differs from ``start``."""
    index = _index_at(array, where)
    if index is None:
        return None
    moved = [axis for axis in range(array.ndim) if index[axis] != start[axis]]
    return moved[0] if len(moved) == 1 else None


def _index_at(array: Array, where: int) -> tuple[int, ...] | None:
    """Return the index of the element that lies at an address."""
    rest = where - memory_range(array)[0]
    index = [0] * array.ndim
    for axis in sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])):
        if array.shape[axis] == 1:
            continue
        stride = array.strides[axis]
        steps = rest // abs(stride) if stride else 0
        rest -= steps * abs(stride)
        if steps >= array.shape[axis]:
            return None
        index[axis] = steps if stride > 0 else array.shape[axis] - 1 - steps
    return tuple(index) if rest == 0 else None


def to_wire(index: Any) -> WireIndex | None:
    """Return a basic index as plain values; None if it is not basic.

    Args:
        index: ints, slices and Ellipsis, alone or in a tuple, as in ``numpy.s_[1:3, -1]``.
    """
    parts: list[Any] = []
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, slice):
            try:
                bounds = tuple(_plain(bound) for bound in (part.start, part.stop, part.step))
            except TypeError:
                return None
            if bounds[2] == 0:
                return None
            parts.append(bounds)
        elif part is Ellipsis:
            parts.append(None)
        elif isinstance(part, bool | np.bool_) or not isinstance(part, int | np.integer):
            return None
        else:
            parts.append(int(part))
    return tuple(parts)


def _plain(bound: Any) -> int | None:
    return None if bound is None else operator.index(bound)


def from_wire(index: WireIndex) -> tuple[Any, ...]:
    """Return the index that :func:`to_wire` has put into plain values."""
    return tuple(
        slice(*part) if isinstance(part, tuple) else Ellipsis if part is None else part
        for part in index
    )


def selected_shape(shape: tuple[int, ...], index: WireIndex) -> tuple[int, ...]:
    """Return the shape that an index selects from an array of the given shape.

    Raises:
        IndexError: an integer in it is out of range, or it has too many parts.
    """
    stand_in = np.lib.stride_tricks.as_strided(np.empty(0, np.uint8), shape, (0,) * len(shape))
    selected: tuple[int, ...] = stand_in[from_wire(index)].shape
    return selected


def broadcasts(values: tuple[int, ...], selected: tuple[int, ...]) -> bool:
    """Tell whether values broadcast to a shape that has elements."""
    try:
        return prod(selected) > 0 and np.broadcast_shapes(values, selected) == selected
    except (ValueError, RuntimeError):  # it is a RuntimeError where there are many axes
        return False
