"""Single elements for many processes: loops for which numpy needs several passes.

An **element** of a call has a pid, an index in the array there, and for a put a value. The elements
of a call are counted by process, then dealt: each process's elements are moved to memory of
their own, in the order of the call. Arrays here have one dimension, are contiguous and
aligned; pids and indices have dtype int64.

Each public function does its work by numpy in the interpreted build, since a loop of Python
over a million elements is unusable; the compiled one runs the loops at the end of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
if not cython.compiled:
    from bsplib.core.atomics import address_of, copy, itemsize_of, nbytes_of, peek, poke, prepare
prepare()


def count_elements(pids: Any, indices: Any, numbers: Any) -> bool:
    """Count the elements of each process, and find the greatest index.

    Args:
        pids: pid of each element.
        indices: index of each element.
        numbers: array of dtype uint64: is given the number of elements of each process, and as
            its last element the greatest index. Numbers below 0 count as great ones here:
            they are read as unsigned.

    Returns:
        False if a pid is no process; ``numbers`` is then undefined.
    """
    if not cython.compiled:
        nprocs = len(numbers) - 1
        if len(pids) and pids.view(np.uint64).max() >= nprocs:
            return False
        numbers[:-1] = np.bincount(pids, minlength=nprocs)
        numbers[-1] = indices.view(np.uint64).max(initial=0)
        return True
    numbers[:] = 0
    return _count(
        address_of(pids), address_of(indices), nbytes_of(pids), address_of(numbers), len(numbers)
    )


def deal_elements(
    pids: Any, indices: Any, values: Any, to_indices: list[Any], to_values: list[Any]
) -> None:
    """Move the elements of a call to memory of each process, in the order of the call.

    Args:
        pids: pid of each element, as :func:`count_elements` has found it right.
        indices: index of each element.
        values: value of each element; None to move its position in the call instead.
        to_indices: for each process an array for the indices of its elements, of the right
            size; None if it has no elements.
        to_values: for each process an array for the values or positions, or None.
    """
    if not cython.compiled:
        _deal_by_numpy(pids, indices, values, to_indices, to_values)
        return
    ends = np.zeros(2 * len(to_indices), np.uint64)
    at = address_of(ends)
    for pid in range(len(to_indices)):
        if to_indices[pid] is not None:
            poke(at + 16 * pid, address_of(to_indices[pid]))
            poke(at + 16 * pid + 8, address_of(to_values[pid]))
    source, itemsize = 0, 8
    if values is not None:
        source, itemsize = address_of(values), itemsize_of(values)
    _deal(address_of(pids), address_of(indices), source, nbytes_of(pids), itemsize, at)


# -- by numpy -----------------------------------------------------------------------------------


def _deal_by_numpy(
    pids: NDArray[np.int64],
    indices: NDArray[np.int64],
    values: NDArray[Any] | None,
    to_indices: Sequence[Any],
    to_values: Sequence[Any],
) -> None:
    """Do as :func:`deal_elements`."""
    # numpy sorts integers of one or two bytes by radix, in linear time.
    narrow = np.uint8 if len(to_indices) <= 256 else np.uint16
    order = np.argsort(pids.astype(narrow), kind="stable")
    start = 0
    for pid, to in enumerate(to_indices):
        if to is None:
            continue
        positions = order[start : start + len(to)]
        indices.take(positions, out=to, mode="clip")  # without a buffer
        if values is None:
            to_values[pid][:] = positions
        else:
            values.take(positions, out=to_values[pid], mode="clip")
        start += len(to)


# -- loops over addresses -------------------------------------------------------------------------
#
# Array sizes are in bytes here, apart from `size` and `itemsize`.


def _count(pids: int, indices: int, nbytes: int, numbers: int, length: int) -> bool:
    """Do as :func:`count_elements`; the numbers are 0 at first."""
    nprocs, highest = length - 1, 0
    for at in range(0, nbytes, 8):
        pid, index = peek(pids + at), peek(indices + at)
        if pid >= nprocs:
            return False
        highest = max(highest, index)
        number = numbers + 8 * pid
        poke(number, peek(number) + 1)
    poke(numbers + 8 * nprocs, highest)
    return True


def _deal(pids: int, indices: int, values: int, nbytes: int, itemsize: int, ends: int) -> None:
    """Do as :func:`deal_elements`; ``ends`` has for each process where its next element goes.

    ``values`` is 0 to move positions instead.
    """
    for at in range(0, nbytes, 8):
        end = ends + 16 * peek(pids + at)
        to_index, to_value = peek(end), peek(end + 8)
        poke(end, to_index + 8)
        poke(end + 8, to_value + itemsize)
        poke(to_index, peek(indices + at))
        if values:
            _copy_item(to_value, values, itemsize)
            values += itemsize
        else:
            poke(to_value, at >> 3)


def _copy_item(to: int, source: int, itemsize: int) -> None:
    """Copy one element; where its size is a constant, that is one instruction or two."""
    if itemsize == 8:
        copy(to, source, 8)
    elif itemsize == 4:
        copy(to, source, 4)
    elif itemsize == 1:
        copy(to, source, 1)
    elif itemsize == 16:
        copy(to, source, 16)
    elif itemsize == 2:
        copy(to, source, 2)
    else:
        copy(to, source, itemsize)
