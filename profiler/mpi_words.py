"""What sentences about a program of mpi4py say beside those about any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bsplib.recording.records import MPI_CALL
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.account import Ints
    from bsplib.recording.records import Run
    from bsplib.recording.tables import Columns

LATE_SENDER, LATE_RECEIVER = "late sender", "late receiver"
_SENDS = frozenset({"Send", "Ssend", "Bsend", "Rsend"})
_OF_MESSAGES = _SENDS | {
    *("Recv", "Mrecv", "Sendrecv", "Sendrecv_replace"),
    *("Wait", "Waitall", "Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome"),
}


class WaitsOfMpi:
    """What the calls of MPI in the records of a loss say of it, added up over windows."""

    def __init__(self) -> None:
        self._idle = self._for_messages = self._in_sends = 0
        """For how long others waited for the records: in all, at messages, and in sends."""

    def add_late(self, run: Run, waits: NDArray[np.void], rows: Ints) -> None:
        """Take in who waited for some records, by their positions in a window."""
        mine = waits["record"][np.isin(waits["behind"], rows)]
        waiting = run.records[mine]
        idle = waiting["released"] - waiting["arrive"]
        at_messages = (waiting["kind"] == Kind.OBLSYNC) & _end_with(run, _OF_MESSAGES, waiting)
        self._idle += int(idle.sum())
        self._for_messages += int(idle[at_messages].sum())
        self._in_sends += int(idle[at_messages & _end_with(run, _SENDS, waiting)].sum())

    def late(self) -> str:
        """Return what those were late for that others waited for.

        Returns:
            ``LATE_SENDER`` or ``LATE_RECEIVER`` where most of the wait was for messages, else
            empty.
        """
        if 2 * self._for_messages <= self._idle:
            return ""
        return LATE_RECEIVER if 2 * self._in_sends > self._for_messages else LATE_SENDER


def end_with_messages(run: Run, records: NDArray[np.void] | Columns) -> NDArray[np.bool_]:
    """Tell for each record whether it ends with a call of MPI that waits for messages."""
    return _end_with(run, _OF_MESSAGES, records)


def _called(run: Run, stack: int) -> str:
    """Return the call of MPI at the end of a stack; empty if there is none."""
    last = run.stacks[stack][-1]
    return last.function if last.file == MPI_CALL else ""


def _end_with(
    run: Run, calls: frozenset[str], records: NDArray[np.void] | Columns
) -> NDArray[np.bool_]:
    """Tell for each record whether its stack ends with one of some calls of MPI."""
    stacks = np.unique(records["stack"])
    among = np.array([_called(run, stack) in calls for stack in stacks.tolist()], bool)
    if not among.any():
        return np.zeros(len(records), bool)
    found: NDArray[np.bool_] = among[np.searchsorted(stacks, records["stack"])]
    return found
