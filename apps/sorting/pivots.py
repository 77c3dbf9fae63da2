"""Pivots, and the division of sorted blocks at pivots, also where keys are equal.

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
