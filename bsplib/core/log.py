"""The log of a group: what one process writes down of its supersteps and their traffic."""

from __future__ import annotations

from array import array as numbers
from collections.abc import Sequence

from bsplib.core.rows import Rows
from bsplib.core.usage import Usage

OUT, IN, OUT_BY_INDEX, IN_BY_INDEX = 0, 1, 2, 3
"""Directions of traffic: to the partner, and from it. See ``records.Direction``."""
END = 2
"""The kind of the last superstep in a group. See ``sync_kinds.Kind``."""
_NO = -1
"""What is not measured."""


class Log:
    """Writes the rows of one group; a superstep's traffic is written before the superstep.

    All times are in ns on one clock. ``bsplib.core.usage`` describes what is measured of the
    calling thread, and when. A stretch of computation is the time from ``begin`` to ``arrive``,
    without calls, or a piece of it, before or after a sub-group.

    Args:
        supersteps: rows for supersteps.
        traffic: rows for traffic.
        number: number of the group in the records of this process.
        pid: this process in the group.
        members: pids in the root group of all processes of the group.
        began_ns: time 0 of the records.
        opened_ns: when the group was made, and its first superstep began.
        usage: measures what the process uses, in all its groups; None: nothing is measured.
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
        usage: Usage | None,
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
        self._own_bytes = 0
        self._own_messages = 0
        self._end_ns = opened_ns
        """End of the superstep before."""
        self.arrived_ns = opened_ns
        """When the process arrived at the end of this superstep."""
        self._usage = usage
        self._piece_ns = opened_ns
        """When the present piece of computation began."""
        self._calls_ns = 0
        """Time in calls of this superstep, before that piece."""
        self._comp_open_ns = self._comm_open_ns = 0
        """Elapsed time of what is not shared out yet."""
        self._begin_usage()

    def _begin_usage(self) -> None:
        """Begin to add up what a superstep uses."""
        usage = self._usage
        self._comp_cpu = self._comm_cpu = _NO if usage is None else 0
        self._comp_ready = self._comm_ready = 0 if usage is not None and usage.has_waits else _NO
        faults = 0 if usage is not None and usage.has_faults else _NO
        self._comp_minor = self._comp_major = self._comm_minor = self._comm_major = faults

    def arrive(self, arrive_ns: int, comm_ns: int) -> None:
        """End the computation of the superstep; :attr:`arrived_ns` is when the process arrives.

        After a computation that has used the caches, reading the system takes some 40 us, which
        is neither computation nor communication. So the process arrives when it is done, and
        its superstep counts from as much later on, as after other work of the recorder. Where a
        sub-group was inside the superstep, its start cannot be moved: then the reading counts as
        communication.

        Args:
            arrive_ns: the present time.
            comm_ns: time in calls of this superstep so far.
        """
        usage = self._usage
        self.arrived_ns = arrive_ns
        if usage is not None:
            is_due = usage.is_due(arrive_ns)
            self._end_piece(usage, arrive_ns, comm_ns, is_due)
            if is_due and not self._sub_ns:
                took = usage.read_for(arrive_ns)
                self._start_ns += took
                self.arrived_ns += took

    def suspend(self, now_ns: int, comm_ns: int) -> None:
        """End a piece of computation, since a sub-group begins; see :meth:`arrive`."""
        usage = self._usage
        if usage is not None:
            self._end_piece(usage, now_ns, comm_ns, True)

    def _end_piece(self, usage: Usage, now_ns: int, comm_ns: int, is_due: bool) -> None:
        calls = comm_ns - self._calls_ns
        elapsed = max(now_ns - self._piece_ns - calls, 0)
        self._calls_ns = comm_ns
        self._comm_open_ns += calls
        usage.open_ns += calls
        if is_due:
            usage.settle(elapsed, now_ns)
            self._close(usage)
            used = usage.used
            self._comp_cpu += used[0] + used[4]
            usage.own_threads_ns += used[4]
            if usage.has_waits:
                self._comp_ready += used[1]
            if usage.has_faults:
                self._comp_minor += used[2]
                self._comp_major += used[3]
        else:
            self._comp_open_ns += elapsed
            usage.open_ns += elapsed

    def _end_sync(self, usage: Usage, elapsed: int, end_ns: int, is_due: bool) -> None:
        if is_due:
            usage.settle(elapsed, end_ns)
            self._close(usage)
            used = usage.used
            self._comm_cpu += used[0]
            if usage.has_waits:
                self._comm_ready += used[1]
            if usage.has_faults:
                self._comm_minor += used[2]
                self._comm_major += used[3]
        else:
            self._comm_open_ns += elapsed
            usage.open_ns += elapsed

    def _close(self, usage: Usage) -> None:
        """Take the shares of what was open in this superstep."""
        on_core = usage.on_core(self._comp_open_ns)
        self._comp_cpu += on_core
        if usage.has_waits:
            self._comp_ready += usage.off_core(self._comp_open_ns - on_core)
        on_core = usage.on_core(self._comm_open_ns)
        self._comm_cpu += on_core
        if usage.has_waits:
            self._comm_ready += usage.off_core(self._comm_open_ns - on_core)
        self._comp_open_ns = self._comm_open_ns = 0

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
                self._supersteps.before + self._supersteps.count,
                partner,
                direction,
                nbytes,
                messages,
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
        began, usage = self._began_ns, self._usage
        if usage is not None:
            is_due = kind == END or usage.is_due(end_ns)
            self._end_sync(usage, end_ns - arrive_ns, end_ns, is_due)
            # Clocks of different kinds may differ by some ns.
            computed = arrive_ns - self._start_ns - comm_ns - self._sub_ns
            self._comp_cpu = min(self._comp_cpu, max(computed, 0))
            if usage.has_waits:
                self._comp_ready = min(self._comp_ready, max(computed - self._comp_cpu, 0))
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
            self._comp_cpu,
            self._comp_ready,
            self._comm_cpu,
            self._comm_ready,
            self._comp_minor,
            self._comp_major,
            self._comm_minor,
            self._comm_major,
            self._start_ns - self._end_ns,
        )
        self._end_ns = end_ns
        if usage is not None:
            # Where rows were compressed, this one is the first of the next ones.
            usage.keep_open(self._supersteps.count - 1, self._comp_open_ns, self._comm_open_ns)

    def rest(self, now_ns: int) -> None:
        """Leave out what the recorder has used, if it took long; call :meth:`begin` afterwards."""
        usage = self._usage
        if usage is not None and usage.is_late(self._end_ns, now_ns):
            usage.rest(self._end_ns, now_ns)

    def begin(self, start_ns: int) -> None:
        """Begin the next superstep."""
        usage = self._usage
        if usage is not None:
            start_ns -= usage.carried_ns
            usage.carried_ns = 0
            self._comp_open_ns = self._comm_open_ns = self._calls_ns = 0
            self._piece_ns = start_ns
            self._begin_usage()
        self._start_ns = start_ns
        self._sub_ns = 0
        self._own_bytes = self._own_messages = 0

    def leave(self, parent: Log, now_ns: int) -> None:
        """Add the time since the group was made to the sums of its parent's superstep."""
        parent._sub_ns += now_ns - self._opened_ns
        parent._piece_ns = now_ns


class Traffic:
    """Counts the bytes and the transfers of one process in a superstep, by partner.

    Args:
        nprocs: number of processes of the group.
    """

    def __init__(self, nprocs: int) -> None:
        none = bytes(8 * nprocs)
        self._nprocs = nprocs
        self._is_empty = True
        self._sent_bytes, self._sent = numbers("Q", none), numbers("Q", none)
        """Bytes and number of puts and messages."""
        self._got_bytes, self._got = numbers("Q", none), numbers("Q", none)
        """Bytes and number of gets."""
        self._put_bytes, self._put_at = numbers("Q", none), numbers("Q", none)
        """The same of puts by index, and below of gets by index."""
        self._get_bytes, self._get_at = numbers("Q", none), numbers("Q", none)

    def sent(self, to: int, nbytes: int) -> int:
        """Count a put or a message."""
        self._is_empty = False
        self._sent_bytes[to] += nbytes
        self._sent[to] += 1
        return 0

    def got(self, sender: int, nbytes: int) -> int:
        """Count a get."""
        self._is_empty = False
        self._got_bytes[sender] += nbytes
        self._got[sender] += 1
        return 0

    def sent_by_index(self, to: int, nbytes: int) -> int:
        """Count a put of single elements by their indices."""
        self._is_empty = False
        self._put_bytes[to] += nbytes
        self._put_at[to] += 1
        return 0

    def got_by_index(self, sender: int, nbytes: int) -> int:
        """Count a get of single elements by their indices."""
        self._is_empty = False
        self._get_bytes[sender] += nbytes
        self._get_at[sender] += 1
        return 0

    def write(self, log: Log) -> int:
        """Write the sums into a log, and begin to count anew."""
        if self._is_empty:
            return 0
        self._is_empty = True
        for pid in range(self._nprocs):
            if self._sent[pid]:
                log.add_traffic(pid, OUT, self._sent_bytes[pid], self._sent[pid])
                self._sent_bytes[pid] = self._sent[pid] = 0
            if self._got[pid]:
                log.add_traffic(pid, IN, self._got_bytes[pid], self._got[pid])
                self._got_bytes[pid] = self._got[pid] = 0
            if self._put_at[pid]:
                log.add_traffic(pid, OUT_BY_INDEX, self._put_bytes[pid], self._put_at[pid])
                self._put_bytes[pid] = self._put_at[pid] = 0
            if self._get_at[pid]:
                log.add_traffic(pid, IN_BY_INDEX, self._get_bytes[pid], self._get_at[pid])
                self._get_bytes[pid] = self._get_at[pid] = 0
        return 0
