"""Where the measured communication of supersteps departs from ``g h + l``.

One point for each superstep: its h-relation, the time its communication took, and the time
that ``g h + l`` gives for it. A point far above the line is a superstep that the model does
not describe: a fan-in whose receiver is slow, a cold cache, a process without a core.

Source: the G graph of bspprof; Jarvis et al. 2002, section 2.1, for the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._sums import where_ended
from bsplib.profiler.costs import by_superstep, communication_ns, h_relation
from bsplib.profiler.survey import survey
from bsplib.profiler.window import hand_out
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler._arrays import Floats, Ints
    from bsplib.profiler._sums import RunSums
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


SIDES = ("even", "fan-in", "fan-out")
"""Which side of a superstep carries more bytes: none, some process receives more than any sends, or
some process sends more than any receives."""


@dataclass(frozen=True)
class Departures:
    """The supersteps of all groups that ended with a sync. All arrays have equal lengths."""

    group: Ints
    """Position in ``run.groups``."""
    superstep: Ints
    """Number in its group."""
    root: Ints
    """Number of the superstep of the root group in which it took place."""
    origin: Ints
    """Position in ``CallGraph.origins`` of that of the record with the greatest h; of equals, of
    the lowest pid."""
    h: Floats
    """Greatest h of a process, in bytes."""
    pattern: Ints
    """Position in ``SIDES``."""
    comm_s: Floats
    """Greatest communication time of a process."""
    predicted_s: Floats
    """``g h + l``."""
    count: Ints
    """For how many supersteps with the same h, time and pattern it stands, with itself."""

    @property
    def over_s(self) -> Floats:
        """Measured time above the prediction; negative where it was faster."""
        return self.comm_s - self.predicted_s

    def of(self, rows: NDArray[np.intp] | slice) -> Departures:
        """Return some of the supersteps."""
        return Departures(**{name: values[rows] for name, values in vars(self).items()})

    def thinned(self) -> Departures:
        """Let the superstep that departs most stand for all with nearly the same look in a plot.

        Nearly the same means of the same pattern, and in the same cell of a logarithmic grid of h
        and time.
        """
        farthest = np.argsort(-np.abs(self.over_s), kind="stable")
        cells = np.stack([_cell(self.h), _cell(1e9 * self.comm_s), self.pattern])[:, farthest]
        _, first, same = np.unique(cells, axis=1, return_index=True, return_inverse=True)
        count = np.bincount(same.ravel(), self.count[farthest], len(first)).astype(np.int64)
        order = np.argsort(farthest[first])
        return replace(self.of(farthest[first][order]), count=count[order])


def summed_up(run: Run, g: float, l: float, rule: str = "max") -> DepartureSums:  # noqa: E741
    """Return how far each superstep of a run departs from ``g h + l``, and the sums of that.

    Args:
        run: the run.
        g: seconds for each byte.
        l: seconds for each superstep.
        rule: h of a process: ``max`` or ``sum`` of the bytes in and the bytes out.
    """
    sums = DepartureSums(run, g, l, rule)
    hand_out(run, sums.add)
    return sums


MOST_KEPT = 40_000
"""Supersteps that are kept before one stands for others."""


class DepartureSums:
    """Takes in the windows of a run for :func:`summed_up`, which has the arguments."""

    def __init__(self, run: Run, g: float, l: float, rule: str = "max") -> None:  # noqa: E741  # the name in the field
        self._prices = g, l, rule
        self._sums = survey(run).sums
        self._is_one_group = len(run.groups) == 1
        self._parts: list[Departures] = []
        self._over_s = np.zeros(len(self._sums.origins))
        self._count = np.zeros(len(self._sums.origins), np.int64)

    def add(self, window: RunWindow) -> None:
        """Take in the supersteps of a window."""
        found = _of_window(window, self._sums, self._prices)
        self._parts.append(found)
        self._over_s += np.bincount(found.origin, found.over_s, len(self._over_s))
        self._count += np.bincount(found.origin, minlength=len(self._count))
        if sum(len(part.h) for part in self._parts) > MOST_KEPT:
            self._parts = [self.rows().thinned()]

    def rows(self) -> Departures:
        """Return the supersteps taken in so far, by group and number.

        Of a long run one stands for others, as :meth:`Departures.thinned` says.
        """
        parts = self._parts
        if not parts:
            whole, some = np.zeros(0, np.int64), np.zeros(0)
            return Departures(whole, whole, whole, whole, some, whole, some, some, whole)
        names = [each.name for each in fields(Departures)]
        every = Departures(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )
        if self._is_one_group:
            return every
        return every.of(np.argsort(every.group, kind="stable"))  # by group and number

    def by_origin(self) -> tuple[Floats, Ints]:
        """Return the sum of departures in seconds, and the number of supersteps, by origin."""
        return self._over_s, self._count


def _of_window(window: RunWindow, sums: RunSums, prices: tuple[float, float, str]) -> Departures:
    """Return the departures of the supersteps in a window."""
    g, l, rule = prices  # noqa: E741
    run, fresh = window.run, window.fresh
    records = run.records[fresh]
    h_out, h_in = h_relation(run)
    h = h_out + h_in if rule == "sum" else np.maximum(h_out, h_in)
    by, steps = by_superstep(run), slice(window.halo_steps, None)  # the halo has the first ones
    most_h, most_in, most_out = (by.greatest(values)[steps] for values in (h, h_in, h_out))
    row = by.leader(h)[steps] - window.halo
    pattern = (most_in > most_out) + 2 * (most_out > most_in)
    every = Departures(
        group=records["group"][row],
        superstep=_short(records["superstep"][row]),
        root=_short(window.root_supersteps()[row]),
        origin=_short(sums.origin_of(where_ended(records, row))),
        h=most_h,
        pattern=pattern.astype(np.int8),
        comm_s=by.greatest(communication_ns(run.records).astype(np.float64))[steps] / 1e9,
        predicted_s=g * most_h + l,
        count=np.ones(len(row), np.int32),
    )
    return every.of(np.flatnonzero(by.greatest(run.records["kind"] != Kind.END)[steps]))


def _short(numbers: Ints) -> Ints:
    """Return numbers that are not negative, in half the memory where all of them are small."""
    if numbers.max(initial=0) > np.iinfo(np.int32).max:
        return numbers
    return numbers.astype(np.int32)


def _cell(values: Floats) -> Ints:
    """Return in which step of an eighth of a power of 10 each value lies; below 1 in the first."""
    cells: Ints = (8 * np.log10(np.maximum(values, 1.0))).astype(np.int64)
    return cells
