"""Small reports of the processes of a pool, which wake the caller only once in a run.

A report that comes through a pipe wakes the caller. On a computer with fewer cores than processes
it then takes a core from a process that has not ended its run, once for each process. So a
process leaves a small report in its control words, and the last one of them wakes the caller if
it sleeps. The caller finds all reports there.
"""

from __future__ import annotations

from bsplib.backends.shm.control import (
    CALLER_ASLEEP,
    REPORT,
    REPORT_BYTES,
    REPORT_SIZE,
    REPORTED,
    WORD,
)
from bsplib.backends.shm.fences import STORES_IN_ORDER, Fences, full_fence
from bsplib.backends.shm.segment import Segment

LOOK = b"look"
"""Sent through the pipe when all have ended a run: the caller finds what they have left. Two
processes may send it for one run, so that the caller reads one of them late. It is no pickle."""


class Reports:
    """The small reports of all processes of a pool.

    Args:
        segment: shared memory of the run.
        nprocs: number of processes.
    """

    def __init__(self, segment: Segment, nprocs: int) -> None:
        self._segment = segment
        self._starts = [segment.control_start(pid) // WORD for pid in range(nprocs)]

    def leave(self, pid: int, number: int, report: bytes, fences: Fences) -> bool:
        """Note that this process has ended a run, and leave its report; called once in a run.

        Args:
            pid: this process.
            number: of the run, from 1.
            report: at most :data:`~bsplib.backends.shm.control.REPORT_BYTES` bytes; empty if
                it goes through the pipe.
            fences: of this process.

        Returns:
            Whether the caller has to be woken: all processes have ended the run, and it sleeps.
            It may be True in several processes that end the run at the same moment.
        """
        control, start = self._segment.control, self._starts[pid]
        begin = (start + REPORT) * WORD
        self._segment.buffer[begin : begin + len(report)] = report
        control[start + REPORT_SIZE] = len(report)
        fences.order()  # release: the report, before REPORTED
        control[start + REPORTED] = number
        fences.full()  # REPORTED, before the looks at that of others and at CALLER_ASLEEP
        return control[CALLER_ASLEEP] == 1 and self.are_all_left(number)

    def are_all_left(self, number: int) -> bool:
        """Tell whether all processes have ended a run."""
        control = self._segment.control
        for start in self._starts:  # noqa: SIM110  # a generator takes twice the time
            if control[start + REPORTED] != number:
                return False
        return True

    def begin_sleep(self) -> None:
        """In the caller: note that it sleeps from now on; it has to look at reports once more."""
        self._segment.control[CALLER_ASLEEP] = 1
        full_fence()  # CALLER_ASLEEP, before the looks at REPORTED

    def end_sleep(self) -> None:
        """In the caller: note that it is awake."""
        self._segment.control[CALLER_ASLEEP] = 0

    def find(self, pid: int, number: int) -> bytes:
        """Return the report that a process has left in a run; empty if there is none."""
        control, start = self._segment.control, self._starts[pid]
        if control[start + REPORTED] != number:
            return b""
        if not STORES_IN_ORDER:
            full_fence()  # acquire: REPORTED, before the report
        begin = (start + REPORT) * WORD
        return bytes(self._segment.buffer[begin : begin + control[start + REPORT_SIZE]])


def is_small(report: bytes) -> bool:
    """Tell whether a report can be left."""
    return len(report) <= REPORT_BYTES
