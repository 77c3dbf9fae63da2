"""What each process did in each superstep of the root group, in bins for a heat map.

A run may have millions of supersteps and thousands of processes; a picture has about a
thousand columns and a few hundred rows. Everything is summed up once for each run, after
which any window of supersteps or of time is answered from sums.

A column is a range of supersteps of the root group, with the sub-groups opened in them, or
a range of time. A row is a process, or a block of processes with consecutive pids.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bsplib.profiler._phases import Course
from bsplib.profiler._steps import ColumnSteps, RootSteps, TimeColumns, excess
from bsplib.profiler.costs import record_costs, spent_ns, superstep_numbers
from bsplib.profiler.survey import span_of
from bsplib.profiler.window import hand_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run
    from bsplib.recording.tables import Columns

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


TIMES = ("comp", "comm", "idle", "waiting")
"""Computation, communication, idle time, and waiting for a core: summed over the processes
of a row, in nanoseconds."""

GREATEST = ("over", "h", "over_h")
"""Computation above the mean of the processes of its superstep, in nanoseconds, where time in
sub-groups counts as computation of the superstep that opened them; h, and h above the mean,
in bytes: of the process of the row that has most."""

LAYERS = TIMES + GREATEST

MAX_ROWS = 256
MAX_COLUMNS = 4096
"""Greatest numbers of rows and columns of a window."""

_SUMMED_CELLS = 2**18
"""Cells that are summed up once. Where a picture needs finer ones, the records in its
window are summed up again."""

_KEPT_RECORDS = 2**20
"""Greatest number of records of a run that are kept in the form in which any range of time is
found. In a longer run, the records of the range are read again."""

_PROCESS_CELLS = 2**24
"""Cells of single processes from which the greatest of each row is chosen."""


@dataclass(frozen=True)
class Window:
    """A part of a heat map. Arrays of columns have one element a column."""

    edges: Floats
    """Where columns begin, and where the last one ends: positions of supersteps in the
    run, or nanoseconds."""
    layers: Floats
    """Shape ``(columns, len(LAYERS), rows)``."""
    supersteps: Floats
    """How many supersteps a column has; a fraction of one where it is shorter than that."""
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    """Numbers of the first and the last superstep of the column."""
    longest: NDArray[np.int64]
    """Number of the superstep of the column that took longest."""
    ended_at: Columns
    """Stack, kind and pid of the record for which the others of that superstep waited: the last."""
    began_ns: NDArray[np.int64]
    ended_ns: NDArray[np.int64]
    """When the first process began with the first superstep of the column, and when the
    last process ended the last one."""


class Heatmap:
    """The processes and supersteps of one run. Each axis is summed up when it is first used."""

    def __init__(self, run: Run, *, most_rows: int = MAX_ROWS) -> None:
        """Number the supersteps and measure their times; most of the work comes later.

        Args:
            run: the run.
            most_rows: greatest number of rows; a row is a block of processes if there
                are more processes.
        """
        self.run = run
        self.block = -(-run.nprocs // most_rows)
        """Number of processes in a row; the last row may have fewer."""
        self.rows = -(-run.nprocs // self.block)
        self.steps = RootSteps(run)
        self.begin_ns, self.end_ns = span_of(run)
        """When the run began and ended, with its start and its end."""
        self._columns: Sequence[ColumnSteps] = ()
        """Columns of pictures of all of it, with their supersteps."""
        self._drawn: tuple[Floats, Floats] | None = None
        """The edges of a picture by time, and what was spent between them."""

    def by_superstep(self, low: int, high: int, columns: int) -> Window:
        """Return a range of supersteps of the root group.

        Args:
            low: position of the first superstep, from 0; clipped to what there is.
            high: position after the last superstep.
            columns: greatest number of columns; a column is at least one superstep.
        """
        low, high = _clipped(low, high, 0, self.steps.count)
        edges = _positions(low, high, columns)
        return self._window(self._with_steps(ColumnSteps(edges), low, high), edges)

    def by_time(self, low: float, high: float, columns: int) -> Window:
        """Return a range of time.

        Args:
            low: nanoseconds on the clock of the records; clipped to the run. Before 0 it starts.
            high: nanoseconds, the end of the range.
            columns: number of columns.
        """
        edges = self._edges(low, high, columns)
        during = self.steps.during(edges[0], edges[-1])
        steps = self._with_steps(TimeColumns(edges, self.steps), *during)
        window = self._window(steps, steps.places())
        window.layers[:, : len(TIMES)] = self._course(steps)
        return window

    def _edges(self, low: float, high: float, columns: int) -> Floats:
        """Return the edges of the columns of a range of time, clipped to the run."""
        low, high = _clipped(low, high, self.begin_ns, self.end_ns)
        columns = min(max(columns, 1), MAX_COLUMNS) if high > low and self.steps.count else 0
        return np.linspace(low, high, columns + 1)

    def _with_steps(self, columns: _Columns, low: int, high: int) -> _Columns:
        """Return columns with their supersteps, which are in a range of positions."""
        for known in self._columns:
            if columns.is_like(known):
                return cast("_Columns", known)
        for rows in self.steps.rows(low, high):
            columns.add(rows)
        return columns

    def _window(self, columns: ColumnSteps, places: Floats) -> Window:
        """Return columns between positions, with what the processes did in the supersteps."""
        numbers = self.steps.numbers
        return Window(
            columns.edges,
            self._amounts(places),
            np.diff(places),
            numbers(columns.first),
            numbers(columns.last),
            numbers(columns.longest),
            columns.ended_at,
            columns.began_ns,
            columns.ended_ns,
        )

    def _amounts(self, edges: Floats) -> Floats:
        """Return the layers between positions of supersteps, fractions included."""
        low, high = int(edges[0]), int(-(-edges[-1] // 1))
        grid = self._grid
        if grid.width > 1 and high - low < (len(edges) - 1) * grid.width:
            grid = self._summed(low, high)
        return grid.between(edges)

    @cached_property
    def _grid(self) -> Grid:
        """All supersteps, as finely as memory allows."""
        return self._summed(0, self.steps.count)

    def whole(self, columns: int) -> WholeHeatmap:
        """Return what takes in the windows of the run for pictures of all of it.

        Args:
            columns: number of columns of its picture by time.
        """
        by_time = self._edges(self.begin_ns, self.end_ns, columns)
        by_superstep = _positions(0, self.steps.count, columns)
        return WholeHeatmap(self, by_superstep, by_time)

    def _course(self, columns: ColumnSteps) -> Floats:
        """Return what the processes did in columns of time."""
        edges = columns.edges
        if self._drawn is not None and np.array_equal(self._drawn[0], edges):
            return self._drawn[1]
        spent = np.zeros((max(len(edges) - 1, 0), len(TIMES), self.rows))
        if len(spent):
            low, high = int(columns.first[0]), int(columns.last[-1])
            for course in self._courses(low, high):
                spent += course.between(edges)
        return spent

    def _courses(self, low: int, high: int) -> Iterable[Course]:
        """Return the courses of windows that have supersteps of a range."""
        if self.is_long:
            return (Course(each, self.block) for each in self.steps.windows(low, high + 1))
        return (course for first, last, course in self._kept if first <= high and low <= last)

    @cached_property
    def _kept(self) -> list[tuple[int, int, Course]]:
        """The first and the last superstep, and the course, of all windows of a short run."""
        courses = _Courses(self)
        hand_out(self.run, [courses])
        return courses.kept

    def take_over(
        self, grid: Grid, courses: _Courses | _CourseSums, columns: Sequence[ColumnSteps]
    ) -> None:
        """Draw from these sums of the whole run from now on."""
        self._grid, self._columns = grid, columns
        if isinstance(courses, _Courses):
            self._kept = courses.kept
        else:
            self._drawn = courses.edges, courses.spent

    @property
    def is_long(self) -> bool:
        """Whether its records are read again for a range of time."""
        return len(self.run.table("records")) > _KEPT_RECORDS

    def _summed(self, low: int, high: int) -> Grid:
        """Sum up the records of a range of supersteps."""
        sums = _GridSums(self, low, high)
        for window in self.steps.windows(low, high):
            sums.add(window)
        return sums.grid()


class _GridSums:
    """Takes in the windows of a range of supersteps for a grid."""

    def __init__(self, heatmap: Heatmap, low: int, high: int) -> None:
        count, nprocs = max(high - low, 1), heatmap.run.nprocs
        rows = heatmap.rows
        self._width = max(-(-count * rows // _SUMMED_CELLS), -(-count * nprocs // _PROCESS_CELLS))
        self._heatmap, self._low = heatmap, low
        self._amounts = np.zeros((-(-count // self._width), len(LAYERS), rows))
        self._carried, self._at = np.zeros((len(LAYERS), nprocs)), -1
        """The last column, which the next window may share."""

    def add(self, window: RunWindow) -> None:
        """Take in a window."""
        nprocs = self._heatmap.run.nprocs
        column = (self._heatmap.steps.positions(window) - self._low) // self._width
        first = int(column.min())
        columns = int(column.max()) - first + 1
        cells = (column - first) * nprocs + window.run.records["pid"][window.fresh]
        layers = [np.bincount(cells, cost, columns * nprocs) for cost in _costs(window)]
        by_process = np.array(layers, np.float64).reshape(len(LAYERS), columns, nprocs)
        if self._at == first:
            by_process[:, 0] += self._carried
        for layer, of_layer in enumerate(by_process):
            by_row = _by_row(of_layer, layer, self._heatmap.block)
            self._amounts[first : first + columns, layer] = by_row
        self._carried, self._at = by_process[:, -1].copy(), first + columns - 1

    def grid(self) -> Grid:
        """Return the grid, when all windows have been taken in."""
        return Grid(self._low, self._width, self._amounts)


def _by_row(by_process: NDArray[Any], layer: int, block: int) -> Floats:
    """Join the processes of each row in a layer of the shape ``(columns, processes)``."""
    if block == 1:
        return by_process
    joined = np.maximum if LAYERS[layer] in GREATEST else np.add
    rows: Floats = joined.reduceat(by_process, np.arange(0, by_process.shape[1], block), 1)
    return rows


class _Courses:
    """Takes in the windows of a short run, and keeps their courses."""

    def __init__(self, heatmap: Heatmap) -> None:
        self._heatmap = heatmap
        self.kept: list[tuple[int, int, Course]] = []
        """First and last superstep of each course, and the course."""

    def add(self, window: RunWindow) -> None:
        """Take in a window."""
        position = self._heatmap.steps.positions(window)
        course = Course(window, self._heatmap.block)
        self.kept.append((int(position.min()), int(position.max()), course))


class _CourseSums:
    """Takes in the windows of a long run for a picture by time."""

    def __init__(self, heatmap: Heatmap, edges: Floats) -> None:
        self._block, self.edges = heatmap.block, edges
        self.spent = np.zeros((max(len(edges) - 1, 0), len(TIMES), heatmap.rows))

    def add(self, window: RunWindow) -> None:
        """Take in a window."""
        self.spent += Course(window, self._block).between(self.edges)


class WholeHeatmap:
    """Takes in the windows of a run, after which a heat map draws all of it without reading."""

    def __init__(self, heatmap: Heatmap, by_superstep: Floats, by_time: Floats) -> None:
        self._heatmap, steps = heatmap, heatmap.steps
        self._grid = _GridSums(heatmap, 0, steps.count)
        self._courses = _CourseSums(heatmap, by_time) if heatmap.is_long else _Courses(heatmap)
        self._columns: list[ColumnSteps] = []
        if not steps.are_kept:
            self._columns = [ColumnSteps(by_superstep), TimeColumns(by_time, steps)]

    def add(self, window: RunWindow) -> None:
        """Take in a window."""
        self._grid.add(window)
        self._courses.add(window)
        if self._columns:
            rows = self._heatmap.steps.rows_of(window)
            for columns in self._columns:
                columns.add(rows)

    def keep(self) -> None:
        """Give the sums to the heat map, when all windows have been taken in."""
        self._heatmap.take_over(self._grid.grid(), self._courses, self._columns)


def _costs(window: RunWindow) -> list[Floats]:
    """Return the layers of each record of a window, without its halo."""
    run = window.run
    numbers = superstep_numbers(run)
    comp, comm, idle, h = record_costs(run, numbers)
    work = comp + run.records["sub"]
    over, over_h = (excess(run, cost) for cost in (work, h))
    every = comp, comm, idle, spent_ns(run) - comp, over, h, over_h
    return [cost[window.fresh] for cost in every]


_Number = TypeVar("_Number", int, float)
_Columns = TypeVar("_Columns", bound=ColumnSteps)


def _positions(low: int, high: int, columns: int) -> Floats:
    """Return the edges of columns of supersteps."""
    columns = min(max(columns, 1), MAX_COLUMNS, high - low)
    return np.round(np.linspace(low, high, columns + 1))


def _clipped(low: _Number, high: _Number, begin: _Number, end: _Number) -> tuple[_Number, _Number]:
    """Return a range inside another one; of a falling range its first point."""
    low = min(max(low, begin), end)
    return low, max(min(high, end), low)


# -- amounts in a grid, summed so that any range of columns takes two look-ups --------------------


class Grid:
    """Amounts of several layers, by column and row. Columns divide an axis evenly."""

    def __init__(self, low: float, width: float, amounts: Floats) -> None:
        """Sum up amounts.

        Args:
            low: where the first column begins on the axis.
            width: width of a column, in the unit of the axis.
            amounts: shape ``(columns, layers, rows)``, at least one column.
        """
        self.low = low
        self.width = width
        self._columns = len(amounts)
        self._sums = np.zeros((self._columns + 1, *amounts.shape[1:]))
        np.cumsum(amounts, axis=0, out=self._sums[1:])

    def is_finer(self, edges: Floats, times: int) -> bool:
        """Tell whether columns between other edges are at least ``times`` as wide, on average."""
        return bool((edges[-1] - edges[0]) / (len(edges) - 1) >= times * self.width)

    def between(self, edges: Floats) -> Floats:
        """Return the amounts between each edge and the next one.

        Args:
            edges: places on the axis, rising. Inside a column its amount is spread evenly.

        Returns:
            Shape ``(len(edges) - 1, layers, rows)``.
        """
        places = np.clip((edges - self.low) / self.width, 0, self._columns)
        whole = np.minimum(places.astype(np.int64), self._columns - 1)
        part = (places - whole)[:, None, None]
        until = self._sums[whole]
        if part.any():
            until = until + part * (self._sums[whole + 1] - until)
        return np.maximum(np.diff(until, axis=0), 0)
