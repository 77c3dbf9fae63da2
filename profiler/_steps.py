"""The supersteps of the root group in order, with the time that each took."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._numbering import ranked
from bsplib.profiler.costs import computation_ns
from bsplib.profiler.window import root_supersteps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class RootSteps:
    """The supersteps of the root group, with the sub-groups opened in them.

    They are counted by position, from 0 without gaps, also where a number is missing.
    """

    def __init__(self, run: Run) -> None:
        records = run.records
        self.numbers, self.position = ranked(root_supersteps(run))
        """Number of each superstep; position of the superstep of each record."""
        self.count = len(self.numbers)
        self.start = np.full(self.count, np.iinfo(np.int64).max)
        self.end = np.zeros(self.count, np.int64)
        # Copies, since numpy is fast only for aligned values.
        np.minimum.at(self.start, self.position, records["start"].copy())
        np.maximum.at(self.end, self.position, records["end"].copy())
        self.ended_ns = int(self.end.max(initial=0))
        """When the last process ended its last superstep."""
        self.record = _greatest(self.position, computation_ns(run), self.count)
        """Position of the record with the most computation in each superstep."""
        order = np.argsort(self.end - self.start, kind="stable")
        self._by_length = order
        self._rank = np.empty(self.count + 1, np.int64)
        self._rank[order] = np.arange(self.count)
        self._rank[-1] = -1

    def longest(self, first: Ints, last: Ints) -> Ints:
        """Return, for ranges of positions, which superstep took longest."""
        bounds = np.stack([first, last + 1], axis=1).ravel()
        if len(bounds) == 0:
            return bounds
        found: Ints = self._by_length[np.maximum.reduceat(self._rank, bounds)[::2]]
        return found

    def records(self, first: int, end: int) -> Ints | slice:
        """Return the records of a range of positions."""
        if first == 0 and end == self.count:
            return slice(None)
        bounds = np.searchsorted(self._sorted, [first, end])
        return self._order[slice(*bounds)]

    @cached_property
    def _order(self) -> Ints:
        return np.argsort(self.position, kind="stable")

    @cached_property
    def _sorted(self) -> Ints:
        return self.position[self._order]

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
        has[self.position[chosen] // block + 1] = True
        first, end = np.flatnonzero(has[1:] != has[:-1]).reshape(-1, 2).T * block
        last = np.minimum(end, self.count) - 1
        return list(zip(self.numbers[first].tolist(), self.numbers[last].tolist(), strict=True))


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
    size[numbers] = np.array([info.size for info in run.groups])[run.records["group"]]
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
