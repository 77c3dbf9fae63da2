"""The records of a run, arranged so that the cost of any part of them takes one pass.

A part is a set of *origins*. An origin is a call stack together with the kind of sync at its
end. Each node, edge and path of the call graph is such a set.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bsplib.profiler._cells import Cells, Pies, Spans, cell_numbers, slice_numbers
from bsplib.profiler._numbering import Ints, by_blocks, rank_in_place
from bsplib.profiler._segments import LOW, ROWS, TOP, Stats, changes, merge, starts
from bsplib.profiler.costs import METRICS, cost_blocks, superstep_numbers
from bsplib.profiler.limits import Work
from bsplib.profiler.summary import Cost, Summary
from bsplib.recording.records import Run
from bsplib.sync_kinds import Kind


class Sums:
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
        self._cells = Cells(places, keys % few != Kind.END)
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

    def work(self, parts: Iterable[frozenset[int]]) -> Work:
        """Return what the costs of parts take, which are given by their origins."""
        cells = np.bincount(self._cells.origin, minlength=len(self.origins))
        summed = sum(int(cells[list(origins)].sum()) for origins in set(parts))
        return Work(len(self._cells.origin), summed, self._groups.levels)

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
