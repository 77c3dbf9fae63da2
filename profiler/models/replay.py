"""The four cost models: the time that a recorded run would take on a Machine.

======= ======================================================================
model   a superstep costs
======= ======================================================================
BSP     max w + g max h + l
BSPWB   max w + max(g h + L) (Roda et al., equations 5 and 6)
MPM     Phi_i = max{Phi_j + w_j} + g h_i + L over j in Omega_i, which is i and
        those that send to i; h_i is the greatest over Omega_i (equations 7-10)
OBSP*   MPM with Omega_i = all processes at a global sync (Gonzalez et al., 1-3)
======= ======================================================================

The h of a process is in @ out, where @ is the Machine's rule, max or sum, since its g was
fitted to h by this rule. Where a probe has measured the Machine, g h + L is the measured time
of a superstep of this pattern, h and number of calls
(:mod:`bsplib.machine.measured`): of the greatest of each over the group (BSP, and OBSP* at a
global sync), of each process (BSPWB), of the greatest of each over Omega_i (MPM and OBSP*).
On a Machine of two levels, where the trace names the hosts, bytes
inside a host have a g of their own, and so has the l of a group on one host. The price of a
superstep is :meth:`bsplib.machine.Machine.parts_of`, which virtual processors use, too. The time
of a sub-group counts as computation of the superstep of its parent that contains it. BSP and
BSPWB price a sub-group separately, as if its processes entered together, and add its price to
the w of each of them; in MPM and OBSP* every process enters and leaves at its own time (xi_i).

In each superstep one process determines when the superstep ends. So the total is the
length of a path from process to process. The costs on this path are booked to the records
to which they belong: however the records are divided into parts, the parts add up to the
total.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.machine.measured import HRelation
from bsplib.profiler.prices import VIRTUAL
from bsplib.profiler.timeline import Step, Timeline
from bsplib.profiler.times_on_machine import clocks_of, greatest
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.prices import ReplayPrices

MODELS = ("BSP", "BSPWB", "MPM", "OBSP*")


class Booking(NamedTuple):
    """The time of a run, under a model or as measured, booked to its records.

    All arrays have one element for each record of the run, in the order of ``run.records``.
    Only records on the path that determines the total have values other than 0.
    """

    comp_s: NDArray[np.float64]
    """Computation."""
    comm_s: NDArray[np.float64]
    """Transfer of bytes, g h; of a measured time, all except computation, waiting and recording."""
    sync_s: NDArray[np.float64]
    """Start or end of supersteps, l or L; 0 in a measured time, whose ``comm_s`` includes it."""
    waiting_s: NDArray[np.float64]
    """Waiting for a core during computation; 0 under a model."""
    recording_s: NDArray[np.float64]
    """What the recorder took between supersteps; 0 under a model, which has none."""

    @property
    def total_s(self) -> float:
        """The total time of the run."""
        return float(sum(part.sum() for part in self))


def replay(timeline: Timeline, model: str, prices: ReplayPrices) -> Booking:
    """Replay a run under a model.

    Args:
        timeline: the timeline of the run.
        model: one of ``MODELS``.
        prices: the figures of the Machine.

    Raises:
        ValueError: there is no such model.
        UsageError: the Machine lacks a figure.
    """
    if model not in MODELS:
        raise ValueError(f"there is no model {model!r}; choose one of {', '.join(MODELS)}")
    if model in ("BSP", "BSPWB"):
        return _Barriers(timeline, model, prices).booking()
    return _by_messages(timeline, model, prices)


def measured(timeline: Timeline) -> Booking:
    """Book the measured time of the run, along the path of its waits."""
    books, records = _Books(timeline), timeline.run.records[timeline.position]
    record = int(np.argmax(records["end"])) if len(records) else -1
    while record >= 0:
        cause = _cause(timeline, record)
        after_s = (int(records["end"][record]) - int(records["arrive"][cause])) / 1e9
        books.communicated(record, after_s, 0.0)
        books.came_to(cause, as_measured=True)
        record = int(timeline.before[cause])
    return books.closed()


def _cause(timeline: Timeline, record: int) -> int:
    """Return the record of the same step whose arrival released this one."""
    records = timeline.run.records
    place = timeline.position[record]
    released = records["released"][place]
    if records["arrive"][place] == released:
        return record
    step: Step = timeline.steps[int(timeline.step[record])]
    arrive = records["arrive"][timeline.position[step.start : step.stop]]
    late: NDArray[np.int64] = np.abs(arrive - released)
    return step.start + int(np.argmin(late))


class _Books:
    """Adds up the costs that are booked to each record."""

    def __init__(self, timeline: Timeline, speed_ratio: float = 1.0) -> None:
        self._timeline = timeline
        self._ratio = speed_ratio
        self._sums = np.zeros((5, len(timeline.position)))
        pieces = timeline.pieces
        self._by_before = np.argsort(pieces.before, kind="stable")
        self._sorted = pieces.before[self._by_before]

    def computed(self, record: int, seconds: float) -> None:
        """Book computation to a record."""
        self._sums[0, record] += seconds

    def communicated(self, record: int, transfer_s: float, sync_s: float) -> None:
        """Book communication and synchronisation to a record."""
        self._sums[1, record] += transfer_s
        self._sums[2, record] += sync_s

    def came_to(self, record: int, *, as_measured: bool = False) -> None:
        """Book the computation of a process from its last sync to the arrival of a record.

        Args:
            record: the record.
            as_measured: book the time inside primitives, the waiting for a core, and what the
                recorder took, too.
        """
        pieces = self._timeline.pieces
        start, stop = np.searchsorted(self._sorted, [record, record + 1])
        chosen = self._by_before[start:stop]
        self._sums[0, pieces.owner[chosen]] += pieces.comp_s[chosen] * self._ratio
        if as_measured:
            self._sums[1, pieces.owner[chosen]] += pieces.calls_s[chosen]
            self._sums[3, pieces.owner[chosen]] += pieces.waiting_s[chosen]
            self._sums[4, pieces.owner[chosen]] += pieces.recording_s[chosen]

    def closed(self) -> Booking:
        """Return the sums in the order of the run's records."""
        sums = np.zeros_like(self._sums)
        sums[:, self._timeline.position] = self._sums
        return Booking(*sums)


# -- BSP and BSPWB --------------------------------------------------------------------------


class _Barriers:
    """BSP and BSPWB: each superstep begins and ends at the same time for the whole group."""

    def __init__(self, timeline: Timeline, model: str, prices: ReplayPrices) -> None:
        self._timeline = timeline
        self._groups = timeline.run.groups
        self._w_s = timeline.w_s * prices.ratio
        self._moved = prices.moved(timeline)
        self._each = model == "BSPWB"
        self._machines = prices.machines(timeline)
        own = model == "BSP" and not (prices.pattern == VIRTUAL or prices.machine.measured)
        chosen = replace(prices, pattern=None) if own else prices
        self._pattern = chosen.patterns_of(timeline)
        self._books = _Books(timeline, prices.ratio)
        self._totals = np.zeros(len(self._groups))
        self._deciding: list[tuple[int, int]] = []
        """For each step the process with the longest computation, and its record or -1."""

    def booking(self) -> Booking:
        """Compute the totals of all groups, then go back and book the costs on the path."""
        for number, step in enumerate(self._timeline.steps):
            self._end(number, step)
        on_path = np.zeros(len(self._groups), bool)
        on_path[0] = True
        for number in reversed(range(len(self._timeline.steps))):
            step = self._timeline.steps[number]
            if on_path[step.group]:
                self._book(number, step, on_path)
        return self._books.closed()

    def _end(self, number: int, step: Step) -> None:
        """Add the cost of a superstep to its group."""
        members = self._groups[step.group].members
        rows = slice(step.start, step.stop)
        if step.opened:
            computed = dict.fromkeys(members, 0.0)
            computed.update(zip(self._timeline.pid[rows].tolist(), self._w_s[rows], strict=True))
            for child in step.opened:
                for pid in self._groups[child].members:
                    computed[pid] += self._totals[child]
            process, longest = max(computed.items(), key=operator.itemgetter(1))
            found = np.flatnonzero(self._timeline.pid[rows] == process)
            record = step.start + int(found[0]) if len(found) else -1
        else:
            record = step.start + int(np.argmax(self._w_s[rows]))
            process, longest = int(self._timeline.pid[record]), self._w_s[record]
        self._deciding.append((process, record))
        self._totals[step.group] += longest
        if step.kind != Kind.END:
            self._totals[step.group] += sum(self._price(number, step)[1])

    def _price(self, number: int, step: Step) -> tuple[int, tuple[float, float]]:
        """Return the record to which the communication of a superstep is booked, and its price."""
        rows = slice(step.start, step.stop)
        moved = HRelation(*(amount[rows] for amount in self._moved))
        machine, pattern = self._machines[step.group], self._pattern[number]
        size = self._groups[step.group].size
        if self._each:
            transfer_s, sync_s = machine.parts_of(moved, pattern, size)
            greatest = int(np.argmax(transfer_s))
            return step.start + greatest, (float(transfer_s[greatest]), float(sync_s))
        most = HRelation(*(amount.max() for amount in moved))
        transfer_s, sync_s = machine.parts_of(most, pattern, size)
        return step.start + int(np.argmax(moved.h)), (float(transfer_s), float(sync_s))

    def _book(self, number: int, step: Step, on_path: NDArray[np.bool_]) -> None:
        """Book the costs that determined when a superstep ended; mark sub-groups on the path."""
        process, record = self._deciding[number]
        if record >= 0:
            self._books.computed(record, self._w_s[record])
        for child in step.opened:
            on_path[child] = process in self._groups[child].members
        if step.kind != Kind.END:
            record, price = self._price(number, step)
            self._books.communicated(record, *price)


# -- MPM and OBSP* --------------------------------------------------------------------------


def _by_messages(timeline: Timeline, model: str, prices: ReplayPrices) -> Booking:
    """MPM and OBSP*: a process waits for its senders, or (in OBSP*, at a sync) for all."""
    books, barriers = _Books(timeline, prices.ratio), model == "OBSP*"
    price = _prices(timeline, prices, barriers)
    ahead_s = timeline.ahead_s * prices.ratio
    clocks = clocks_of(timeline, ahead_s, price.sum(axis=0), barriers=barriers)
    last = np.full(timeline.run.nprocs, -1)
    last[timeline.pid] = np.arange(len(timeline.pid))
    ended = np.where(last < 0, 0.0, clocks.end[last] if len(clocks.end) else 0.0)
    record = int(last[np.argmax(ended)]) if len(ended) else -1
    while record >= 0:  # back from the process that ends last, from each wait to its cause
        books.communicated(record, *price[:, record].tolist())
        cause = int(clocks.cause[record])
        books.came_to(cause)
        record = int(timeline.before[cause])
    return books.closed()


def _prices(timeline: Timeline, prices: ReplayPrices, barriers: bool) -> NDArray[np.float64]:
    """Return the seconds of communication and of synchronisation of each record.

    They are those of the greatest that any of the processes moves that it waits for.
    """
    found = np.zeros((2, len(timeline.position)))
    moved = HRelation(
        *(greatest(timeline, each, barriers=barriers) for each in prices.moved(timeline))
    )
    machines, patterns = prices.machines(timeline), prices.patterns_of(timeline)
    alike: dict[tuple[int, str | None, int], list[int]] = defaultdict(list)
    for number, (step, pattern) in enumerate(zip(timeline.steps, patterns, strict=True)):
        if step.kind != Kind.END:
            size = timeline.run.groups[step.group].size
            alike[id(machines[step.group]), pattern, size].append(number)
    for (_, pattern, size), steps in alike.items():
        rows = np.flatnonzero(np.isin(timeline.step, steps))
        machine = machines[timeline.steps[steps[0]].group]
        mine = HRelation(*(each[rows] for each in moved))
        found[0, rows], found[1, rows] = machine.parts_of(mine, pattern, size)
    return found
