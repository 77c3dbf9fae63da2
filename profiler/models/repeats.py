"""What a program takes when nothing disturbs it, from several runs of it.

What disturbs a process, another program or the system, makes it slower and never
faster. Where all runs made the same supersteps, each stretch of computation and each
communication counts as long as it took at least in any of them. From these times the
total follows as OBSP* has it, with the time that communication took in place of g h + L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.machine import Machine
from profiler.models.prices import Prices
from profiler.models.replay import Booking, replay
from profiler.models.timeline import Pieces, Timeline, lay_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.recording.records import Run

_AS_IT_WAS = Prices(Machine("as it was", "the runs themselves", g=1.0, l=0.0))
"""Prices h, which holds the seconds of a communication, at these seconds."""


class Undisturbed(NamedTuple):
    """A run with its least times."""

    timeline: Timeline
    booking: Booking
    """Communication and synchronisation are one; ``sync_s`` is 0."""


def undisturbed(runs: Sequence[Run], free: Sequence[int] = ()) -> Undisturbed:
    """Return a run of which every stretch took as long as the quickest of several.

    Args:
        runs: at least one, of one program with the same arguments.
        free: steps of the timeline whose synchronisation is not to count, since it ends
            what is measured.

    Raises:
        ValueError: there is none, or they did not make the same supersteps.

    Source: Gonzalez et al., equations 1 to 3.
    """
    if not runs:
        raise ValueError("there are no runs")
    timelines = [lay_out(run) for run in runs]
    first = timelines[0]
    for timeline in timelines[1:]:
        if not _alike(timeline, first):
            raise ValueError("the runs did not make the same supersteps")
    comp_s = np.minimum.reduce([timeline.ahead_s for timeline in timelines])
    comm_s = np.minimum.reduce([_communication_s(timeline, free) for timeline in timelines])
    rows = np.arange(len(comp_s))
    timeline = replace(
        first,
        w_s=comp_s,
        ahead_s=comp_s,
        h_in=comm_s,
        h_out=comm_s,
        pieces=Pieces(rows, rows, comp_s, np.zeros_like(comp_s), np.zeros_like(comp_s)),
    )
    return Undisturbed(timeline, replay(timeline, "OBSP*", _AS_IT_WAS))


def between(timeline: Timeline, first: int, last: int) -> NDArray[np.bool_]:
    """Return which records of a run, in its own order, come after a step, up to another."""
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
