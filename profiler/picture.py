"""The picture of a run: what each process spent its time for, by time and by superstep.

A row of a picture is a process, or a block of processes with consecutive pids. A column is a range
of time, or of supersteps of the root group with the sub-groups opened in them. What is booked for a
record (:mod:`bsplib.profiler.book`) is laid out in time: what a process did before its arrival
from start to arrival, without the records of sub-groups inside it; its idle time, by cause, from
there to the release; transfers and the like after it, and in its calls; and the time between two
records where it is. How the parts of one such stretch were mixed was not recorded: they are spread
over it evenly. So the parts of a range of time add up to its length, and those of the whole run are
the account.

All windows of a run are taken in once (:meth:`TimePicture.add`) and summed up in bins of equal
length. Columns of two bins or more are made from these; for finer ones the windows are booked
again, from the last tail of paths that the book has kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler import window as window_module
from bsplib.profiler._steps import root_steps_of
from bsplib.profiler.account import PARTS
from bsplib.profiler.book import IS_LOST
from bsplib.profiler.costs import h_relation, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bsplib.profiler._arrays import Floats, Ints
    from bsplib.profiler.account import Account
    from bsplib.profiler.book import Book, BookedWindow
    from bsplib.recording.tables import Columns


LAYERS = (*PARTS, "idle", "loss", "h")
"""What is known of a cell: nanoseconds by part of the account, and idle, summed over the processes
of the row; what all processes lose there of which these are the root; and h in bytes, of the
process of the row that has most."""
_IDLE, _LOSS, _H = range(len(PARTS), len(LAYERS))
_SUMS = slice(0, _H)

MAX_COLUMNS = 4096
"""Greatest number of columns of a picture, more than a screen has."""
_BIN_CELLS, LEAST_BINS, _MOST_BINS = 2**18, 2**12, 2**15
"""About the number of bins times the number of rows, which takes some 30 MB for each axis; the bins
are at least twice as many as a screen has columns."""


@dataclass(frozen=True)
class PictureView:
    """A part of a picture. Arrays of columns have one element a column."""

    edges: Floats
    """Where columns begin, and where the last one ends: positions of supersteps in the run, or
    nanoseconds."""
    layers: Floats
    """Shape ``(columns, len(LAYERS), rows)``."""
    supersteps: Floats
    """How many supersteps a column has; a fraction of one where it is shorter than that."""
    first: Ints
    last: Ints
    """Numbers of the first and the last superstep of the column."""
    longest: Ints
    """Number of the superstep of the column that took longest."""
    ended_at: Columns
    """Stack and kind of the record with the most computation in that superstep."""
    began_ns: Ints
    ended_ns: Ints
    """When the first process began with the first superstep of the column, and when the last
    process ended the last one."""


class TimePicture:
    """The picture of a run; it takes in all windows of its book."""

    def __init__(self, book: Book, *, most_rows: int, most_bins: int = _MOST_BINS) -> None:
        """Prepare the bins; see :func:`picture_of`.

        Args:
            book: the book of a whole run.
            most_rows: greatest number of rows; a row is a block of processes if there are more
                processes.
            most_bins: greatest number of bins; fewer are enough where nobody zooms.
        """
        self.book = book
        self.block = -(-book.run.nprocs // most_rows)
        """Number of processes in a row; the last row may have fewer."""
        self.rows = -(-book.run.nprocs // self.block)
        self.steps = root_steps_of(book.run)
        self.begin_ns, self.end_ns = book.span_ns
        """When the run began and ended, with its start and its end."""
        self._bins: tuple[_TimeSums, _StepSums] | None = None
        if len(book.run.table("records")) > window_module.ROWS:
            # The only window of a shorter run is booked again as fast as bins are looked up.
            count = min(max(_BIN_CELLS // self.rows, LEAST_BINS), most_bins)
            edges = np.linspace(self.begin_ns, self.end_ns, count + 1)
            self._bins = _TimeSums(self, edges), _StepSums(self, 0, self.steps.count, count)
        self._first = np.full(book.run.nprocs, self.end_ns, np.int64)
        self._last = np.full(book.run.nprocs, self.begin_ns, np.int64)

    def add(self, booked: BookedWindow) -> None:
        """Take in the next window."""
        account = booked.account
        records, outermost = account.run.records[account.halo :], account.owner[account.halo :] < 0
        np.minimum.at(self._first, booked.pid[outermost], records["start"][outermost])
        np.maximum.at(self._last, booked.pid[outermost], records["end"][outermost])
        if self._bins is not None:
            _take_in(booked, self._bins)

    def by_superstep(self, low: int, high: int, columns: int) -> PictureView:
        """Return a range of supersteps of the root group.

        Args:
            low: position of the first superstep, from 0; clipped to what there is.
            high: position after the last superstep.
            columns: greatest number of columns; a column is at least one superstep.
        """
        low = min(max(low, 0), self.steps.count)
        high = max(min(high, self.steps.count), low)
        columns = min(max(columns, 1), MAX_COLUMNS, high - low)
        edges = np.round(np.linspace(low, high, columns + 1))
        first, last = edges[:-1].astype(np.int64), edges[1:].astype(np.int64) - 1
        return self._view(edges, edges, first, last, self._layers(edges))

    def by_time(self, low: float, high: float, columns: int) -> PictureView:
        """Return a range of time.

        Args:
            low: nanoseconds on the clock of the records; clipped to the run. Before 0 it starts.
            high: nanoseconds, the end of the range.
            columns: number of columns.
        """
        low = min(max(low, self.begin_ns), self.end_ns)
        high = max(min(high, self.end_ns), low)
        columns = min(max(columns, 1), MAX_COLUMNS) if high > low and self.steps.count else 0
        edges = np.linspace(low, high, columns + 1)
        first, last, places = self.steps.columns(edges)
        return self._view(edges, places, first, last, self._layers(places, edges))

    def waited_for(self, row: int, low_ns: float, high_ns: float) -> list[tuple[int, int, float]]:
        """Return for what the processes of a row were idle between two moments, the most first.

        Returns:
            The position in ``CallGraph.origins``, negative for what is in no superstep of the run;
            the process; and nanoseconds, summed over the processes that were idle.
        """
        found = [np.zeros((3, 0))]
        for booked in self._booked(*self.steps.during(low_ns, high_ns)):
            shares, records = booked.shares, booked.account.run.records[booked.account.halo :]
            arrive, released = (records[name][shares.row] for name in ("arrive", "released"))
            inside = np.minimum(released, high_ns) - np.maximum(arrive, low_ns)
            mine = np.flatnonzero((booked.pid[shares.row] // self.block == row) & (inside > 0))
            _, origin, pid, _ = booked.roots_of(mine)
            ns = shares.ns[mine] * inside[mine] / (released - arrive)[mine]
            found.append(np.stack([origin, pid, ns]))
        origin, pid, ns = np.concatenate(found, axis=1)
        roots, number = np.unique(np.stack([origin, pid]), axis=1, return_inverse=True)
        sums = np.bincount(number.ravel(), ns, roots.shape[1])
        order = np.argsort(-sums, kind="stable")
        return list(zip(*roots[:, order].astype(int).tolist(), sums[order].tolist(), strict=True))

    def _view(
        self, edges: Floats, places: Floats, first: Ints, last: Ints, layers: Floats
    ) -> PictureView:
        """Return columns between edges, which are at some places and have some supersteps."""
        steps, longest = self.steps, self.steps.longest(first, last)
        return PictureView(
            edges,
            layers,
            np.diff(places),
            steps.numbers(first),
            steps.numbers(last),
            steps.numbers(longest),
            steps.ended_at(longest),
            steps.began_ns(first),
            steps.ended_ns(last),
        )

    def _layers(self, places: Floats, edges: Floats | None = None) -> Floats:
        """Return all layers between positions of supersteps, or times between moments."""
        if len(places) < 2:
            return np.zeros((0, len(LAYERS), self.rows))
        if self._grids is not None:
            times, steps = self._grids
            if steps.is_finer(places) if edges is None else times.is_finer(edges):
                layers = steps.between(places)
                if edges is not None:
                    layers[:, _SUMS] = times.between(edges)
                return layers
        return self._booked_again(places, edges)

    @cached_property
    def _grids(self) -> tuple[_Grid, _Grid] | None:
        """All that was taken in, by time and by superstep."""
        if self._bins is None:
            return None
        times, steps = self._bins
        self._bins = None  # they have taken in everything
        self._add_outside(times)
        edges = times.edges
        return _Grid(float(edges[0]), float(edges[1] - edges[0]), times.amounts()), steps.grid()

    def _booked_again(self, places: Floats, edges: Floats | None) -> Floats:
        low, high = int(places[0]), int(-(-places[-1] // 1))
        times = []
        if edges is not None:
            first, end = self.steps.during(edges[0], edges[-1])
            low, high, times = min(low, first), max(high, end), [_TimeSums(self, edges)]
        steps = _StepSums(self, low, high, high - low)
        for booked in self._booked(low, high):
            _take_in(booked, [steps, *times])
        layers = steps.grid().between(places)
        for each in times:
            self._add_outside(each)
            layers[:, _SUMS] = each.amounts()
        return layers

    def _booked(self, low: int, high: int) -> Iterator[BookedWindow]:
        """Yield what is booked for a range of positions of supersteps, and maybe for others."""
        if low < high:
            yield from self.book.by_window(*self.steps.numbers(np.array([low, high - 1])).tolist())

    def _add_outside(self, times: _TimeSums) -> None:
        """Add the time of each process before its first record, and after its last one."""
        nprocs, last = self.book.run.nprocs, np.maximum(self._first, self._last)
        pids, ends = np.arange(nprocs), self.book.outside.astype(np.float64)
        begin, end = (np.full(nprocs, ns, np.int64) for ns in (self.begin_ns, self.end_ns))
        before = np.minimum(ends, self._first - begin)
        times.spread(pids, begin, self._first, {parts.ENDS: before})
        times.spread(pids, last, end, {parts.ENDS: ends - before})


def picture_of(book: Book, *, most_rows: int, most_bins: int = _MOST_BINS) -> TimePicture:
    """Return the picture of a run, of which all windows are booked now; see :class:`TimePicture`.

    Raises:
        TraceError: the records of a process take more time than the run.
    """
    picture = TimePicture(book, most_rows=most_rows, most_bins=most_bins)
    book.hand_out(picture.add)
    return picture


# -- amounts in a grid, summed so that any range of columns takes two look-ups --------------------


class _Grid:
    """Amounts of several layers, by column and row. Columns divide an axis evenly."""

    def __init__(self, low: float, width: float, amounts: Floats) -> None:
        """Sum up amounts of the shape ``(columns, layers, rows)``; at least one column."""
        self._low, self._width = low, width
        self._sums = np.zeros((len(amounts) + 1, *amounts.shape[1:]))
        np.cumsum(amounts, axis=0, out=self._sums[1:])

    def is_finer(self, edges: Floats) -> bool:
        """Tell whether columns between other edges are at least twice as wide, on average."""
        return bool((edges[-1] - edges[0]) / (len(edges) - 1) >= 2 * self._width)

    def between(self, edges: Floats) -> Floats:
        """Return the amounts between each place on the axis and the next one."""
        places = np.clip((edges - self._low) / self._width, 0, len(self._sums) - 1)
        whole = np.minimum(places.astype(np.int64), len(self._sums) - 2)
        part = (places - whole)[:, None, None]
        until = self._sums[whole]
        if part.any():
            until = until + part * (self._sums[whole + 1] - until)
        return np.maximum(np.diff(until, axis=0), 0)


def _take_in(booked: BookedWindow, sums: Iterable[_StepSums | _TimeSums]) -> None:
    """Add a window to some sums."""
    stretches = _stretches(booked)
    for each in sums:
        each.add(booked, stretches)


class _StepSums:
    """All layers of a range of supersteps, in bins of as many supersteps."""

    def __init__(self, picture: TimePicture, low: int, high: int, most: int) -> None:
        nprocs, count = picture.book.run.nprocs, max(high - low, 1)
        self._picture, self._low, self._width = picture, low, -(-count // most)
        self._amounts = np.zeros((-(-count // self._width), len(LAYERS), picture.rows))
        self._carried, self._at = np.zeros(nprocs), -1
        """The h of the last column by process, which the next window may share."""

    def add(self, booked: BookedWindow, stretches: list[_Stretches]) -> None:
        """Take in a window."""
        picture, nprocs = self._picture, self._picture.book.run.nprocs
        column = (picture.steps.positions(booked.account.window) - self._low) // self._width
        seen = np.flatnonzero((column >= 0) & (column < len(self._amounts)))
        if len(seen) == 0:
            return
        first, count = int(column[seen].min()), int(np.ptp(column[seen])) + 1
        place, here = np.full(len(column), -1), slice(first, first + count)
        place[seen] = column[seen] - first
        for row, pid, _, _, amounts in stretches:
            some = slice(None) if len(seen) == len(column) else np.flatnonzero(place[row] >= 0)
            cells = place[row[some]] * picture.rows + pid[some] // picture.block
            for layer, values in amounts.items():
                if values.any():
                    sums = np.bincount(cells, values[some], count * picture.rows)
                    self._amounts[here, layer] += sums.reshape(count, picture.rows)
        h = np.maximum(*h_relation(booked.account.run))[booked.account.halo :][seen]
        cells = place[seen] * nprocs + booked.pid[seen]
        by_process = np.bincount(cells, h, count * nprocs).reshape(count, nprocs)
        if self._at == first:
            by_process[0] += self._carried
        self._carried, self._at = by_process[-1].copy(), first + count - 1
        blocks = np.arange(0, nprocs, picture.block)
        self._amounts[here, _H] = np.maximum.reduceat(by_process, blocks, axis=1)

    def grid(self) -> _Grid:
        """Return the grid, when all windows have been taken in."""
        return _Grid(self._low, self._width, self._amounts)


# -- stretches of time, spread over the columns of a picture --------------------------------------


_Amounts = dict[int, "Floats"]
"""Nanoseconds of some stretches of time, by position in ``LAYERS``; other layers have none. Each
amount is spread evenly over its stretch."""
_Stretches = tuple["Ints", "Ints", "Ints", "Ints", _Amounts]
"""Stretches of time: their records in a window, the processes that the amounts are shown for, begin
and end, and the amounts."""


class _TimeSums:
    """The layers that are times, between edges in nanoseconds."""

    def __init__(self, picture: TimePicture, edges: Floats) -> None:
        self.edges, self._rows, self._block = edges, picture.rows, picture.block
        shape = _H, (len(edges) - 1) * picture.rows
        self._sums, self._rates = np.zeros((2, *shape))
        """By layer and cell: what is in it, and at which rate the columns after it get more."""

    def add(self, _: BookedWindow, stretches: list[_Stretches]) -> None:
        """Take in a window."""
        for _row, pid, begin, end, amounts in stretches:
            self.spread(pid, begin, end, amounts)

    def spread(self, pid: Ints, begin: Ints, end: Ints, amounts: _Amounts) -> None:
        """Add the parts of stretches that lie inside the edges."""
        some = {layer: values for layer, values in amounts.items() if values.any()}
        if not some:
            return
        edges, length = self.edges, end - begin
        begin, end = (np.clip(ns, edges[0], edges[-1]) for ns in (begin, end))
        low, high = (self._columns(ns) for ns in (begin, end))
        seen, is_inside = end > begin, low == high
        inside, across = np.flatnonzero(seen & is_inside), np.flatnonzero(seen & ~is_inside)
        row = pid // self._block
        first, last = (side[across] * self._rows + row[across] for side in (low, high))
        within = low[inside] * self._rows + row[inside]
        part = ((end - begin) / np.maximum(length, 1))[inside]
        left = edges[low[across] + 1] - begin[across]
        beyond = edges[high[across] + 1] - end[across]
        cells, ends = np.concatenate([within, first, last]), np.append(first, last)
        for layer, values in some.items():
            rate = values[across] / length[across]
            amounts_there = np.concatenate([values[inside] * part, rate * left, -rate * beyond])
            _add(self._sums[layer], cells, amounts_there)
            _add(self._rates[layer], ends, np.append(rate, -rate))

    def _columns(self, ns: Ints | Floats) -> Ints:
        """Return in which columns moments are; the end of the last column is in it, too."""
        begin, width = self.edges[0], self.edges[1] - self.edges[0]
        columns: Ints = ((ns - begin) / width).astype(np.int64).clip(max=len(self.edges) - 2)
        return columns

    def amounts(self) -> Floats:
        """Return what was added: shape ``(columns, layers, rows)``."""
        shape = len(self._sums), len(self.edges) - 1, self._rows
        sums, rates = (each.reshape(shape).transpose(1, 0, 2) for each in (self._sums, self._rates))
        widths = np.diff(self.edges)[:, None, None]
        after = np.cumsum(rates, axis=0) - rates
        after[np.abs(after) < 1e-9] = 0  # all that ended leaves a rounding error of its rate
        found: Floats = np.maximum(sums + after * widths, 0)
        return found


def _add(sums: Floats, cells: Ints, amounts: Floats) -> None:
    """Add amounts to cells; those of a window are in few of all cells."""
    if len(cells):
        first, end = int(cells.min()), int(cells.max()) + 1
        sums[first:end] += np.bincount(cells - first, amounts, end - first)


def _ended(account: Account) -> Ints:
    """Return when the process left the superstep before each record; else when that began."""
    fresh = slice(account.halo, None)
    start, before = account.run.records["start"][fresh].astype(np.int64), account.before[fresh]
    is_first = (before < 0) | (account.owner[fresh] >= 0)
    return np.where(is_first, start, account.run.records["end"][before]).astype(np.int64)


def _stretches(booked: BookedWindow) -> list[_Stretches]:
    """Divide what is booked for records by the stretches of their time, by layer.

    These are: since the superstep before, until the arrival, until the release, and until the end.
    What is lost there by waiting, or by moving less than another process, is shown for the root.
    """
    account, own = booked.account, booked.own
    fresh = slice(account.halo, None)
    records = account.run.records[fresh]
    computing, moved = account.computing, account.communication
    blocked, waited = computing.blocked[fresh], computing.waited[fresh]
    nothing = np.zeros(len(waited))
    recording, unknown = (part[fresh] for part in account.between)
    rest = recording + unknown
    gap = records["start"] - _ended(account)
    # The rest of it lies between the records of sub-groups, which are inside of this one.
    in_gap = np.divide(gap, rest, out=np.ones(len(rest)), where=rest > 0)
    pauses = {parts.RECORDING: recording, parts.UNEXPLAINED: unknown}
    sent = {
        parts.TRANSFERS: own[parts.TRANSFERS],
        parts.TRANSFER_IMBALANCE: own[parts.TRANSFER_IMBALANCE],
        parts.LATENCY: own[parts.LATENCY],
        parts.CORE: moved.core[fresh],
        parts.BLOCKED: moved.blocked[fresh],
        parts.UNEXPLAINED: moved.rest[fresh],
    }
    sent = {part: amount for part, amount in sent.items() if amount.any()}
    calls, exchange = records["comm_calls"], records["end"] - records["released"]
    in_calls = calls / np.maximum(calls + exchange, 1)
    before = {part: in_calls * amount for part, amount in sent.items()}
    after = {part: amount - before[part] for part, amount in sent.items()}
    computed = {
        parts.USEFUL: computing.core[fresh],
        parts.CORE: waited,
        parts.BLOCKED: blocked,
        **{part: (1 - in_gap) * amount for part, amount in pauses.items()},
    }
    for part, amount in computed.items():
        before[part] = before.get(part, 0) + amount
    for stage in (before, after):
        stage[_LOSS] = stage.get(parts.BLOCKED, nothing) + stage.get(parts.CORE, nothing)
    waiting = dict(enumerate(booked.idle)) | {_IDLE: records["released"] - records["arrive"]}
    between = {part: in_gap * amount for part, amount in pauses.items()}
    every, pid, shares = np.arange(len(records)), booked.pid, booked.shares
    start, arrive, released, end = (
        records[name].astype(np.int64) for name in ("start", "arrive", "released", "end")
    )
    _, _, root, cause = booked.roots_of(slice(None))
    lost = np.flatnonzero(IS_LOST[cause])
    row, ns = shares.row[lost], shares.ns[lost].astype(np.float64)
    found = [
        (every, pid, _ended(account), start, between),
        _without_inner(account, (every, pid, start, arrive, before)),
        (every, pid, arrive, released, waiting),
        (every, pid, released, end, after),
        (row, root[lost], arrive[row], released[row], {_LOSS: ns}),
    ]
    uneven, leader = booked.uneven
    for stage, begin, until in ((before, start, arrive), (after, released, end)):
        if parts.TRANSFER_IMBALANCE in stage:
            loss = {_LOSS: stage[parts.TRANSFER_IMBALANCE][uneven]}
            found.append((uneven, pid[leader], begin[uneven], until[uneven], loss))
    return found


def _without_inner(account: Account, stretches: _Stretches) -> _Stretches:
    """Replace stretches that records of sub-groups interrupt by their uninterrupted parts."""
    row, pid, first, last, amounts = stretches
    owner = account.owner - account.halo
    if owner.max(initial=-1) < 0:
        return stretches
    place, begin, end, share = uninterrupted(account.run.records, owner, first, last)
    parts = {layer: values[place] * share for layer, values in amounts.items()}
    return row[place], pid[place], begin, end, parts
