"""What the operating system says of a thread: CPU time, time ready without a core, page faults.

Reading all of it takes some 2 us, as long as a short superstep. Therefore **a clock decides at
the end of each stretch**: a stretch is the computing part of a superstep (or a piece of it, before
or after a sub-group) or its communicating part. The system is read only if ``DUE_NS`` or more have
passed since it was read last, and where no stretch may stay open: at the opening of a sub-group,
at the end of ``main``, and before records are compressed.

What was used between two readings belongs to the stretch that ends at the second one, and to the
open stretches before it, which were too short to be read. It is **shared out by this rule**:

1. The open stretches count as time on a core, as far as the CPU time that was used reaches; if it
   does not, each of them gets the same part of its elapsed time. The last stretch gets the rest,
   at most its elapsed time. Time in calls, such as put, counts as an open stretch. What of all
   this is longer than ``DUE_NS`` may have lost its core as well as the last stretch: they get
   parts of the CPU time in proportion to their elapsed time.
2. Time blocked, neither on a core nor ready, belongs to the last stretch, as far as that has time
   left. All other time without a core was ready.
3. Page faults belong to the last stretch.
4. What is more than there is elapsed time was used after the stretch had ended, before the system
   was read, such as by a thread that lost its core there: it belongs to the next stretch. Time
   ready while the recorder worked between two supersteps belongs to the second of them, which
   begins earlier by as much: it is not the recorder's.

So all but the last stretch together are shorter than ``DUE_NS`` and the calls of a superstep.

Where the last stretch is computation, time blocked is **waiting for threads of its own**, such as
those of a library for matrices, as far as the CPU time of the other threads of the process since
the reading before reaches. It counts as CPU time. The system brings the CPU time of threads that
run up to date at its ticks only: some ms of it may count in the next stretch.

The module runs interpreted, or compiled with ``usage.pxd``.
"""

from __future__ import annotations

import os
import resource
import time
from array import array

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.rows import Rows

if not cython.compiled:
    from bsplib.core.atomics import cpu_ns, rounded, this_thread
    from bsplib.core.atomics import now_ns as now

    def open_waits() -> int:
        """Open the file of the times that this thread waits for a core; -1 if there is none."""
        try:
            return os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
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
        except (AttributeError, OSError):
            return -1
        return used.ru_minflt + (used.ru_majflt << 40)


DUE_NS = 30_000
"""A stretch that ends less than this after the last reading stays open."""
_MOST_OPEN = 64
"""Number of records with open stretches."""
_MINOR = (1 << 40) - 1

NO_WAITS = "the system has no /proc/thread-self/schedstat, or it says nothing"
NO_FAULTS = "the system does not count page faults of a thread"


class Usage:
    """Reads what the calling thread has used, and shares it out among stretches.

    A reading in another thread than the one before it begins anew: nothing is known of what
    was used between them.

    Args:
        rows: the records of supersteps, whose open stretches are filled in later.
        now_ns: the present time.
    """

    def __init__(self, rows: Rows, now_ns: int) -> None:
        self._rows = rows
        self._file = -1
        self._thread = 0
        self.last_ns = now_ns
        """When the system was last read."""
        self.open_ns = 0
        """Elapsed time of all open stretches."""
        self.used = array("q", [0] * 5)
        """What the last stretch has been given: CPU time, time ready, minor and major faults, and
        what of the rest other threads of the process were on a core."""
        self.own_threads_ns = 0
        """How long computation has waited for threads of its own."""
        self._cpu_ns = self._process_ns = self._waited_ns = self._faults = 0
        self._on_core = self._off_core = 0.0  # parts of an open stretch, of what is left of it
        self.carried_ns = 0
        """How much earlier the next superstep begins, since it was ready without a core."""
        self._next_cpu_ns = self._next_ready_ns = 0  # what belongs to the next stretch
        self._first = self._count = 0  # records with open stretches
        self._open_comp = array("q", [0] * _MOST_OPEN)
        self._open_comm = array("q", [0] * _MOST_OPEN)
        self.begin(now_ns)
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

    def begin(self, now_ns: int) -> None:
        """Leave out what was used since the last reading; no stretch may be open."""
        thread = this_thread()
        if thread != self._thread:
            self.close()
            self._thread = thread
            self._file = open_waits()  # the file of this thread
        self.last_ns = now_ns
        self._next_cpu_ns = self._next_ready_ns = 0
        self._cpu_ns = cpu_ns()
        self._process_ns = process_cpu_ns()
        self._waited_ns = -1 if self._file < 0 else waited_ns(self._file)
        self._faults = page_faults()

    def close(self) -> None:
        """Close the file that belongs to the thread."""
        if self._file >= 0:
            close_waits(self._file)
        self._file = -1

    def is_due(self, now_ns: int) -> bool:
        """Tell whether a stretch that ends now is to be read."""
        return (
            now_ns - self.last_ns >= DUE_NS
            or self._count == _MOST_OPEN
            or self._rows.is_nearly_full()
        )

    def is_late(self, end_ns: int, start_ns: int) -> bool:
        """Tell whether the recorder took long between two supersteps; then nothing is open."""
        return start_ns - end_ns >= DUE_NS and self._count == 0

    def rest(self, end_ns: int, now_ns: int) -> None:
        """Leave out what the recorder has used between two supersteps, where nothing is open.

        Time ready without a core is carried to the next stretch; see the rule above.
        """
        waited, ready, thread = self._waited_ns, self._next_ready_ns, self._thread
        self.begin(now_ns)
        if self.has_waits and thread == self._thread:
            ready += max(self._waited_ns - waited, 0)
            self.carried_ns = self._next_ready_ns = min(ready, now_ns - end_ns)

    def settle(self, elapsed_ns: int, now_ns: int) -> None:
        """Read what was used, and share it out; see the rule above.

        The open stretches of records are filled in here. Those of the present superstep, which
        has no record yet, the caller fills in, by :meth:`on_core` and :meth:`off_core`.

        Args:
            elapsed_ns: elapsed time of the stretch that ends now.
            now_ns: the present time.
        """
        cpu, waited, faults = self._cpu_ns, self._waited_ns, self._faults
        used, ready, others = self._next_cpu_ns, self._next_ready_ns, -self._process_ns
        is_same = this_thread() == self._thread
        self.begin(now_ns)
        if is_same:
            others += self._process_ns - self._cpu_ns + cpu
            used += max(self._cpu_ns - cpu, 0)
            if self.has_waits:
                ready += max(self._waited_ns - waited, 0)
        total = min(used, self.open_ns + elapsed_ns)
        left = self.open_ns + elapsed_ns - total
        blocked = min(left - min(ready, left) if self.has_waits else left, elapsed_ns)
        given = min(total, self.open_ns, DUE_NS)
        longer = self.open_ns - given
        room = longer + elapsed_ns - blocked
        if longer and room:
            given += min(rounded(float(total - given) / room * longer), longer)
        last = min(total - given, elapsed_ns)
        waited_last = min(ready, max(elapsed_ns - last - blocked, 0))
        left = self.open_ns - given
        waited_open = min(ready - waited_last, left)
        # Compiled, a quotient of two whole numbers would be a whole number.
        self._on_core = float(given) / self.open_ns if self.open_ns else 0.0
        self._off_core = float(waited_open) / left if left else 0.0
        since = now() - now_ns
        self._next_cpu_ns = min(used - given - last, since)
        self._next_ready_ns = min(ready - waited_last - waited_open, since)
        faults = self._faults - faults if is_same and self.has_faults else 0
        self.used[0] = last
        self.used[1] = waited_last
        self.used[2] = faults & _MINOR
        self.used[3] = faults >> 40
        self.used[4] = min(max(others, 0), blocked)
        for at in range(self._count):
            comp = self._open_comp[at]
            comm = self._open_comm[at]
            comp_cpu = self.on_core(comp)
            comm_cpu = self.on_core(comm)
            comp_ready = self.off_core(comp - comp_cpu)
            comm_ready = self.off_core(comm - comm_cpu)
            self._rows.amend(self._first + at, comp_cpu, comp_ready, comm_cpu, comm_ready)
        self._count = 0
        self.open_ns = 0

    def read_for(self, began_ns: int) -> int:
        """Return how long :meth:`settle` took, which then belongs to no stretch.

        Time ready without a core meanwhile is not the recorder's: it stays with the next stretch.

        Args:
            began_ns: when it began.
        """
        self._next_cpu_ns = 0
        self.last_ns = now()
        return max(self.last_ns - began_ns - self._next_ready_ns, 0)

    def on_core(self, open_ns: int) -> int:
        """Return the CPU time of an open stretch, after :meth:`settle`."""
        return min(rounded(open_ns * self._on_core), open_ns)

    def off_core(self, left_ns: int) -> int:
        """Return the time ready of what is left of a stretch, after :meth:`settle`."""
        return min(rounded(left_ns * self._off_core), left_ns)

    def keep_open(self, record: int, comp_ns: int, comm_ns: int) -> None:
        """Remember the open stretches of a record, the one after the last of which this was told.

        Args:
            record: its position in the rows.
            comp_ns: elapsed time of the open part of its computation.
            comm_ns: the same of its communication.
        """
        if self._count == 0:
            self._first = record
        if self._count < _MOST_OPEN and (self._count or comp_ns or comm_ns):
            self._open_comp[self._count] = comp_ns
            self._open_comm[self._count] = comm_ns
            self._count += 1
