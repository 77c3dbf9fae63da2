"""The records of a run, arranged so that the cost of any part of them takes one pass.

A part is a set of *origins*. An origin is a call stack together with the kind of sync at its
end. Each node, edge and path of the call graph is such a set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from bsplib.profiler._numbering import Ints, blocks, by_blocks, is_small, rank_in_place, ranked
from bsplib.profiler._segments import LOW, ROWS, TOP, Stats, changes, merge, starts
from bsplib.profiler.costs import METRICS, cost_blocks, superstep_numbers
from bsplib.profiler.limits import GraphWork
from bsplib.profiler.summary import Cost, Summary
from bsplib.recording.records import Run
from bsplib.sync_kinds import Kind

# -- the records of a run, summed up in cells: a cell is what one superstep has of one origin -----
#
# Most supersteps end at the same place on all processes, so that there are far fewer cells
# than records.


_SUMS_OF_SLICE = 16
"""Size of the sums of a slice, with what is computed from them, in numbers of 8 bytes."""


class CostCells:
    """Costs of cells, in the order of supersteps, and of origins within one superstep."""

    def __init__(self, keys: Ints, ended: NDArray[np.bool_]) -> None:
        """Create cells without records.

        Args:
            keys: of the cells, as :func:`cell_numbers` returns them.
            ended: for each origin whether it ends a superstep, and not only ``main``.
        """
        self.step, self.origin = np.divmod(keys, max(len(ended), 1))
        self.records: Ints = np.zeros(len(keys), np.int64)
        """Number of records of each cell."""
        self.stats: Stats = np.empty((ROWS, len(keys)))
        self.stats[TOP], self.stats[LOW] = -np.inf, np.inf
        self.stats[TOP][-1] = ended[self.origin]

    def add(self, cell: Ints, costs: NDArray[np.float64]) -> None:
        """Take in the costs of some records.

        Args:
            cell: number of the cell of each of them.
            costs: one row for each metric.
        """
        np.add.at(self.records, cell, 1)
        for row, values in enumerate(costs):
            np.maximum.at(self.stats[TOP][row], cell, values)
            np.minimum.at(self.stats[LOW][row], cell, values)


def cell_numbers(step: Ints, origin: Ints, origins: int) -> tuple[Ints, Ints]:
    """Number the cells by superstep and origin.

    Args:
        step: for each record the number of its superstep, without gaps.
        origin: for each record the number of its origin.
        origins: number of origins.

    Returns:
        The key of each cell, ``step * origins + origin``; for each record its cell.
    """
    usual = np.zeros(int(step.max(initial=-1)) + 1, np.int64)
    usual[step] = origin
    others_of = [
        part.start + np.flatnonzero(usual[step[part]] != origin[part]) for part in blocks(len(step))
    ]
    other = np.concatenate([np.empty(0, np.int64), *others_of])
    others, number = ranked(step[other] * origins + origin[other])
    keys = np.append(np.arange(len(usual)) * origins + usual, others)
    order = np.argsort(keys, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    cell = place[step]
    cell[other] = place[len(usual) + number]
    return keys[order], cell


def slice_numbers(
    origin: Ints, origins: int, pid: NDArray[np.int32], nprocs: int
) -> tuple[Ints, Callable[[slice], Ints]]:
    """Number the slices of pies: a slice is what one process has of one origin.

    Args:
        origin: for each record the number of its origin.
        origins: number of origins.
        pid: for each record its process.
        nprocs: number of processes.

    Returns:
        The key of each slice, ``origin * nprocs + pid``; a function that returns the slices of
        a block of records.
    """

    def keys(part: slice) -> Ints:
        key: Ints = origin[part] * nprocs + pid[part]
        return key

    if is_small(_SUMS_OF_SLICE * origins * nprocs, len(pid)):
        return np.arange(origins * nprocs), keys  # also slices without records
    number = by_blocks(len(pid), keys)
    found = rank_in_place(number)
    return found, lambda part: number[part]


class Pies:
    """Costs of slices: a slice is what one process has of one origin."""

    def __init__(self, keys: Ints, nprocs: int, metrics: int) -> None:
        """Create slices without records.

        Args:
            keys: of the slices, ``origin * nprocs + pid``.
            nprocs: number of processes.
            metrics: number of metrics.
        """
        self._origin, self._pid = np.divmod(keys, nprocs)
        self._sums = np.zeros((metrics, len(keys)))
        self._nprocs = nprocs

    def add(self, slices: Ints, costs: NDArray[np.float64]) -> None:
        """Take in the costs of some records.

        Args:
            slices: number of the slice of each of them.
            costs: one row for each metric.
        """
        for sums, values in zip(self._sums, costs, strict=True):
            np.add.at(sums, slices, values)

    def of(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the sum of each metric for each process, over the chosen origins."""
        slices = np.flatnonzero(chosen[self._origin])
        pids = self._pid[slices]
        return np.stack([np.bincount(pids, sums[slices], self._nprocs) for sums in self._sums])


class Spans:
    """The times in which at least one process was in a superstep of an origin."""

    def __init__(self, cells: CostCells, cell: Ints, records: NDArray[np.void]) -> None:
        """Unite the times of the records of each origin.

        Args:
            cells: the cells of the records.
            cell: for each record its cell.
            records: the records.
        """
        self._origin, self._start, self._end = _united(*_of_cells(cells, cell, records))

    def elapsed_ns(self, chosen: NDArray[np.bool_]) -> int:
        """Return the length of the union of the times of the chosen origins."""
        rows = np.flatnonzero(chosen[self._origin])
        if len(rows) == 0:
            return 0
        begins, latest = self._start[rows], np.maximum.accumulate(self._end[rows])
        gaps = np.maximum(begins[1:] - latest[:-1], 0)
        return int(latest[-1] - begins[0] - gaps.sum())


def _of_cells(cells: CostCells, cell: Ints, records: NDArray[np.void]) -> tuple[Ints, Ints, Ints]:
    """Return origin, start and end of times that together are those of the records.

    The times of a cell are one if all of them contain the same moment, as those of a global
    sync do; otherwise the time of each record is kept.
    """
    most = np.iinfo(np.int64).max
    first, common = np.full((2, len(cells.origin)), most)
    last, latest = np.zeros((2, len(cells.origin)), np.int64)
    for part in blocks(len(records)):
        start, end = np.ascontiguousarray(records["start"][part]), records["end"][part].copy()
        np.minimum.at(first, cell[part], start)
        np.maximum.at(latest, cell[part], start)
        np.maximum.at(last, cell[part], end)
        np.minimum.at(common, cell[part], end)
    whole = latest <= common
    rows = np.flatnonzero(~whole[cell])
    return (
        np.append(cells.origin[whole], cells.origin[cell[rows]]),
        np.append(first[whole], records["start"][rows]),
        np.append(last[whole], records["end"][rows]),
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


class RunSums:
    """Costs of the parts of one run."""

    def __init__(self, run: Run) -> None:
        records = run.records
        stack, kind, pid = records["stack"], records["kind"], records["pid"]
        few = np.int64(len(Kind))
        origin = by_blocks(len(stack), lambda part: stack[part] * few + kind[part])
        keys = rank_in_place(origin)
        self.origin = origin
        """Position in ``origins`` of the origin of each record."""
        self.origins = [(int(key) // len(Kind), Kind(key % len(Kind))) for key in keys]
        """Stack (position in ``run.stacks``) and kind of each origin."""
        self._nprocs = run.nprocs
        self._groups = _Groups(run)
        step = superstep_numbers(run)
        places, cell = cell_numbers(step, origin, len(keys))
        self._cells = CostCells(places, keys % few != Kind.END)
        slices, slice_of = slice_numbers(origin, len(keys), pid, run.nprocs)
        self._pies = Pies(slices, run.nprocs, len(METRICS))
        for part, costs in cost_blocks(run, step):
            self._cells.add(cell[part], costs)
            self._pies.add(slice_of(part), costs)
        self._spans = Spans(self._cells, cell, records)
        group = np.zeros(int(step.max(initial=-1)) + 1, np.int64)
        group[step] = records["group"]
        self._cell_group = group[self._cells.step]
        self._known: dict[frozenset[int], Cost] = {}

    def work(self, parts: Iterable[frozenset[int]]) -> GraphWork:
        """Return what the costs of parts take, which are given by their origins."""
        cells = np.bincount(self._cells.origin, minlength=len(self.origins))
        summed = sum(int(cells[list(origins)].sum()) for origins in set(parts))
        return GraphWork(len(self._cells.origin), summed, self._groups.levels)

    def cost(self, origins: frozenset[int]) -> Cost:
        """Return the cost of the records of these origins (positions in ``self.origins``)."""
        if origins not in self._known:
            chosen = np.zeros(len(self.origins), bool)
            chosen[list(origins)] = True
            self._known[origins] = self._cost_of(chosen)
        return self._known[origins]

    def _cost_of(self, chosen: NDArray[np.bool_]) -> Cost:
        """Compute the cost of the chosen origins, in seconds and bytes."""
        stats = self._groups.total(*self._group_sums(chosen))
        pies = self._pies.of(chosen)
        summaries = {}
        for row, metric in enumerate(METRICS):
            unit = 1.0 if metric == "h" else 1e9
            top, low, pie = stats[TOP][row], stats[LOW][row], pies[row]
            # The limits matter only where a trace lists a process in two sibling groups.
            mean = np.clip(pie.sum() / self._nprocs, low, top)
            top, mean, low = (float(value / unit) for value in (top, mean, low))
            summaries[metric] = Summary(top, mean, low, tuple((pie / unit).tolist()))
        return Cost(
            count=int(stats[4]), elapsed_s=self._spans.elapsed_ns(chosen) / 1e9, **summaries
        )

    def _group_sums(self, chosen: NDArray[np.bool_]) -> tuple[Ints, Stats]:
        """Return the groups with chosen records, in order, and the sums over their supersteps.

        A process without a chosen record in a superstep counts as 0 there.
        """
        cells = np.flatnonzero(chosen[self._cells.origin])
        stats = self._cells.stats[:, cells]
        begins = starts(self._cells.step[cells])
        stats = merge(stats[TOP], stats[LOW], begins)
        groups = self._cell_group[cells[begins]]
        present = np.add.reduceat(self._cells.records[cells], begins)
        stats[LOW, present < self._groups.size[groups]] = 0
        begins = starts(groups)
        return groups[begins], np.add.reduceat(stats, begins, axis=1)


class _Groups:
    """The tree of groups, with which of them ran at the same time and which in sequence."""

    def __init__(self, run: Run) -> None:
        self._count = len(run.groups)
        self._parent = np.array([group.parent for group in run.groups])
        self.size = np.array([group.size for group in run.groups])
        """Number of processes of each group."""
        ordinal = np.array([group.ordinal for group in run.groups])
        depth = np.zeros(self._count, np.int64)
        for position, group in enumerate(run.groups[1:], start=1):
            depth[position] = depth[group.parent] + 1
        order = np.lexsort((ordinal, self._parent, depth))
        # A partition here is the set of sub-groups that a parent opened with one call.
        self._partition = np.empty(self._count, np.int64)
        self._partition[order] = np.cumsum(changes(self._parent[order], ordinal[order]))
        levels = np.split(order, starts(depth[order])[1:])
        self._levels = levels[:0:-1]
        """The groups of each depth, sorted by partition; deepest first, without the root."""
        self.levels = len(self._levels)

    def total(self, groups: Ints, sums: Stats) -> NDArray[np.float64]:
        """Combine the sums of groups into those of the root with all its sub-groups.

        The sub-groups of one partition run at the same time: the greatest of their maxima
        and the least of their minima count, where the minimum is 0 if a process of the
        parent is in none of the given groups. Partitions, and what their parent does
        itself, run one after another: they are added.
        """
        stats = np.zeros((ROWS, self._count))
        stats[:, groups] = sums
        present = np.zeros(self._count, bool)
        present[groups] = True
        for level in self._levels:
            siblings = level[present[level]]
            if len(siblings) == 0:
                continue
            begins = starts(self._partition[siblings])
            beside = stats[:, siblings]
            beside = merge(beside[TOP], beside[LOW], begins)
            parents = self._parent[siblings[begins]]
            covered = np.add.reduceat(self.size[siblings], begins)
            beside[LOW, covered < self.size[parents]] = 0
            begins = starts(parents)
            stats[:, parents[begins]] += np.add.reduceat(beside, begins, axis=1)
            present[parents] = True
        total: NDArray[np.float64] = stats[:, 0]
        return total
