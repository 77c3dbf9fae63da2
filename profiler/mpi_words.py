"""What sentences about a program of mpi4py say beside those about any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.recording.records import MPI_CALL
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Bools, Ints, Rows
    from bsplib.recording.records import Run
    from bsplib.recording.tables import Columns

LATE_SENDER, LATE_RECEIVER = "late sender", "late receiver"
_SENDS = frozenset({"Send", "Ssend", "Bsend", "Rsend"})
_OF_MESSAGES = _SENDS | {
    *("Recv", "Mrecv", "Sendrecv", "Sendrecv_replace"),
    *("Wait", "Waitall", "Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome"),
}


def waits_for(run: Run, rows: Ints) -> Ints:
    """Return how long others waited for some records: in all, at messages, and in sends.

    Args:
        run: a window of a run; of one that was not recorded by ``bsp record`` all are 0.
        rows: positions of the records.
    """
    if run.waits is None:
        return np.zeros(3, np.int64)
    waiting = run.records[run.waits["record"][np.isin(run.waits["behind"], rows)]]
    idle = waiting["released"] - waiting["arrive"]
    at_messages = (waiting["kind"] == Kind.OBLSYNC) & end_with_messages(run, waiting)
    in_sends = at_messages & _end_with(run, _SENDS, waiting)
    return np.array([idle.sum(), idle[at_messages].sum(), idle[in_sends].sum()])


def late_of(waits: Ints) -> str:
    """Return what those were late for that others waited for.

    Returns:
        ``LATE_SENDER`` or ``LATE_RECEIVER`` where most of the wait was for messages, else
        empty.
    """
    idle, at_messages, in_sends = waits.tolist()
    if 2 * at_messages <= idle:
        return ""
    return LATE_RECEIVER if 2 * in_sends > at_messages else LATE_SENDER


def end_with_messages(run: Run, records: Rows | Columns) -> Bools:
    """Tell for each record whether it ends with a call of MPI that waits for messages."""
    return _end_with(run, _OF_MESSAGES, records)


def _end_with(run: Run, calls: frozenset[str], records: Rows | Columns) -> Bools:
    """Tell for each record whether its stack ends with one of some calls of MPI."""
    last = (stack[-1] for stack in run.stacks)
    among = [frame.file == MPI_CALL and frame.function in calls for frame in last]
    found: Bools = np.array(among, bool)[records["stack"]]
    return found
