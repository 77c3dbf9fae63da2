"""The costs of each process in each superstep: computation, communication, idle time, h."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.recording.records import NO_CPU, Direction, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

METRICS = ("comp", "comm", "idle", "h")
"""Computation, communication and idle time, and the h-relation."""


def superstep_numbers(run: Run) -> NDArray[np.int64]:
    """Number the supersteps of all groups consecutively, by group and superstep.

    Returns:
        For each record the number of its superstep, from 0 without gaps. The records of
        all processes in the same superstep of the same group have the same number.
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
    """Return the computation w of each record, in nanoseconds.

    This is W, the time from start to arrival without primitives and sub-groups. Where CPU
    time was measured, w is at most the share of W in it, ``cpu * W / (W + calls)``, so
    that waiting for a core does not count as computation.
    """
    records, spent = run.records, spent_ns(run)
    share = spent / np.maximum(spent + records["comm_calls"], 1)
    # Whole numbers of nanoseconds are added without rounding errors.
    on_a_core = np.rint(records["cpu"] * share)
    w: NDArray[np.float64] = np.where(records["cpu"] == NO_CPU, spent, np.minimum(spent, on_a_core))
    return w


def waiting_ns(run: Run) -> float | None:
    """Return the total time that processes waited for a core during computation.

    Returns:
        Nanoseconds, the sum of W - w over all records; None if CPU time was not measured.
    """
    if not (run.records["cpu"] != NO_CPU).any():
        return None
    return float((spent_ns(run) - computation_ns(run)).sum())


def spent_ns(run: Run) -> NDArray[np.float64]:
    """Return W: the time from start to arrival without primitives and sub-groups."""
    records = run.records
    spent: NDArray[np.int64] = records["arrive"] - records["start"]
    spent = spent - records["comm_calls"] - records["sub"]
    return spent.astype(np.float64)


def record_costs(run: Run, numbers: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Return the cost of each record in each metric.

    Times are kept in nanoseconds: whole numbers are added exactly, so that balanced
    processes have an imbalance of 0 and not of a rounding error.

    Args:
        run: the run.
        numbers: the result of :func:`superstep_numbers`, if it is known.

    Returns:
        Shape ``(len(METRICS), len(run.records))``; nanoseconds, and bytes for h.

    Source: Jarvis et al. 2002, section 2.1; time in sub-groups is in their own records.
    """
    records = run.records
    comp = computation_ns(run)
    comm = records["comm_calls"] + (records["end"] - records["released"])
    idle = records["released"] - records["arrive"]
    h = np.maximum(*h_relation(run, numbers))
    return np.stack([comp, comm, idle, h]).astype(np.float64)


def h_relation(
    run: Run, numbers: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bytes out of and into a process for each record.

    A traffic row counts for the process that called the primitive, and in the opposite
    direction for its partner, in the partner's record of the same superstep. If the run
    ended before the partner wrote that record, the partner's side is not counted.
    Transfers of a process to itself are not part of h.

    Args:
        run: the run.
        numbers: the result of :func:`superstep_numbers`, if it is known.

    Returns:
        ``(h_out, h_in)``, each as long as ``run.records``.
    """
    traffic = run.traffic
    caller, partner = traffic["record"], partner_records(run, numbers)
    sizes = traffic["bytes"].astype(np.float64)

    def total(records: NDArray[np.int64], direction: Direction) -> NDArray[np.float64]:
        rows = (traffic["direction"] == direction) & (records >= 0)
        return np.bincount(records[rows], sizes[rows], len(run.records)).astype(np.float64)

    h_out = total(caller, Direction.OUT) + total(partner, Direction.IN)
    h_in = total(caller, Direction.IN) + total(partner, Direction.OUT)
    return h_out, h_in


def partner_records(run: Run, numbers: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return for each traffic row the position of its partner's record, -1 if there is none.

    Args:
        run: the run.
        numbers: the result of :func:`superstep_numbers`, if it is known.
    """
    if len(run.traffic) == 0:
        return np.empty(0, np.int64)
    if numbers is None:
        numbers = superstep_numbers(run)
    first_keys = numbers * run.nprocs  # the key of a record is unique: superstep and pid
    keys = first_keys + run.records["pid"]
    wanted = first_keys[run.traffic["record"]] + run.traffic["partner"]
    order = np.argsort(keys)
    found = np.searchsorted(keys, wanted, sorter=order).clip(max=len(order) - 1)
    partner = order[found]
    return np.where(keys[partner] == wanted, partner, -1)
