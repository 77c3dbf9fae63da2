"""The supersteps of the root group in order, with the time that each took.

A long run has more of them than memory should hold. What is kept says in which window a superstep
is; what a picture shows of its columns is summed up as the windows are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._by_step import BySuperstep, is_table
from bsplib.profiler._numbering import ranked
from bsplib.profiler.costs import by_superstep, once
from bsplib.profiler.window import hand_out, windows
from bsplib.recording.tables import Columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


_STEPS = "root supersteps"
_ENDED = ("stack", "kind")
_KEPT_STEPS = 2**21
"""Greatest number of supersteps that are kept one by one. Those of a longer run are read again."""


class StepRows(NamedTuple):
    """Successive supersteps of the root group, in types as narrow as their values allow."""

    first: int
    """Position of the first one."""
    start: Ints
    length: NDArray[np.integer]
    """Time from the start to the end."""
    ended_at: Columns
    """Stack and kind of the record that arrived last."""

    @property
    def stop(self) -> int:
        """Position after the last one."""
        return self.first + len(self.start)


class StepIndex:
    """What is known of all supersteps of the root group without reading a run again."""

    def __init__(self) -> None:
        """Begin with nothing; then all windows are added, and the index is closed."""
        self._gaps: list[tuple[Ints, Ints]] = []
        self._following = -1
        self._windows = [(0, -1, -1)]
        self.kept: list[StepRows] | None = []
        """All supersteps of a short run."""

    def add(self, window: RunWindow) -> None:
        """Take in the supersteps of a window."""
        first, begun, ended = self._windows[-1]
        number, rows = _of_window(window, first)
        if len(number) == 0:
            return
        gaps = np.flatnonzero(np.diff(number, prepend=self._following - 1) != 1)
        self._gaps.append((number[gaps], first + gaps))
        self._following = int(number[-1]) + 1
        begun = max(begun, int(rows.start.max()))
        self._windows.append((rows.stop, begun, max(ended, int((rows.start + rows.length).max()))))
        if rows.stop > _KEPT_STEPS:
            self.kept = None
        if self.kept is not None:
            self.kept.append(rows)

    def close(self) -> StepIndex:
        """Arrange what was found, when all windows have been added."""
        gaps: Ints = np.concatenate([np.zeros((2, 0), np.int64), *self._gaps], axis=1)
        windows: Ints = np.array(self._windows, np.int64).T
        self.number: Ints = gaps[0]
        """Numbers of the supersteps before which one is missing, and of the first one."""
        self.at: Ints = gaps[1]
        """Positions of these."""
        self.first: Ints = windows[0]
        """Position of the first superstep of each window, and after the last one of all."""
        self.begun: Ints = windows[1, 1:]
        """When the last superstep that is not after a window began."""
        self.ended: Ints = windows[2, 1:]
        """When the last superstep that is not after a window ended."""
        return self

    def keep(self, run: Run) -> None:
        """Keep this with the run of which all windows were taken in."""
        once(run, _STEPS, self.close)


def _narrow(values: Ints) -> NDArray[np.integer]:
    """Return values that are not negative in 32 bits if they fit, since there are many."""
    return values.astype(np.int32 if int(values.max(initial=0)) < 2**31 else np.int64)


def _index_of(run: Run) -> StepIndex:
    index = StepIndex()
    hand_out(run, index.add)
    return index.close()


class RootSteps:
    """The supersteps of the root group, with the sub-groups opened in them.

    They are counted by position, from 0 without gaps, also where a number is missing.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._index = once(run, _STEPS, lambda: _index_of(run))
        self.count = int(self._index.first[-1])
        self.ended_ns = int(self._index.ended.max(initial=0))
        """When the last process ended its last superstep."""

    def numbers(self, positions: Ints) -> Ints:
        """Return the numbers of supersteps."""
        index = self._index
        stretch = np.searchsorted(index.at, positions, side="right") - 1
        return index.number[stretch] + positions - index.at[stretch]

    def positions(self, window: RunWindow) -> Ints:
        """Return the position of the superstep of each record of a window."""
        numbers, index = window.root_supersteps(), self._index
        if len(index.number) == 1:
            return numbers - int(index.number[0])
        stretch = np.searchsorted(index.number, numbers, side="right") - 1
        return index.at[stretch] + numbers - index.number[stretch]

    def windows(self, low: int, high: int) -> Iterable[RunWindow]:
        """Return the windows of a range of positions."""
        if low >= high:
            return ()
        first, last = self.numbers(np.array([low, high - 1])).tolist()
        return windows(self._run, first, last)

    def rows(self, low: int, high: int) -> Iterable[StepRows]:
        """Return the supersteps of a range of positions, and maybe others near them."""
        kept = self._index.kept
        if kept is None:
            return map(self.rows_of, self.windows(low, high))
        return (rows for rows in kept if rows.first < high and low < rows.stop)

    def rows_of(self, window: RunWindow) -> StepRows:
        """Return the supersteps of a window."""
        return _of_window(window, int(self.positions(window).min()))[1]

    def during(self, low_ns: float, high_ns: float) -> tuple[int, int]:
        """Return a range of positions with all supersteps that ran between two moments."""
        first, begun, ended = self._index.first, self._index.begun, self._index.ended
        low = min(int(np.searchsorted(ended, low_ns, side="right")), max(len(ended) - 1, 0))
        high = min(int(np.searchsorted(begun, high_ns, side="right")) + 1, len(begun))
        return max(int(first[low]) - 1, 0), int(first[high])  # from the one before them

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


def _of_window(window: RunWindow, first: int) -> tuple[Ints, StepRows]:
    """Return the numbers of the supersteps in a window, and these; the position of the first."""
    records, steps = window.run.records[window.fresh], by_superstep(window.run)
    by: BySuperstep
    if is_table(steps, window.halo):
        by = steps.fresh()
        numbers = by.of_first(records["superstep"]).astype(np.int64)
    else:
        numbers, position = ranked(window.root_supersteps())
        by = BySuperstep(position, records["pid"])
    start, end = by.least(records["start"]), by.greatest(records["end"])
    last = by.leader(records["arrive"])
    ended_at = Columns({name: records[name][last] for name in _ENDED}, len(last))
    return numbers, StepRows(first, start, _narrow(end - start), ended_at)


# -- what a picture shows of the supersteps in its columns ----------------------------------------


class ColumnSteps:
    """Takes in the supersteps of a run, or of a part of it, for the columns of a picture."""

    def __init__(self, edges: Floats) -> None:
        """Begin with columns between positions of supersteps, whole numbers that rise."""
        self.edges = edges
        self.first, self.last = edges[:-1].astype(np.int64), edges[1:].astype(np.int64) - 1
        """Positions of the first and the last superstep of each column."""
        count = len(self.first)
        self.began_ns, self.ended_ns = np.zeros((2, count), np.int64)
        """When the first superstep began, and when the last one ended."""
        self.longest = np.zeros(count, np.int64)
        """Position of the superstep that took longest, of equals the last one."""
        self.ended_at = Columns({name: np.zeros(count, int) for name in _ENDED}, count)
        """Stack, kind and pid of the record that arrived last in that superstep."""
        self._lasted = np.full(count, -1)

    def add(self, rows: StepRows) -> None:
        """Take in supersteps, which follow those before."""
        for column in np.flatnonzero((self.first < rows.stop) & (rows.first <= self.last)).tolist():
            first, last = int(self.first[column]) - rows.first, int(self.last[column]) - rows.first
            begin, end = max(first, 0), min(last + 1, len(rows.start))
            if first >= 0:
                self.began_ns[column] = rows.start[first]
            self.ended_ns[column] = rows.start[end - 1] + rows.length[end - 1]
            at = end - 1 - int(rows.length[begin:end][::-1].argmax())
            if rows.length[at] >= self._lasted[column]:
                self._lasted[column], self.longest[column] = rows.length[at], rows.first + at
                for name, values in self.ended_at.fields.items():
                    values[column] = rows.ended_at[name][at]


class TimeColumns(ColumnSteps):
    """The same for columns of time, which have the supersteps that ran in them.

    Supersteps begin in their order, and end in it. Where a run broke off one may be earlier than
    one before it, and then counts as begun, or ended, together with that.
    """

    def __init__(self, edges: Floats, steps: RootSteps) -> None:
        """Begin with columns between moments in nanoseconds, which rise."""
        super().__init__(edges)
        self.first[:] = self.last[:] = -1
        self._steps = steps
        self._begun = self._ended = np.iinfo(np.int64).min
        self._near = np.full((2, len(edges)), steps.count)
        """Positions of the superstep that began last before each edge, and of the next one."""
        self._bounds = np.full((2, len(edges)), steps.ended_ns)
        """When these began."""

    def add(self, rows: StepRows) -> None:
        """Take in supersteps, which follow those before."""
        begun = np.maximum.accumulate(np.append(self._begun, rows.start))
        ended = np.maximum.accumulate(np.append(self._ended, rows.start + rows.length))
        self._begun, self._ended = int(begun[-1]), int(ended[-1])
        before, count = rows.first - 1, self._steps.count
        first = before + np.searchsorted(ended, self.edges[:-1], side="right")
        first = np.where(self.first < 0, np.minimum(first, count - 1), self.first)
        here = first < rows.stop
        last = np.searchsorted(begun, self.edges[1:], side="left")
        last = np.where(last > 0, before - 1 + last, self.last)  # at 0 it was found before
        self.first[here], self.last[here] = first[here], np.maximum(first, last)[here]
        super().add(rows)
        if rows.stop == count:
            begun = np.append(begun, self._steps.ended_ns)
        following = np.searchsorted(begun, self.edges, side="right")
        here = (following > 0) & (following < len(begun))
        near = np.stack([np.maximum(following - 1, rows.first == 0), following])[:, here]
        self._near[:, here], self._bounds[:, here] = before + near, begun[near]

    def places(self) -> Floats:
        """Return the position of each edge, with the part of the superstep that was over."""
        near, at = np.unique(self._near, return_index=True)
        places: Floats = np.interp(self.edges, self._bounds.ravel()[at], near)
        return places
