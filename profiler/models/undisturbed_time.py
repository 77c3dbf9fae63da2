"""The time that a program takes without disturbances, estimated from several runs.

Disturbances, by other programs or by the system, make a process slower and never faster.
If all runs have the same supersteps, each computation and each communication counts with
its least time over the runs. The total is computed from these times as in OBSP*, with the
time of the communication instead of g h + L.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.machine import Machine
from bsplib.profiler.models.replay import Booking, replay
from bsplib.profiler.prices import ReplayPrices
from bsplib.profiler.timeline import Pieces, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run

_AS_IT_WAS = ReplayPrices(Machine("as it was", "the runs themselves", g=1.0, l=0.0))
"""Prices with g = 1 and l = 0, for an h that is the time of a communication in seconds."""


class Undisturbed(NamedTuple):
    """A run with the least times of several runs."""

    timeline: Timeline
    booking: Booking
    """Its communication includes synchronisation; ``sync_s`` is 0."""


def undisturbed(runs: Sequence[Run], free: Sequence[int] = ()) -> Undisturbed:
    """Return a run in which each computation and communication has its least time.

    Args:
        runs: runs of one program with the same arguments, at least one.
        free: steps of the timeline whose synchronisation does not count, because it ends
            the measurement.

    Raises:
        ValueError: there are no runs, or they do not have the same supersteps.

    Source: Gonzalez et al., equations 1 to 3.
    """
    if not runs:
        raise ValueError("there are no runs")
    timelines = [Timeline(run) for run in runs]
    first = timelines[0]
    for timeline in timelines[1:]:
        if not _alike(timeline, first):
            raise ValueError("the runs do not have the same supersteps")
    comp_s = np.minimum.reduce([timeline.ahead_s for timeline in timelines])
    comm_s = np.minimum.reduce([_communication_s(timeline, free) for timeline in timelines])
    rows = np.arange(len(comp_s))
    first.w_s = first.ahead_s = comp_s
    first.h_out_and_in, first.hosts = (comm_s, comm_s), None
    first.pieces = Pieces(rows, rows, comp_s, *np.zeros((3, len(comp_s))))
    return Undisturbed(first, replay(first, "OBSP*", _AS_IT_WAS))


def between(timeline: Timeline, first: int, last: int) -> NDArray[np.bool_]:
    """Mark the records of a run that come after one step, up to and including another."""
    chosen = np.zeros(len(timeline.position), bool)
    chosen[timeline.position] = (timeline.step > first) & (timeline.step <= last)
    return chosen


def _communication_s(timeline: Timeline, free: Sequence[int]) -> NDArray[np.float64]:
    """Return for each record its time in primitives and from the release to the end."""
    records = timeline.run.records[timeline.position]
    delivery = np.where(np.isin(timeline.step, free), 0, records["end"] - records["released"])
    seconds: NDArray[np.float64] = (records["comm_calls"] + delivery) / 1e9
    return seconds


def _alike(timeline: Timeline, other: Timeline) -> bool:
    columns = ["pid", "group", "superstep", "kind"]
    records, others = timeline.run.records, other.run.records
    return (
        timeline.run.groups == other.run.groups
        and np.array_equal(records[columns][timeline.position], others[columns][other.position])
        and np.array_equal(timeline.link_from, other.link_from)
        and np.array_equal(timeline.link_to, other.link_to)
    )
