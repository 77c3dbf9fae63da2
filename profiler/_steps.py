"""The supersteps of the root group in order, with the time that each took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._numbering import ranked
from bsplib.profiler.costs import computation_ns, group_sizes
from bsplib.profiler.window import windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class RootSteps:
    """The supersteps of the root group, with the sub-groups opened in them.

    They are counted by position, from 0 without gaps, also where a number is missing.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        parts = [_of_window(window) for window in windows(run)]
        empty = np.zeros((4, 0), np.int64)
        every = [np.concatenate(columns) for columns in zip(empty, *parts, strict=True)]
        self.numbers, self.start, self.end, self.record = every
        """Of each superstep: its number, begin and end in nanoseconds, and the position of the
        record with the most computation."""
        self.count = len(self.numbers)
        self.ended_ns = int(self.end.max(initial=0))
        """When the last process ended its last superstep."""
        self._by_length = np.argsort(self.end - self.start, kind="stable").astype(np.int32)
        self._rank = np.full(self.count + 1, -1, np.int32)
        self._rank[self._by_length] = np.arange(self.count, dtype=np.int32)

    def positions(self, window: RunWindow) -> Ints:
        """Return the position of the superstep of each record of a window."""
        return np.searchsorted(self.numbers, window.root_supersteps()).astype(np.int64)

    def windows(self, low: int, high: int) -> Iterator[RunWindow]:
        """Yield the windows of a range of positions."""
        if low >= high:
            return iter(())
        return windows(self._run, int(self.numbers[low]), int(self.numbers[high - 1]))

    def longest(self, first: Ints, last: Ints) -> Ints:
        """Return, for ranges of positions, which superstep took longest."""
        bounds = np.stack([first, last + 1], axis=1).ravel()
        if len(bounds) == 0:
            return bounds
        return self._by_length[np.maximum.reduceat(self._rank, bounds)[::2]].astype(np.int64)

    def during(self, edges: Floats) -> tuple[Floats, Ints, Ints]:
        """Return where moments lie in the sequence of supersteps.

        Args:
            edges: moments in nanoseconds, rising.

        Returns:
            The position of each moment, with the part of the superstep that was over; and
            the first and the last superstep that ran between neighbouring edges.
        """
        begun = np.minimum.accumulate(self.start[::-1])[::-1]
        bounds = np.append(begun, self.ended_ns)
        places: Floats = np.interp(edges, bounds, np.arange(self.count + 1))
        first = np.searchsorted(np.maximum.accumulate(self.end), edges[:-1], side="right")
        last = np.searchsorted(begun, edges[1:], side="left") - 1
        first = np.minimum(first, max(self.count - 1, 0))
        return places, first, np.maximum(first, last)

    def ranges(self, chosen: NDArray[np.bool_], most: int) -> list[tuple[int, int]]:
        """Return the ranges of supersteps that have one of the chosen records.

        Args:
            chosen: one element for each record of the run.
            most: greatest number of ranges. Where there are more, ranges that are close to
                one another are joined.

        Returns:
            Numbers of the first and the last superstep of each range, in order.
        """
        block = max(-(-self.count // (2 * most)), 1)
        has = np.zeros(-(-self.count // block) + 2, bool)
        for window in windows(self._run):
            has[self.positions(window)[chosen[window.position]] // block + 1] = True
        first, end = np.flatnonzero(has[1:] != has[:-1]).reshape(-1, 2).T * block
        last = np.minimum(end, self.count) - 1
        return list(zip(self.numbers[first].tolist(), self.numbers[last].tolist(), strict=True))


def _of_window(window: RunWindow) -> Ints:
    """Return number, start, end and record of the supersteps in a window, as rows."""
    records = window.run.records[window.fresh]
    numbers, position = ranked(window.root_supersteps())
    start, end = np.full(len(numbers), np.iinfo(np.int64).max), np.zeros(len(numbers), np.int64)
    np.minimum.at(start, position, records["start"])
    np.maximum.at(end, position, records["end"])
    record = _greatest(position, computation_ns(window.run)[window.fresh], len(numbers))
    return np.stack([numbers, start, end, window.position[record]])


def excess(run: Run, numbers: Ints, cost: Floats) -> Floats:
    """Return by how much the cost of each record is above the mean of its superstep.

    The mean is over all processes of the group; one without a record counts as 0.

    Args:
        run: the run.
        numbers: number of the superstep of each record, of whatever group.
        cost: of each record.

    Returns:
        For each record; 0 where its cost is below the mean.
    """
    if len(cost) == 0:
        return cost
    size = np.empty(int(numbers.max()) + 1)
    size[numbers] = group_sizes(run)[run.records["group"]]
    mean = np.bincount(numbers, cost, len(size)) / size
    return np.maximum(cost - mean[numbers], 0)


def _greatest(step: Ints, cost: Floats, count: int) -> Ints:
    """Return the first record with the greatest cost in each step."""
    most = np.zeros(count)
    np.maximum.at(most, step, cost)
    rows = np.flatnonzero(cost == most[step])[::-1]
    record = np.zeros(count, np.int64)
    record[step[rows]] = rows
    return record
