"""Parts of a run: ranges of supersteps of the root group, with all that took place in them.

A long run is looked at in **windows**, one after the other: each has the records of all processes
in a range of supersteps of the root group, with those of the sub-groups opened there. So a whole
superstep, of any group, is in one window, and sums over supersteps are sums over windows. What a
record needs to know of the superstep before it, at the border of two windows, is in the *halo*.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from bsplib.errors import UsageError
from bsplib.profiler.costs import (
    GROUPS,
    group_columns,
    once,
)
from bsplib.recording.chunk_ranges import (
    ChunkRanges,
    RecordsOfSamples,
    opening_steps,
    root_steps,
)
from bsplib.recording.records import RECORD, TRAFFIC, Run, waits_among
from bsplib.recording.tables import Columns, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bsplib.profiler._arrays import Bools, Ints, Table


ROWS = 2**14
"""Records of a window, about: few enough for the caches of a core."""

FIELDS = (
    *("pid", "group", "superstep", "kind", "stack", "start", "arrive", "released", "end"),
    *("comm_calls", "sub", "self_bytes", "comp_cpu", "comp_ready", "comm_cpu", "comm_ready"),
    *("recording", "pickling", "pickled_bytes"),
)
"""The fields of records that windows have."""


_ENDS = ("record", "behind")
"""The fields of a wait."""
_OPENED = "opened"
_NEVER = np.iinfo(np.int64).max


class RunWindow(NamedTuple):
    """A range of supersteps of the root group, with the records of all processes in them."""

    run: Run
    """The whole run with these records only, as columns; first those of the halo."""
    before: Ints
    """Positions in the whole run of the records before the window, its halo: those of the last root
    supersteps of all processes."""
    halo_steps: int
    """Number of these supersteps."""
    position: Ints
    """Positions in the whole run of the other records."""

    @property
    def halo(self) -> int:
        """Number of records of the halo."""
        return len(self.before)

    @property
    def fresh(self) -> slice:
        """The records of the window itself."""
        return slice(self.halo, self.halo + len(self.position))

    def root_supersteps(self) -> Ints:
        """Return the supersteps of the root group of the records, without the halo."""
        return root_supersteps(self.run)[self.fresh]


def root_supersteps(run: Run) -> Ints:
    """Return for each record the superstep of the root group in which it took place.

    For a record of the root group this is its own superstep. A record of a sub-group took
    place in the superstep of the root group that opened the sub-group, or the sub-group's
    parent, and so on upwards.
    """
    return root_steps(run.records, _opened(run))


def _opened(run: Run) -> Ints:
    """Return for each group the superstep of the root in which it was opened."""
    return once(run, _OPENED, lambda: opening_steps(run))


def restricted(run: Run, first: int, last: int) -> Run:
    """Return what a run did in some supersteps of its root group, and in their sub-groups.

    Groups, stacks, superstep numbers and times are those of the whole run.

    Args:
        run: the run.
        first: number of the first superstep of the root group that is kept.
        last: number of the last one that is kept, ``first <= last``.

    Raises:
        UsageError: the range is empty.
    """
    if first > last:
        raise UsageError(f"There are no supersteps from {first} to {last}: give a rising range.")
    reader = _WindowReader(run, RECORD.names or ())
    if reader.is_whole(first, last):
        return run
    position, records = reader.records(first, last + 1)
    traffic = reader.traffic(position)
    kept = np.zeros(len(run.table("records")), bool)
    kept[position] = True
    return replace(
        run,
        records=_as_rows(records, RECORD),
        traffic=_as_rows(traffic, TRAFFIC),
        lifetime=None,
        samples=_samples_among(run, kept),
        waits=waits_among(run, kept),
        part_of=(run, first, last),
    )


def _samples_among(run: Run, kept: Bools) -> Table | None:
    """Return the samples that fall into the records that are kept."""
    if run.samples is None:
        return None
    record = RecordsOfSamples.of(run).position
    samples: Table = run.samples[(record >= 0) & kept[record]]
    return samples


def _as_rows(columns: Columns, dtype: np.dtype[np.void]) -> Table:
    """Return columns as an array of rows, which cannot be changed."""
    rows = np.empty(len(columns), dtype)
    for name, values in columns.fields.items():
        rows[name] = values
    rows.setflags(write=False)
    return rows


def windows(run: Run, first: int = 0, last: int | None = None) -> Iterator[RunWindow]:
    """Yield the windows of a run, by rising supersteps; a short run has one.

    Where the trace says itself who waited for whom, both are in one window.

    Args:
        run: the run.
        first: number of the first superstep of the root group.
        last: number of the last one; default: that of the run.
    """
    reader = _WindowReader(run, FIELDS)
    shared = {GROUPS: group_columns(run), _OPENED: reader.opened}
    halo: _Halo | None = None
    for low, end in pairwise(reader.cuts(first, last)):
        position, records = reader.records(low, end, halo)
        if len(position) == 0:
            continue
        traffic = reader.traffic(position, halo)
        before = halo.position if halo else position[:0]
        waits = _waits_in(run, position, len(before))
        tables = cast("Any", {"records": records, "traffic": traffic})
        part = replace(run, **tables, waits=waits)
        part.derived.update(shared)
        window = RunWindow(part, before, halo.steps if halo else 0, position)
        halo = _halo_after(part, np.append(before, position), records, traffic)
        if low >= first:
            yield window


def hand_out(run: Run, *takers: Callable[[RunWindow], None]) -> None:
    """Give all windows of a run, one after the other, to each of some functions.

    To read the windows takes as long as to sum them up, so that what is wanted together is
    summed up in one pass.
    """
    for window in windows(run):
        for taker in takers:
            taker(window)


def _waits_in(run: Run, position: Ints, halo: int) -> Table | None:
    """Return the waits of a window for its own records, by their places in it."""
    if run.waits is None or len(position) == 0:
        return run.waits
    waits, inside = run.waits.copy(), np.ones(len(run.waits), bool)
    for name in ("record", "behind"):
        place = np.searchsorted(position, run.waits[name]).clip(max=len(position) - 1)
        inside &= position[place] == run.waits[name]
        waits[name] = place + halo
    found: Table = waits[inside]
    return found


class _Halo(NamedTuple):
    """What the next window has of those before."""

    position: Ints
    records: Columns
    traffic: Columns
    steps: int


def _halo_after(run: Run, position: Ints, records: Columns, traffic: Columns) -> _Halo:
    """Return the last root supersteps of all processes, with their records and traffic."""
    root = np.flatnonzero(records["group"] == 0)
    superstep = records["superstep"][root]
    last = np.full(run.nprocs, -1, np.int64)
    np.maximum.at(last, records["pid"][root], superstep)
    steps = np.unique(last[last >= 0])
    rows = root[np.isin(superstep, steps)]
    if len(traffic):
        place = np.full(len(records), -1, np.int64)
        place[rows] = np.arange(len(rows))
        traffic = traffic[np.flatnonzero(place[traffic["record"]] >= 0)]
        traffic.fields["record"] = place[traffic["record"]]
    return _Halo(position[rows], records[rows], traffic, len(steps))


def _no_traffic() -> Columns:
    return Columns({name: np.zeros(0, TRAFFIC[name]) for name in TRAFFIC.names or ()}, 0)


class _WindowReader:
    """Reads ranges of supersteps. A chunk is kept as long as later windows need it."""

    def __init__(self, run: Run, names: tuple[str, ...]) -> None:
        self._names = names
        self._records, self._traffic = run.table("records"), run.table("traffic")
        self.opened = _opened(run)
        names = ("superstep",) if len(run.groups) == 1 else ("group", "superstep")
        self._low, self._high = _ranges(
            run, "records", lambda rows: root_steps(rows, self.opened), names
        )
        """The first and the last root superstep of each chunk of records."""
        self._uncut = self._spans_of_waits(run)
        self._read: dict[int, tuple[Columns, Ints]] = {}
        self._callers = _ranges(run, "traffic", lambda rows: rows["record"], ("record",))
        self._traffic_read: dict[int, Columns] = {}

    def is_whole(self, first: int, last: int) -> bool:
        """Tell whether all records took place in a range of root supersteps."""
        return bool((self._low >= first).all() and (self._high <= last).all())

    def cuts(self, first: int, last: int | None) -> list[int]:
        """Return where windows begin, and where the last one ends.

        The superstep before the first one is a window, too, since it is in the halo of the next.
        """
        begin, end = int(self._low.min(initial=_NEVER)), int(self._high.max(initial=-1)) + 1
        low, high = max(begin, first), end if last is None else min(end, last + 1)
        if low >= high:
            return []
        inner = self._even_cuts(begin, end)
        inside = inner[(low < inner) & (inner < high)].tolist()
        return [*([low - 1] if low > begin else []), low, *inside, high]

    def _even_cuts(self, begin: int, end: int) -> Ints:
        """Divide all supersteps into windows of about as many records.

        The rows of a chunk are taken to be spread evenly over its supersteps.
        """
        rows, count = np.diff(self._records.bounds), len(self._records)
        if count <= ROWS:
            return np.zeros(0, np.int64)
        density = rows / (self._high + 1 - self._low)
        places = np.concatenate([self._low, self._high + 1])
        order = np.argsort(places, kind="stable")
        places = places[order]
        rate = np.cumsum(np.concatenate([density, -density])[order])
        until = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(places))])
        wanted = np.arange(ROWS, count, ROWS)
        inner = np.ceil(np.interp(wanted, until, places)).astype(np.int64).clip(begin, end)
        first, last = self._uncut
        if len(first):
            span = np.searchsorted(first, inner) - 1
            is_inside = (span >= 0) & (last[span] >= inner)
            inner = np.where(is_inside, last[span] + 1, inner)
        return np.unique(inner)

    def _spans_of_waits(self, run: Run) -> tuple[Ints, Ints]:
        """Return the first and the last superstep of spans that have to be in one window.

        In each are records that waited for one another, as the trace says itself.
        """
        waits = run.waits
        if waits is None or len(self._records) <= ROWS:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)

        def compute() -> tuple[Ints, Ints]:
            low, high = np.sort([self._steps_at(waits[name]) for name in _ENDS], axis=0)
            order = np.argsort(low)
            order = order[low[order] < high[order]]
            low, reach = low[order], np.maximum.accumulate(high[order])
            begins = np.flatnonzero(low > np.append(-1, reach[:-1])[: len(low)])
            return low[begins], reach[np.append(begins[1:], len(low))[: len(begins)] - 1]

        return once(run, "waits", compute)

    def _steps_at(self, positions: Ints) -> Ints:
        """Return the root supersteps of records at some positions."""
        records = self._records.pick(positions, ("group", "superstep"))
        return root_steps(records, self.opened)

    def records(self, low: int, end: int, halo: _Halo | None = None) -> tuple[Ints, Columns]:
        """Return the records of a range of root supersteps after those of the halo.

        With them come their positions in the run, without those of the halo.
        """
        parts = [halo.records] if halo else []
        positions = [np.zeros(0, np.int64)]
        for number in np.flatnonzero((self._low < end) & (self._high >= low)).tolist():
            columns, steps = self._chunk(number)
            first = self._records.bounds[number]
            if self._low[number] >= low and self._high[number] < end:
                rows: slice | Ints = slice(0, len(columns))
            else:
                rows = np.flatnonzero((low <= steps) & (steps < end))
            parts.append(columns[rows])
            positions.append(np.arange(first, first + len(columns))[rows])
            if self._high[number] < end:
                del self._read[number]
        if not parts:
            parts = [Columns({name: np.zeros(0, RECORD[name]) for name in self._names}, 0)]
        return np.concatenate(positions), joined(parts)

    def _chunk(self, number: int) -> tuple[Columns, Ints]:
        if number not in self._read:
            columns = self._records.read(number, self._names)
            self._read[number] = columns, root_steps(columns, self.opened)
        return self._read[number]

    def traffic(self, position: Ints, halo: _Halo | None = None) -> Columns:
        """Return the traffic of records after that of the halo, by their positions in the run."""
        low, high = self._callers
        parts = [halo.traffic if halo else _no_traffic()]
        if len(position) == 0:
            return parts[0]
        # The records are in few stretches, since each process has its own in the file.
        ends = np.append(np.flatnonzero(np.diff(position) > 1), len(position) - 1)
        first, last = position[np.append(0, ends[:-1] + 1)], position[ends]
        at = np.searchsorted(last, low)
        near = np.flatnonzero((at < len(last)) & (first[at.clip(max=len(last) - 1)] <= high))
        self._traffic_read = {
            number: self._traffic_read.get(number) or self._traffic.read(number)
            for number in near.tolist()
        }
        behind = np.cumsum(last + 1 - first) - last - 1  # what takes a position to its place
        halo_rows = len(halo.records) if halo else 0
        for columns in self._traffic_read.values():
            for rows, stretch in _in_stretches(columns["record"], first, last):
                part = columns[rows]
                part.fields["record"] = part["record"] + (behind[stretch] + halo_rows)
                parts.append(part)
        return joined(parts)


def _in_stretches(
    caller: Ints, first: Ints, last: Ints
) -> Iterator[tuple[slice | Ints, int | Ints]]:
    """Yield rows of traffic whose records are in some stretches, and in which.

    Args:
        caller: the record of each row.
        first: the first record of each stretch; the stretches rise.
        last: the last record of each stretch.
    """
    if (caller[1:] >= caller[:-1]).all():  # slices copy nothing
        low = np.searchsorted(caller, first)
        end = np.searchsorted(caller, last, side="right")
        for stretch in np.flatnonzero(low < end).tolist():
            yield slice(int(low[stretch]), int(end[stretch])), stretch
    else:
        stretches = np.searchsorted(last, caller).clip(max=len(last) - 1)
        rows = np.flatnonzero((first[stretches] <= caller) & (caller <= last[stretches]))
        yield rows, stretches[rows]


def _ranges(
    run: Run, name: str, values: Callable[[Columns], Ints], fields: tuple[str, ...]
) -> tuple[Ints, Ints]:
    """Return the least and the greatest value of each chunk of a table."""
    ranges = ChunkRanges(run, name)
    known = ranges.known()
    if known is not None:
        return known
    for _, rows in run.table(name).chunks(fields):
        ranges.add(values(rows))
    return ranges.close()
