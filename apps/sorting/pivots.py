"""Pivots, and the division of blocks at pivots, sorted or not, also where keys are equal.

Records are compared by (key, origin). The origin is the process and the position in its
block, so that no two records are equal: a pivot also divides the records of one key, and
those that come first in the order of processes go to the lower process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.sorting.order import Order, Records

Sample = NDArray[Any]
"""Array of elements with a ``key`` and a ``place``, which is the origin."""
Ends = NDArray[np.int64]
"""Ends of the parts of a block, one for each process; the last is the length of the block."""

_INDEX_BITS = 40
_INDEX = (1 << _INDEX_BITS) - 1


def sample_at(records: Records, order: Order, pid: int, positions: NDArray[np.int64]) -> Sample:
    """Return keys and origins of the records of process ``pid`` at some positions."""
    keys = order.keys(records[positions])
    sample = np.empty(len(positions), [("key", keys.dtype), ("place", "<u8")])
    sample["key"] = keys
    sample["place"] = positions + (pid << _INDEX_BITS)
    return sample


def owner_of(place: Any) -> Any:
    """Return the process of an origin, or of an array of them."""
    return (place >> np.uint64(_INDEX_BITS)).astype(np.int64)


def index_of(place: Any) -> Any:
    """Return the position in the block of an origin, or of an array of them."""
    return (place & np.uint64(_INDEX)).astype(np.int64)


def in_order(sample: Sample) -> Sample:
    """Sort a sample by key; among equal keys the origins must be in rising order already."""
    return sample[sample["key"].argsort(kind="stable")]


def regular(size: int, nprocs: int) -> NDArray[np.int64]:
    """Return which of ``size`` samples in order are the p - 1 pivots."""
    return np.arange(1, nprocs) * size // nprocs


def cut(records: Records, order: Order, pid: int, pivots: Sample) -> Ends:
    """Return the ends of the parts into which the pivots divide a sorted block.

    Cost: w = O(p log m).
    """
    keys = order.keys(records)
    before = keys.searchsorted(pivots["key"], "left")
    beyond = keys.searchsorted(pivots["key"], "right")
    owner, own = owner_of(pivots["place"]), index_of(pivots["place"])
    ends = np.where(owner == pid, own, np.where(pid < owner, beyond, before))
    return np.append(ends, len(records)).astype(np.int64)


# -- partition of a block of numbers at pivots without a sort -------------------------------------


Numbers = NDArray[Any]
KINDS = "biuf"
"""Kinds of dtypes that can be partitioned: truth values, integers, floats."""

_STRETCH = 1 << 15
"""Count of numbers that fit easily into the cache of a core."""
_BITS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}


def rare_first(sample: Sample) -> Sample:
    """Move pivots whose key is only once in the sample before all records of the key.

    Most keys are rare. Records of such a key then need neither be counted nor divided.

    Args:
        sample: a sorted sample, or a part of one; the keys next to its ends may be equal to
            the first and the last key.
    """
    unlike = ~_alike(sample["key"][1:], sample["key"][:-1])
    rare = np.zeros(len(sample), np.bool_)
    rare[1:-1] = unlike[1:] & unlike[:-1]
    found = sample.copy()
    found["place"][rare] = 0
    return found


def cut_unsorted(numbers: Numbers, work: Numbers, pid: int, pivots: Sample) -> Ends:
    """Copy numbers into adjacent parts, as the pivots divide them.

    Args:
        numbers: numbers of process ``pid``, in the order to which the pivots' origins refer.
        work: contiguous memory for as many numbers.
        pid: this process.
        pivots: the pivots, in order.

    Returns:
        The ends of the parts.

    Cost: w = O(m log p).
    """
    keys = pivots["key"]
    first = np.ones(len(keys), np.bool_)
    first[1:] = ~_alike(keys[1:], keys[:-1])
    distinct, which = keys[first], np.cumsum(first) - 1
    below = np.zeros(len(distinct) + 1, np.int64)
    below[-1] = len(work)
    if len(distinct):
        middle = len(distinct) // 2
        _divide_at(work, distinct, below[:-1], 0, _copy(numbers, work, distinct[middle]))
    else:
        work[...] = numbers
    ends = below[which]
    divided = np.flatnonzero(pivots["place"])
    for number in np.unique(which[divided]):
        start, stop = below[number : number + 2]
        equal = _bring_forward(work[start:stop], distinct[number])
        for pivot in divided[which[divided] == number]:
            ends[pivot] += _equals_before(numbers, pid, pivots[pivot], equal)
    return np.append(ends, len(work))


def _divide(work: Numbers, keys: Numbers, below: Ends, offset: int) -> None:
    """Divide at the key in the middle, then both parts at the other keys, recursively."""
    if len(keys):
        end = _count_less(work, keys[len(keys) // 2])
        _divide_at(work, keys, below, offset, end)


def _divide_at(work: Numbers, keys: Numbers, below: Ends, offset: int, end: int) -> None:
    """Divide as :func:`_divide`, where ``end`` numbers are less than the key in the middle."""
    middle = len(keys) // 2
    if 0 < end < len(work):
        _partition(work, end, keys[middle])
    below[middle] = offset + end
    _divide(work[:end], keys[:middle], below[:middle], offset)
    _divide(work[end:], keys[middle + 1 :], below[middle + 1 :], offset + end)


def _copy(numbers: Numbers, work: Numbers, key: Any) -> int:
    """Copy numbers; return how many are less than a key, counted while they are in the cache."""
    end = 0
    for start in range(0, len(numbers), _STRETCH):
        part = work[start : start + _STRETCH]
        part[...] = numbers[start : start + _STRETCH]
        end += _count_less(part, key)
    return end


def _count_less(numbers: Numbers, key: Any) -> int:
    return int(np.count_nonzero(~np.isnan(numbers) if np.isnan(key) else numbers < key))


def _partition(work: Numbers, end: int, key: Any) -> None:
    """Move the ``end`` numbers that are less than a key to the front.

    numpy partitions integers several times as fast as floats. The bits of floats less than a
    positive float are also less as integers, except for NaN of negative sign.
    """
    bits = _BITS.get(work.dtype)
    if bits is not None and key > 0:
        work.view(bits).partition(end)
        if not np.isnan(work[:end].max()):
            return
    work.partition(end)


def _bring_forward(part: Numbers, key: Any) -> int:
    """Move the numbers that equal the least one, ``key``, to the front; return how many."""
    equal = len(part) if np.isnan(key) else int(np.count_nonzero(part == key))
    if 0 < equal < len(part):
        part.partition(equal)
    return equal


def _equals_before(numbers: Numbers, pid: int, pivot: Any, equal: int) -> int:
    """Return how many of the ``equal`` numbers of a pivot's key come before its origin."""
    owner = owner_of(pivot["place"])
    if pid != owner:
        return equal if pid < owner else 0
    before, key = numbers[: index_of(pivot["place"])], pivot["key"]
    return int(np.count_nonzero(np.isnan(before) if np.isnan(key) else before == key))


def _alike(one: Numbers, other: Numbers) -> NDArray[np.bool_]:
    """Compare element by element; NaN equals NaN."""
    alike: NDArray[np.bool_] = (one == other) | (np.isnan(one) & np.isnan(other))
    return alike
