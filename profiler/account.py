"""The account of a run: elapsed time x processes, divided by what it was used for.

Every nanosecond of every process is booked once, under one of ``PARTS``, so that the parts
add up to the elapsed time times the number of processes, in whole numbers. They add up over
processes, over nodes of the call graph and over supersteps, too.

A record is divided where its times divide it. Its computing part (start to arrival, without
calls of primitives and sub-groups) is time on a core, time without a core, and the rest:
time blocked. Its communication (calls, and release to end) is, in this order and each at most
what is left: time that was certainly without a core, time that was certainly blocked in calls,
g h of the process or its time in calls on a core, whichever is longer, g times what the greatest h
exceeds it, l, time that may have been without a core, time that was certainly blocked after the
release, and the rest, which is not explained. Where its idle time (arrival to release) has its
roots, :mod:`bsplib.profiler.book` finds. At the end of ``main`` processes wait for the last one.
Between two records is the time of the recorder, and outside all records start and end.

Source: cost of a superstep, ``w + g h + l`` (Jarvis et al. 2002, section 2.1).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.errors import TraceError
from bsplib.profiler._by_step import TableBySuperstep
from bsplib.profiler._numbering import preceding, ranked
from bsplib.profiler.costs import (
    blocked_ns,
    by_superstep,
    call_times_ns,
    communication_ns,
    computing_of,
    h_relation,
    record_around,
    without_core_ns,
)
from bsplib.profiler.survey import FEW_BYTES, is_virtual
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Bools, Floats, Ints, Rows
    from bsplib.profiler._by_step import BySuperstep
    from bsplib.profiler.costs import CallTimes, Computing
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


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
"""Names of the parts, in the order in which they are shown, and those in texts for users."""
PARTS = tuple(TITLES)
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


class Account:
    """The account of the records of a window of a run, at given rates.

    Args:
        window: the window of a run whose records are well-formed
            (``bsplib.recording.trace.read_trace``).
        rates: what a byte and a superstep cost. At other rates the sum is the same, and
            transfers, latency and what is not explained are divided differently.

    Raises:
        TraceError: the records of a process overlap.
    """

    def __init__(self, window: RunWindow, rates: Rates) -> None:
        self.window = window
        self.run = run = _ended_together(window.run)
        """The run in the window; see :func:`_ended_together`."""
        self.rates = rates
        self.position, self.halo = window.position, window.halo
        by = by_superstep(run)
        self.step = by.of_record
        """For each record the number of its superstep."""
        self.behind, self.is_blamed = _with_blamed(run, _arrived_last(run, by))
        """For each record the position of the record that it waited for, as
        :func:`_arrived_last` finds it."""
        self.before = _before(run, by)
        """For each record the position of the one before it, of its process and group; or -1."""
        h_out, h_in = self.h_out_and_in = h_relation(run)
        self.h = np.maximum(h_out, h_in) if rates.rule == "max" else h_out + h_in
        """h of each record, by the rule of the rates."""
        self.h_max = by.greatest(self.h)
        """For each superstep its greatest h, by the rule of the rates."""
        self.owner = record_around(run)
        """For each record of a sub-group the position of the record that it is inside of; or -1."""
        self._inside = _inside(run, self.owner)
        self._outermost = self.owner < 0
        self.gap, self._recording = self._between()

    @cached_property
    def earlier(self) -> Ints:
        """For each record the position of the one before it of its process, in any group; or -1."""
        if len(self.run.groups) == 1:
            return self.before
        return preceding(self.run.records["pid"].astype(np.int64))

    def covered(self) -> Ints:
        """Return how much of the time of each process is in its records, and between them."""
        records = self.run.records[self.halo :]
        mine, gap = self._outermost[self.halo :], self.gap[self.halo :]
        covered = np.zeros(self.run.nprocs, np.int64)
        np.add.at(covered, records["pid"], (records["end"] - records["start"] + gap) * mine)
        return covered

    @cached_property
    def computing(self) -> Computing:
        """The computing parts of the records, with those of the halo."""
        return computing_of(self.run.records)

    @cached_property
    def communication(self) -> Communication:
        """The communication of the records by the rates, with those of the halo."""
        records, g = self.run.records, self.rates.g * 1e9
        # What the system tells for certain comes before what only the rates say.
        waited = without_core_ns(records)[0]
        asleep, rest = taken(communication_ns(records) - waited, self.calls.blocked)
        own = greatest = np.zeros(len(rest), np.int64)
        if self.h_max.any():
            own, greatest = (_up(g * values) for values in (self.h, self.h_max[self.step]))
        over, moves_many = (self.calls.core - own).clip(min=0), self.h > FEW_BYTES
        transfers, rest = taken(rest, own + over * moves_many)
        calls, rest = taken(rest, over * ~moves_many)
        uneven, rest = taken(rest, (greatest - transfers - calls).clip(min=0))
        ends = records["kind"] != Kind.END  # the end of main is no sync, which would cost l
        latency, rest = taken(rest, ends * _up(np.array(self.rates.l * 1e9)))
        if is_virtual(self.run):  # the price of the Machine is all there is
            moves = greatest > 0
            transfers, latency = transfers + rest * moves, latency + rest * ~moves
            rest = np.zeros_like(rest)
        more, rest = taken(rest, records["comm_ready"].clip(min=0) - waited)
        idle = records["released"] - records["arrive"]
        later, rest = taken(rest, (self._blocked - idle).clip(min=0) - asleep)
        blocked = asleep + later
        return Communication(transfers, calls, uneven, latency, waited + more, blocked, rest)

    @cached_property
    def calls(self) -> CallTimes:
        """What is known for certain of the calls of the records, with those of the halo."""
        return call_times_ns(self.run.records, self._blocked)

    @cached_property
    def _blocked(self) -> Ints:
        return blocked_ns(self.run.records)

    def own(self, rows: slice) -> Ints:
        """Return the parts of some records without their idle time."""
        records, computing = self.run.records[rows], self.computing
        parts = np.zeros((len(PARTS), len(records)), np.int64)
        transfers, calls, uneven, latency, waited, blocked, rest = (
            part[rows] for part in self.communication
        )
        parts[USEFUL], parts[BLOCKED] = computing.core[rows], computing.blocked[rows] + blocked
        parts[TRANSFERS], parts[TRANSFER_IMBALANCE] = transfers + calls, uneven
        parts[LATENCY], parts[CORE] = latency, computing.waited[rows] + waited
        recording, unknown = self.between
        parts[RECORDING] = recording[rows]
        parts[UNEXPLAINED] = rest + unknown[rows]
        return parts

    @cached_property
    def between(self) -> tuple[Ints, Ints]:
        """Time before each record, or in it around its sub-groups: of the recorder, and other."""
        return taken(self.gap + self.run.records["sub"] - self._inside, self._recording)

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
                f"{_named(records, row)} begins {-gap[row]} ns before the end of the one before "
                "it: the trace is damaged"
            )
        return gap, recording


class Communication(NamedTuple):
    """The communication of some records by the rates, in nanoseconds."""

    transfers: Ints
    """g h of the process; of many bytes its time in calls on a core, if that is longer."""
    calls: Ints
    """What its time in calls on a core exceeds that by; it is booked as transfers, too."""
    uneven: Ints
    """What g times the greatest h of the superstep exceeds both."""
    latency: Ints
    """l."""
    core: Ints
    """Ready without a core."""
    blocked: Ints
    """Blocked longer than the process was idle."""
    rest: Ints
    """What is left."""


def _ended_together(run: Run) -> Run:
    """Let the processes of a run end together: those that leave ``main`` wait for the last one.

    The caller of the run does, too, so that it is lost what one of them does alone in the end.
    """
    records = run.records
    ends = np.flatnonzero((records["kind"] == Kind.END) & (records["group"] == 0))
    if len(ends) < run.nprocs or np.ptp(records["superstep"][ends]):
        return run
    last, rows = records["end"][ends].max(), records.copy()
    for name in ("released", "end"):
        rows[name][ends] = last
    if isinstance(rows, np.ndarray):  # columns cannot be changed anyway
        rows.setflags(write=False)
    found = replace(run, records=rows)
    found.derived.update(run.derived)
    return found


def _named(records: Rows, row: int) -> str:
    """Return the name of a record in errors."""
    pid, group, superstep = (records[name][row] for name in ("pid", "group", "superstep"))
    return f"superstep {superstep} of process {pid} in group {group}"


def taken(rest: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Take at most ``most`` of each rest; return what was taken, and what is left."""
    part = np.minimum(rest, most)
    return part, rest - part


def _up(ns: Floats) -> Ints:
    """Round up to whole nanoseconds, but for the rounding errors of the product."""
    return np.ceil(ns - 1e-6).astype(np.int64)


def _arrived_last(run: Run, by: BySuperstep) -> Ints:
    """Return for each record the one of its superstep whose arrival released it.

    That is the latest one that arrived no later than the release: after a global sync the last
    of all, of equals the one of the lowest pid, so that all go on from one path. After an oblivious
    one it is the last of those that were waited for, and of those that waited for none their own.
    """
    records = run.records
    arrive, released = records["arrive"], records["released"]
    behind: Ints = by.spread(by.leader(arrive))
    early = np.flatnonzero(by.spread(by.greatest(arrive)) != released)
    if len(early):
        step = by.of_record
        order = np.lexsort((-records["pid"], arrive, step))
        behind[early] = order[_latest(arrive[order], step[order], released[early], step[early])]
    # After an oblivious superstep those waited for nobody.
    own = np.flatnonzero((arrive == released) & (records["kind"] != Kind.SYNC))
    behind[own] = own
    return behind


def _with_blamed(run: Run, behind: Ints) -> tuple[Ints, Bools | None]:
    """Put those that the trace blames in place of the last arrivals; mark the records.

    In a run with the times of another Machine all that wait at once wait for the last arrival.
    """
    if run.waits is None or is_virtual(run):
        return behind, None
    marked = np.zeros(len(behind), bool)
    marked[run.waits["record"]] = True
    behind[run.waits["record"]] = run.waits["behind"]
    return behind, marked


def _latest(arrive: Ints, steps: Ints, released: Ints, step: Ints) -> Ints:
    """Return positions of the latest arrivals of a superstep up to a time, in sorted columns."""
    times, rank = ranked(np.concatenate([arrive, released]))  # products of times would overflow
    keys = np.concatenate([steps, step]) * len(times) + rank
    places = np.searchsorted(keys[: len(steps)], keys[len(steps) :], side="right")
    latest: Ints = np.maximum(places - 1, np.searchsorted(steps, step))
    return latest


def _before(run: Run, by: BySuperstep) -> Ints:
    """Return for each record the one before it of its process and group; -1 for the first."""
    if isinstance(by, TableBySuperstep):
        return by.preceding()
    keys = run.records["pid"].astype(np.int64)
    if len(run.groups) > 1:
        keys = keys * len(run.groups) + run.records["group"]
    return preceding(keys)  # those of one process and group are in order


def _inside(run: Run, owner: Ints) -> Ints:
    """Return how much of the time of each record in sub-groups is in records of these.

    Args:
        run: the run.
        owner: the result of :func:`record_around`.
    """
    records = run.records
    inside, known = np.zeros(len(records), np.int64), np.flatnonzero(owner >= 0)
    np.add.at(inside, owner[known], records["end"][known] - records["start"][known])
    if (inside > records["sub"]).any():
        row = int((inside - records["sub"]).argmax())
        raise TraceError(
            f"{_named(records, row)} spends {records['sub'][row]} ns in sub-groups, which take "
            f"{inside[row]} ns: the trace is damaged"
        )
    return inside
