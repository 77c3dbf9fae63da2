"""The records of a run, arranged so that the cost of any part of them takes one pass.

A part is a set of *origins*. An origin is a call stack together with the kind of sync at its
end. Each node, edge and path of the call graph is such a set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bsplib.recording.records import Run
from bsplib.sync_kinds import Kind
from profiler.costs import METRICS, record_costs, superstep_numbers
from profiler.summary import Cost, Summary

Stats = NDArray[np.float64]
"""Costs of cells, supersteps or groups: one column for each of them, and these rows."""

TOP = slice(0, 5)
"""Rows of the greatest value of each metric, and of the number of supersteps."""
LOW = slice(5, 9)
"""Rows of the least value of each metric."""
_ROWS = 9


class Sums:
    """Costs of the parts of one run."""

    def __init__(self, run: Run) -> None:
        records = run.records
        pairs = records["stack"].astype(np.int64) * len(Kind) + records["kind"]
        keys, origin = np.unique(pairs, return_inverse=True)
        self.origin = origin
        """Position in ``origins`` of the origin of each record."""
        self.origins = [(int(key) // len(Kind), Kind(key % len(Kind))) for key in keys]
        """Stack (position in ``run.stacks``) and kind of each origin."""
        self._nprocs = run.nprocs
        self._groups = _Groups(run)
        self.levels = self._groups.levels
        """Greatest number of sub-groups that are nested in one another."""
        step = superstep_numbers(run)
        costs = record_costs(run, step)
        self._sum_cells(run, step, origin, costs)
        self._sum_pies(run, origin, costs)
        by_start = np.argsort(records["start"])
        self._spans = origin[by_start], records["start"][by_start], records["end"][by_start]
        self._known: dict[frozenset[int], Cost] = {}

    def _sum_cells(
        self, run: Run, step: NDArray[np.int64], origin: NDArray[np.intp], costs: Stats
    ) -> None:
        """Sum the records into cells: a cell is what one superstep has of one origin."""
        order = np.lexsort((origin, step))
        step, origin, costs = step[order], origin[order], costs[:, order]
        starts = _starts(step, origin)
        counts = run.records["kind"][order] != Kind.END
        self._cells = _merge(np.vstack([costs, counts]), costs, starts)
        self._cell_records = np.diff(starts, append=len(step))
        self._cell_origin = origin[starts]
        self._cell_step = step[starts]
        self._cell_group = run.records["group"][order][starts]

    def _sum_pies(self, run: Run, origin: NDArray[np.intp], costs: Stats) -> None:
        """Sum the records into slices of pies: a slice is what one process has of one origin."""
        keys, slices = np.unique(origin * run.nprocs + run.records["pid"], return_inverse=True)
        self._slice_origin, self._slice_pid = np.divmod(keys, run.nprocs)
        self._slices = np.stack([np.bincount(slices, cost, len(keys)) for cost in costs])

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
        pies = self._pies(chosen)
        summaries = {}
        for row, metric in enumerate(METRICS):
            unit = 1.0 if metric == "h" else 1e9
            top, low, pie = stats[TOP][row], stats[LOW][row], pies[row]
            # The limits matter only where a trace lists a process in two sibling groups.
            mean = np.clip(pie.sum() / self._nprocs, low, top)
            top, mean, low = (float(value / unit) for value in (top, mean, low))
            summaries[metric] = Summary(top, mean, low, tuple((pie / unit).tolist()))
        return Cost(count=int(stats[4]), elapsed_s=self._elapsed_ns(chosen) / 1e9, **summaries)

    def _group_sums(self, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int32], Stats]:
        """Return the groups with chosen records, in order, and the sums over their supersteps.

        A process without a chosen record in a superstep counts as 0 there.
        """
        cells = np.flatnonzero(chosen[self._cell_origin])
        stats = self._cells[:, cells]
        starts = _starts(self._cell_step[cells])
        stats = _merge(stats[TOP], stats[LOW], starts)
        groups = self._cell_group[cells[starts]]
        present = np.add.reduceat(self._cell_records[cells], starts)
        stats[LOW, present < self._groups.size[groups]] = 0
        starts = _starts(groups)
        return groups[starts], np.add.reduceat(stats, starts, axis=1)

    def _pies(self, chosen: NDArray[np.bool_]) -> Stats:
        """Return the sum of each metric for each process, in nanoseconds and bytes."""
        slices = np.flatnonzero(chosen[self._slice_origin])
        pids = self._slice_pid[slices]
        return np.stack([np.bincount(pids, cost[slices], self._nprocs) for cost in self._slices])

    def _elapsed_ns(self, chosen: NDArray[np.bool_]) -> int:
        """Return the length of the union of the intervals from start to end."""
        origin, start, end = self._spans
        rows = np.flatnonzero(chosen[origin])
        if len(rows) == 0:
            return 0
        begins, latest = start[rows], np.maximum.accumulate(end[rows])
        gaps = np.maximum(begins[1:] - latest[:-1], 0)
        return int(latest[-1] - begins[0] - gaps.sum())


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
        self._partition[order] = np.cumsum(_changes(self._parent[order], ordinal[order]))
        levels = np.split(order, _starts(depth[order])[1:])
        self._levels = levels[:0:-1]
        """The groups of each depth, sorted by partition; deepest first, without the root."""
        self.levels = len(self._levels)

    def total(self, groups: NDArray[np.int32], sums: Stats) -> NDArray[np.float64]:
        """Combine the sums of groups into those of the root with all its sub-groups.

        The sub-groups of one partition run at the same time: the greatest of their maxima
        and the least of their minima count, where the minimum is 0 if a process of the
        parent is in none of the given groups. Partitions, and what their parent does
        itself, run one after another: they are added.
        """
        stats = np.zeros((_ROWS, self._count))
        stats[:, groups] = sums
        present = np.zeros(self._count, bool)
        present[groups] = True
        for level in self._levels:
            siblings = level[present[level]]
            if len(siblings) == 0:
                continue
            starts = _starts(self._partition[siblings])
            beside = stats[:, siblings]
            beside = _merge(beside[TOP], beside[LOW], starts)
            parents = self._parent[siblings[starts]]
            covered = np.add.reduceat(self.size[siblings], starts)
            beside[LOW, covered < self.size[parents]] = 0
            starts = _starts(parents)
            stats[:, parents[starts]] += np.add.reduceat(beside, starts, axis=1)
            present[parents] = True
        total: NDArray[np.float64] = stats[:, 0]
        return total


def _merge(top: Stats, low: Stats, starts: NDArray[np.intp]) -> Stats:
    """Return the greatest and the least of each range of columns that begins at ``starts``."""
    merged = np.maximum.reduceat(top, starts, axis=1), np.minimum.reduceat(low, starts, axis=1)
    return np.vstack(merged)


def _changes(*keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Mark, in sorted keys, where the combination differs from the one before."""
    changes = np.ones(len(keys[0]), bool)
    changes[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return changes


def _starts(*keys: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the positions, in sorted keys, where a new combination begins."""
    return np.flatnonzero(_changes(*keys))
