"""Strided views: blocks of an array at regular distances, such as a column.

A strided view is described by words, which stand in an entry as they are::

    word 0    the first byte, from the beginning of the array
    word 1    the bytes of a block: of elements that follow each other
    word 2    the number of axes
    then      for each axis its length, and the bytes from one block to the next along it

The distances are negative for an axis that runs backwards, modulo 2**64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
if not cython.compiled:
    from bsplib.core.atomics import address_of, copy, peek, prepare, wrapped
prepare()

HEAD_BYTES = 24
"""The words before those of the axes."""
AXIS_BYTES = 16


class StridedView:
    """The description of a strided view, in memory of its own.

    Args:
        address: of the description.
        nbytes: of it.
    """

    def __init__(self, address: int, nbytes: int) -> None:
        self._memory: Any = np.empty(nbytes, np.uint8)
        self.words = address_of(self._memory)
        """The address of the description."""
        copy(self.words, address, nbytes)


def scatter(strided: int, array: int, at: int) -> None:
    """Copy values that follow each other into a strided view.

    Args:
        strided: address of the description.
        array: address of the array.
        at: address of the values.
    """
    _walk(
        strided + HEAD_BYTES, peek(strided + 16), peek(strided + 8), array + peek(strided), at, True
    )


def gather(strided: int, array: int, at: int) -> None:
    """Copy the elements of a strided view to memory where they follow each other."""
    _walk(
        strided + HEAD_BYTES,
        peek(strided + 16),
        peek(strided + 8),
        array + peek(strided),
        at,
        False,
    )


def read(at: int, there: int, nbytes: int, strided: StridedView | None) -> None:
    """Copy the values of a get.

    Args:
        at: address of memory for them.
        there: address of the values or, with a strided view, of the array.
        nbytes: of the values.
        strided: the elements of the array; None for those that follow each other.
    """
    if strided is None:
        copy(at, there, nbytes)
    else:
        gather(strided.words, there, at)


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
        at = _walk(axes + AXIS_BYTES, left - 1, block, here, at, scatters)
        here = wrapped(here + step)
    return at
