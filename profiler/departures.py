"""Where the measured communication of supersteps departs from ``g h + l``.

One point for each superstep: its h-relation, the time its communication took, and the time
that ``g h + l`` gives for it. A point far above the line is a superstep that the model does
not describe: a fan-in whose receiver is slow, a cold cache, a process without a core.

Source: the G graph of bspprof; Jarvis et al. 2002, section 2.1, for the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._numbering import narrow
from bsplib.profiler.costs import by_superstep, communication_ns, h_relation
from bsplib.profiler.survey import survey
from bsplib.profiler.window import hand_out
from bsplib.recording.tables import Columns, joined
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Floats, Ints
    from bsplib.profiler._sums import RunSums
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


SIDES = ("even", "fan-in", "fan-out")
"""Which side of a superstep carries more bytes: none, some process receives more than any sends, or
some process sends more than any receives."""


_FIELDS = (
    "group",  # position in ``run.groups``
    "superstep",  # number in its group
    "root",  # number of the superstep of the root group in which it took place
    "origin",  # of the record with the greatest h; of equals, of the lowest pid
    "h",  # greatest h of a process, in bytes
    "pattern",  # position in ``SIDES``
    "comm_s",  # greatest communication time of a process
    "predicted_s",  # ``g h + l``
    "count",  # for how many supersteps with the same h, time and pattern it stands, with itself
)
"""The columns of a table of supersteps, of all groups, that ended with a sync."""


def over_s(found: Columns) -> Floats:
    """Return the measured times above the predictions; negative where it was faster."""
    over: Floats = found["comm_s"] - found["predicted_s"]
    return over


def thinned(found: Columns) -> Columns:
    """Let the superstep that departs most stand for all with nearly the same look in a plot.

    Nearly the same means of the same pattern, and in the same cell of a logarithmic grid of h
    and time.
    """
    farthest = np.argsort(-np.abs(over_s(found)), kind="stable")
    looks = _cell(found["h"]) * _CELLS + _cell(1e9 * found["comm_s"])
    cells = (looks * len(SIDES) + found["pattern"])[farthest]
    _, first, same = np.unique(cells, return_index=True, return_inverse=True)
    count = np.bincount(same, found["count"][farthest], len(first)).astype(np.int64)
    order = np.argsort(farthest[first])
    kept: Columns = found[farthest[first][order]]
    kept.fields["count"] = count[order]
    return kept


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
        self._parts: list[Columns] = []
        self._over_s = np.zeros(len(self._sums.origins))
        self._count = np.zeros(len(self._sums.origins), np.int64)

    def add(self, window: RunWindow) -> None:
        """Take in the supersteps of a window."""
        found = _of_window(window, self._sums, self._prices)
        self._parts.append(found)
        self._over_s += np.bincount(found["origin"], over_s(found), len(self._over_s))
        self._count += np.bincount(found["origin"], minlength=len(self._count))
        if sum(map(len, self._parts)) > MOST_KEPT:
            self._parts = [thinned(self.rows())]

    def rows(self) -> Columns:
        """Return the supersteps taken in so far, by group and number.

        Of a long run one stands for others, as :func:`thinned` says.
        """
        if not self._parts:
            return Columns(dict.fromkeys(_FIELDS, np.zeros(0, np.int64)), 0)
        every = joined(self._parts)
        ordered: Columns = every[np.argsort(every["group"], kind="stable")]
        return ordered

    def by_origin(self) -> tuple[Floats, Ints]:
        """Return the sum of departures in seconds, and the number of supersteps, by origin."""
        return self._over_s, self._count


def _of_window(window: RunWindow, sums: RunSums, prices: tuple[float, float, str]) -> Columns:
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
    every = (
        records["group"][row],
        narrow(records["superstep"][row]),
        narrow(window.root_supersteps()[row]),
        narrow(sums.origin_of(records[row])),
        most_h,
        pattern.astype(np.int8),
        by.greatest(communication_ns(run.records).astype(np.float64))[steps] / 1e9,
        g * most_h + l,
        np.ones(len(row), np.int32),
    )
    found = Columns(dict(zip(_FIELDS, every, strict=True)), len(row))
    synced: Columns = found[np.flatnonzero(by.greatest(run.records["kind"] != Kind.END)[steps])]
    return synced


_CELLS = 8 * 20
"""Cells of a column of the grid: times of nearly 300 years, in nanoseconds, are in the last one."""


def _cell(values: Floats) -> Ints:
    """Return in which step of an eighth of a power of 10 each value lies; below 1 in the first."""
    cells: Ints = (8 * np.log10(np.maximum(values, 1.0))).astype(np.int64)
    return cells
