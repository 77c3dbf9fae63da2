"""Where inside its supersteps a loss arises: at which line, or between which lines.

A superstep is known by the call stack of the sync that ends it. What a process computed before,
or where it was blocked, may be in a function that never syncs. Where the run was sampled, the
samples of these supersteps name the line. Otherwise the place is the stretch of the program from
the sync before to this one, unless both are the same call in a loop.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.findings import COMP, WAIT
from bsplib.profiler.lines import LinePlace, book_samples, places_of
from bsplib.profiler.stretches import stretch_of
from bsplib.recording.records import Doing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.account import Account
    from bsplib.profiler.findings import Finding
    from bsplib.profiler.lines import BookedSamples
    from bsplib.profiler.stretches import Stretch
    from bsplib.recording.records import Run

_MOST = 0.5
"""A line, or a stretch, is named if this share of the loss is there."""
_LEAST_SAMPLES = 5
"""Fewer samples, beyond what other processes have there, name no line."""


class LineSpot(NamedTuple):
    """A line of the program, and the call that led to it."""

    place: LinePlace
    caller: LinePlace | None

    @property
    def text(self) -> str:
        """The line in words, after a verb."""
        file, line, function = self.place
        name = fmt.visible(file.rpartition("/")[2])
        called = ""
        if self.caller is not None:
            called = f", called by {fmt.visible(self.caller.function)} at line {self.caller.line}"
        return f"at line {line} of {fmt.visible(function)} ({name}){called}"


class Spots:
    """The places of the losses of a run.

    Args:
        run: the run, as recorded.
        account: its account, at any rates.
    """

    def __init__(self, run: Run, account: Account) -> None:
        self._run = run
        self._account = account

    def text(self, finding: Finding) -> str:
        """Return the place of a loss in words, after a verb; empty where it is not known.

        Only of computation that others wait for, and of time blocked: transfers and
        supersteps are where the calls are.
        """
        if finding.cause not in _DOING or len(finding.rows) == 0:
            return ""
        line = None if self._run.samples is None else self._line(finding)
        spot = line or self._stretch(finding)
        return "" if spot is None else spot.text

    @cached_property
    def _booked(self) -> BookedSamples:
        return book_samples(self._run)

    def _line(self, finding: Finding) -> LineSpot | None:
        """Return the innermost line with most of the samples of a loss."""
        excess = self._excess(finding)
        total = float(excess.clip(min=0).sum())
        if total < _LEAST_SAMPLES:
            return None
        sums: defaultdict[LinePlace, float] = defaultdict(float)
        depths: dict[LinePlace, int] = {}
        callers: defaultdict[LinePlace, defaultdict[LinePlace | None, float]]
        callers = defaultdict(lambda: defaultdict(float))
        for number in np.flatnonzero(excess).tolist():
            places = list(dict.fromkeys(reversed(list(places_of(self._run.stacks[number])))))
            for depth, place in enumerate(places):
                sums[place] += excess[number]
                depths[place] = max(depths.get(place, 0), depth)
                callers[place][places[depth - 1] if depth else None] += excess[number]
        most = [place for place, samples in sums.items() if samples >= _MOST * total]
        if not most:
            return None
        place = max(most, key=lambda each: (depths[each], sums[each]))
        through = callers[place]
        return LineSpot(place, max(through, key=lambda each: through[each]))

    def _excess(self, finding: Finding) -> NDArray[np.float64]:
        """Return by stack how many samples a loss has; of computing, beyond an even share."""
        samples, record = self._run.samples, self._booked.record
        assert samples is not None
        inside = (record >= 0) & np.isin(samples["doing"], _DOING[finding.cause])
        mine = inside & np.isin(record, finding.rows)
        count = len(self._run.stacks)
        found = np.bincount(samples["stack"][mine], minlength=count).astype(np.float64)
        if finding.cause == COMP:
            step = self._account.step
            here = np.zeros(int(step.max()) + 1, bool)
            here[step[finding.rows]] = True
            every = inside & here[step[record]]
            share = len(finding.rows) / np.count_nonzero(here[step])
            found -= share * np.bincount(samples["stack"][every], minlength=count)
        return found

    @cached_property
    def _stack_before(self) -> NDArray[np.int64]:
        """The stack of the sync before each record, in its process; -1: there was none."""
        pids, stacks = self._run.records["pid"], self._run.records["stack"]
        order = np.argsort(pids, kind="stable")
        before = np.full(len(order), -1, np.int64)
        follows = pids[order[1:]] == pids[order[:-1]]
        before[order[1:][follows]] = stacks[order[:-1][follows]]
        return before

    def _stretch(self, finding: Finding) -> Stretch | None:
        """Return the stretch with most of the computing, or of the time blocked, of a loss."""
        rows, run = finding.rows, self._run
        parts = self._account.computing(slice(None))
        spent = (parts.core if finding.cause == COMP else parts.blocked)[rows]
        sums: defaultdict[Stretch, int] = defaultdict(int)
        ends = np.stack([self._stack_before[rows], run.records["stack"][rows].astype(np.int64)])
        each, which = np.unique(ends, axis=1, return_inverse=True)
        totals = np.bincount(which.reshape(-1), spent)
        for (before, after), total in zip(each.T.tolist(), totals.tolist(), strict=True):
            stack = run.stacks[before] if before >= 0 else None
            sums[stretch_of(stack, run.stacks[after])] += total
        best = max(sums, key=lambda stretch: sums[stretch])
        if best.first == best.last or sums[best] < _MOST * sum(sums.values()):
            return None
        return best


_DOING = {COMP: (Doing.COMPUTING,), WAIT: (Doing.BLOCKED,)}
"""What a process does, by its samples, while it causes a loss."""
