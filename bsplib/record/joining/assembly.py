"""Makes the run of a trace of the calls of all processes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.members import as_members
from bsplib.directions import Direction
from bsplib.record.events import NOT_READ, READ_AFTER_NS
from bsplib.record.joining.calls import BASE, FIRST_COLLECTIVE, Role
from bsplib.record.joining.collectives import Collectives, gathered
from bsplib.record.joining.description import described
from bsplib.record.joining.messages import Messages, matched
from bsplib.record.joining.ranks import NO_PROCESS, Ints, MpiCalls, distinct_numbers
from bsplib.record.joining.steps import ALL, MESSAGES, Ends, ends_of_messages, found_ends
from bsplib.record.joining.volumes import flows
from bsplib.record.joining.waiting import WaitingTimes, Waits, blamed, waits_at
from bsplib.recording.line_sampler import BY_STATE, are_between, joined_samples
from bsplib.recording.records import (
    FROM_SYSTEM,
    NOT_MEASURED,
    RECORD,
    TRAFFIC,
    WAIT,
    Doing,
    Frame,
    GroupInfo,
    Run,
    Stack,
    root_group,
)
from bsplib.sync_kinds import Kind

_BY_PARTNER = frozenset({"Alltoallv", "Alltoallw"})


def assembled(calls: MpiCalls) -> Run:
    """Return the run of a program by the calls of its processes."""
    collectives = gathered(calls)
    messages = matched(calls)
    ends = found_ends(calls, messages, collectives)
    laid = _Laid(calls, ends)
    waits = waits_at(calls, ends, messages, collectives, laid.arrive[laid.of_end])
    stretches = laid.stretches(waits)
    groups, group_of = _groups(calls, ends)
    records = _records(laid, stretches, group_of)
    traffic, own = _Traffic(calls, ends, laid).rows(messages, collectives)
    records["self_bytes"], records["self_messages"] = own
    record, behind = blamed(stretches)
    stacks, records["stack"] = _stacks(laid)
    return described(
        calls,
        Run(
            calls.nprocs,
            groups,
            stacks,
            records,
            traffic,
            waits=np.rec.fromarrays([record, behind], WAIT).view(np.ndarray),
            samples=_samples(calls, records),
            measured={"lines": _no_lines(calls)},
        ),
    )


def _samples(calls: MpiCalls, records: NDArray[np.void]) -> NDArray[np.void] | None:
    """Return the samples of all processes, with what each did by its calls and syncs."""
    parts = []
    for pid, rank in sorted(calls.ranks.items()):
        if rank.samples is None:
            continue
        samples = rank.samples[(rank.samples["time"] >= 0) & (rank.samples["time"] <= rank.until)]
        mine = slice(calls.first[pid], calls.first[pid + 1])
        doing = np.array(BY_STATE, np.uint8)[samples["doing"]]
        doing[are_between(samples["time"], calls.enter[mine], calls.leave[mine])] = Doing.CALL
        rows = records[records["pid"] == pid]
        rows = rows[np.argsort(rows["end"], kind="stable")]
        doing[are_between(samples["time"], rows["arrive"], rows["end"])] = Doing.WAITING
        samples["doing"] = doing
        parts.append(samples)
    return joined_samples(parts)


def _no_lines(calls: MpiCalls) -> str:
    """Return why some process was not sampled; empty if all were."""
    headers = (rank.header for rank in calls.ranks.values())
    why = (str(each.get("no_lines", "a rank was killed, or has no shim")) for each in headers)
    return next((each for each in why if each), "")


# -- the times of stretches -----------------------------------------------------------------------


class _Laid:
    """The stretches of all processes, each up to the call that ends it or to the end."""

    def __init__(self, calls: MpiCalls, ends: Ends) -> None:
        self.calls = calls
        self.ends = ends
        there = np.zeros(calls.nprocs, np.int64)
        there[list(calls.ranks)] = 1
        self.first: Ints = ends.first + np.append(0, np.cumsum(there))
        """Position of the first stretch of each process, and the number of all."""
        count = int(self.first[-1])
        self.of_end: Ints = np.arange(len(ends.call)) + (np.cumsum(there) - 1)[ends.pid]
        """The stretch of each end."""
        self.last: Ints = np.where(there == 1, self.first[1:] - 1, -1)
        """The last stretch of each process; -1 for one that is absent."""
        self.pid = np.repeat(np.arange(calls.nprocs), np.diff(self.first))
        self.call = np.zeros(count, np.int64)
        """The call that ends each; for a last one the call after all of its process."""
        self.call[self.of_end] = ends.call
        last = self.last[there == 1]
        self.call[last] = calls.first[1:][there == 1]
        self.end = np.zeros(count, np.int64)
        self.end[self.of_end] = calls.leave[ends.call]
        self.end[last] = [rank.until for _, rank in sorted(calls.ranks.items())]
        self.is_last = np.zeros(count, bool)
        self.is_last[last] = True
        self.start = np.append(0, self.end[:-1])
        begins = self.first[:-1][there == 1]
        self.start[begins] = [rank.ready for _, rank in sorted(calls.ranks.items())]
        self.after = np.append(0, self.call[:-1] + 1)
        """The first call in each."""
        self.after[begins] = calls.first[:-1][there == 1]
        self.begin_of_end = self._begins()
        """The call with which the process began to wait at the end."""
        self.arrive = self.end.copy()
        inside = ~self.is_last
        self.arrive[inside] = calls.enter[self.begin_of_end[inside]]

    def _begins(self) -> Ints:
        """Step back over probes and polls before the calls that end stretches."""
        calls, begins = self.calls, self.call.copy()
        waits = np.isin(calls.role, [Role.PROBE, Role.POLL, Role.COMPLETE])
        rows = np.flatnonzero(~self.is_last)
        while len(rows):
            before = begins[rows] - 1
            near = calls.enter[begins[rows]] - calls.leave[before] <= READ_AFTER_NS
            near |= calls.role[before] == Role.PROBE
            rows = rows[near & waits[before] & (before >= self.after[rows])]
            begins[rows] -= 1
        return begins

    def stretches(self, waits: Waits) -> WaitingTimes:
        """Return the stretches with the waits at their ends."""
        released, culprit = self.arrive.copy(), self.pid.copy()
        released[self.of_end] = np.maximum(waits.until, released[self.of_end])
        culprit[self.of_end] = waits.culprit
        return WaitingTimes(self.first, self.start, self.arrive, released, self.end, culprit)

    def ends_of(self, ends: Ints, pid: Ints) -> Ints:
        """Return the stretches of some ends; of -1 the last stretch of the process."""
        return np.where(
            ends >= 0, self.of_end[ends.clip(min=0)] if len(self.of_end) else -1, self.last[pid]
        )


# -- groups ---------------------------------------------------------------------------------------


class _GroupsOfEnds(NamedTuple):
    """The group and the superstep in it of each end, and of the last stretches."""

    group: Ints
    superstep: Ints
    last: Ints
    """By pid the number of the superstep of the last stretch."""


def _groups(calls: MpiCalls, ends: Ends) -> tuple[tuple[GroupInfo, ...], _GroupsOfEnds]:
    """Return the groups of the run, and to which one each end belongs."""
    last = _last_numbers(calls, ends)
    if ends.roots == 0 and (ends.processes == MESSAGES).all():
        after = int(ends.level.max(initial=-1)) + 1
        every = _GroupsOfEnds(np.zeros_like(ends.level), ends.level, np.full(calls.nprocs, after))
        return (root_group(calls.nprocs),), every
    inside = np.flatnonzero(ends.processes != ALL)
    keys = np.stack([ends.processes[inside], ends.superstep[inside]])
    numbers = distinct_numbers(keys)
    distinct = np.zeros((2, int(numbers.max(initial=-1)) + 1), np.int64)
    distinct[:, numbers] = keys  # by superstep, then by set
    groups = [root_group(calls.nprocs)]
    ordinals: dict[tuple[int, tuple[int, int] | None], int] = {}
    within: dict[int, int] = {}
    for which, superstep in distinct.T.tolist():
        family = None if which == MESSAGES else ends.families[which]
        ordinal = ordinals.setdefault((superstep, family), len(ordinals))
        index = within[ordinal] = within.get(ordinal, -1) + 1
        members = ends.sets[ALL if which == MESSAGES else which]
        groups.append(GroupInfo(0, superstep, ordinal, index, as_members(members)))
    group, number = np.zeros(len(ends.call), np.int64), ends.superstep.copy()
    group[inside], number[inside] = numbers + 1, ends.level[inside]
    return tuple(groups), _GroupsOfEnds(group, number, last)


def _last_numbers(calls: MpiCalls, ends: Ends) -> Ints:
    """Return the number of the superstep after the last one that each process ended."""
    last = np.zeros(calls.nprocs, np.int64)
    roots = ends.processes == ALL
    np.maximum.at(last, ends.pid[roots], ends.superstep[roots] + 1)
    return last


# -- records --------------------------------------------------------------------------------------


def _records(laid: _Laid, stretches: WaitingTimes, groups: _GroupsOfEnds) -> NDArray[np.void]:
    """Return a record for each stretch."""
    calls, ends = laid.calls, laid.ends
    records = np.zeros(len(laid.pid), RECORD)
    for name in FROM_SYSTEM:
        records[name] = NOT_MEASURED
    records["pid"] = laid.pid
    records["group"][laid.of_end] = groups.group
    records["superstep"][laid.of_end] = groups.superstep
    records["superstep"][laid.is_last] = groups.last[laid.pid[laid.is_last]]
    records["kind"] = Kind.END
    barrier = calls.role[_collective_calls(calls, ends)] == Role.ALL
    records["kind"][laid.of_end] = np.where(barrier, Kind.SYNC, Kind.OBLSYNC)
    records["start"] = stretches.start
    records["arrive"], records["released"] = stretches.arrive, stretches.released
    records["end"] = stretches.end
    spent = _of_calls(laid, calls.leave - calls.enter)
    records["comm_calls"] = np.minimum(spent, stretches.arrive - stretches.start)
    _add_figures(records, laid)
    _add_pickles(records, laid)
    _put_inside(records, laid, groups)
    return records


def _collective_calls(calls: MpiCalls, ends: Ends) -> Ints:
    """Return for each end the call whose role is its own: for a collective, one of its calls."""
    found = ends.call.copy()
    begun = np.flatnonzero(calls.role >= FIRST_COLLECTIVE)
    done = calls.origin >= 0
    of_end = np.full(len(calls.role), -1, np.int64)
    of_end[calls.dones["event"][done]] = calls.origin[done]
    of_end[of_end >= 0] = np.where(calls.role[of_end] >= FIRST_COLLECTIVE, of_end, -1)[of_end >= 0]
    of_end[begun] = begun
    collective = (ends.collective >= 0) & (of_end[ends.call] >= 0)
    found[collective] = of_end[ends.call[collective]]
    return found


def _of_calls(laid: _Laid, amount: NDArray[Any]) -> NDArray[Any]:
    """Sum up an amount of the calls inside each stretch, without files, begin and end."""
    calls = laid.calls
    counted = ~np.isin(calls.role, [Role.FILE, Role.INIT, Role.FINALIZE])
    sums = np.append(0, np.cumsum(np.where(counted, amount, 0)))
    inside: NDArray[Any] = sums[laid.begin_of_end] - sums[laid.after]
    return inside


def _add_figures(records: NDArray[np.void], laid: _Laid) -> None:
    """Add the CPU time and the time without a core of both parts of the records."""
    calls = laid.calls
    for kind, reading in (("cpu", _cpu_at), ("ready", _ready_at)):
        for pid in calls.ranks:
            rows = slice(laid.first[pid], laid.first[pid + 1])
            mine = slice(calls.first[pid], calls.first[pid + 1])
            moments = (laid.start[rows], laid.arrive[rows], laid.end[rows])
            at = [reading(calls, pid, each) for each in moments]
            within = [reading(calls, pid, each[mine]) for each in (calls.enter, calls.leave)]
            if any(each is None for each in (*at, *within)):
                continue
            spent = np.zeros(len(calls.role))
            spent[mine] = within[1] - within[0]  # type: ignore[operator]  # none is None
            in_calls = _of_calls(laid, spent)[rows]
            records[f"comp_{kind}"][rows] = np.rint(at[1] - at[0] - in_calls).clip(min=0)  # type: ignore[operator]
            records[f"comm_{kind}"][rows] = np.rint(in_calls + at[2] - at[1]).clip(min=0)  # type: ignore[operator]
    computed = records["arrive"] - records["start"] - records["comm_calls"]
    communicated = records["comm_calls"] + records["end"] - records["arrive"]
    for part, elapsed in (("comp", computed), ("comm", communicated)):
        cpu = records[f"{part}_cpu"] = np.minimum(records[f"{part}_cpu"], elapsed)
        left = elapsed - cpu.clip(min=0)
        records[f"{part}_ready"] = np.minimum(records[f"{part}_ready"], left)


# -- CPU time, and time without a core, of any stretch: between readings, in proportion -----------
# The clocks of the system are read at the begin of a call where the stretch before it was
# long, and at its end where the call was. Between two readings all is taken to be alike.


_Floats = NDArray[np.float64]


def _cpu_at(calls: MpiCalls, pid: int, moments: Ints) -> _Floats | None:
    """Return the CPU time of a process at some moments; None where it was not read.

    Before the first reading and after the last one it is taken to compute.
    """
    read = _readings(calls, pid, calls.cpu)
    if read is None:
        return None
    at, value = read
    found: _Floats = np.interp(moments, at, value)
    found += np.maximum(moments - at[-1], 0)
    found -= np.minimum(np.maximum(at[0] - moments, 0), value[0])
    return found


def _ready_at(calls: MpiCalls, pid: int, moments: Ints) -> _Floats | None:
    """Return for how long a process has had no core until some moments; None if not read."""
    read = _readings(calls, pid, calls.ready)
    return None if read is None else np.interp(moments, *read)


def _readings(
    calls: MpiCalls, pid: int, values: tuple[Ints, Ints]
) -> tuple[_Floats, _Floats] | None:
    """Return the moments at which a clock was read, and what it said; both rise."""
    rows = slice(calls.first[pid], calls.first[pid + 1])
    at = np.stack([calls.enter[rows], calls.leave[rows]], axis=1).ravel()
    value = np.stack([values[0][rows], values[1][rows]], axis=1).ravel()
    known = value != NOT_READ
    if not known.any():
        return None
    rising = np.maximum.accumulate(value[known].astype(np.float64))
    return at[known].astype(np.float64), rising


def _add_pickles(records: NDArray[np.void], laid: _Laid) -> None:
    """Add what mpi4py spent on pickles before the calls of each record, the one at its end, too."""
    calls = laid.calls
    stop = np.minimum(laid.call + 1, calls.first[laid.pid + 1])
    for name, spent in (("pickling", calls.pickling), ("pickled_bytes", calls.pickled_bytes)):
        sums = np.append(0, np.cumsum(spent))
        records[name] = sums[stop] - sums[laid.after]
    computed = records["arrive"] - records["start"] - records["comm_calls"]
    records["pickling"] = np.minimum(records["pickling"], computed)


def _put_inside(records: NDArray[np.void], laid: _Laid, groups: _GroupsOfEnds) -> None:
    """Let the records of the root group begin where the one before them ended.

    What lies between, in sub-groups, is a part of them.
    """
    if not groups.group.any():
        return
    roots = np.flatnonzero(records["group"] == 0)
    start = np.append(0, records["end"][roots[:-1]])
    is_first = np.diff(laid.pid[roots], prepend=-1) != 0
    start[is_first] = laid.start[laid.first[laid.pid[roots[is_first]]]]
    records["sub"][roots] = records["start"][roots] - start
    records["start"][roots] = start


def _stacks(laid: _Laid) -> tuple[tuple[Stack, ...], Ints]:
    """Return the stacks, and that of each record; the end of a program is in its outermost call."""
    calls = laid.calls
    stacks = {stack: number for number, stack in enumerate(calls.stacks)}
    of_record = np.zeros(len(laid.pid), np.int64)
    of_record[laid.of_end] = calls.stack[laid.ends.call]
    for pid in calls.ranks:
        row = int(laid.last[pid])
        before = of_record[row - 1] if row > laid.first[pid] else _first_stack(calls, pid)
        whole = list(stacks)[before][:1] if before >= 0 else ()
        outer = whole or _outermost(calls, pid)
        of_record[row] = stacks.setdefault(outer, len(stacks))
    return tuple(stacks), of_record


def _first_stack(calls: MpiCalls, pid: int) -> int:
    first, stop = calls.first[pid], calls.first[pid + 1]
    return int(calls.stack[first]) if stop > first else -1


def _outermost(calls: MpiCalls, pid: int) -> Stack:
    """Return a stack for a process that made no call."""
    return (Frame(str(calls.ranks[pid].header.get("program", "")), "<module>", 1, 1),)


# -- traffic --------------------------------------------------------------------------------------


_KEYS, _SUMS = ("direction", "partner", "record"), ("bytes", "messages")
_ROW = np.dtype([(name, np.int64) for name in (*_KEYS, *_SUMS)])
"""Bytes from a stretch to or from a partner."""


def _rows(
    stretch: Ints, partner: Ints, size: Ints, messages: Any, direction: int = Direction.OUT
) -> NDArray[np.void]:
    rows = np.zeros(len(stretch), _ROW)
    rows["record"], rows["partner"], rows["bytes"] = stretch, partner, size
    rows["messages"], rows["direction"] = messages, direction
    return rows


class _Traffic:
    """Collects the bytes of all calls."""

    def __init__(self, calls: MpiCalls, ends: Ends, laid: _Laid) -> None:
        self._calls = calls
        self._ends = ends
        self._laid = laid

    def rows(
        self, messages: Messages, collectives: Collectives
    ) -> tuple[NDArray[np.void], tuple[Ints, Ints]]:
        """Return the traffic, and bytes and messages of each stretch to the process itself."""
        found = [
            self._of_messages(messages),
            self._of_collectives(collectives),
            self._by_partner(collectives),
            *self._of_windows(),
            self._of_targets(),
        ]
        rows = np.concatenate(found)
        rows = rows[(rows["record"] >= 0) & (rows["partner"] != NO_PROCESS)]
        own = rows["partner"] == self._laid.pid[rows["record"]]
        size, count = (
            np.bincount(rows["record"][own], rows[name][own], len(self._laid.pid)).astype(np.int64)
            for name in _SUMS
        )
        rows = rows[~own]
        number = distinct_numbers(np.stack([rows[name] for name in _KEYS]))
        traffic = np.zeros(int(number.max(initial=-1)) + 1, TRAFFIC)
        for name in _KEYS:
            traffic[name][number] = rows[name]
        for name in _SUMS:
            np.add.at(traffic[name], number, rows[name])
        return traffic, (size, count)

    def _of_messages(self, messages: Messages) -> NDArray[np.void]:
        source, _ = ends_of_messages(self._ends, messages)
        stretch = self._laid.ends_of(source, messages.source)
        return _rows(stretch, messages.target, messages.size, 1)

    def _stretch_of_part(self, collectives: Collectives, parts: Ints) -> Ints:
        """Return the stretches that parts of collectives end."""
        end = collectives.end[parts]
        found = np.searchsorted(self._ends.call, end.clip(min=0))
        pid = self._calls.pid[collectives.begin[parts]]
        return self._laid.ends_of(np.where(end >= 0, found, -1), pid)

    def _of_collectives(self, collectives: Collectives) -> NDArray[np.void]:
        flow = flows(self._calls, collectives)
        partner = self._calls.pid[collectives.begin[flow.target]]
        stretch = self._stretch_of_part(collectives, flow.source)
        return self._carried(_rows(stretch, partner, flow.size, flow.messages))

    def _by_partner(self, collectives: Collectives) -> NDArray[np.void]:
        """Return the bytes of collectives whose calls name them by partner."""
        calls = self._calls
        part_of = np.full(len(calls.role) + 1, -1, np.int64)
        part_of[collectives.begin] = np.arange(len(collectives.begin))
        rows = calls.parts[calls.parts["bytes_out"] > 0]
        named = np.array([name in _BY_PARTNER for name in BASE])[calls.call[rows["event"]]]
        named |= calls.role[rows["event"]] == Role.NEIGHBOURS
        rows = rows[named & (part_of[rows["event"]] >= 0)]
        stretch = self._stretch_of_part(collectives, part_of[rows["event"]])
        partner = rows["partner"].astype(np.int64)
        return self._carried(_rows(stretch, partner, rows["bytes_out"], 1))

    def _of_windows(self) -> list[NDArray[np.void]]:
        """Return what was put and got, at the end of the stretch in which that was called."""
        calls, found = self._calls, []
        for direction, roles, size in (
            (Direction.OUT, [Role.PUT, Role.GET_AND_PUT], calls.out),
            (Direction.IN, [Role.GET, Role.GET_AND_PUT], calls.into),
        ):
            at = np.flatnonzero(np.isin(calls.role, roles))
            stretch = self._laid.ends_of(self._ends.after(at, calls.pid[at]), calls.pid[at])
            rows = _rows(stretch, calls.partner[at], size[at], 1, direction)
            found.append(self._carried(rows))
        return found

    def _of_targets(self) -> NDArray[np.void]:
        """Return the empty messages by which Lock, Unlock and Flush ask for an answer."""
        calls, ends = self._calls, self._ends
        asking = np.flatnonzero(calls.role[ends.call] == Role.TARGET)
        partner = calls.partner[ends.call[asking]]
        return _rows(self._laid.of_end[asking], partner, np.zeros_like(asking), 1)

    def _carried(self, rows: NDArray[np.void]) -> NDArray[np.void]:
        """Move rows whose partner is not in the group of their stretch to one where it is."""
        stretch = rows["record"]
        of_end = np.full(len(self._laid.pid), ALL, np.int64)
        of_end[self._laid.of_end] = self._ends.processes
        of_all = np.flatnonzero(of_end <= ALL)
        inside = np.flatnonzero((stretch >= 0) & (of_end[stretch] > ALL))
        if len(inside):
            sets, nprocs = self._ends.sets, self._calls.nprocs
            sizes = [len(members) for members in sets]
            members = np.repeat(np.arange(len(sets)), sizes) * nprocs + np.concatenate(sets)
            wanted = of_end[stretch[inside]] * nprocs + rows["partner"][inside]
            outside = inside[~np.isin(wanted, members) | (rows["partner"][inside] < 0)]
            stretch[outside] = of_all[np.searchsorted(of_all, stretch[outside])]
        return rows
