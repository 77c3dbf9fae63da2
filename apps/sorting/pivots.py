"""Pivots, and what lies between them: how blocks are cut where keys are equal too.

Records are told apart by (key, place): the place is the process and the position
in its block. Thus no two are equal, a pivot divides the records of one key as well,
and records that come first in the order of processes go to the lower process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.sorting.order import Order, Records

Sample = NDArray[Any]
"""Elements have a ``key`` and a ``place``."""
Ends = NDArray[np.int64]
"""Where the parts of a block end, one for each process; the last is the block's length."""

_INDEX_BITS = 40
_INDEX = (1 << _INDEX_BITS) - 1


def sample_at(records: Records, order: Order, pid: int, positions: NDArray[np.int64]) -> Sample:
    """Return keys and places of some records of process ``pid``, which stand in ``positions``."""
    keys = order.keys(records[positions])
    sample = np.empty(len(positions), [("key", keys.dtype), ("place", "<u8")])
    sample["key"] = keys
    sample["place"] = positions + (pid << _INDEX_BITS)
    return sample


def owner_of(place: Any) -> Any:
    """Return the process of a place, or of many."""
    return (place >> np.uint64(_INDEX_BITS)).astype(np.int64)


def index_of(place: Any) -> Any:
    """Return the position in the block, of a place or of many."""
    return (place & np.uint64(_INDEX)).astype(np.int64)


def in_order(sample: Sample) -> Sample:
    """Sort a sample whose places rise among equal keys, as where they rise throughout."""
    return sample[sample["key"].argsort(kind="stable")]


def regular(size: int, nprocs: int) -> NDArray[np.int64]:
    """Return which of ``size`` samples in order are the p - 1 pivots."""
    return np.arange(1, nprocs) * size // nprocs


def cut(records: Records, order: Order, pid: int, pivots: Sample) -> Ends:
    """Return where the parts of a sorted block end that the pivots induce.

    Cost: w = O(p log m).
    """
    keys = order.keys(records)
    before = keys.searchsorted(pivots["key"], "left")
    beyond = keys.searchsorted(pivots["key"], "right")
    owner, own = owner_of(pivots["place"]), index_of(pivots["place"])
    ends = np.where(owner == pid, own, np.where(pid < owner, beyond, before))
    return np.append(ends, len(records)).astype(np.int64)
