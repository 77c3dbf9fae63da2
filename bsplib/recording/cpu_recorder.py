"""A recorded group that measures CPU time, too: for runs with more processes than cores.

There a process may wait for a core while it computes, and the wall clock alone does not
show how long it computed. It is a subclass, chosen when the run starts, since reading
the clock of CPU time takes ten times as long as reading the wall clock.
"""

from __future__ import annotations

from time import thread_time_ns
from typing import Any

from bsplib.recording.recorded_group import RecordedGroup


class CpuRecordedGroup(RecordedGroup):
    """A :class:`RecordedGroup` whose records have the CPU time of the calling thread.

    The time of a superstep is counted from the return of one sync to the call of the next
    one. The CPU time of sub-groups in between is subtracted.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stamp_arrival = self._stamp_with_cpu
        self._cpu_sub_ns = 0
        """CPU time used in sub-groups during this superstep."""
        self._cpu_start_ns = self._cpu_opened_ns = thread_time_ns()
        """CPU time when this superstep began, and when the group was made."""

    def _stamp_with_cpu(self) -> int:
        arrive = self._now()
        used = thread_time_ns() - self._cpu_start_ns - self._cpu_sub_ns
        # Each thread has a clock of its own: the superstep may have begun in another thread.
        self._cpu_ns = max(used, 0)
        return arrive

    def _write(self, *record: Any) -> None:
        super()._write(*record)
        self._cpu_sub_ns = 0
        self._cpu_start_ns = thread_time_ns()
        self._start_ns = self._now()

    def _leave(self) -> None:
        super()._leave()
        parent = self._parent
        assert isinstance(parent, CpuRecordedGroup)
        parent._cpu_sub_ns += thread_time_ns() - self._cpu_opened_ns
