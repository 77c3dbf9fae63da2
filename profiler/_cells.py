"""The records of a run, summed up in cells: a cell is what one superstep has of one origin.

Most supersteps end at the same place on all processes, so that there are far fewer cells
than records.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bsplib.profiler._numbering import Ints, blocks, by_blocks, is_small, rank_in_place, ranked
from bsplib.profiler._segments import LOW, ROWS, TOP, Stats

_SUMS_OF_SLICE = 16
"""Size of the sums of a slice, with what is computed from them, in numbers of 8 bytes."""


class Cells:
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

    def __init__(self, cells: Cells, cell: Ints, records: NDArray[np.void]) -> None:
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


def _of_cells(cells: Cells, cell: Ints, records: NDArray[np.void]) -> tuple[Ints, Ints, Ints]:
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
