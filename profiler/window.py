"""A part of a run: a range of supersteps of the root group, with all that took place in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.errors import UsageError
from bsplib.recording.records import waits_among

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run


def root_supersteps(run: Run) -> NDArray[np.int64]:
    """Return for each record the superstep of the root group in which it took place.

    For a record of the root group this is its own superstep. A record of a sub-group took
    place in the superstep of the root group that opened the sub-group, or the sub-group's
    parent, and so on upwards.
    """
    opened = np.zeros(len(run.groups), np.int64)
    for position, info in enumerate(run.groups[1:], start=1):
        opened[position] = opened[info.parent] if info.parent else info.superstep
    group: NDArray[np.int32] = run.records["group"]
    inside: NDArray[np.int64] = np.where(group == 0, run.records["superstep"], opened[group])
    return inside


def restricted(run: Run, first: int, last: int) -> Run:
    """Return what a run did in some supersteps of its root group, and in their sub-groups.

    Groups, stacks, superstep numbers and times are those of the whole run.

    Args:
        run: the run.
        first: number of the first superstep of the root group that is kept.
        last: number of the last one that is kept, ``first <= last``.

    Raises:
        UsageError: the range is empty.
    """
    if first > last:
        raise UsageError(f"There are no supersteps from {first} to {last}: give a rising range.")
    inside = root_supersteps(run)
    kept = (first <= inside) & (inside <= last)
    if kept.all():
        return run
    of_kept = kept[run.traffic["record"]]
    traffic = run.traffic[of_kept]
    traffic["record"] = (np.cumsum(kept) - 1)[traffic["record"]]
    waits = waits_among(run, kept)
    return replace(run, records=run.records[kept], traffic=traffic, waits=waits, lifetime=None)
