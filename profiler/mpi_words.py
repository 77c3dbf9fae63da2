"""What sentences about a program of mpi4py say beside those about any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.kinds import STEPS
from bsplib.recording.records import MPI_CALL
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler.account import Ints
    from bsplib.recording.records import Run

LATE_SENDER, LATE_RECEIVER, SMALL_MESSAGES = (
    *("late sender", "late receiver"),
    "too many small messages",
)
_SMALL_BYTES = 4096
"""Messages that have fewer bytes on average are small: most of their time is no transfer."""
_SENDS = frozenset({"Send", "Ssend", "Bsend", "Rsend"})


def who_was_late(run: Run, rows: Ints) -> str:
    """Return what those were late for that some records waited for.

    Args:
        run: the run.
        rows: positions of the records that others waited for.

    Returns:
        ``LATE_SENDER`` or ``LATE_RECEIVER`` where most of the wait was for messages, else empty.
    """
    if run.waits is None:
        return ""
    mine = run.waits["record"][np.isin(run.waits["behind"], rows)]
    waiting = run.records[mine]
    idle = waiting["released"] - waiting["arrive"]
    for_messages = (waiting["kind"] == Kind.OBLSYNC) & _are_messages(run)[waiting["stack"]]
    if 2 * idle[for_messages].sum() <= idle.sum():
        return ""
    sends = np.array([_called(run, stack) in _SENDS for stack in range(len(run.stacks))], bool)
    sending = for_messages & sends[waiting["stack"]]
    is_receiver = 2 * idle[sending].sum() > idle[for_messages].sum()
    return LATE_RECEIVER if is_receiver else LATE_SENDER


def kind_of_steps(run: Run, rows: Ints) -> str:
    """Return what supersteps that cost more than their work are called: their kind, or messages."""
    steps = run.records[rows]
    messages = (steps["kind"] == Kind.OBLSYNC) & _are_messages(run)[steps["stack"]]
    sent = run.traffic["bytes"][np.isin(run.traffic["record"], rows)].sum()
    are_small = sent <= _SMALL_BYTES * len(rows)
    return SMALL_MESSAGES if are_small and 2 * np.count_nonzero(messages) > len(rows) else STEPS


def _called(run: Run, stack: int) -> str:
    """Return the call of MPI at the end of a stack; empty if there is none."""
    last = run.stacks[stack][-1]
    return last.function if last.file == MPI_CALL else ""


_OF_MESSAGES = _SENDS | {
    *("Recv", "Mrecv", "Sendrecv", "Sendrecv_replace"),
    *("Wait", "Waitall", "Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome"),
}


def _are_messages(run: Run) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell for each stack whether it ends with a call that sends or receives messages."""
    calls = [_called(run, stack) in _OF_MESSAGES for stack in range(len(run.stacks))]
    return np.array(calls, bool)
