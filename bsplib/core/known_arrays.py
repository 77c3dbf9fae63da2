"""Known arrays: what the core has to know of a registered array.

The first put or get of an array is checked in every way. The facts that hold
until registrations change are kept as a :class:`KnownArray`. Later transfers check only the dtype
and the bounds of their values against it. Where a known array declines, the call is checked, which
raises the error if there is one.
"""

from __future__ import annotations

from array import array as numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
if not cython.compiled:
    from bsplib.core.atomics import (
        FLOAT,
        INTEGER,
        address_of,
        is_of,
        is_packed,
        itemsize_of,
        length_of,
        nbytes_of,
        ndim_of,
        peek,
        poke,
        prepare,
        stride_of,
        wrapped,
    )
    from bsplib.core.strided import AXIS_BYTES, HEAD_BYTES
prepare()


class KnownArray:
    """A registered array, here and on the other processes.

    Args:
        array: the array of this process.
        slot: number of the registration.
        sizes: bytes of the array on each process, by pid; 0 where there is none.
        alike: shape and dtype are the same on all processes.
        alone: no other registered array shares memory with it, so that a view whose memory
            lies in this array is a view of it.
    """

    def __init__(
        self,
        array: Any,
        slot: int,
        sizes: Sequence[int],
        alike: bool,
        alone: bool,
    ) -> None:
        self.array = array
        self.dtype = array.dtype
        self.slot = slot
        self.itemsize = itemsize_of(array)
        self.here = address_of(array)
        self.sizes = numbers("Q", sizes)
        self.addresses = numbers("Q", bytes(8 * len(sizes)))
        """Where the array of each process lies for this one, by pid: 0 where that is not
        known yet, 1 where it cannot be reached, or is not contiguous."""
        self.alike = alike
        self.has_views = alone and is_packed(array) and (alike or ndim_of(array) == 1)
        self.number = kind_of(array.dtype)
        self._words: Any = np.zeros(3 + 2 * ndim_of(array), np.uint64)
        self.strided = address_of(self._words)
        """The address of the description that :meth:`strided_of` has written last."""
        self.strided_end = 0
        """The byte of the array behind the last one of that view."""

    def first_of(self, view: Any) -> int:
        """Return the byte of the array at which a contiguous basic slice of it begins.

        Returns:
            -1 where the view is none, or its elements have another place in the arrays of
            other processes.
        """
        if not (self.has_views and is_packed(view) and is_of(view, self.dtype)):
            return -1
        array, axes, more = self.array, ndim_of(view), ndim_of(self.array) - ndim_of(view)
        start = address_of(view)
        if axes < 1 or more < 0 or start < self.here:
            return -1
        first = start - self.here
        if first + nbytes_of(view) > nbytes_of(array):
            return -1
        # It is a slice of whole rows: all its axes but the first are axes of the array.
        row = self.itemsize
        for axis in range(1, axes):
            row *= length_of(view, axis)
            if length_of(view, axis) != length_of(array, axis + more):
                return -1
        rows = length_of(array, more)
        if row == 0 or rows == 0 or first % row:
            return -1
        if first // row % rows + length_of(view, 0) > rows:
            return -1
        return first

    def strided_of(self, view: Any) -> int:
        """Describe a basic slice of the array as a strided view; see :mod:`bsplib.core.strided`.

        Returns:
            The bytes of the description; 0 where the view is no basic slice, has no elements, or
            its elements have another place in the arrays of other processes.
        """
        start = address_of(view)
        if not (self.has_views and is_of(view, self.dtype)) or start < self.here:
            return 0
        first = start - self.here
        if first >= nbytes_of(self.array) or first % self.itemsize:
            return 0
        end, used, words = first + self.itemsize, 0, self.strided + HEAD_BYTES
        for axis in range(ndim_of(view)):
            length = length_of(view, axis)
            if length == 1:
                continue
            step = stride_of(view, axis)
            along = self._axis_along(first, step, length)
            if along < 0 or used >> along & 1:
                return 0
            used |= 1 << along
            if step > 0:
                end += step * (length - 1)
            poke(words, length)
            poke(words + 8, wrapped(step))
            words += AXIS_BYTES
        self.strided_end = end
        return self._end_strided(first, words)

    def _axis_along(self, first: int, step: int, length: int) -> int:
        """Return the axis of the array along which an axis of a view runs; -1 if there is none.

        Args:
            first: byte of the first element of the view.
            step: bytes from one element to the next along the axis of the view.
            length: of that axis.
        """
        stride = self.itemsize
        for axis in range(ndim_of(self.array) - 1, -1, -1):
            size = length_of(self.array, axis)
            if step % stride == 0:
                index, by = first // stride % size, step // stride
                last = index + by * (length - 1)
                if 0 <= index + by < size and 0 <= last < size:
                    return axis if by and length else -1
            stride *= size
        return -1

    def _end_strided(self, first: int, words: int) -> int:
        """Join axes whose elements follow each other; return the bytes of the description."""
        block = self.itemsize
        while words > self.strided + HEAD_BYTES and peek(words - 8) == block:
            words -= AXIS_BYTES
            block *= peek(words)
        poke(self.strided, first)
        poke(self.strided + 8, block)
        poke(self.strided + 16, (words - self.strided - HEAD_BYTES) // AXIS_BYTES)
        return words - self.strided


def kind_of(dtype: Any) -> int:
    """Return which Python numbers are elements of a dtype without a cast; 0 for none."""
    if dtype == np.float64 and dtype.isnative:
        return FLOAT
    return INTEGER if dtype == np.int64 and dtype.isnative else 0
