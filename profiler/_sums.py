"""The records of a run, arranged so that the cost of any part of them takes one pass.

A part is a set of *origins*. An origin is a call stack together with the kind of sync at its
end. Each node, edge and path of the call graph is such a set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import limits
from bsplib.profiler._arrays import Bools, Floats, Ints, Rows
from bsplib.profiler._by_step import BySuperstep
from bsplib.profiler._numbering import (
    SumsByKey,
    changes,
    rank_in_place,
    ranked,
    starts,
)
from bsplib.profiler.costs import METRICS, Cost, Summary, by_superstep, group_columns, record_costs
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run
    from bsplib.recording.tables import Columns

# -- the records of a run, summed up in cells: a cell is what one superstep has of one origin -----
#
# Most supersteps end at the same place on all processes, so that there are far fewer cells
# than records.


Stats = Floats
"""Costs of cells, supersteps or groups: one column for each of them, one row for each ``ROW``."""

_GREATEST = (*(f"{metric}_max" for metric in METRICS), "supersteps")
_LEAST = tuple(f"{metric}_min" for metric in METRICS)
ROW = {name: row for row, name in enumerate((*_GREATEST, *_LEAST))}
"""The rows by name."""
_LOW = slice(len(_GREATEST), None)
"""The rows of the least values."""


def merge(stats: Stats, begins: NDArray[np.intp]) -> Stats:
    """Return the greatest and the least of each segment of columns, which begin there."""
    merged: Stats = np.maximum.reduceat(stats, begins, axis=1)
    merged[_LOW] = np.minimum.reduceat(stats[_LOW], begins, axis=1)
    return merged


class Cells(NamedTuple):
    """Costs of cells; the fields have one element for each of them."""

    step: Ints
    group: Ints
    origin: Ints
    records: Ints
    """Number of records."""
    stats: Stats


def _cells_of(window: RunWindow, origin: Ints, origins: int) -> tuple[Ints, BySuperstep]:
    """Return the keys of the cells of a window, and what sums up its records by cell."""
    by = by_superstep(window.run).after(window.halo)
    least = by.least(origin)
    if (least == by.greatest(origin)).all():
        return np.arange(by.count) * origins + least, by
    keys, cell = ranked(by.of_record * origins + origin)
    return keys, BySuperstep(cell, window.run.records["pid"][window.fresh])


_BITS = np.iinfo(np.int64).bits - 1
"""Origins that one word has a bit for; the other one is its sign."""


class Spans:
    """The time in which records of some origins, and of no others, were under way.

    Of a moment counts which origins had a record then: one bit for each. So the time of any set
    of origins is a sum over few such sets, however many supersteps there are.
    """

    def __init__(self) -> None:
        nothing = np.zeros(0, np.int64)
        self._open: tuple[Ints, Ints, Ints] = nothing, nothing, nothing
        """Origin, start and end of the times that later windows may overlap."""
        self._sets, self._ns = np.zeros((1, 0), np.int64), nothing
        """Sets of origins, shape (words, sets), and the time of each of them."""
        self._pending: list[tuple[Ints, Ints]] = []
        """The same, where a set may be there several times."""

    def add(self, origin: Ints, start: Ints, end: Ints) -> None:
        """Take in the times of a window; those of later windows do not begin before them."""
        if len(start):
            self._settle(int(start.min()))
            times = origin, start, end
            self._open = _united(*map(np.append, self._open, times))

    def elapsed_ns(self, chosen: Bools) -> int:
        """Return the length of the union of the times of the chosen origins."""
        self._settle(np.iinfo(np.int64).max)
        self._join()
        wanted = np.zeros((len(self._sets), 1), np.int64)
        at = np.flatnonzero(chosen[: len(wanted) * _BITS])
        np.bitwise_or.at(wanted[:, 0], at // _BITS, np.int64(1) << (at % _BITS))
        return int(self._ns[(self._sets & wanted).any(axis=0)].sum())

    def _settle(self, until: int) -> None:
        """Sum up what was under way before a moment, and forget it."""
        origin, start, end = self._open
        now, later = start < until, end > until
        if not now.any():
            return
        moments = np.concatenate([start[now], np.minimum(end[now], until)])
        order = np.argsort(moments, kind="stable")
        bits, word = np.int64(1) << (origin[now] % _BITS), origin[now] // _BITS
        changes = np.zeros((int(word.max()) + 1, 2 * len(word)), np.int64)
        changes[word, np.arange(len(word))] = bits
        changes[word, len(word) + np.arange(len(word))] = -bits
        self._pending.append(
            (np.cumsum(changes[:, order], axis=1)[:, :-1], np.diff(moments[order]))
        )
        if sum(len(ns) for _, ns in self._pending) > len(self._ns):
            self._join()
        self._open = origin[later], np.maximum(start[later], until), end[later]

    def _join(self) -> None:
        """Let each set be there once."""
        if not self._pending:
            return
        parts = [(self._sets, self._ns), *self._pending]
        words = max(len(sets) for sets, _ in parts)
        every = [np.pad(sets, ((0, words - len(sets)), (0, 0))) for sets, _ in parts]
        sets, ns = np.concatenate(every, axis=1), np.concatenate([ns for _, ns in parts])
        if words == 1:
            found, number = np.unique(sets[0], return_inverse=True)
            found = found[None]
        else:
            found, number = np.unique(sets, axis=1, return_inverse=True)
        self._sets, self._pending = found, []
        self._ns = np.bincount(number.ravel(), ns, found.shape[1]).astype(np.int64)


def _times_of(origin: Ints, by: BySuperstep, records: Rows) -> tuple[Ints, Ints, Ints]:
    """Return origin, start and end of times that together are those of the records.

    The times of a cell are one if all of them contain the same moment, as those of a global
    sync do; otherwise the time of each record is kept.

    Args:
        origin: of each cell.
        by: sums up the records by cell.
        records: the records.
    """
    start, end = records["start"], records["end"]
    first, last = by.least(start), by.greatest(end)
    whole = by.greatest(start) <= by.least(end)
    if whole.all():
        return origin, first, last
    cell = by.of_record
    rows = np.flatnonzero(~whole[cell])
    return (
        np.append(origin[whole], origin[cell[rows]]),
        np.append(first[whole], start[rows]),
        np.append(last[whole], end[rows]),
    )


def _united(origin: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Unite the times of each origin that overlap or touch; sort them by start."""
    order = np.lexsort((start, origin))
    origin, start, end = origin[order], start[order], end[order]
    bounds = np.searchsorted(origin, np.arange(int(origin.max(initial=-1)) + 2))
    for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        np.maximum.accumulate(end[first:stop], out=end[first:stop])
    begins = np.ones(len(start), bool)
    begins[1:] = (start[1:] > end[:-1]) | (origin[1:] != origin[:-1])
    heads = np.flatnonzero(begins)
    tails = np.append(heads[1:], len(start)) - 1
    by_start = np.argsort(start[heads], kind="stable")
    heads, tails = heads[by_start], tails[by_start]
    return origin[heads], start[heads], end[tails]


def origin_keys(records: Columns | Rows) -> Ints:
    """Return stack and kind of each record in one number, ``stack * len(Kind) + kind``."""
    keys: Ints = records["stack"] * np.int64(len(Kind)) + records["kind"]
    return keys


class RunSums:
    """Costs of the parts of one run, summed up window by window."""

    def __init__(self, run: Run) -> None:
        """Begin with nothing; then all windows are added, and the sums are closed."""
        self._nprocs = run.nprocs
        self._groups = _Groups(run)
        self._number: dict[int, int] = {}
        """The origins that were found so far, by key."""
        self._singles = SumsByKey(len(ROW), np.float64)
        """Costs of the supersteps that had a single origin, by origin and group."""
        self._others: list[Cells] = []
        """The cells of the other supersteps."""
        self._pies = SumsByKey(len(METRICS), np.float64)
        """Costs of slices: what one process has of one origin, ``origin * nprocs + pid``."""
        self._spans = Spans()
        self._known: dict[frozenset[int], Cost] = {}

    def add(self, window: RunWindow) -> None:
        """Take in the records of a window."""
        run, fresh = window.run, window.fresh
        records = run.records[fresh]
        origin = origin_keys(records)
        keys = rank_in_place(origin)
        places, by = _cells_of(window, origin, len(keys))
        number = np.array(
            [self._number.setdefault(key, len(self._number)) for key in keys.tolist()]
        )
        costs = record_costs(run)[:, fresh]
        self._pies.add(number[origin] * self._nprocs + records["pid"], costs)
        step, place = np.divmod(places, max(len(keys), 1))
        found, start, end = _times_of(number[place], by, records)
        self._spans.add(*_united(found, start, end))
        group = np.zeros(len(places), np.int64)
        if self._groups.levels:
            group[by.of_record] = records["group"]
        stats: Stats = np.empty((len(ROW), len(places)))
        stats[ROW["supersteps"]] = (keys % len(Kind) != Kind.END)[place]
        for metric, values in zip(METRICS, costs, strict=True):
            stats[ROW[f"{metric}_max"]] = by.greatest(values)
            stats[ROW[f"{metric}_min"]] = by.least(values)
        count = by.sums(np.ones(len(records), np.int64)).astype(np.int64)
        self._add_cells(Cells(step, group, number[place], count, stats))

    def _add_cells(self, cells: Cells) -> None:
        """Sum up the supersteps that have one cell; keep the cells of the others."""
        alone = np.bincount(cells.step)[cells.step] == 1
        one = cells if alone.all() else Cells._make(each[..., alone] for each in cells)
        one.stats[_LOW, one.records < self._groups.size[one.group]] = 0
        self._singles.add(one.origin * len(self._groups.size) + one.group, one.stats)
        if not alone.all():
            self._others.append(Cells._make(each[..., ~alone] for each in cells))

    def close(self) -> None:
        """Arrange the sums by the order of origins, when all windows have been added."""
        keys = sorted(self._number)
        self.keys = np.array(keys, np.int64)
        """The origins in order, as :func:`origin_keys` has them."""
        self.origins = [(key // len(Kind), Kind(key % len(Kind))) for key in keys]
        """Stack (position in ``run.stacks``) and kind of each origin."""
        self._found = np.array([self._number[key] for key in keys], np.int64)
        """For each origin its number in the order in which they were found."""
        place = np.empty_like(self._found)
        place[self._found] = np.arange(len(place))
        self._cells = self._joined(place)
        self._others = []

    def _joined(self, place: Ints) -> Cells:
        """Join the cells of all windows, in the order of groups and supersteps.

        All supersteps of a group that had only one origin, the same one, count as one superstep.

        Args:
            place: position of each origin that was found.
        """
        keys, size = self._singles.keys, self._groups.size
        origin, group = np.divmod(keys, len(size))
        parts = [Cells(np.arange(len(keys)), group, origin, size[group], self._singles.sums)]
        for cells in self._others:
            parts.append(cells._replace(step=cells.step + parts[-1].step.max(initial=-1) + 1))
        every = Cells._make(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
        every = every._replace(origin=place[every.origin])
        order = np.lexsort((every.origin, every.step, every.group))
        return Cells._make(each[..., order] for each in every)

    def origin_of(self, records: Columns | Rows) -> Ints:
        """Return the positions in ``origins`` of the origins of some records."""
        keys = origin_keys(records)
        different = rank_in_place(keys)
        found: Ints = np.searchsorted(self.keys, different).astype(np.int64)
        return found[keys]

    def check(self, parts: Collection[frozenset[int]]) -> None:
        """Refuse parts, given by their origins, whose costs would take gigabytes or minutes.

        Raises:
            TooLargeError: they would.
        """
        cells = np.bincount(self._cells.origin, minlength=len(self.origins))
        summed = sum(int(cells[list(origins)].sum()) for origins in set(parts))
        groups, steps = self._groups, len(self._cells.origin)
        # A pass over 1024 cells or groups, over a level of nested groups and over 64 cells of a
        # part take no longer than a share takes memory.
        each = self._nprocs + (steps + len(groups.size)) // 1024 + 16 * groups.levels
        if len(parts) * each + summed // 64 > limits.MAX_SHARES:
            raise limits.TooLargeError(
                f"the call graph is too large to show: {len(parts)} nodes and edges for "
                f"{self._nprocs} processes, with {steps} places of supersteps"
            )

    def cost(self, origins: frozenset[int]) -> Cost:
        """Return the cost of the records of these origins (positions in ``self.origins``)."""
        if origins not in self._known:
            chosen = np.zeros(len(self.origins), bool)
            chosen[list(origins)] = True
            self._known[origins] = self._cost_of(chosen)
        return self._known[origins]

    def _cost_of(self, chosen: Bools) -> Cost:
        """Compute the cost of the chosen origins, in seconds and bytes."""
        stats = self._groups.total(*self._group_sums(chosen))
        found = np.zeros(len(chosen), bool)
        found[self._found[chosen]] = True
        origin, pid = np.divmod(self._pies.keys, self._nprocs)
        mine = np.flatnonzero(found[origin])
        pies = [np.bincount(pid[mine], sums[mine], self._nprocs) for sums in self._pies.sums]
        summaries = {}
        for metric, pie in zip(METRICS, pies, strict=True):
            unit = 1.0 if metric == "h" else 1e9
            top, low = stats[ROW[f"{metric}_max"]], stats[ROW[f"{metric}_min"]]
            # The limits matter only where a trace lists a process in two sibling groups.
            mean = np.clip(pie.sum() / self._nprocs, low, top)
            top, mean, low = (float(value / unit) for value in (top, mean, low))
            summaries[metric] = Summary(top, mean, low, tuple((pie / unit).tolist()))
        return Cost(
            count=int(stats[ROW["supersteps"]]),
            elapsed_s=self._spans.elapsed_ns(found) / 1e9,
            **summaries,
        )

    def _group_sums(self, chosen: Bools) -> tuple[Ints, Stats]:
        """Return the groups with chosen records, in order, and the sums over their supersteps.

        A process without a chosen record in a superstep counts as 0 there.
        """
        cells = np.flatnonzero(chosen[self._cells.origin])
        stats = self._cells.stats[:, cells]
        begins = starts(self._cells.step[cells])
        stats = merge(stats, begins)
        groups = self._cells.group[cells[begins]]
        present = np.add.reduceat(self._cells.records[cells], begins)
        stats[_LOW, present < self._groups.size[groups]] = 0
        begins = starts(groups)
        return groups[begins], np.add.reduceat(stats, begins, axis=1)


class _Groups:
    """The tree of groups, with which of them ran at the same time and which in sequence.

    ``size`` has the number of processes of each group.
    """

    def __init__(self, run: Run) -> None:
        self._count = len(run.groups)
        self._parent, _, self.size, depth = group_columns(run)
        ordinal = np.array([group.ordinal for group in run.groups])
        order = np.lexsort((ordinal, self._parent, depth))
        # A partition here is the set of sub-groups that a parent opened with one call.
        self._partition = np.empty(self._count, np.int64)
        self._partition[order] = np.cumsum(changes(self._parent[order], ordinal[order]))
        levels = np.split(order, starts(depth[order])[1:])
        self._levels = levels[:0:-1]
        """The groups of each depth, sorted by partition; deepest first, without the root."""
        self.levels = len(self._levels)

    def total(self, groups: Ints, sums: Stats) -> Floats:
        """Combine the sums of groups into those of the root with all its sub-groups.

        The sub-groups of one partition run at the same time: the greatest of their maxima
        and the least of their minima count, where the minimum is 0 if a process of the
        parent is in none of the given groups. Partitions, and what their parent does
        itself, run one after another: they are added.
        """
        stats = np.zeros((len(ROW), self._count))
        stats[:, groups] = sums
        present = np.zeros(self._count, bool)
        present[groups] = True
        for level in self._levels:
            siblings = level[present[level]]
            if len(siblings) == 0:
                continue
            begins = starts(self._partition[siblings])
            beside = merge(stats[:, siblings], begins)
            parents = self._parent[siblings[begins]]
            covered = np.add.reduceat(self.size[siblings], begins)
            beside[_LOW, covered < self.size[parents]] = 0
            begins = starts(parents)
            stats[:, parents[begins]] += np.add.reduceat(beside, begins, axis=1)
            present[parents] = True
        total: Floats = stats[:, 0]
        return total
