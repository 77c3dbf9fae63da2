"""What each process spent its time for at each moment, by the parts of the account.

The account (:mod:`bsplib.profiler.account`) says what a record was used for. Here it is laid out
in time: what a process did before its arrival from start to arrival, without the records of
sub-groups inside it; what it waited for from there to the release; transfers and the like after
it, and in its calls; and the time between two records where it is. How the parts of one such
stretch were mixed was not recorded: they are spread over it evenly. So the parts of a range of
time add up to its length, and those of the whole run are the account.

A run is booked window by window (:mod:`bsplib.profiler.window`). A long one is summed up once, in
bins of equal length. Where a picture needs finer ones, its supersteps are booked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.errors import TraceError
from bsplib.profiler import account as parts
from bsplib.profiler.account import Account
from bsplib.profiler.heatmap import Grid
from bsplib.profiler.survey import span_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler._steps import RootSteps
    from bsplib.profiler.account import BookedRows, Ints
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]

_MOST_EXACT = 2**17
"""A run of more records is summed up in bins."""
_BIN_CELLS = 2**18
"""About the number of bins times the number of rows."""
_LEAST_BINS = 2**12
_MOST_BINS = 2**15
_BINS_PER_COLUMN = 2
"""The records of a column that is narrower are booked again."""

_TRANSFERS = (
    parts.TRANSFERS,
    parts.TRANSFER_IMBALANCE,
    parts.LATENCY,
    parts.CORE,
    parts.BLOCKED,
    parts.UNEXPLAINED,
)
"""The parts of communication, in the order of ``_Own.communication``."""


class Stretches(NamedTuple):
    """Stretches of time, over each of which some amounts are spread evenly."""

    pid: Ints
    begin: Ints
    end: Ints
    amounts: dict[int, Floats]
    """Nanoseconds by position of the part in ``PARTS``; parts that are not named have none."""


class Spending:
    """What the rows of a picture spent their time for. A row is a process, or a block of them."""

    def __init__(
        self,
        run: Run,
        rates: Rates,
        steps: RootSteps,
        block: int = 1,
        *,
        booked: SpendingSums | None = None,
    ) -> None:
        """Book a run; a long one is summed up in bins.

        Args:
            run: the run.
            rates: what bytes and supersteps cost.
            steps: the supersteps of the root group.
            block: number of processes of a row with consecutive pids.
            booked: has taken in the accounts of all windows of the run; default: they are booked
                now.

        Raises:
            TraceError: the records of a process take more time than the run.
        """
        self._run, self._rates, self._steps, self._block = run, rates, steps, block
        self.rows = -(-run.nprocs // block)
        self.begin_ns, self.end_ns = span_of(run)
        if booked is None:
            booked = SpendingSums(run, steps, block)
            for window in steps.windows(0, steps.count):
                booked.add(Account(window.run, rates, window.halo, window.position), window)
        self._kept, self._times, self._supersteps = booked.kept, None, None
        self._is_long = booked.is_long
        self._around = list(booked.outside.stretches())
        if booked.is_long:
            self._times, self._supersteps = booked.bins(self._around)

    def by_time(self, edges: Floats) -> Floats:
        """Return what was spent between each moment and the next one.

        Args:
            edges: moments in nanoseconds, rising.

        Returns:
            Nanoseconds, summed over the processes of a row: shape ``(columns, parts, rows)``.
        """
        if len(edges) < 2:
            return np.zeros((0, len(parts.PARTS), self.rows))
        if self._times is not None and self._times.is_finer(edges, _BINS_PER_COLUMN):
            return self._times.between(edges)
        spread = _Spread(edges, self.rows, self._block)
        for stretches in self._around:
            spread.add(stretches)
        for booked in self._booked(*self._steps.during(edges[0], edges[-1])):
            for stretches in booked.stretches():
                spread.add(stretches)
        return spread.amounts

    def by_superstep(self, edges: Floats) -> Floats:
        """Return what was spent in ranges of supersteps of the root group.

        Args:
            edges: positions of supersteps, whole numbers, rising.

        Returns:
            As :meth:`by_time`; the time before the first and after the last superstep is left out.
        """
        columns = len(edges) - 1
        if columns < 1:
            return np.zeros((0, len(parts.PARTS), self.rows))
        if self._supersteps is not None and self._supersteps.is_finer(edges, _BINS_PER_COLUMN):
            return self._supersteps.between(edges)
        low, high = int(edges[0]), int(edges[-1])
        sums = _CellSums(columns, self.rows)
        for booked in self._booked(low, high):
            seen = np.flatnonzero((low <= booked.position) & (booked.position < high))
            column = np.searchsorted(edges, booked.position[seen], side="right") - 1
            row = booked.pid[seen] // self._block
            sums.add(column, row, booked.parts[:, seen])
        return sums.amounts

    def _booked(self, low: int, high: int) -> Iterator[_BookedRecords]:
        """Yield the records of a range of supersteps, by position, and maybe of others.

        Of a long run they are booked again.
        """
        return self._booked_again(low, high) if self._is_long else iter(self._kept)

    def _booked_again(self, low: int, high: int) -> Iterator[_BookedRecords]:
        for window in self._steps.windows(low, high):
            account = Account(window.run, self._rates, window.halo, window.position)
            yield _booked(account, self._steps.positions(window))


class SpendingSums:
    """Takes in the accounts of the windows of a run for :class:`Spending`.

    A short run is kept, a long one is summed up in bins of equal length, and in bins of as many
    supersteps.
    """

    def __init__(self, run: Run, steps: RootSteps, block: int) -> None:
        self.is_long = len(run.table("records")) > _MOST_EXACT
        self.outside = _Outside(run)
        self.kept: list[_BookedRecords] = []
        """All records of a short run."""
        self._steps, self._block = steps, block
        rows = -(-run.nprocs // block)
        count = min(max(_BIN_CELLS // rows, _LEAST_BINS), _MOST_BINS)
        self._edges = np.linspace(*span_of(run), count + 1)
        self._many = max(-(-steps.count // count), 1)
        self._columns = -(-steps.count // self._many)
        self._spread = _Spread(self._edges, rows, block)
        self._sums = _CellSums(self._columns, rows)

    def add(self, account: Account, window: RunWindow) -> None:
        """Take in a window with its account."""
        booked = self.outside.seen(_booked(account, self._steps.positions(window)))
        if not self.is_long:
            self.kept.append(booked)
            return
        self._sums.add(booked.position // self._many, booked.pid // self._block, booked.parts)
        for stretches in booked.stretches():
            self._spread.add(stretches)

    def bins(self, around: Iterable[Stretches]) -> tuple[Grid, Grid]:
        """Return a long run in bins of time and of supersteps, with the time around its records."""
        for stretches in around:
            self._spread.add(stretches)
        low, width = float(self._edges[0]), float(self._edges[1] - self._edges[0])
        by_time = Grid(low, width, self._spread.amounts)
        return by_time, Grid(0, self._many, self._sums.amounts)


class _CellSums:
    """Amounts by column, part and row."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self._sums = np.zeros((len(parts.PARTS), columns * rows))

    def add(self, column: Ints, row: Ints, amounts: Ints) -> None:
        """Add the amounts of some records, by part, to the cells of these."""
        if len(column) == 0:
            return
        # The records of a window are in few of the columns.
        here, cells = _cells(column, row, self._rows)
        for part, values in enumerate(amounts):
            if values.any():
                self._sums[part, here] += np.bincount(cells, values, here.stop - here.start)

    @property
    def amounts(self) -> Floats:
        """What was added: shape ``(columns, parts, rows)``."""
        return self._sums.reshape(-1, self._columns, self._rows).transpose(1, 0, 2)


def _cells(column: Ints, row: Ints, rows: int) -> tuple[slice, Ints]:
    """Return which cells the columns of some records have, and among these that of each record."""
    low, high = int(column.min()), int(column.max()) + 1
    return slice(low * rows, high * rows), (column - low) * rows + row


# -- stretches of time, spread over the columns of a picture --------------------------------------


class _Spread:
    """Amounts of stretches of time, by column, part and row."""

    def __init__(self, edges: Floats, rows: int, block: int) -> None:
        self._edges, self._rows, self._block = edges, rows, block
        self._columns = len(edges) - 1
        self._sums = np.zeros((len(parts.PARTS), self._columns * rows))
        self._found: tuple[Ints, Ints] = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """Moments, and their columns."""

    @property
    def amounts(self) -> Floats:
        """What was added: shape ``(columns, parts, rows)``."""
        shaped = self._sums.reshape(len(parts.PARTS), self._columns, self._rows)
        return shaped.transpose(1, 0, 2)

    def add(self, stretches: Stretches) -> None:
        """Add the parts of stretches that lie inside the edges."""
        begin, end = stretches.begin, stretches.end
        first, last = self._column_of(begin), self._column_of(end)
        last = last - (self._edges[last] == end)  # what ends at an edge lies before it
        seen = (end > begin) & (last >= 0) & (first < self._columns)
        whole = seen & (first == last) & (first >= 0)
        inside, across = np.flatnonzero(whole), np.flatnonzero(seen & ~whole)
        row = stretches.pid // self._block
        here, cells = slice(0, 0), first[:0]
        if len(inside):
            here, cells = _cells(first[inside], row[inside], self._rows)
        crossing = self._crossing(first[across], last[across], begin[across], end[across])
        for part, values in stretches.amounts.items():
            if not values.any():
                continue
            self._sums[part, here] += np.bincount(cells, values[inside], here.stop - here.start)
            if len(across):
                self._sums[part, crossing.cells] += crossing(values[across], row[across])

    def _column_of(self, moments: Ints) -> Ints:
        """Return the column in which, or at the begin of which, each moment lies.

        Most stretches begin where the ones before them ended: these are not looked up again.
        """
        if moments is not self._found[0]:
            column = np.searchsorted(self._edges, moments, side="right").astype(np.int64) - 1
            self._found = moments, column
        return self._found[1]

    def _crossing(self, first: Ints, last: Ints, begin: Ints, end: Ints) -> _Crossing:
        """Return how stretches are divided that lie in several columns, or beyond the edges."""
        low = np.clip(first, 0, self._columns - 1)
        high = np.clip(last, 0, self._columns - 1)
        begun, ended = np.maximum(begin, self._edges[0]), np.minimum(end, self._edges[-1])
        alone = low == high
        at_low = np.where(alone, ended, self._edges[low + 1]) - begun
        at_high = np.where(alone, 0.0, ended - self._edges[high])
        begins, ends = int(low.min(initial=self._columns)), int(high.max(initial=-1)) + 1
        widths = np.diff(self._edges[begins : ends + 1])
        length = (end - begin).astype(np.float64)
        return _Crossing(
            begins, low - begins, high - begins, at_low, at_high, length, self._rows, widths
        )


class _Crossing(NamedTuple):
    """Stretches that lie in several columns: in the first and last in part, between wholly."""

    first: int
    """The first of the columns that any of them lies in; the others are counted from there."""
    low: Ints
    high: Ints
    at_low: Floats
    at_high: Floats
    length: Floats
    rows: int
    widths: Floats
    """Widths of these columns."""

    @property
    def cells(self) -> slice:
        """Which cells these columns have among those of all columns."""
        return slice(self.first * self.rows, (self.first + len(self.widths)) * self.rows)

    def __call__(self, amounts: Floats, row: Ints) -> Floats:
        """Return these amounts by column and row."""
        rate, cells = amounts / self.length, len(self.widths) * self.rows
        sums: Floats = np.zeros(cells)
        for column, length in ((self.low, self.at_low), (self.high, self.at_high)):
            sums += np.bincount(column * self.rows + row, rate * length, cells)
        wide = self.high > self.low + 1
        if not wide.any():
            return sums
        steps = np.zeros((len(self.widths) + 1, self.rows))
        np.add.at(steps, (self.low[wide] + 1, row[wide]), rate[wide])
        np.subtract.at(steps, (self.high[wide], row[wide]), rate[wide])
        between = np.cumsum(steps[:-1], axis=0).clip(min=0) * self.widths[:, None]
        # What is left of sums that are over is a rounding error of their rates.
        between[between < 1e-9 * self.widths[:, None]] = 0
        return sums + between.ravel()


# -- the stretches of records ----------------------------------------------------------------------


class _BookedRecords(NamedTuple):
    """Some records with what is booked for them."""

    account: Account
    rows: BookedRows
    position: Ints
    """Position of the superstep of the root group to which each record belongs."""
    interruptions: _Interruptions

    @property
    def parts(self) -> Ints:
        """Nanoseconds, shape (parts, records)."""
        return self.rows.parts

    @property
    def pid(self) -> Ints:
        """The process of each record."""
        pid: Ints = self.account.run.records["pid"][self.rows.rows].astype(np.int64)
        return pid

    def stretches(self) -> Iterator[Stretches]:
        """Yield the stretches of the records."""
        rows, pid = self.rows.rows, self.pid
        records = self.account.run.records[rows]
        own = _own(self.account, self.rows)
        start, arrive, released, end = (
            records[name].astype(np.int64) for name in ("start", "arrive", "released", "end")
        )
        yield Stretches(pid, _ended(self.account, rows), start, own.between)
        yield self.interruptions.divided(rows, Stretches(pid, start, arrive, own.before))
        yield Stretches(pid, arrive, released, own.waiting)
        yield Stretches(pid, released, end, own.after)


def _booked(account: Account, position: Ints) -> _BookedRecords:
    """Return the records of a window; ``position`` has the superstep of each."""
    return _BookedRecords(account, account.booked, position, _Interruptions(account))


def _ended(account: Account, rows: slice) -> Ints:
    """Return when the process left the superstep before each record; else when that began."""
    start = account.run.records["start"][rows].astype(np.int64)
    before = account.before[rows]
    is_first = (before < 0) | (account.owner[rows] >= 0)
    return np.where(is_first, start, account.run.records["end"][before]).astype(np.int64)


class _Own(NamedTuple):
    """What records were used for, by the stretches of their time."""

    between: dict[int, Floats]
    """Since the superstep before."""
    before: dict[int, Floats]
    waiting: dict[int, Floats]
    after: dict[int, Floats]


def _own(account: Account, booked: BookedRows) -> _Own:
    """Divide what is booked for records by the stretches of their time."""
    rows, spent = booked.rows, booked.parts
    records = account.run.records[rows]
    computing = account.computing
    blocked, waited = computing.blocked[rows], computing.waited[rows]
    transfers, calls, *others = (part[rows] for part in account.communication)
    moved = dict(zip(_TRANSFERS, (transfers + calls, *others), strict=True))
    unknown = moved[parts.UNEXPLAINED]
    waiting = {
        parts.IMBALANCE: spent[parts.IMBALANCE],
        parts.ENDS: spent[parts.ENDS],
        parts.TRANSFER_IMBALANCE: spent[parts.TRANSFER_IMBALANCE] - moved[parts.TRANSFER_IMBALANCE],
        parts.BLOCKED: spent[parts.BLOCKED] - blocked - moved[parts.BLOCKED],
        parts.CORE: spent[parts.CORE] - waited - moved[parts.CORE],
        parts.LATENCY: spent[parts.LATENCY] - moved[parts.LATENCY],
    }
    left = records["released"] - records["arrive"] - sum(waiting.values())
    between = spent[parts.RECORDING] + spent[parts.UNEXPLAINED] - unknown - left
    recording = np.minimum(spent[parts.RECORDING], between)
    late = spent[parts.RECORDING] - recording
    waiting |= {parts.RECORDING: late, parts.UNEXPLAINED: left - late}
    gap = records["start"] - _ended(account, rows)
    in_gap = np.divide(gap, between, out=np.ones(len(records)), where=between > 0)
    pauses = {parts.RECORDING: recording, parts.UNEXPLAINED: between - recording}
    calls, exchange = records["comm_calls"], records["end"] - records["released"]
    in_calls = calls / np.maximum(calls + exchange, 1)
    before = {part: in_calls * amount for part, amount in moved.items()}
    after = {part: amount - before[part] for part, amount in moved.items()}
    before[parts.CORE] = before[parts.CORE] + waited
    before[parts.BLOCKED] = before[parts.BLOCKED] + blocked
    # The rest of it lies between the records of sub-groups, which are inside of this one.
    inside = {part: (1 - in_gap) * amount for part, amount in pauses.items()}
    before[parts.UNEXPLAINED] = before[parts.UNEXPLAINED] + inside[parts.UNEXPLAINED]
    before[parts.USEFUL] = computing.core[rows]
    before[parts.RECORDING] = inside[parts.RECORDING]
    return _Own({part: in_gap * each for part, each in pauses.items()}, before, waiting, after)


class _Interruptions:
    """Where records are interrupted by those of sub-groups."""

    def __init__(self, account: Account) -> None:
        records, inner = account.run.records, np.flatnonzero(account.owner >= 0)
        order = inner[np.lexsort((records["start"][inner], account.owner[inner]))]
        owner = account.owner[order]
        heads = np.flatnonzero(np.diff(owner, prepend=-1))
        tails = np.append(heads[1:], len(owner)) - 1 if len(owner) else heads
        begin = np.append(0, records["end"][order])[:-1] if len(order) else records["end"][order]
        begin[heads] = records["start"][owner[heads]]
        pieces = (
            np.append(owner, owner[tails]),
            np.append(begin, records["end"][order[tails]]),
            np.append(records["start"][order], records["arrive"][owner[tails]]),
        )
        by_owner = np.argsort(pieces[0], kind="stable")
        self._owner, self._begin, self._end = (piece[by_owner] for piece in pieces)

    def divided(self, rows: slice, stretches: Stretches) -> Stretches:
        """Return the stretches, where an interrupted one is replaced by its uninterrupted parts."""
        low, high = np.searchsorted(self._owner, [rows.start, rows.stop])
        if low == high:
            return stretches
        place = self._owner[low:high] - rows.start
        begin, end = self._begin[low:high], np.maximum(self._begin[low:high], self._end[low:high])
        whole = np.bincount(place, end - begin, len(stretches.pid))[place]
        share = np.divide(end - begin, whole, out=np.zeros(len(place)), where=whole > 0)
        kept = np.ones(len(stretches.pid), bool)
        kept[place] = False
        return Stretches(
            np.append(stretches.pid[kept], stretches.pid[place]),
            np.append(stretches.begin[kept], begin),
            np.append(stretches.end[kept], end),
            {
                part: np.append(values[kept], values[place] * share)
                for part, values in stretches.amounts.items()
            },
        )


class _Outside:
    """The time of each process before its first record and after its last one."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._span = span_of(run)
        begin_ns, end_ns = self._span
        self._first = np.full(run.nprocs, end_ns, np.int64)
        self._last = np.full(run.nprocs, begin_ns, np.int64)
        self._covered = np.zeros(run.nprocs, np.int64)

    def seen(self, booked: _BookedRecords) -> _BookedRecords:
        """Take in some records, and return them."""
        account, rows = booked.account, booked.rows.rows
        outermost = account.owner[rows] < 0
        records = account.run.records[rows]
        pid = records["pid"][outermost]
        np.minimum.at(self._first, pid, records["start"][outermost])
        np.maximum.at(self._last, pid, records["end"][outermost])
        self._covered += account.covered()
        return booked

    def stretches(self) -> Iterator[Stretches]:
        """Yield these times, after all records have been taken in."""
        nprocs, (begin_ns, end_ns) = self._run.nprocs, self._span
        pids = np.arange(nprocs)
        last = np.maximum(self._first, self._last)
        outside = _time_outside(self._run, self._covered)
        ends = outside[parts.ENDS].astype(np.float64)
        begin = np.full(nprocs, begin_ns, np.int64)
        before = np.minimum(ends, self._first - begin)
        others = {
            part: outside[part].astype(np.float64)
            for part in range(len(parts.PARTS))
            if part != parts.ENDS and outside[part].any()
        }
        yield Stretches(pids, begin, self._first, {parts.ENDS: before})
        over = np.full(nprocs, end_ns, np.int64)
        yield Stretches(pids, last, over, {parts.ENDS: ends - before, **others})


def _time_outside(run: Run, covered: Ints) -> Ints:
    """Return the time of each process outside its records: shape (parts, processes).

    Args:
        run: the run.
        covered: how much of the time of each process is in its records, and between them.

    Raises:
        TraceError: this is more than the run takes.
    """
    begin_ns, end_ns = span_of(run)
    elapsed_ns = end_ns - begin_ns
    outside = np.zeros((len(parts.PARTS), run.nprocs), np.int64)
    outside[parts.ENDS] = elapsed_ns - covered
    life = run.lifetime
    if life is not None and life.returned is not None and life.collected is not None:
        written = np.full(run.nprocs, max(life.returned - life.collected, 0))
        outside[parts.RECORDING], outside[parts.ENDS] = parts.taken(outside[parts.ENDS], written)
    if (outside < 0).any():
        pid = int(outside[parts.ENDS].argmin())
        raise TraceError(
            f"the records of process {pid} take {covered[pid]} ns, and the run only "
            f"{elapsed_ns} ns: they overlap, so the trace is damaged"
        )
    return outside
