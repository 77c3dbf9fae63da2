"""In which state a superstep finds the computer: who came late, and how long ago the last sync was.

Virtual processors find the same in the arrivals of their clocks, so that both price a superstep
alike (:class:`bsplib.machine.measured.HRelation`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.models.timeline import Timeline

    Values = NDArray[np.float64]


class State(NamedTuple):
    """What came before, for each record: that of its superstep, in seconds."""

    wait_s: Values
    apart_s: Values


def state_of(timeline: Timeline) -> State:
    """Return the state in which each superstep of a run found the computer.

    An oblivious superstep and the end of a process have none.
    """
    records = timeline.run.records[timeline.position]
    arrive, end = records["arrive"].astype(np.int64), records["end"].astype(np.int64)
    wait_ns, apart_ns = np.zeros((2, len(records)), np.int64)
    synced = np.zeros(len(timeline.run.groups), np.int64)
    for step in timeline.steps:
        if step.kind != Kind.SYNC or step.start == step.stop:
            continue
        rows = slice(step.start, step.stop)
        latest = arrive[rows].max()
        wait_ns[rows] = latest - arrive[rows].min()
        apart_ns[rows] = latest - synced[step.group]
        synced[step.group] = end[rows].max()
    return State(wait_ns / 1e9, apart_ns / 1e9)
