"""The records of one process: supersteps, their traffic, and what the process used in them.

A :class:`Log` writes the records of one group as :class:`Rows`. They have a fixed layout and are
appended to memory that begins with a header of 16 bytes, whose first eight bytes are the number of
complete rows. Rows are packed and little-endian. The memory is usually a mapped file, which
another process reads when this one has ended in any way: therefore the number is raised only
after the row is complete.

**What a thread has used**, its CPU time, its time ready without a core and its page faults, the
operating system says (:class:`Usage`). Reading all of it takes some 2 us, as long as a short
superstep. Therefore **a clock decides at the end of each stretch**: a stretch is the computing part
of a superstep (or a piece of it, before or after a sub-group) or its communicating part. The system
is read only if ``DUE_NS`` or more have passed since it was read last. A stretch that is not read
counts as time on a core, in its row and for the next reading: no row is changed afterwards.

What was used between two readings, less that, belongs to the stretch that ends at the second one,
and to the calls in it, such as put, by this rule:

1. Time blocked, neither on a core nor ready, belongs to the stretch itself, as far as that has time
   left. Where there is more of it, and calls took longer than that stretch, it was in a call, such
   as that of an object that sleeps while it is pickled.
2. The stretch and its calls get parts of the CPU time in proportion to what is left of their
   elapsed time. All other time without a core was ready.
3. Page faults belong to the stretch.
4. What is more than there is elapsed time was used after the stretch had ended, before the system
   was read, such as by a thread that lost its core there: it belongs to the next stretch. Time
   ready while the recorder worked between two supersteps belongs to the second of them, which
   begins earlier by as much: it is not the recorder's. After the end of a sub-group it belongs to
   the superstep of the parent.

Where the stretch is computation, time blocked is **waiting for threads of its own**, such as
those of a library for matrices, as far as the CPU time of the other threads of the process since
the reading before reaches. It counts as CPU time. The system brings the CPU time of threads that
run up to date at its ticks only: some ms of it may count in the next stretch.
"""

from __future__ import annotations

import contextlib
import os
import time
from array import array as numbers
from collections.abc import Callable, Sequence
from mmap import mmap
from struct import Struct, pack_into
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

_NO = -1
"""What is not measured."""
HEADER_BYTES = 16
"""Size of the header of the memory for rows. Its second half is left to the user of the memory."""
DUE_NS = 30_000
"""A stretch that ends less than this after the last reading is not read."""
_MINOR = (1 << 40) - 1

NO_WAITS = "the system has no /proc/thread-self/schedstat, or it says nothing"
NO_FAULTS = "the system does not count page faults of a thread"

if not cython.compiled:
    with contextlib.suppress(ImportError):  # not on Windows
        import resource
    from bsplib.core.atomics import cpu_ns, rounded, this_thread
    from bsplib.core.atomics import now_ns as now

    _CODES = {1: "B", 4: "i", 8: "q"}

    def open_waits() -> int:
        """Open the file of the times that this thread waits for a core; -1 if there is none."""
        try:
            return os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            return -1

    def close_waits(file: int) -> None:
        """Close the file."""
        os.close(file)

    def waited_ns(file: int) -> int:
        """Return how long the thread of an open file has been ready without a core.

        Returns:
            Nanoseconds; -1 if the system does not say.
        """
        try:
            on_core, waited, slices = map(int, os.pread(file, 80, 0).split())
        except (OSError, ValueError):
            return -1
        return waited if on_core or waited or slices else -1

    def process_cpu_ns() -> int:
        """Return the CPU time of all threads of this process."""
        return time.process_time_ns()

    def page_faults() -> int:
        """Return the page faults of this thread: minor + major * 2**40; -1 if not known."""
        try:
            used = resource.getrusage(resource.RUSAGE_THREAD)
        except (NameError, AttributeError, OSError):
            return -1
        return used.ru_minflt + (used.ru_majflt << 40)

    def write_row(start: Any, offset: int, row: Any, sizes: bytes) -> None:
        """Write the numbers of a row, each with its size, into memory."""
        codes = (_CODES[size] for size in sizes)
        pack_into(f"<{''.join(codes)}", start, offset, *row)

    publish = Struct("<Q").pack_into

    def start_of(memory: mmap) -> Any:
        """Return what the functions above take for the memory; the compiled ones: an address."""
        return memory


class Rows:
    """Rows of one dtype in memory that may be exchanged for larger memory.

    Args:
        dtype: of integers, without a sign where they have one byte.
        make_room: is called if there is no room for a row. It has to call :meth:`use`.
    """

    def __init__(self, dtype: np.dtype[Any], make_room: Callable[[], object]) -> None:
        self._row_bytes = dtype.itemsize
        self._sizes = bytes(dtype[name].itemsize for name in dtype.names or ())
        self.row = numbers("q", bytes(8 * len(self._sizes)))
        """The fields of the row that is appended next."""
        self._make_room = make_room
        self._memory: mmap | None = None
        self._start: Any = 0
        self.count = 0
        """Number of rows in the memory."""
        self.before = 0
        """Number of rows that the memory had before, and that have been stored elsewhere."""
        self._capacity = 0

    def use(self, memory: mmap | None, count: int) -> None:
        """Append the next rows to this memory.

        Args:
            memory: must not be closed before this method is called again; None: there is no
                memory, and ``make_room`` is called for the next row.
            count: number of rows that the memory has already.

        Raises:
            ValueError: the memory has no room for another row.
        """
        capacity = 0
        if memory is not None:
            capacity = (len(memory) - HEADER_BYTES) // self._row_bytes
            if not 0 <= count < capacity:
                raise ValueError(f"no room for row {count} of {capacity}")
        self._start = 0 if memory is None else start_of(memory)
        self._memory = memory
        self.count, self._capacity = count, capacity

    def append(self) -> None:
        """Append the row."""
        if self.count == self._capacity:
            self._extend()
        at = HEADER_BYTES + self.count * self._row_bytes
        write_row(self._start, at, self.row, self._sizes)
        self.count += 1
        publish(self._start, 0, self.count)

    def _extend(self) -> None:
        self._make_room()
        if self.count == self._capacity:
            raise ValueError("there is no memory for another row")


class Usage:
    """Reads what the calling thread has used, and shares it out; see the rule above.

    A reading in another thread than the one before it begins anew: nothing is known of what
    was used between them.

    Args:
        now_ns: the present time.
    """

    def __init__(self, now_ns: int) -> None:
        self._file = -1
        self._thread = 0
        self._last_ns = now_ns  # when the system was last read
        self._given_ns = 0  # CPU time of the stretches since then
        self.used = numbers("q", [0] * 7)
        """What the last stretch has been given: CPU time, time ready, minor and major faults, the
        same two times of its calls, and what of the rest other threads were on a core."""
        self.own_threads_ns = 0
        """How long computation has waited for threads of its own."""
        self._cpu_ns = self._process_ns = self._waited_ns = self._faults = 0
        self.carried_ns = 0
        """How much earlier the next superstep begins, since it was ready without a core."""
        self._next_cpu_ns = self._next_ready_ns = 0  # what belongs to the next stretch
        self._begin(now_ns)
        self.has_waits = self._waited_ns >= 0
        """Whether the time ready without a core is measured."""
        self.has_faults = self._faults >= 0
        """Whether page faults are counted."""

    def reasons(self) -> dict[str, str]:
        """Return why something is not measured, by what it is; empty text where it is."""
        return {
            "cpu": "",
            "ready": "" if self.has_waits else NO_WAITS,
            "faults": "" if self.has_faults else NO_FAULTS,
        }

    def _begin(self, now_ns: int) -> None:
        """Leave out what was used since the last reading."""
        thread = this_thread()
        if thread != self._thread:
            self.close()
            self._thread = thread
            self._file = open_waits()  # the file of this thread
        self._last_ns = now_ns
        self._given_ns = self._next_cpu_ns = self._next_ready_ns = 0
        self._cpu_ns = cpu_ns()
        self._process_ns = process_cpu_ns()
        self._waited_ns = -1 if self._file < 0 else waited_ns(self._file)
        self._faults = page_faults()

    def close(self) -> None:
        """Close the file that belongs to the thread."""
        if self._file >= 0:
            close_waits(self._file)
        self._file = -1

    def rest(self, end_ns: int, now_ns: int) -> bool:
        """Leave out what the recorder has used between two supersteps, if it took long.

        Time ready without a core is carried to the next stretch; see the rule above.

        Returns:
            Whether the system was read.
        """
        if now_ns - end_ns < DUE_NS:
            return False
        waited, ready, thread = self._waited_ns, self._next_ready_ns, self._thread
        self._begin(now_ns)
        if self.has_waits and thread == self._thread:
            ready += max(self._waited_ns - waited, 0)
            self.carried_ns = self._next_ready_ns = min(ready, now_ns - end_ns)
        return True

    def end_stretch(self, elapsed_ns: int, calls_ns: int, now_ns: int) -> bool:
        """Find out what a stretch has used that ends now; it is in :attr:`used` then.

        Args:
            elapsed_ns: elapsed time of the stretch.
            calls_ns: elapsed time of calls in it, which is no part of that.
            now_ns: the present time.

        Returns:
            Whether the system was read.
        """
        if now_ns - self._last_ns >= DUE_NS:
            self._share(elapsed_ns, calls_ns, now_ns)
            return True
        self._given_ns += elapsed_ns + calls_ns
        self.used[0], self.used[4] = elapsed_ns, calls_ns
        self.used[1] = self.used[2] = self.used[3] = self.used[5] = self.used[6] = 0
        return False

    def _share(self, elapsed_ns: int, calls_ns: int, now_ns: int) -> None:
        cpu, waited, faults, given = self._cpu_ns, self._waited_ns, self._faults, self._given_ns
        used, ready, others = self._next_cpu_ns, self._next_ready_ns, -self._process_ns
        is_same = this_thread() == self._thread
        self._begin(now_ns)
        if is_same:
            others += self._process_ns - self._cpu_ns + cpu
            used = max(used + self._cpu_ns - cpu - given, 0)
            if self.has_waits:
                ready += max(self._waited_ns - waited, 0)
        total = min(used, calls_ns + elapsed_ns)
        left = calls_ns + elapsed_ns - total
        asleep = left - min(ready, left) if self.has_waits else left
        blocked = min(asleep, elapsed_ns)
        if asleep > elapsed_ns and calls_ns > elapsed_ns:
            blocked = max(asleep - calls_ns, 0)
        awake = calls_ns - min(asleep - blocked, calls_ns)
        room = awake + elapsed_ns - blocked
        # Compiled, a quotient of two whole numbers would be a whole number.
        in_calls = min(rounded(float(total) / room * awake), awake) if room else 0
        last = min(total - in_calls, elapsed_ns)
        waited_last = min(ready, max(elapsed_ns - last - blocked, 0))
        waited_calls = min(ready - waited_last, calls_ns - in_calls)
        since = now() - now_ns
        self._next_cpu_ns = min(used - in_calls - last, since)
        self._next_ready_ns = min(ready - waited_last - waited_calls, since)
        faults = self._faults - faults if is_same and self.has_faults else 0
        self.used[0], self.used[1] = last, waited_last
        self.used[2], self.used[3] = faults & _MINOR, faults >> 40
        self.used[4], self.used[5] = in_calls, waited_calls
        self.used[6] = min(max(others, 0), blocked)

    def read_for(self, began_ns: int) -> int:
        """Return how long a reading took, which then belongs to no stretch.

        Time ready without a core meanwhile is not the recorder's: it stays with the next stretch.

        Args:
            began_ns: when it began.
        """
        self._next_cpu_ns = 0
        self._last_ns = now()
        return max(self._last_ns - began_ns - self._next_ready_ns, 0)


class Log:
    """Writes the rows of one group; a superstep's traffic is written before the superstep.

    All times are in ns on one clock. A stretch of computation is the time from ``begin`` to
    ``arrive``, without calls, or a piece of it, before or after a sub-group.

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
        if usage is not None and self._end_piece(usage, arrive_ns, comm_ns) and not self._sub_ns:
            took = usage.read_for(arrive_ns)
            self._start_ns += took
            self.arrived_ns += took

    def suspend(self, now_ns: int, comm_ns: int) -> None:
        """End a piece of computation, since a sub-group begins; see :meth:`arrive`."""
        usage = self._usage
        if usage is not None:
            self._end_piece(usage, now_ns, comm_ns)

    def _end_piece(self, usage: Usage, now_ns: int, comm_ns: int) -> bool:
        """End a piece of computation; return whether the system was read."""
        calls = comm_ns - self._calls_ns
        self._calls_ns = comm_ns
        is_read = usage.end_stretch(max(now_ns - self._piece_ns - calls, 0), calls, now_ns)
        used = usage.used
        self._comp_cpu += used[0] + used[6]
        self._comp_ready += used[1]
        self._comp_minor += used[2]
        self._comp_major += used[3]
        self._comm_cpu += used[4]
        self._comm_ready += used[5]
        usage.own_threads_ns += used[6]
        return is_read

    def add_traffic(self, partner: int, direction: int, nbytes: int, messages: int) -> None:
        """Write what was exchanged with a process of the group in this superstep.

        Args:
            partner: pid in the group; may be this process.
            direction: to the partner or from it; see ``records.Direction``.
            nbytes: bytes of payload.
            messages: number of messages; nothing is written if both are 0.

        Raises:
            OverflowError: a number has more than 63 bits.
        """
        if partner == self._pid:
            self._own_bytes += nbytes
            self._own_messages += messages
        elif messages or nbytes:
            if self._members is not None:
                partner = self._members[partner]
            row = self._traffic.row
            row[0] = self._supersteps.before + self._supersteps.count
            row[1], row[2] = partner, direction
            row[3], row[4] = nbytes, messages
            self._traffic.append()

    def add_superstep(  # noqa: PLR0913, PLR0917  # the fields of a row
        self,
        superstep: int,
        kind: int,
        stack: int,
        arrive_ns: int,
        released_ns: int,
        end_ns: int,
        comm_ns: int,
        pickling_ns: int,
        pickled_bytes: int,
    ) -> None:
        """Write the superstep; see ``bsplib.recording.records.RECORD``.

        Raises:
            OverflowError: a number has more than 63 bits; nothing was written.
        """
        began, usage = self._began_ns, self._usage
        if usage is not None:
            usage.end_stretch(end_ns - arrive_ns, 0, end_ns)
            used = usage.used
            self._comm_cpu += used[0]
            self._comm_ready += used[1]
            self._comm_minor += used[2]
            self._comm_major += used[3]
            # Clocks of different kinds may differ by some ns.
            computed = arrive_ns - self._start_ns - comm_ns - self._sub_ns
            self._comp_cpu = min(self._comp_cpu, max(computed, 0))
            self._comp_ready = min(self._comp_ready, max(computed - self._comp_cpu, 0))
        row = self._supersteps.row  # the fields of RECORD, in their order
        row[0], row[1] = self._member, self._number
        row[2], row[3], row[4] = superstep, kind, stack
        row[5], row[6] = self._start_ns - began, arrive_ns - began
        row[7], row[8] = released_ns - began, end_ns - began
        row[9], row[10] = comm_ns, self._sub_ns
        row[11], row[12] = self._own_bytes, self._own_messages
        row[13], row[14] = self._comp_cpu, self._comp_ready
        row[15], row[16] = self._comm_cpu, self._comm_ready
        row[17], row[18] = self._comp_minor, self._comp_major
        row[19], row[20] = self._comm_minor, self._comm_major
        row[21] = self._start_ns - self._end_ns
        row[22], row[23] = pickling_ns, pickled_bytes
        self._supersteps.append()
        self._end_ns = end_ns

    def rest(self, now_ns: int) -> bool:
        """Leave out what the recorder has used, if it took long; call :meth:`begin` afterwards.

        Returns:
            Whether the system was read, so that ``now_ns`` has passed.
        """
        usage = self._usage
        return usage is not None and usage.rest(self._end_ns, now_ns)

    def begin(self, start_ns: int) -> None:
        """Begin the next superstep."""
        usage = self._usage
        if usage is not None:
            start_ns -= usage.carried_ns
            usage.carried_ns = 0
            self._calls_ns = 0
            self._piece_ns = start_ns
            self._begin_usage()
        self._start_ns = start_ns
        self._sub_ns = 0
        self._own_bytes = self._own_messages = 0

    def leave(self, parent: Log) -> None:
        """Let the parent's superstep go on where the next superstep here would begin.

        The time since the group was made is added to the sums of the parent's superstep.
        """
        parent._sub_ns += self._start_ns - self._opened_ns
        parent._piece_ns = self._start_ns
