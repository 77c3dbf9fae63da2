"""Whether the records of a run can be true: ranges, order of times, membership of groups.

The records are checked chunk by chunk, so that the columns of a chunk stay in the cache and the
checks need little memory, however many records there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import Members
from bsplib.directions import Direction
from bsplib.errors import TraceError
from bsplib.recording.chunk_ranges import (
    ChunkRanges,
    RecordsOfSamples,
    opening_steps,
    root_steps,
)
from bsplib.recording.records import (
    FROM_SYSTEM,
    MAX_NUMBER,
    NOT_MEASURED,
    PAGE_FAULTS,
    Doing,
    Run,
)
from bsplib.recording.tables import (
    ArrayTable,
    Columns,
    RunTable,
    joined,
    values_of,
)
from bsplib.sync_kinds import Kind

_Numbers = NDArray[np.integer]


class _Block(NamedTuple):
    """Successive rows of a table."""

    what: str
    first: int
    """Position of its first row."""
    rows: Columns

    @property
    def columns(self) -> dict[str, _Numbers]:
        """The fields of the rows."""
        return self.rows.fields

    def check_ranges(self, ends: dict[str, int]) -> dict[str, int]:
        """Check that values are at least 0 and less than an end; return the greatest, by field."""
        greatest = {}
        for name, values in self.columns.items():
            least = NOT_MEASURED if name in FROM_SYSTEM else 0
            end, different = ends.get(name, MAX_NUMBER + 1), values_of(values)
            greatest[name] = int(different.max())
            if different.min() < least or greatest[name] >= end:
                fault = f"a {name} outside {least} .. {end - 1}"
                self.refuse((values < least) | (values >= end), fault)
        return greatest

    def refuse(self, wrong: NDArray[np.bool_], fault: str) -> None:
        """Raise TraceError for the first row that is marked as wrong, if any."""
        if wrong.any():
            position = int(wrong.argmax())
            fields = self.rows.row(position)
            raise TraceError(f"{self.what} {self.first + position} has {fault}: {fields}")


def _blocks(what: str, table: RunTable) -> Iterator[_Block]:
    return (_Block(what, first, rows) for first, rows in table.chunks())


def check_records(run: Run) -> Columns:
    """Check that numbers are in range, times in order, and no superstep is recorded twice.

    Args:
        run: the run.

    Returns:
        The group and the pid of each record, to which rows of other tables refer.

    Raises:
        TraceError: a record cannot be true.
    """
    ends = {"pid": run.nprocs, "group": len(run.groups)}
    ends |= {"kind": len(Kind), "stack": len(run.stacks)}
    membership = _Membership(run)
    time, superstep = _Rising(run.nprocs, 0), _Supersteps(run)
    ranges, opened = ChunkRanges(run, "records"), opening_steps(run)
    faults, callers = ChunkRanges(run, "records", "faults"), [Columns({}, 0)]
    sampled = RecordsOfSamples(run)
    for block in _blocks("record", run.table("records")):
        greatest = block.check_ranges(ends)
        columns = block.columns
        outside = ~membership.contains(columns["group"], columns["pid"])
        block.refuse(outside, "a process outside its group")
        _check_times(block)
        block.refuse(time.wrong(columns["pid"], columns["end"]), "a end out of order")
        block.refuse(superstep.wrong(block), "a superstep out of order")
        ranges.add(root_steps(block.rows, opened))
        callers.append(Columns({name: columns[name] for name in ("group", "pid")}, len(block.rows)))
        faults.add(np.array([greatest[name] for name in PAGE_FAULTS]))
        sampled.add(block.first, block.rows)
    ranges.close()
    faults.close()
    sampled.close()
    return joined(callers[1:] or callers)


def _check_times(block: _Block) -> None:
    """Check the times within each record of a block."""
    columns = block.columns
    start, arrive, end = columns["start"], columns["arrive"], columns["end"]
    disorder = (start > arrive) | (arrive > columns["released"]) | (columns["released"] > end)
    block.refuse(disorder, "times that are not in order")
    computed = arrive - start - columns["comm_calls"] - columns["sub"]
    block.refuse(computed < 0, "more time in calls and sub-groups than it lasts")
    communicated = columns["comm_calls"] + (end - arrive)
    for part, elapsed in (("comp", computed), ("comm", communicated)):
        cpu, ready = columns[f"{part}_cpu"], columns[f"{part}_ready"]
        excess = np.maximum(cpu, 0) + np.maximum(ready, 0) > elapsed
        block.refuse(excess, f"more {part}_cpu and {part}_ready than the time of that part")
    block.refuse(columns["pickling"] > end - start, "more pickling than it lasts")
    block.refuse(columns["recording"] > start, "more recording than there was time before it")
    waiting = (columns["kind"] == Kind.END) & (arrive != end)
    block.refuse(waiting, "an end of main that waits")


def check_traffic(run: Run, callers: Columns) -> None:
    """Check that each traffic row has a record, and a partner of the same group.

    Args:
        run: the run.
        callers: what :func:`check_records` has returned.

    Raises:
        TraceError: a traffic row cannot be true.
    """
    ends = {"partner": run.nprocs, "direction": len(Direction)}
    ends["record"] = len(run.table("records"))
    membership = _Membership(run)
    ranges = ChunkRanges(run, "traffic")
    for block in _blocks("traffic row", run.table("traffic")):
        block.check_ranges(ends)
        partner, record = block.columns["partner"], block.columns["record"]
        wrong = ~membership.contains(callers["group"][record], partner)
        wrong |= partner == callers["pid"][record]
        block.refuse(wrong, "a partner that is not another process of its group")
        ranges.add(record)
    ranges.close()


def check_samples(run: Run) -> None:
    """Check that samples have a stack, and are in order for each process.

    Args:
        run: the run.

    Raises:
        TraceError: a sample cannot be true.
    """
    if run.samples is None:
        return
    ends = {"pid": run.nprocs, "stack": len(run.stacks), "doing": len(Doing)}
    time = _Rising(run.nprocs, 0)
    for block in _blocks("sample", ArrayTable(run.samples)):
        block.check_ranges(ends)
        columns = block.columns
        block.refuse(time.wrong(columns["pid"], columns["time"]), "a time out of order")


def check_waits(run: Run, callers: Columns) -> None:
    """Check that waits are for other processes, and that each record has one at most.

    Args:
        run: the run.
        callers: what :func:`check_records` has returned.

    Raises:
        TraceError: a wait cannot be true.
    """
    if run.waits is None:
        return
    ends = dict.fromkeys(("record", "behind"), len(run.table("records")))
    last = -1
    for block in _blocks("wait", ArrayTable(run.waits)):
        block.check_ranges(ends)
        record, behind = block.columns["record"], block.columns["behind"]
        block.refuse(np.diff(record, prepend=last) <= 0, "a record out of order")
        alone = callers["pid"][record] == callers["pid"][behind]
        block.refuse(alone, "a process that waits for itself")
        last = int(record[-1])


class _Rising:
    """Whether the values of each key rise, from one block to the next."""

    def __init__(self, keys: int, step: int) -> None:
        """Begin with ``keys`` keys; a value is at least ``step`` above the last of its key."""
        self._step = step
        self._last = np.full(keys, -step, np.int64)
        self._digits = np.uint16 if keys <= 2**16 else np.int64  # numpy sorts uint16 by radix

    def wrong(self, keys: _Numbers, values: _Numbers) -> NDArray[np.bool_]:
        """Mark the rows of a block whose value is too small."""
        if (keys[1:] >= keys[:-1]).all():
            return self._wrong(keys, values)
        order = np.argsort(keys.astype(self._digits), kind="stable")
        wrong = np.empty(len(keys), bool)
        wrong[order] = self._wrong(keys[order], values[order])
        return wrong

    def _wrong(self, keys: _Numbers, values: _Numbers) -> NDArray[np.bool_]:
        """Mark the rows whose value is too small, where equal keys are neighbours."""
        changes = np.flatnonzero(keys[1:] != keys[:-1])
        begins = np.append(0, changes + 1)
        before = np.empty_like(values)
        before[1:] = values[:-1]
        before[begins] = self._last[keys[begins]]
        ends = np.append(changes, len(keys) - 1)
        self._last[keys[ends]] = values[ends]
        return values < before + self._step


class _Supersteps:
    """Whether the numbers of the supersteps of each process in each group rise."""

    def __init__(self, run: Run) -> None:
        self._groups = len(run.groups)
        pairs = run.nprocs * self._groups
        self._numbers = None
        records = run.table("records")
        if pairs > 2 * len(records):  # a table takes memory in proportion to the file only
            keys = [self._keys(rows) for _, rows in records.chunks(("group", "pid"))]
            every = np.concatenate([np.empty(0, np.int64), *keys])
            found, self._numbers = np.unique(every, return_inverse=True)
            pairs = len(found)
        self._rising = _Rising(pairs, 1)

    def wrong(self, block: _Block) -> NDArray[np.bool_]:
        """Mark the records of a block whose superstep is not above the last."""
        if self._numbers is None:
            keys = self._keys(block.rows)
        else:
            keys = self._numbers[block.first : block.first + len(block.rows)]
        return self._rising.wrong(keys, block.columns["superstep"])

    def _keys(self, rows: Columns) -> NDArray[np.int64]:
        keys: NDArray[np.int64] = rows["pid"] * np.int64(self._groups) + rows["group"]
        return keys


class _Membership:
    """Which processes belong to which group."""

    def __init__(self, run: Run) -> None:
        evenly = [_rising(group.members) for group in run.groups]
        self._first, self._last, self._step = np.array(evenly, np.int64).T.copy()
        listed = [isinstance(group.members, tuple) for group in run.groups]
        self._listed = np.array(listed)
        self._nprocs = run.nprocs
        keys = [
            position * run.nprocs + np.array(run.groups[position].members, np.int64)
            for position in np.flatnonzero(self._listed)
        ]
        self._keys = np.sort(np.concatenate([np.empty(0, np.int64), *keys]))
        """Group and process, of the groups whose processes are not evenly spaced."""

    def contains(self, groups: _Numbers, pids: _Numbers) -> NDArray[np.bool_]:
        """Tell for each pair of a group and a pid whether the process belongs to the group."""
        if not groups.any():
            return np.ones(len(groups), bool)  # the root has all processes
        first, last = self._first[groups], self._last[groups]
        found: NDArray[np.bool_] = (first <= pids) & (pids <= last)
        found &= (pids - first) % self._step[groups] == 0
        rows = np.flatnonzero(found & self._listed[groups])
        if len(rows):
            wanted = groups[rows] * np.int64(self._nprocs) + pids[rows]
            near = np.searchsorted(self._keys, wanted).clip(max=len(self._keys) - 1)
            found[rows] = self._keys[near] == wanted
        return found


def _rising(members: Members) -> tuple[int, int, int]:
    """Return first, last and step of a range in rising order, or of a range around a list."""
    if isinstance(members, range):
        return min(members[0], members[-1]), max(members[0], members[-1]), abs(members.step)
    return min(members), max(members), 1
