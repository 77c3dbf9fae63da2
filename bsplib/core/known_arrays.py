"""Known arrays: what the core has to know of a registered array.

The first put or get of an array is checked in every way. The facts that hold
until registrations change are kept as a :class:`KnownArray`. Later transfers check only the dtype
and the bounds of their values against it. Where a known array declines, the call is checked, which
raises the error if there is one.

A view of one may be strided: blocks of the array at regular distances, such as a column. It is
described by words, which stand in an entry as they are::

    word 0    the first byte, from the beginning of the array
    word 1    the bytes of a block: of elements that follow each other
    word 2    the number of axes
    then      for each axis its length, and the bytes from one block to the next along it

The distances are negative for an axis that runs backwards, modulo 2**64.
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
        copy,
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
prepare()

DENSE_BYTES = 24
"""Bytes of the words before those of the axes: all where the elements follow each other."""
_AXIS_BYTES = 16


class KnownArray:
    """A registered array, here and on the other processes.

    Args:
        array: the array of this process, as a view that the program cannot change.
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
        self.words: Any = np.zeros(3 + 2 * ndim_of(array), np.uint64)
        """Memory for the description of a strided view."""
        self.strided = address_of(self.words)
        """The address of the description that :meth:`strided_of` has written last."""
        self.strided_end = 0
        """The byte of the array behind the last one of that view."""

    def strided_of(self, view: Any) -> int:
        """Describe a basic slice of the array as a strided view.

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
        end, used, words = first + self.itemsize, 0, self.strided + DENSE_BYTES
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
            words += _AXIS_BYTES
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
        while words > self.strided + DENSE_BYTES and peek(words - 8) == block:
            words -= _AXIS_BYTES
            block *= peek(words)
        poke(self.strided, first)
        poke(self.strided + 8, block)
        poke(self.strided + 16, (words - self.strided - DENSE_BYTES) // _AXIS_BYTES)
        return words - self.strided


def kind_of(dtype: Any) -> int:
    """Return which Python numbers are elements of a dtype without a cast; 0 for none."""
    if dtype == np.float64 and dtype.isnative:
        return FLOAT
    return INTEGER if dtype == np.int64 and dtype.isnative else 0


def scatter(strided: int, array: int, at: int) -> None:
    """Copy values that follow each other into a strided view.

    Args:
        strided: address of the description.
        array: address of the array.
        at: address of the values.
    """
    _walk_view(strided, array, at, True)


def gather(strided: int, array: int, at: int) -> None:
    """Copy the elements of a strided view to memory where they follow each other."""
    _walk_view(strided, array, at, False)


def _walk_view(strided: int, array: int, at: int, scatters: bool) -> int:
    """Do as :func:`scatter` or :func:`gather`; return the address behind the values."""
    axes, block = strided + DENSE_BYTES, peek(strided + 8)
    return _walk(axes, peek(strided + 16), block, array + peek(strided), at, scatters)


def _walk(axes: int, left: int, block: int, here: int, at: int, scatters: bool) -> int:
    """Copy the blocks along some axes; return the address behind their values.

    Args:
        axes: address of the words of the first of these axes.
        left: how many there are.
        block: bytes of a block.
        here: address of the first block.
        at: address of its values.
        scatters: copy into the blocks, and not out of them.
    """
    if left == 0:
        if scatters:
            copy(here, at, block)
        else:
            copy(at, here, block)
        return at + block
    length, step = peek(axes), peek(axes + 8)
    if left == 1 and block == 8:
        for _number in range(length):
            if scatters:
                copy(here, at, 8)  # the compiler makes this one load and one store
            else:
                copy(at, here, 8)
            here = wrapped(here + step)
            at += 8
        return at
    for _number in range(length):
        at = _walk(axes + _AXIS_BYTES, left - 1, block, here, at, scatters)
        here = wrapped(here + step)
    return at
