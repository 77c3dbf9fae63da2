"""The costs of each process in each superstep: computation, communication, idle time, h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from bsplib.directions import is_out
from bsplib.profiler._by_step import BySuperstep, table_of
from bsplib.profiler._numbering import finder, rank_in_place
from bsplib.recording.records import MAX_NUMBER, NOT_MEASURED, Run
from bsplib.recording.tables import constant

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.profiler._arrays import Bools, Floats, Ints, Rows


Result = TypeVar("Result")

METRICS = ("comp", "comm", "idle", "h")
"""Computation, communication and idle time, and the h-relation."""


def once(run: Run, name: str, compute: Callable[[], Result]) -> Result:
    """Compute what all views of a run need, and keep it with the run."""
    if name not in run.derived:
        run.derived[name] = result = compute()
        for array in result if isinstance(result, tuple) else [result]:
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
    kept: Result = run.derived[name]
    return kept


def superstep_numbers(run: Run) -> Ints:
    """Number the supersteps of all groups consecutively, by group and superstep.

    Returns:
        For each record the number of its superstep, from 0 without gaps. The records of
        all processes in the same superstep of the same group have the same number.
    """
    return by_superstep(run).of_record


def by_superstep(run: Run) -> BySuperstep:
    """Return what sums up values of records by superstep, as :func:`superstep_numbers` counts."""

    def compute() -> BySuperstep:
        return table_of(run) or BySuperstep(_superstep_numbers(run), run.records["pid"])

    return once(run, "by superstep", compute)


def _superstep_numbers(run: Run) -> Ints:
    columns = (run.records[name].astype(np.int64) for name in ("group", "superstep"))
    # A window of a run has late ones only.
    group, superstep = (each - each.min(initial=MAX_NUMBER) for each in columns)
    keys: Ints = group * (superstep.max(initial=0) + 1) + superstep
    rank_in_place(keys)
    return keys


class GroupColumns(NamedTuple):
    """The groups of a run: of each its parent, and the superstep of this that opened it."""

    parent: Ints
    superstep: Ints
    size: Ints
    """Number of processes."""
    depth: Ints
    """How many groups contain it."""


def group_columns(run: Run) -> GroupColumns:
    """Return the groups of a run as columns."""

    def compute() -> GroupColumns:
        rows = [(group.parent, group.superstep, group.size) for group in run.groups]
        depths = [0]
        for group in run.groups[1:]:  # each is after its parent
            depths.append(depths[group.parent] + 1)
        parent, superstep, size = np.array(rows, np.int64).T
        return GroupColumns(parent, superstep, size, np.array(depths, np.int64))

    return once(run, GROUPS, compute)


GROUPS = "groups"
"""Name under which the columns of the groups are kept; windows of a run share them."""


def record_around(run: Run) -> Ints:
    """Return for each record of a sub-group the record of the same process that it is inside of.

    Returns:
        Its position; -1 for records of the root group, and for others where a run broke off.
    """
    records = run.records
    around = np.full(len(records), -1, np.int64)
    rows = np.flatnonzero(records["group"])
    if len(rows) == 0:
        return around
    parent, opened, *_ = group_columns(run)
    most = int(max(records["superstep"].max(), opened.max())) + 1
    keys = (records["group"].astype(np.int64) * most + records["superstep"]) * run.nprocs
    keys += records["pid"]
    find = finder(keys, len(run.groups) * most * run.nprocs)
    group = records["group"][rows]
    around[rows] = find((parent[group] * most + opened[group]) * run.nprocs + records["pid"][rows])
    return around


def uninterrupted(
    records: Rows, owner: Ints, first: Ints, last: Ints
) -> tuple[Ints, Ints, Ints, Floats]:
    """Divide stretches of time at the records of sub-groups that interrupt them.

    Args:
        records: records.
        owner: for each the position of the stretch that it is inside of; below 0: of none.
        first: when each stretch begins.
        last: when it ends.

    Returns:
        The parts between those records: the position of their stretch, begin, end, and which share
        they are of all parts of it.
    """
    inner = np.flatnonzero(owner >= 0)
    order = inner[np.lexsort((records["start"][inner], owner[inner]))]
    around, ended = owner[order], records["end"][order]
    place = np.append(around, np.arange(len(first)))
    resumed = first.copy()
    resumed[around] = ended  # of several the last one stays
    is_first = np.diff(around, prepend=-1) > 0
    begin = np.append(np.where(is_first, first[around], np.roll(ended, 1)), resumed)
    end = np.append(records["start"][order], last).clip(min=begin)
    whole = np.bincount(place, end - begin, len(first))[place]
    share = np.divide(end - begin, whole, out=np.zeros(len(place)), where=whole > 0)
    return place, begin, end, share


class Leads(NamedTuple):
    """What processes did before they opened sub-groups, as columns; what is inside comes first."""

    row: Ints
    """The first record of the process after that."""
    inside: Ints
    """The first record of the sub-group: that of ``row``, or one around it."""
    around: Ints
    """The record that the sub-group is inside of."""
    ns: Ints


def leads(run: Run, around: Ints, before: Ints, first: int = 0) -> Leads:
    """Return what the processes of a run did before they opened sub-groups, where they did much.

    Args:
        run: the run.
        around: the result of :func:`record_around`.
        before: the record before each one of its process; -1 for the first.
        first: records before this one have no row.
    """
    records = run.records
    group, start, end = records["group"], records["start"], records["end"]
    row = first + np.flatnonzero(around[first:] >= 0)
    inside, found = row, [np.zeros((len(Leads._fields), 0), np.int64)]
    while len(row):
        old, outer = before[row], around[inside]
        ended = np.where(old < 0, np.iinfo(np.int64).min, end[old])
        ns = start[inside] - np.maximum(ended, start[outer])
        is_lead = (ns > 0) & ((old < 0) | (group[old] != group[inside]))
        found.append(np.stack([row, inside, outer, ns])[:, is_lead])
        more = (start[outer] > ended) & (around[outer] >= 0)
        row, inside = row[more], outer[more]
    return Leads(*np.concatenate(found, axis=1))


def computation_ns(run: Run) -> Floats:
    """Return the computation w of each record, in nanoseconds.

    This is W, the time from start to arrival without primitives and sub-groups. Where the
    time ready without a core was measured, it is left out; where only CPU time was measured, w
    is at most that. So waiting for a core does not count as computation.
    """
    records = run.records
    return once(
        run,
        "computation_ns",
        lambda: (spent_ns(records) - computing_of(records).waited).astype(float),
    )


class Computing(NamedTuple):
    """What the computing parts of some records consist of, in nanoseconds."""

    core: Ints
    blocked: Ints
    waited: Ints


def computing_of(records: Rows) -> Computing:
    """Return what the computing parts of some records consist of.

    Where the system has no measure of the time without a core, what is not CPU time is
    taken for it; where it does not measure CPU time either, all is computation.
    """
    spent = spent_ns(records)
    cpu, ready = records["comp_cpu"], records["comp_ready"]
    has_cpu, has_ready = cpu != NOT_MEASURED, ready != NOT_MEASURED
    off = np.where(has_cpu, spent - np.minimum(cpu, spent), np.where(has_ready, ready, 0))
    waited = np.where(has_ready, np.minimum(ready, off), off)
    return Computing(spent - off, off - waited, waited)


def spent_ns(records: Rows) -> Ints:
    """Return W: the time from start to arrival without primitives and sub-groups."""
    spent: Ints = records["arrive"] - records["start"]
    spent -= records["comm_calls"]
    spent -= records["sub"]
    return spent


PHASES = ("computation", "waiting for a core", "communication", "idle")
"""What the time of a record is spent on, in the words of exports."""


def spent_by_phase(run: Run) -> Ints:
    """Return the time of each record in each of ``PHASES``, in nanoseconds."""
    records, comp = run.records, computation_ns(run)
    idle = records["released"] - records["arrive"]
    parts = comp, spent_ns(records) - comp, communication_ns(records), idle
    return np.stack(parts, axis=1).astype(np.int64)


def record_costs(run: Run) -> Floats:
    """Return the cost of each record in each metric.

    Times are kept in nanoseconds: whole numbers are added exactly, so that balanced
    processes have an imbalance of 0 and not of a rounding error.

    Returns:
        Shape ``(len(METRICS), len(run.records))``; nanoseconds, and bytes for h.

    Source: Jarvis et al. 2002, section 2.1; time in sub-groups is in their own records.
    """
    records, costs = run.records, np.empty((len(METRICS), len(run.records)))
    comp, comm, idle, h = costs
    comp[:], comm[:] = computation_ns(run), communication_ns(records)
    np.subtract(records["released"], records["arrive"], out=idle)
    np.maximum(*h_relation(run), out=h)
    return costs


def communication_ns(records: Rows) -> Ints:
    """Return the time of each record in calls of primitives and in the sync after the release."""
    comm: Ints = records["end"] - records["released"]
    comm += records["comm_calls"]
    return comm


def without_core_ns(records: Rows) -> tuple[Ints, Ints]:
    """Return how long the communication of each record was without a core: at least, at most.

    The system says it for the calls and the sync together with the idle time in between, in
    which a process may have been ready, too.
    """
    comm = communication_ns(records)
    ready = records["comm_ready"].clip(min=0)
    idle = records["released"] - records["arrive"]
    return np.minimum(comm, (ready - idle).clip(min=0)), np.minimum(comm, ready)


def blocked_ns(records: Rows) -> Ints:
    """Return how long each record was blocked in its communication and its idle time together.

    That is neither on a core nor ready. It is 0 where one of the two was not measured.
    """
    cpu, ready = records["comm_cpu"], records["comm_ready"]
    blocked: Ints = records["end"] - records["arrive"]
    blocked += records["comm_calls"]
    blocked -= cpu
    blocked -= ready
    if cpu.min(initial=0) == NOT_MEASURED or ready.min(initial=0) == NOT_MEASURED:
        blocked[(cpu == NOT_MEASURED) | (ready == NOT_MEASURED)] = 0
    return np.maximum(blocked, 0, out=blocked)


class CallTimes(NamedTuple):
    """How long the calls of primitives of each record were in which state, at least, in ns.

    The system tells it for the calls and the sync together.
    """

    core: Ints
    """On a core: the calls but for all time that was spent without one, wherever that was."""
    ready: Ints
    """Ready without a core: what the time from arrival to end does not hold."""
    blocked: Ints
    """The same of the time blocked."""


def call_times_ns(records: Rows, blocked: Ints) -> CallTimes:
    """Return how long the calls of primitives of each record were on a core, ready and blocked.

    Args:
        records: of a run.
        blocked: what :func:`blocked_ns` says of them.
    """
    found = CallTimes(*np.zeros((len(CallTimes._fields), len(records)), np.int64))
    rows = np.flatnonzero(records["comm_calls"])
    calls, cpu = records["comm_calls"][rows], records["comm_cpu"][rows]
    sync = records["end"][rows] - records["arrive"][rows]
    ready = records["comm_ready"][rows].clip(min=0)
    off = np.where(cpu == NOT_MEASURED, ready, calls + sync - cpu)
    found.core[rows] = (calls - off).clip(min=0)
    found.ready[rows] = np.minimum(calls, (ready - sync).clip(min=0))
    found.blocked[rows] = np.minimum(calls, (blocked[rows] - sync).clip(min=0))
    return found


def h_relation(run: Run) -> tuple[Floats, Floats]:
    """Return the bytes out of and into a process for each record.

    A traffic row counts for the process that called the primitive, and in the opposite
    direction for its partner, in the partner's record of the same superstep. If the run
    ended before the partner wrote that record, the partner's side is not counted.
    Transfers of a process to itself are not part of h.

    Returns:
        ``(h_out, h_in)``, each as long as ``run.records``.
    """
    return once(run, "h_relation", lambda: _h_relation(run))


def h_inside(run: Run, hosts: Ints) -> tuple[Floats, Floats]:
    """Return the part of :func:`h_relation` that processes exchanged inside their hosts.

    Args:
        run: the run.
        hosts: the number of a process's host, by pid.
    """
    caller = run.records["pid"][run.traffic["record"]]
    return _h_relation(run, hosts[caller] == hosts[run.traffic["partner"]])


def _h_relation(run: Run, counted: Bools | None = None) -> tuple[Floats, Floats]:
    if len(run.traffic) == 0:
        nothing = constant(0, len(run.records), np.float64)
        return nothing, nothing
    h_out, h_in = np.zeros((2, len(run.records)))
    rows, partner = run.traffic, partner_records(run)
    if counted is not None:
        rows, partner = rows[counted], partner[counted]
    caller, sizes = rows["record"], rows["bytes"].astype(np.float64)
    out, there = is_out(rows["direction"]), partner >= 0
    for sums, direction in ((h_out, out), (h_in, ~out)):
        for place, chosen in ((caller, direction), (partner, there & ~direction)):
            sums[:] += np.bincount(place[chosen], sizes[chosen], len(sums))
    return h_out, h_in


def partner_records(run: Run) -> Ints:
    """Return for each traffic row the position of its partner's record, -1 if there is none."""
    caller, partner = run.traffic["record"], run.traffic["partner"]
    if len(caller) == 0:
        return np.zeros(0, np.int64)
    by, nprocs = by_superstep(run), run.nprocs
    # With a process added, the key of a record is unique.
    pid, keys = run.records["pid"], by.of_record * nprocs
    find = finder(keys + pid, by.count * nprocs)
    return find(keys[caller] + partner)


@dataclass(frozen=True)
class Summary:
    """One metric over the supersteps k and processes i of a part of a run.

    In seconds, or in bytes for the h-relation. ``minimum <= average <= maximum``. In each
    superstep all processes of its group count; a process without a record there counts
    as 0. Where sub-groups run at the same time, the greatest of their maxima and the
    least of their minima count.

    Source: Jarvis et al. 2002, equations 2-5.
    """

    maximum: float
    """Sum over k of the greatest over i (equation 2)."""
    average: float
    """Sum over k of the mean over i (equation 3), which is the mean of the pie."""
    minimum: float
    """Sum over k of the least over i (equation 4)."""
    pie: tuple[float, ...]
    """Sum over k for each process of the root group; its maximum is equation 5."""

    def percentages(self) -> tuple[int, int]:
        """Return average and minimum in percent of the maximum, rounded half to even.

        Both are 100 if the maximum is 0: a cost of 0 is balanced.
        """
        if self.maximum == 0:
            return 100, 100
        return self._percent(self.average), self._percent(self.minimum)

    def _percent(self, value: float) -> int:
        # Seconds are not exact in binary: 1 ns of 8 ns must still be 12.5, a half.
        return round(round(100 * value / self.maximum, 9))


@dataclass(frozen=True)
class Cost:
    """The cost of a part of a run: a node, an edge or a path of the call graph."""

    count: int
    """Number of supersteps. The time from the last sync to the end of ``main`` has costs,
    but is not counted as a superstep."""
    elapsed_s: float
    """Time in which at least one process was in one of these supersteps, including their
    sub-groups. Not additive: supersteps may overlap."""
    comp: Summary
    comm: Summary
    idle: Summary
    h: Summary

    def __getitem__(self, metric: str) -> Summary:
        """Return the summary of a metric, one of ``bsplib.profiler.costs.METRICS``."""
        summaries = {"comp": self.comp, "comm": self.comm, "idle": self.idle, "h": self.h}
        return summaries[metric]
