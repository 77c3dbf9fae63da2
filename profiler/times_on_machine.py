"""The clocks of a run, and the run with the times that it would have on another Machine.

A process goes on from a global sync when all processes of its group have arrived, and from an
oblivious one when those have that send to it. Between two syncs it takes what it computes, and
after its release what the Machine says. From these durations follow the times of all records
(Gonzalez et al., equations 1 to 3), for the models that replay a run
(:mod:`bsplib.profiler.models.replay`) as for the account of a run on another Machine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.costs import (
    by_superstep,
    computing_of,
    group_columns,
    h_relation,
    record_around,
)
from bsplib.profiler.timeline import Timeline
from bsplib.profiler.window import restricted
from bsplib.recording.records import NOT_MEASURED
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Bools, Ints, Numbers
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.timeline import Pieces, Step
    from bsplib.recording.records import Run


class RecordTimes(NamedTuple):
    """The times of records, in the order of the steps, in the unit of the durations."""

    arrive: Numbers
    released: Numbers
    end: Numbers
    cause: Ints
    """The record whose arrival released each record; of those that waited for none their own."""


def clocks_of(
    order: Timeline, ahead: Numbers, price: Numbers, *, barriers: bool = True
) -> RecordTimes:
    """Return the times of the records of a run in which all processes begin at 0.

    Args:
        order: the records in order.
        ahead: for each, the time from the previous record of its process to its arrival.
        price: for each, the time from its release to its end; 0 at the end of ``main``.
        barriers: whether a global sync waits for all; otherwise for the senders alone, as MPM.
    """
    clock = np.zeros(order.run.nprocs, ahead.dtype)
    arrive, released, end = np.empty((3, len(ahead)), ahead.dtype)
    cause = np.arange(len(ahead))
    for step in order.steps:
        rows = slice(step.start, step.stop)
        pid = order.pid[rows]
        arrive[rows] = released[rows] = clock[pid] + ahead[rows]
        if step.kind == Kind.SYNC and barriers:
            latest = int(arrive[rows].argmax())
            cause[rows], released[rows] = step.start + latest, arrive[step.start + latest]
        elif step.kind != Kind.END:
            _wait_for_senders(order, step, RecordTimes(arrive, released, end, cause))
        end[rows] = clock[pid] = released[rows] + price[rows]
    return RecordTimes(arrive, released, end, cause)


def _wait_for_senders(order: Timeline, step: Step, clocks: RecordTimes) -> None:
    """Let each record of a step wait for those that send to it (Roda et al., equation 8)."""
    links = slice(step.link_start, step.link_stop)
    sender, receiver = order.link_from[links], order.link_to[links]
    arrive, released, _, cause = clocks
    np.maximum.at(released, receiver, arrive[sender])
    late = arrive[sender] == released[receiver]
    late &= arrive[receiver] < released[receiver]
    cause[receiver[late]] = sender[late]


def greatest(order: Timeline, amount: Numbers, *, barriers: bool = True) -> Numbers:
    """Return the greatest amount among the record and those that it waits for.

    Args:
        order: the records in order.
        amount: of each.
        barriers: as of :func:`clocks_of`.
    """
    kind = np.array([step.kind for step in order.steps], np.uint8)[order.step]
    together = kind == Kind.SYNC if barriers else np.zeros(len(kind), bool)
    most, by_step = amount.copy(), np.zeros(len(order.steps), amount.dtype)
    np.maximum.at(by_step, order.step, amount)
    waits = np.flatnonzero(~together[order.link_to])
    np.maximum.at(most, order.link_to[waits], amount[order.link_from[waits]])
    return np.where(together, by_step[order.step], most)


# -- a run on another Machine ---------------------------------------------------------------------


def retimed(run: Run, rates: Rates) -> Run:
    """Return a run with the times that it would have at some rates.

    Computation is scaled by the ratio of the rates, and the end of a superstep takes g h + l, with
    the greatest h of those that a process waits for. What a process was blocked, or had no core,
    stays. All processes begin at 0, calls of primitives take no time, and the recorder does not
    either. Of a part of a run the whole is timed, since its times begin with the run.
    """
    if run.part_of is not None:
        whole, first, last = run.part_of
        return restricted(retimed(whole, rates), first, last)
    records, computing = run.records.copy(), computing_of(run.records)
    core = np.rint(rates.ratio * computing.core).astype(np.int64)
    own = core + computing.waited + computing.blocked
    h_out, h_in = h_relation(run)
    h = np.maximum(h_out, h_in) if rates.rule == "max" else h_out + h_in
    if len(run.groups) == 1 and not (records["kind"] == Kind.OBLSYNC).any():
        _set_by_superstep(run, records, own, h, rates)
    else:
        _set_in_order(run, records, own, h, rates)
    records["sub"] = records["arrive"] - records["start"] - own
    records["comp_cpu"], records["comp_ready"] = core, computing.waited
    records["comm_calls"] = records["recording"] = 0
    if not run.is_interleaved:  # pickles were made in calls
        records["pickling"] = 0
    records["comm_cpu"] = records["comm_ready"] = NOT_MEASURED
    records.setflags(write=False)
    meta = run.meta | {"virtual_time": "on another Machine"}
    return replace(run, records=records, lifetime=None, samples=None, meta=meta)


def _price_ns(h: Numbers, ends: Bools, rates: Rates) -> Ints:
    """Return what supersteps with some greatest h cost, as virtual processors round it."""
    price: Ints = np.rint((rates.g * h + rates.l) * ~ends * 1e9).astype(np.int64)
    return price


def _set_by_superstep(run: Run, records: Numbers, own: Ints, h: Numbers, rates: Rates) -> None:
    """Set the times of a run in which each superstep is one of all processes."""
    by, ends = by_superstep(run), records["kind"] == Kind.END
    slowest = by.greatest(own)
    price = _price_ns(by.greatest(h), by.greatest(ends).astype(bool), rates)
    begun = np.cumsum(slowest + price) - slowest - price
    records["start"] = start = by.spread(begun)
    records["arrive"] = arrive = start + own
    records["released"] = released = np.where(ends, arrive, by.spread(begun + slowest))
    records["end"] = released + by.spread(price)


def _set_in_order(run: Run, records: Numbers, own: Ints, h: Numbers, rates: Rates) -> None:
    """Set the times of a run step by step: processes need not begin a superstep together."""
    order = Timeline(run)
    position, pieces = order.position, order.pieces
    ns = _lengths(pieces, own[position])
    ahead = np.bincount(pieces.before, ns, len(own)).astype(np.int64)
    ends = np.array([step.kind == Kind.END for step in order.steps], bool)[order.step]
    clocks = clocks_of(order, ahead, _price_ns(greatest(order, h[position]), ends, rates))
    for name in ("arrive", "released", "end"):
        records[name][position] = getattr(clocks, name)
    # The pieces before a record: its own is last, before it that of the record around it.
    outwards = np.argsort(pieces.before, kind="stable")
    before, until = pieces.before[outwards], np.cumsum(ns[outwards])
    inner = until - _at_first(until - ns[outwards], before)
    start = records["arrive"].copy()
    np.minimum.at(start, position[pieces.owner[outwards]], clocks.arrive[before] - inner)
    owner, depth = record_around(run), group_columns(run).depth[records["group"]]
    for level in range(int(depth.max(initial=0)), 0, -1):
        inside = np.flatnonzero((depth == level) & (owner >= 0))
        np.minimum.at(start, owner[inside], start[inside])
    records["start"] = start


def _lengths(pieces: Pieces, own: Ints) -> Ints:
    """Divide what each record takes by itself among its pieces, as in the run itself."""
    ns, count = np.rint(own[pieces.owner] * pieces.share).astype(np.int64), len(own)
    others = np.bincount(pieces.owner[count:], ns[count:], count).astype(np.int64)
    ns[:count] = (own - others).clip(min=0)
    return ns


def _at_first(values: Ints, keys: Ints) -> Ints:
    """Return for each element the value of the first one of its key; the keys are in order."""
    first: Ints = values[np.searchsorted(keys, keys)]
    return first
