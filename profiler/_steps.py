"""The supersteps of the root group in order, with the time that each took."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._by_step import is_table
from bsplib.profiler._numbering import blocks, ranked
from bsplib.profiler.costs import by_superstep, computation_ns, group_sizes, once
from bsplib.profiler.window import hand_out, windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler._by_step import TableBySuperstep
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


_STEPS = "root supersteps"


class _StepColumns(NamedTuple):
    """Supersteps of the root group, in types as narrow as the values of the run allow."""

    number: NDArray[np.integer]
    """Only that of the first superstep, if none is missing between it and the last."""
    start: Ints
    length: NDArray[np.integer]
    """Time from the start to the end."""
    record: NDArray[np.integer]
    """Position of the record with the most computation."""


class StepRows:
    """Takes in the windows of a run, and keeps its root supersteps for :class:`RootSteps`."""

    def __init__(self) -> None:
        self._columns: list[list[NDArray[np.integer]]] = [[] for _ in _StepColumns._fields]
        self._following: int | None = None
        """The number of the next superstep, if none is missing."""
        self._is_gapless = True

    def add(self, window: RunWindow) -> None:
        """Take in the supersteps of a window."""
        number, start, length, record = _of_window(window)
        if len(number) == 0:
            return
        follows = self._following in {None, int(number[0])}
        self._is_gapless &= follows and int(number[-1]) - int(number[0]) == len(number) - 1
        self._following = int(number[-1]) + 1
        parts = _narrow(number), start, _narrow(length), _narrow(record)
        for column, part in zip(self._columns, parts, strict=True):
            column.append(part)

    def close(self) -> _StepColumns:
        """Return all supersteps, when all windows have been taken in."""
        if self._is_gapless:
            self._columns[0] = [part[:1] for part in self._columns[0][:1]]
        joined = []
        for column in self._columns:  # one after the other, since a long run has many supersteps
            joined.append(np.concatenate(column or [np.zeros(0, np.int64)]))
            column.clear()
        return _StepColumns(*joined)

    def keep(self, run: Run) -> None:
        """Keep the supersteps with the run of which all windows were taken in."""
        once(run, _STEPS, self.close)


def _narrow(values: Ints) -> NDArray[np.integer]:
    """Return values that are not negative in 32 bits if they fit, since there are many."""
    return values.astype(np.int32 if int(values.max(initial=0)) < 2**31 else np.int64)


def _steps_of(run: Run) -> _StepColumns:
    taker = StepRows()
    hand_out(run, [taker])
    return taker.close()


class RootSteps:
    """The supersteps of the root group, with the sub-groups opened in them.

    They are counted by position, from 0 without gaps, also where a number is missing.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        columns = once(run, _STEPS, lambda: _steps_of(run))
        self._number, self._start, self._length, self._record = columns
        self.count = len(self._start)
        self._is_gapless = len(self._number) != self.count or self.count == 1
        self.ended_ns = max((int(end.max()) for end in self._ends()), default=0)
        """When the last process ended its last superstep."""

    def numbers(self, positions: Ints) -> Ints:
        """Return the numbers of supersteps."""
        if self._is_gapless:
            return positions + int(self._number[0])
        return self._number[positions].astype(np.int64)

    def records(self, positions: Ints) -> Ints:
        """Return for supersteps the position of the record with the most computation."""
        return self._record[positions].astype(np.int64)

    def begins(self, positions: Ints) -> Ints:
        """Return when supersteps begin, in nanoseconds."""
        return self._start[positions]

    def ends(self, positions: Ints | slice) -> Ints:
        """Return when supersteps end, in nanoseconds."""
        ends: Ints = self._start[positions] + self._length[positions]
        return ends

    def _ends(self) -> Iterator[Ints]:
        """Yield when supersteps end, block by block."""
        return (self.ends(part) for part in blocks(self.count))

    def positions(self, window: RunWindow) -> Ints:
        """Return the position of the superstep of each record of a window."""
        numbers = window.root_supersteps()
        if self._is_gapless:
            return numbers - int(self._number[0])
        return np.searchsorted(self._number, numbers).astype(np.int64)

    def windows(self, low: int, high: int) -> Iterator[RunWindow]:
        """Yield the windows of a range of positions."""
        if low >= high:
            return iter(())
        first, last = self.numbers(np.array([low, high - 1])).tolist()
        return windows(self._run, first, last)

    def longest(self, first: Ints, last: Ints) -> Ints:
        """Return, for ranges of positions, which superstep took longest; of equals the last."""
        ranges = zip(first.tolist(), last.tolist(), strict=True)
        found = [end - int(self._length[begin : end + 1][::-1].argmax()) for begin, end in ranges]
        return np.array(found, np.int64)

    def during(self, edges: Floats) -> tuple[Floats, Ints, Ints]:
        """Return where moments lie in the sequence of supersteps.

        Args:
            edges: moments in nanoseconds, rising.

        Returns:
            The position of each moment, with the part of the superstep that was over; and
            the first and the last superstep that ran between neighbouring edges.
        """
        begun = _falling(self._start)
        places = self._places(edges, begun)
        first = self._ended_until(edges[:-1])
        last = np.searchsorted(begun, edges[1:], side="left") - 1
        first = np.minimum(first, max(self.count - 1, 0))
        return places, first, np.maximum(first, last)

    def _ended_until(self, moments: Floats) -> Ints:
        """Return how many of the first supersteps had ended at some moments."""
        ended, latest = np.zeros(len(moments), np.int64), 0
        for end in self._ends():
            end[0] = max(int(end[0]), latest)  # a later superstep may end earlier
            until = np.maximum.accumulate(end)
            latest = int(until[-1])
            ended += np.searchsorted(until, moments, side="right")
        return ended

    def _places(self, edges: Floats, begun: Ints) -> Floats:
        """Return where moments lie between the begins of supersteps, and the end of the last."""
        # Only these are looked at, since all of them as floats would need much memory.
        near = np.searchsorted(begun, edges, side="right") + np.array([[-1], [0]])
        near = np.unique(near.clip(0, self.count))
        bounds = begun[near.clip(max=max(self.count - 1, 0))] if self.count else near.copy()
        bounds[near == self.count] = self.ended_ns
        places: Floats = np.interp(edges, bounds, near)
        return places

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
        return list(zip(self.numbers(first).tolist(), self.numbers(last).tolist(), strict=True))


def _falling(start: Ints) -> Ints:
    """Return for each superstep when it, or an earlier one of those after it, began."""
    if (start[1:] >= start[:-1]).all():
        return start
    return np.minimum.accumulate(start[::-1])[::-1]


def _of_window(window: RunWindow) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the supersteps in a window: number, start, length, and record of each."""
    by = by_superstep(window.run)
    if is_table(by, window.halo):
        return _of_table(window, by)
    records = window.run.records[window.fresh]
    numbers, position = ranked(window.root_supersteps())
    start, end = np.full(len(numbers), np.iinfo(np.int64).max), np.zeros(len(numbers), np.int64)
    np.minimum.at(start, position, records["start"])
    np.maximum.at(end, position, records["end"])
    record = _greatest(position, computation_ns(window.run)[window.fresh], len(numbers))
    return numbers, start, end - start, window.position[record]


def _of_table(window: RunWindow, by: TableBySuperstep) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the same of a window whose records are a table."""
    records, steps = window.run.records, slice(by.before, None)
    numbers = by.fresh().of_first(records["superstep"][window.fresh])
    start, end = by.least(records["start"])[steps], by.greatest(records["end"])[steps]
    record = by.leader(computation_ns(window.run))[steps] - window.halo
    return numbers.astype(np.int64), start, end - start, window.position[record]


def excess(run: Run, cost: Floats) -> Floats:
    """Return by how much the cost of each record is above the mean of its superstep.

    The mean is over all processes of the group; one without a record counts as 0.

    Args:
        run: the run.
        cost: of each record.

    Returns:
        For each record; 0 where its cost is below the mean.
    """
    if len(cost) == 0:
        return cost
    by = by_superstep(run)
    mean = by.spread(by.sums(cost)) / group_sizes(run)[run.records["group"]]
    above: Floats = np.maximum(cost - mean, 0)
    return above


def _greatest(step: Ints, cost: Floats, count: int) -> Ints:
    """Return the first record with the greatest cost in each step."""
    most = np.zeros(count)
    np.maximum.at(most, step, cost)
    rows = np.flatnonzero(cost == most[step])[::-1]
    record = np.zeros(count, np.int64)
    record[step[rows]] = rows
    return record
