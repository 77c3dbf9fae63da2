"""The records of a run, summed up in cells: a cell is what one superstep has of one origin.

Most supersteps end at the same place on all processes, so that there are far fewer cells
than records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from profiler._numbering import Ints, blocks, ranked
from profiler._segments import LOW, ROWS, TOP, Stats


class Cells:
    """Costs of cells, in the order of supersteps, and of origins within one superstep."""

    def __init__(self, step: Ints, origin: Ints, ended: NDArray[np.bool_]) -> None:
        """Find the cells.

        Args:
            step: for each record the number of its superstep, without gaps.
            origin: for each record the number of its origin.
            ended: for each origin whether it ends a superstep, and not only ``main``.
        """
        keys, self.of_record = _numbered(step, origin, len(ended))
        self.step, self.origin = np.divmod(keys, max(len(ended), 1))
        self.records: Ints = np.bincount(self.of_record, minlength=len(keys))
        """Number of records of each cell."""
        self.stats: Stats = np.empty((ROWS, len(keys)))
        self.stats[TOP], self.stats[LOW] = -np.inf, np.inf
        self.stats[TOP][-1] = ended[self.origin]

    def add(self, part: slice, costs: NDArray[np.float64]) -> None:
        """Take in the costs of some records.

        Args:
            part: positions of the records.
            costs: one row for each metric.
        """
        cell = self.of_record[part]
        for row, values in enumerate(costs):
            np.maximum.at(self.stats[TOP][row], cell, values)
            np.minimum.at(self.stats[LOW][row], cell, values)


def _numbered(step: Ints, origin: Ints, origins: int) -> tuple[Ints, Ints]:
    """Number the combinations of superstep and origin in rising order.

    Returns:
        The key of each combination, ``step * origins + origin``; the number of each record.
    """
    usual = np.zeros(int(step.max(initial=-1)) + 1, np.int64)
    usual[step] = origin
    other = np.flatnonzero(usual[step] != origin)
    others, number = ranked(step[other] * origins + origin[other])
    keys = np.append(np.arange(len(usual)) * origins + usual, others)
    order = np.argsort(keys, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    numbers = place[step]
    numbers[other] = place[len(usual) + number]
    return keys[order], numbers


class Pies:
    """Costs of slices: a slice is what one process has of one origin."""

    def __init__(self, origin: Ints, pid: NDArray[np.int32], nprocs: int, metrics: int) -> None:
        """Find the slices.

        Args:
            origin: for each record the number of its origin.
            pid: for each record its process.
            nprocs: number of processes.
            metrics: number of metrics.
        """
        keys, self._of_record = ranked(origin * nprocs + pid)
        self._origin, self._pid = np.divmod(keys, nprocs)
        self._sums = np.zeros((metrics, len(keys)))
        self._nprocs = nprocs

    def add(self, part: slice, costs: NDArray[np.float64]) -> None:
        """Take in the costs of some records, as :meth:`Cells.add` does."""
        for sums, values in zip(self._sums, costs, strict=True):
            np.add.at(sums, self._of_record[part], values)

    def of(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the sum of each metric for each process, over the chosen origins."""
        slices = np.flatnonzero(chosen[self._origin])
        pids = self._pid[slices]
        return np.stack([np.bincount(pids, sums[slices], self._nprocs) for sums in self._sums])


class Spans:
    """The times in which at least one process was in a superstep of an origin."""

    def __init__(self, cells: Cells, records: NDArray[np.void]) -> None:
        """Unite the times of the records of each origin."""
        self._origin, self._start, self._end = _united(*_of_cells(cells, records))

    def elapsed_ns(self, chosen: NDArray[np.bool_]) -> int:
        """Return the length of the union of the times of the chosen origins."""
        rows = np.flatnonzero(chosen[self._origin])
        if len(rows) == 0:
            return 0
        begins, latest = self._start[rows], np.maximum.accumulate(self._end[rows])
        gaps = np.maximum(begins[1:] - latest[:-1], 0)
        return int(latest[-1] - begins[0] - gaps.sum())


def _of_cells(cells: Cells, records: NDArray[np.void]) -> tuple[Ints, Ints, Ints]:
    """Return origin, start and end of times that together are those of the records.

    The times of a cell are one if all of them contain the same moment, as those of a global
    sync do; otherwise the time of each record is kept.
    """
    most = np.iinfo(np.int64).max
    first, common = np.full((2, len(cells.origin)), most)
    last, latest = np.zeros((2, len(cells.origin)), np.int64)
    for part in blocks(len(records)):
        cell, start, end = cells.of_record[part], records["start"][part], records["end"][part]
        start, end = np.ascontiguousarray(start), np.ascontiguousarray(end)
        np.minimum.at(first, cell, start)
        np.maximum.at(latest, cell, start)
        np.maximum.at(last, cell, end)
        np.minimum.at(common, cell, end)
    whole = latest <= common
    rows = np.flatnonzero(~whole[cells.of_record])
    return (
        np.append(cells.origin[whole], cells.origin[cells.of_record[rows]]),
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
