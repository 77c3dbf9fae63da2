"""The supersteps of the root group in order, with the time that each took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._by_step import BySuperstep
from bsplib.profiler._numbering import narrow, ranked
from bsplib.profiler.costs import by_superstep, once
from bsplib.profiler.window import hand_out, windows
from bsplib.recording.tables import Columns

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Bools, Floats, Ints, Numbers
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


_STEPS = "root supersteps"


class RootSteps:
    """The supersteps of the root group, with the sub-groups opened in them.

    They are counted by position, from 0 without gaps, also where a number is missing. Some twenty
    bytes of each are kept, however long the run is.
    """

    def __init__(self, run: Run) -> None:
        """Begin with nothing; then all windows are added. See :func:`root_steps_of`."""
        self._run = run
        self._parts: list[tuple[Numbers, ...]] = [tuple(np.zeros((5, 0), np.int64))]

    def add(self, window: RunWindow) -> None:
        """Take in the supersteps of a window."""
        records = window.run.records[window.fresh]
        numbers, position = ranked(window.root_supersteps())
        by = by_superstep(window.run).after(window.halo)
        if len(window.run.groups) > 1:
            by = BySuperstep(position, records["pid"])
        start, end = by.least(records["start"]), by.greatest(records["end"])
        last = by.leader(records["arrive"])
        ended_at = records["stack"][last], records["kind"][last]
        self._parts.append((narrow(numbers), start, narrow(end - start), *ended_at))

    def keep(self) -> RootSteps:
        """Keep this with the run, of which all windows have been added."""
        self._number, self._start, self._length, self._stack, self._kind = (
            np.concatenate(each) for each in zip(*(self._parts[1:] or self._parts), strict=True)
        )
        self._parts = []
        self.count = len(self._number)
        return once(self._run, _STEPS, lambda: self)

    def numbers(self, positions: Ints) -> Ints:
        """Return the numbers of supersteps."""
        return self._number[positions].astype(np.int64)

    def positions(self, window: RunWindow) -> Ints:
        """Return the position of the superstep of each record of a window."""
        numbers, first = window.root_supersteps(), int(self._number[0])
        if int(self._number[-1]) - first + 1 == self.count:  # none is missing
            return numbers - first
        return np.searchsorted(self._number, numbers).astype(np.int64)

    # Supersteps begin in their order, and end in it. Where a run broke off, one may be earlier than
    # one before it, and then counts as begun, or ended, together with that.

    def _begun(self) -> Ints:
        return np.maximum.accumulate(self._start)

    def _ended(self) -> Ints:
        ended = self._start + self._length
        return np.maximum.accumulate(ended, out=ended)

    def during(self, low_ns: float, high_ns: float) -> tuple[int, int]:
        """Return a range of positions with all supersteps that ran between two moments."""
        low = int(np.searchsorted(self._ended(), low_ns, side="right"))
        high = int(np.searchsorted(self._begun(), high_ns, side="right"))
        return max(min(low, self.count - 1) - 1, 0), min(high + 1, self.count)

    def columns(self, edges: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the first and the last superstep between each moment and the next one.

        With them comes the position at each moment, with the part of its superstep that was over.
        """
        begun, ended = self._begun(), self._ended()
        first = np.searchsorted(ended, edges[:-1], side="right").clip(max=self.count - 1)
        last = np.searchsorted(begun, edges[1:], side="left") - 1
        at = (np.searchsorted(begun, edges, side="right") - 1).clip(min=0)
        until = np.where(at + 1 < self.count, begun[(at + 1).clip(max=self.count - 1)], ended[-1])
        over = ((edges - begun[at]) / np.maximum(until - begun[at], 1)).clip(0, 1)
        places = np.where(edges < ended[-1], at + over, self.count)
        return first, np.maximum(first, last), places

    def longest(self, first: Ints, last: Ints) -> Ints:
        """Return the superstep that took longest of each range; of equals the last one."""
        ranges = zip(first.tolist(), last.tolist(), strict=True)
        found = [high - int(self._length[low : high + 1][::-1].argmax()) for low, high in ranges]
        return np.array(found, np.int64)

    def began_ns(self, positions: Ints) -> Ints:
        """Return when the first process began with some supersteps."""
        return self._start[positions]

    def ended_ns(self, positions: Ints) -> Ints:
        """Return when the last process ended some supersteps."""
        ended: Ints = self._start[positions] + self._length[positions]
        return ended

    def ended_at(self, positions: Ints) -> Columns:
        """Return stack and kind of the records that arrived last in some supersteps."""
        fields = {"stack": self._stack[positions], "kind": self._kind[positions]}
        return Columns(fields, len(positions))

    def ranges(self, chosen: Bools, most: int) -> list[tuple[int, int]]:
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


def root_steps_of(run: Run) -> RootSteps:
    """Return the supersteps of a run; only the first call takes long."""

    def found() -> RootSteps:
        steps = RootSteps(run)
        hand_out(run, steps.add)
        return steps.keep()

    return once(run, _STEPS, found)
