"""What each process spent in each superstep: computation, communication, idle, h."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.recording.records import NO_CPU, Direction, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

METRICS = ("comp", "comm", "idle", "h")
"""Computation, communication and idle time, and the h-relation."""


def superstep_numbers(run: Run) -> NDArray[np.int64]:
    """Number the supersteps of all groups through, by group and superstep.

    Returns:
        For each record the number of its superstep, from 0 without gaps; records
        of different processes in one superstep of one group have the same.
    """
    group, superstep = run.records["group"], run.records["superstep"]
    order = np.lexsort((superstep, group))
    group, superstep = group[order], superstep[order]
    new = np.zeros(len(order), np.int64)
    new[1:] = (group[1:] != group[:-1]) | (superstep[1:] != superstep[:-1])
    numbers = np.empty_like(new)
    numbers[order] = np.cumsum(new)
    return numbers


def computation_ns(run: Run) -> NDArray[np.float64]:
    """Computation w of each record, in nanoseconds.

    It is the time W from the start to the arrival without calls and sub-groups; where
    CPU time was measured at most that CPU time's share ``cpu * W / (W + calls)``, so
    that waiting for a core is no computation.
    """
    records, spent = run.records, spent_ns(run)
    share = spent / np.maximum(spent + records["comm_calls"], 1)
    # Whole nanoseconds add up exactly.
    on_a_core = np.rint(records["cpu"] * share)
    w: NDArray[np.float64] = np.where(records["cpu"] == NO_CPU, spent, np.minimum(spent, on_a_core))
    return w


def waiting_ns(run: Run) -> float | None:
    """Return the time that all processes together waited for a core while they computed.

    Returns:
        Nanoseconds, the sum of W - w over all records; None where CPU time was not
        measured.
    """
    if not (run.records["cpu"] != NO_CPU).any():
        return None
    return float((spent_ns(run) - computation_ns(run)).sum())


def spent_ns(run: Run) -> NDArray[np.float64]:
    """Return W: the time from start to arrival without calls and sub-groups."""
    records = run.records
    spent: NDArray[np.int64] = records["arrive"] - records["start"]
    spent = spent - records["comm_calls"] - records["sub"]
    return spent.astype(np.float64)


def record_costs(run: Run) -> NDArray[np.float64]:
    """Cost of each record in each metric.

    Times stay in nanoseconds: whole numbers add up exactly, so that balanced
    processes have an imbalance of 0 and not of a rounding error.

    Returns:
        Shape ``(len(METRICS), len(run.records))``; nanoseconds, and bytes for h.

    Source: Jarvis et al. 2002, section 2.1; time in sub-groups is in their own records.
    """
    records = run.records
    comp = computation_ns(run)
    comm = records["comm_calls"] + (records["end"] - records["released"])
    idle = records["released"] - records["arrive"]
    return np.stack([comp, comm, idle, np.maximum(*h_relation(run))]).astype(np.float64)


def h_relation(run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bytes that went out of and came into a process in each superstep.

    What one process asks for is also its partner's, the other way round, in the
    partner's record of the same superstep; where a run broke off before the partner
    wrote one, that side is lost. Transfers to itself are no part of h.

    Returns:
        ``(h_out, h_in)``, each as long as ``run.records``.
    """
    traffic = run.traffic
    asker, partner = traffic["record"], _partner_records(run)
    sizes = traffic["bytes"].astype(np.float64)

    def total(records: NDArray[np.int64], direction: Direction) -> NDArray[np.float64]:
        rows = (traffic["direction"] == direction) & (records >= 0)
        return np.bincount(records[rows], sizes[rows], len(run.records)).astype(np.float64)

    h_out = total(asker, Direction.OUT) + total(partner, Direction.IN)
    h_in = total(asker, Direction.IN) + total(partner, Direction.OUT)
    return h_out, h_in


def _partner_records(run: Run) -> NDArray[np.int64]:
    """For each traffic row the position of its partner's record, -1 where there is none."""
    if len(run.traffic) == 0:
        return np.empty(0, np.int64)
    numbers = superstep_numbers(run) * run.nprocs
    places = numbers + run.records["pid"]
    wanted = numbers[run.traffic["record"]] + run.traffic["partner"]
    order = np.argsort(places)
    found = np.searchsorted(places, wanted, sorter=order).clip(max=len(order) - 1)
    partner = order[found]
    return np.where(places[partner] == wanted, partner, -1)
