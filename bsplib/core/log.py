"""The log of a group: what one process writes down of its supersteps in this group."""

from __future__ import annotations

from collections.abc import Sequence

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.rows import Rows

if not cython.compiled:
    from bsplib.core.atomics import cpu_ns

OUT, IN = 0, 1
"""Directions of traffic: to the partner, and from it. See ``records.Direction``."""
NO_CPU = -1
"""CPU time where it is not measured."""


class Log:
    """Writes the rows of one group; a superstep's traffic is written before the superstep.

    All times are in ns on one clock. CPU time is that of the calling thread.

    Args:
        supersteps: rows for supersteps.
        traffic: rows for traffic.
        number: number of the group in the records of this process.
        pid: this process in the group.
        members: pids in the root group of all processes of the group.
        began_ns: time 0 of the records.
        opened_ns: when the group was made, and its first superstep began.
        measures_cpu: measure the CPU time of each superstep.
    """

    def __init__(
        self,
        supersteps: Rows,
        traffic: Rows,
        number: int,
        pid: int,
        members: Sequence[int],
        began_ns: int,
        opened_ns: int,
        measures_cpu: bool,
    ) -> None:
        self._supersteps = supersteps
        self._traffic = traffic
        self._number = number
        self._pid = pid
        self._member = members[pid]
        # None: the group has the numbering of the run.
        self._members = None if members == range(len(members)) else members
        self._began_ns = began_ns
        self._start_ns = self._opened_ns = opened_ns
        self._sub_ns = 0
        self._measures_cpu = measures_cpu
        self._cpu_start_ns = self._cpu_opened_ns = cpu_ns() if measures_cpu else 0
        self._cpu_sub_ns = 0
        self._cpu_ns = NO_CPU
        self._own_bytes = 0
        self._own_messages = 0

    def arrive(self) -> None:
        """End the CPU time of the superstep."""
        if self._measures_cpu:
            # Each thread has a clock of its own: the superstep may have begun in another one.
            used = cpu_ns() - self._cpu_start_ns - self._cpu_sub_ns
            self._cpu_ns = used if used > 0 else 0

    def add_traffic(self, partner: int, direction: int, nbytes: int, messages: int) -> None:
        """Write what was exchanged with a process of the group in this superstep.

        Args:
            partner: pid in the group; may be this process.
            direction: ``OUT`` or ``IN``.
            nbytes: bytes of payload.
            messages: number of messages; nothing is written if it is 0.

        Raises:
            OverflowError: a number has more than 63 bits.
        """
        if partner == self._pid:
            self._own_bytes += nbytes
            self._own_messages += messages
        elif messages:
            if self._members is not None:
                partner = self._members[partner]
            self._traffic.append_traffic(
                self._supersteps.count, partner, direction, nbytes, messages
            )

    def add_superstep(
        self,
        superstep: int,
        kind: int,
        stack: int,
        arrive_ns: int,
        released_ns: int,
        end_ns: int,
        comm_ns: int,
    ) -> None:
        """Write the superstep.

        Raises:
            OverflowError: a number has more than 63 bits; nothing was written.
        """
        began = self._began_ns
        computed = arrive_ns - self._start_ns - comm_ns - self._sub_ns
        self._supersteps.append_superstep(
            self._member,
            self._number,
            superstep,
            kind,
            stack,
            self._start_ns - began,
            arrive_ns - began,
            released_ns - began,
            end_ns - began,
            comm_ns,
            self._sub_ns,
            self._own_bytes,
            self._own_messages,
            min(self._cpu_ns, computed),
            NO_CPU,
            NO_CPU,
            NO_CPU,
            NO_CPU,
            NO_CPU,
            NO_CPU,
            NO_CPU,
            0,
        )

    def begin_cpu_time(self) -> None:
        """Begin the CPU time of the next superstep; call :meth:`begin` afterwards."""
        if self._measures_cpu:
            self._cpu_start_ns = cpu_ns()

    def begin(self, start_ns: int) -> None:
        """Begin the next superstep."""
        self._start_ns = start_ns
        self._sub_ns = self._cpu_sub_ns = 0
        self._own_bytes = self._own_messages = 0

    def leave(self, parent: Log, now_ns: int) -> None:
        """Add the time since the group was made to the sums of its parent's superstep."""
        parent._sub_ns += now_ns - self._opened_ns
        if self._measures_cpu:
            parent._cpu_sub_ns += cpu_ns() - self._cpu_opened_ns
