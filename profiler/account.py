"""The account of a run: elapsed time x processes, divided by what it was used for.

Every nanosecond of every process is booked once, under one of ``PARTS``, so that the parts
add up to the elapsed time times the number of processes, in whole numbers. They add up over
processes, over nodes of the call graph and over supersteps, too.

A record is divided where its times divide it. Its computing part (start to arrival, without
calls of primitives and sub-groups) is time on a core, time without a core, and the rest:
time blocked. Its communication (calls, and release to end) is, in this order and each at most
what is left: time that was certainly without a core, g h of the process, g times what the
greatest h exceeds it, l, time that may have been without a core, and the rest, which is not
explained. Its idle time (arrival to release) is shared out
by what the process that arrived last did longer: it computed (imbalance of computation), was
blocked, had no core, called primitives (imbalance of transfers), or began the superstep later.
Between two records is the time of the recorder, and outside all records start and end.

Source: cost of a superstep, ``w + g h + l`` (Jarvis et al. 2002, section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.errors import TraceError
from bsplib.profiler._numbering import blocks, finder
from bsplib.profiler.costs import (
    calls_without_core_ns,
    communication_ns,
    h_relation,
    span_of,
    superstep_numbers,
    without_core_ns,
)
from bsplib.recording.records import NOT_MEASURED
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler.rates import Rates
    from bsplib.recording.records import Run

    Ints = NDArray[np.int64]

PARTS = (
    "useful",
    "imbalance",
    "transfers",
    "transfer_imbalance",
    "latency",
    "blocked",
    "core",
    "recording",
    "ends",
    "unexplained",
)
"""Names of the parts, in the order in which they are shown."""
TITLES = {
    "useful": "useful computation",
    "imbalance": "imbalance of computation",
    "transfers": "transfers (g h)",
    "transfer_imbalance": "imbalance of transfers",
    "latency": "superstep latency (l)",
    "blocked": "blocked",
    "core": "waiting for a core",
    "recording": "recording",
    "ends": "start and end",
    "unexplained": "unexplained",
}
"""Names of the parts in texts for users."""
(
    USEFUL,
    IMBALANCE,
    TRANSFERS,
    TRANSFER_IMBALANCE,
    LATENCY,
    BLOCKED,
    CORE,
    RECORDING,
    ENDS,
    UNEXPLAINED,
) = range(len(PARTS))

CAUSES = ("comp", "groups", "blocked", "core", "calls", "late")
"""Why a process arrived last: it computed longer, was longer in sub-groups, blocked, without a
core or in calls, or it began the superstep later."""
COMP, GROUPS, WAS_BLOCKED, NO_CORE, CALLS, LATE = range(len(CAUSES))

_PART_OF = {
    COMP: IMBALANCE,
    GROUPS: IMBALANCE,
    WAS_BLOCKED: BLOCKED,
    NO_CORE: CORE,
    CALLS: TRANSFER_IMBALANCE,
}
"""Under which part idle time is booked, by cause; for LATE see :meth:`Account._book_late`."""


class BookedRows(NamedTuple):
    """What is booked for successive records of a run."""

    rows: slice
    """Positions of the records."""
    parts: Ints
    """Nanoseconds, shape (parts, records)."""
    waits: Ints
    """The idle time of the records by its cause, a part of ``parts``: (causes, records)."""


@dataclass(frozen=True)
class Computing:
    """What the computing parts of some records consist of, in nanoseconds."""

    core: Ints
    blocked: Ints
    waited: Ints

    def rows(self, records: NDArray[np.void]) -> Ints:
        """Return what can delay an arrival, by cause: shape (causes, records)."""
        waited = calls_without_core_ns(records)
        return np.stack(
            [
                self.core,
                records["sub"],
                self.blocked,
                self.waited + waited,
                records["comm_calls"] - waited,
                records["start"],
            ]
        )


class Account:
    """The account of a run at given rates.

    Args:
        run: the run; its records are well-formed (``bsplib.recording.trace.read_trace``).
        rates: what a byte and a superstep cost. At other rates the sum is the same, and
            transfers, latency and what is not explained are divided differently.

    Raises:
        TraceError: the records of a process take more time than the run.
    """

    def __init__(self, run: Run, rates: Rates) -> None:
        self.run = run
        self.rates = rates
        self.step = superstep_numbers(run)
        """For each record the number of its superstep."""
        self.behind, self._blamed = _with_blamed(run, _arrived_last(run, self.step))
        """For each record the position of the record that it waited for; of those that
        arrived last their own."""
        self.before = _before(run)
        """For each record the position of the one before it, of its process and group; or -1."""
        h_out, h_in = self.h_out_and_in = h_relation(run, self.step)
        self._h = np.maximum(h_out, h_in) if rates.rule == "max" else h_out + h_in
        self.h_max = np.zeros(int(self.step.max(initial=-1)) + 1)
        """For each superstep its greatest h, by the rule of the rates."""
        for part in blocks(len(self.step)):
            np.maximum.at(self.h_max, self.step[part], self._h[part])
        self._inside, self.owner = _inside(run)
        self._outermost = self.owner < 0
        self._gap, self._recording = self._between()
        self.begin_ns, self.end_ns = span_of(run)
        self.outside = self._outside()
        """Time of each process outside its records: shape (parts, processes)."""
        self._virtual = run.meta.get("backend") == "sim" or "virtual_time" in run.meta

    @property
    def elapsed_ns(self) -> int:
        """Elapsed time of the run."""
        return self.end_ns - self.begin_ns

    def in_supersteps_ns(self) -> int:
        """Return the time of all processes in supersteps, while they had a core.

        What the recorder, the start and the end of a run and other programs take does not
        decide what is worth a sentence about the program.
        """
        spent = self.whole()
        others = spent["recording"] + spent["ends"] + spent["core"]
        return self.elapsed_ns * self.run.nprocs - others

    def blocks(self) -> Iterator[BookedRows]:
        """Return what is booked for each record, for one block of records after another."""
        for rows in blocks(len(self.step)):
            parts = self._own(rows)
            waits = self._waits(rows)
            for cause, part in _PART_OF.items():
                parts[part] += waits[cause]
            self._book_late(rows, waits[LATE], parts)
            parts[UNEXPLAINED] += self._idle(rows) - waits.sum(axis=0)
            yield BookedRows(rows, parts, waits)

    def by_process(self) -> Ints:
        """Return the account of each process: shape (parts, processes), with start and end."""
        return self._by_process

    @cached_property
    def _by_process(self) -> Ints:
        return self.sums(self.run.records["pid"], self.run.nprocs) + self.outside

    def whole(self) -> dict[str, int]:
        """Return the account of the run in nanoseconds, by name of the part."""
        return dict(zip(PARTS, self.by_process().sum(axis=1).tolist(), strict=True))

    def sums(self, keys: NDArray[np.integer], count: int) -> Ints:
        """Sum up what is booked for records.

        Args:
            keys: for each record a number from 0 to ``count`` - 1, such as its process or its
                superstep; -1 for records that are left out.
            count: number of sums.

        Returns:
            Nanoseconds, shape (parts, sums).
        """
        sums = np.zeros((len(PARTS), count), np.int64)
        for block in self.blocks():
            key = keys[block.rows]
            kept = key >= 0
            for total, values in zip(sums, block.parts, strict=True):
                np.add.at(total, key[kept], values[kept])
        return sums

    def computing(self, rows: slice | Ints) -> Computing:
        """Divide the computing parts of some records.

        Where the system has no measure of the time without a core, what is not CPU time is
        taken for it; where it does not measure CPU time either, all is computation.
        """
        records = self.run.records[rows]
        spent = records["arrive"] - records["start"] - records["comm_calls"] - records["sub"]
        cpu, ready = records["comp_cpu"], records["comp_ready"]
        has_cpu, has_ready = cpu != NOT_MEASURED, ready != NOT_MEASURED
        off = np.where(has_cpu, spent - np.minimum(cpu, spent), np.where(has_ready, ready, 0))
        waited = np.where(has_ready, np.minimum(ready, off), off)
        return Computing(spent - off, off - waited, waited)

    def price_ns(self) -> Ints:
        """Return what the end of each record's superstep costs, g h + l, by the greatest h."""
        ends = self.run.records["kind"] != Kind.END
        transfers = _up(self.rates.g * 1e9 * self.h_max[self.step])
        price: Ints = (transfers + _up(self.rates.l * 1e9 * ends)) * ends
        return price

    def communication(self, rows: slice | Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Divide the communication of some records by the rates.

        Returns:
            g h of the process, g times what the greatest h of the superstep exceeds it, l, and
            what is left; that has all time that was certainly without a core.
        """
        records, g = self.run.records[rows], self.rates.g * 1e9
        waited = without_core_ns(records)[0]
        rest = communication_ns(records) - waited
        own, greatest = (_up(g * values) for values in (self._h[rows], self.h_max[self.step[rows]]))
        transfers, rest = _taken(rest, own)
        uneven, rest = _taken(rest, greatest - own)
        ends = records["kind"] != Kind.END
        latency, rest = _taken(rest, _up(self.rates.l * 1e9 * ends))
        if self._virtual:  # the price of the Machine is all there is
            moves = greatest > 0
            transfers, latency = transfers + rest * moves, latency + rest * ~moves
            rest = np.zeros_like(rest)
        return transfers, uneven, latency, rest + waited

    def _own(self, rows: slice) -> Ints:
        """Return the parts of some records without their idle time."""
        records, computing = self.run.records[rows], self.computing(rows)
        parts = np.zeros((len(PARTS), len(records)), np.int64)
        transfers, uneven, latency, rest = self.communication(rows)
        waited, rest = _taken(rest, records["comm_ready"].clip(min=0))
        parts[USEFUL], parts[BLOCKED] = computing.core, computing.blocked
        parts[TRANSFERS], parts[TRANSFER_IMBALANCE], parts[LATENCY] = transfers, uneven, latency
        parts[CORE] = computing.waited + waited
        between = self._gap[rows] + records["sub"] - self._inside[rows]
        parts[RECORDING], unknown = _taken(between, self._recording[rows])
        parts[UNEXPLAINED] = rest + unknown
        return parts

    def _idle(self, rows: slice) -> Ints:
        idle: Ints = self.run.records["released"][rows] - self.run.records["arrive"][rows]
        return idle

    def _waits(self, rows: slice) -> Ints:
        """Share out the idle time of some records by what their last process did longer."""
        behind = self.behind[rows]
        records = self.run.records
        longer = self.computing(behind).rows(records[behind])
        longer -= self.computing(rows).rows(records[rows])
        longer = longer.clip(min=0)
        if self._blamed is not None:
            self._weigh_blamed(rows, longer)
        return shared_out(self._idle(rows), longer)

    def _weigh_blamed(self, rows: slice, longer: Ints) -> None:
        """Weigh what records did for which the trace itself says who waited for them.

        They need not be of the same superstep. So it counts what they did during the wait: their
        computing part, in which those matter that they did longer, or transfers after it, without
        the time for which they had no core.
        """
        records, behind = self.run.records[rows], self.behind[rows]
        others = self.run.records[behind]
        apart = (self.step[rows] != self.step[behind]) | (records["kind"] == Kind.OBLSYNC)
        apart |= (records["sub"] > 0) | (others["sub"] > 0)
        chosen = np.flatnonzero(apart & self._blamed[rows])  # type: ignore[index]  # not None
        if len(chosen) == 0:
            return
        records, others, behind = records[chosen], others[chosen], behind[chosen]
        weights = longer[:, chosen]
        weights[[GROUPS, LATE]] = 0
        alike = weights.sum(axis=0) == 0
        every = self.computing(behind).rows(others)
        every[[GROUPS, LATE]] = 0
        weights[:, alike] = every[:, alike]
        front = _common(records, others["start"] + others["sub"], others["arrive"])
        weights = shared_out(front, weights)
        tail = _common(records, others["released"], others["end"])
        lasted = others["comm_calls"] + others["end"] - others["arrive"]
        coreless = (tail * (others["comm_ready"].clip(min=0) / np.maximum(lasted, 1))).astype(int)
        weights[NO_CORE] += coreless
        weights[CALLS] += tail - coreless
        longer[:, chosen] = weights

    def _book_late(self, rows: slice, late: Ints, parts: Ints) -> None:
        """Book what a process waits for one that began the superstep later.

        That one left the superstep before later: for its bytes, for l, for want of a core, or
        for no known reason; after an oblivious superstep, since it had waited longer. In the
        first superstep of a run it was started later.
        """
        before = self.before[self.behind[rows]]
        first = before < 0  # and what follows for record -1 is not used
        records, root = self.run.records[before], self.run.records["group"][rows] == 0
        parts[ENDS] += late * (first & root)
        parts[IMBALANCE] += late * (first & ~root)
        rest = late * ~first
        transfers, uneven, latency, _ = self.communication(before)
        limits = (
            (RECORDING, self.run.records["recording"][self.behind[rows]]),
            (TRANSFER_IMBALANCE, transfers + uneven),
            (LATENCY, latency),
            (CORE, records["comm_ready"].clip(min=0)),
        )
        for part, most in limits:
            taken, rest = _taken(rest, most)
            parts[part] += taken
        waited = (records["kind"] == Kind.OBLSYNC) | self._virtual
        parts[IMBALANCE] += rest * waited
        parts[UNEXPLAINED] += rest * ~waited

    def _between(self) -> tuple[Ints, Ints]:
        """Return the time between each record and the one before it, and what of it is recording.

        In a sub-group both are part of the time of the record that the sub-group is inside of,
        and are given there.
        """
        records, before = self.run.records, self.before
        known = (before >= 0) & self._outermost
        gap = np.where(known, records["start"] - records["end"][before], 0)
        recording = np.where(self._outermost, records["recording"], 0)
        inside = np.flatnonzero(~self._outermost)
        np.add.at(recording, self.owner[inside], records["recording"][inside])
        if (gap < 0).any():
            row = int(gap.argmin())
            raise TraceError(
                f"record {row} begins {-gap[row]} ns before the end of the one before it, number "
                f"{before[row]}: the trace is damaged"
            )
        return gap, recording

    def _outside(self) -> Ints:
        """Return the time of each process outside its records: shape (parts, processes)."""
        run = self.run
        rows = run.records[self._outermost]
        covered = np.zeros(run.nprocs, np.int64)
        np.add.at(covered, rows["pid"], rows["end"] - rows["start"] + self._gap[self._outermost])
        outside = np.zeros((len(PARTS), run.nprocs), np.int64)
        outside[ENDS] = self.elapsed_ns - covered
        life = run.lifetime
        if life is not None and life.returned is not None and life.collected is not None:
            written = np.full(run.nprocs, max(life.returned - life.collected, 0))
            outside[RECORDING], outside[ENDS] = _taken(outside[ENDS], written)
        if (outside < 0).any():
            pid = int(outside[ENDS].argmin())
            raise TraceError(
                f"the records of process {pid} take {covered[pid]} ns, and the run only "
                f"{self.elapsed_ns} ns: they overlap, so the trace is damaged"
            )
        return outside


def _common(records: NDArray[np.void], low: Ints, high: Ints) -> Ints:
    """Return how much of the idle time of records lies in some ranges of time."""
    begin, end = np.maximum(low, records["arrive"]), np.minimum(high, records["released"])
    common: Ints = (end - begin).clip(min=0)
    return common


def shared_out(amount: Ints, weights: Ints) -> Ints:
    """Divide amounts in proportion to weights, into whole numbers with the same sums.

    Args:
        amount: for each column.
        weights: none is negative; one row for each share.

    Returns:
        Shares as rows; of a column without weights all are 0.
    """
    total = weights.sum(axis=0)
    shares: Ints = np.floor(amount * (weights / np.maximum(total, 1))).astype(np.int64)
    columns = np.arange(weights.shape[1])
    # What rounding leaves belongs to the greatest; it can be -1 only where that has more.
    shares[weights.argmax(axis=0), columns] += np.where(total > 0, amount - shares.sum(axis=0), 0)
    return shares


def _taken(rest: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Take at most so much of what is left; return both."""
    taken = np.minimum(rest, most)
    return taken, rest - taken


def _up(ns: NDArray[np.float64]) -> Ints:
    """Round up to whole nanoseconds, but for the rounding errors of the product."""
    return np.ceil(ns - 1e-6).astype(np.int64)


def _arrived_last(run: Run, step: Ints) -> Ints:
    """Return for each record the one of its superstep whose arrival released it.

    That is the latest one that arrived no later than the release: after a global sync the last
    of all, after an oblivious one the last of those that were waited for.
    """
    records = run.records
    order = np.lexsort((-records["pid"], records["arrive"], step))
    if len(order) == 0:
        return order.astype(np.int64)
    arrive, step_in_order = records["arrive"][order], step[order]
    last = np.append(np.flatnonzero(np.diff(step_in_order)), len(order) - 1)
    behind: Ints = order[last[step]]
    early = np.flatnonzero(records["arrive"][behind] != records["released"])
    if len(early):
        behind[early] = order[
            _latest(arrive, step_in_order, records["released"][early], step[early])
        ]
    own = np.flatnonzero(records["arrive"] == records["released"])
    behind[own] = own
    return behind


def _with_blamed(run: Run, behind: Ints) -> tuple[Ints, NDArray[np.bool_] | None]:
    """Put those that the trace blames in place of the last arrivals; mark the records."""
    if run.waits is None:
        return behind, None
    marked = np.zeros(len(behind), bool)
    marked[run.waits["record"]] = True
    behind[run.waits["record"]] = run.waits["behind"]
    return behind, marked


def _latest(arrive: Ints, steps: Ints, released: Ints, step: Ints) -> Ints:
    """Return positions of the latest arrivals of a superstep up to a time, in sorted columns."""
    low: Ints = np.searchsorted(steps, step).astype(np.int64)
    high: Ints = np.searchsorted(steps, step, side="right").astype(np.int64)
    while (low + 1 < high).any():  # halves, for all at once
        middle = (low + high) // 2
        early = arrive[middle.clip(max=len(arrive) - 1)] <= released
        low, high = np.where(early, middle, low), np.where(early, high, middle.clip(min=low + 1))
    return low


def _before(run: Run) -> Ints:
    """Return for each record the one before it of its process and group; -1 for the first."""
    pid, group = run.records["pid"], run.records["group"]
    order = np.lexsort((run.records["superstep"], group, pid))
    before = np.full(len(order), -1, np.int64)
    same = (pid[order][1:] == pid[order][:-1]) & (group[order][1:] == group[order][:-1])
    before[order[1:][same]] = order[:-1][same]
    return before


def _inside(run: Run) -> tuple[Ints, Ints]:
    """Return how much of the time of each record in sub-groups is in records of these.

    Returns:
        Nanoseconds; and for each record of a sub-group the position of the record of the same
        process that it is inside. That is -1 for the root group, and for others where a run
        broke off.
    """
    records = run.records
    inside, owner = np.zeros(len(records), np.int64), np.full(len(records), -1, np.int64)
    rows = np.flatnonzero(records["group"])
    if len(rows) == 0:
        return inside, owner
    parent = np.array([entry.parent for entry in run.groups], np.int64)
    opened = np.array([entry.superstep for entry in run.groups], np.int64)
    most = int(max(records["superstep"].max(), opened.max())) + 1
    keys = (records["group"].astype(np.int64) * most + records["superstep"]) * run.nprocs
    keys += records["pid"]
    find = finder(keys, len(run.groups) * most * run.nprocs)
    group = records["group"][rows]
    owner[rows] = find((parent[group] * most + opened[group]) * run.nprocs + records["pid"][rows])
    known = rows[owner[rows] >= 0]
    np.add.at(inside, owner[known], records["end"][known] - records["start"][known])
    if (inside > records["sub"]).any():
        row = int((inside - records["sub"]).argmax())
        raise TraceError(
            f"record {row} spends {records['sub'][row]} ns in sub-groups, whose records take "
            f"{inside[row]} ns: the trace is damaged"
        )
    return inside, owner
