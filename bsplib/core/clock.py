"""The virtual time of one process.

A clock advances by the CPU time that the thread uses while the process computes, and
by the cost of communication. It is stopped while the process is inside a primitive and
while another process runs, so that neither the work of the simulator nor other load of the
computer counts. From the first ``charge`` on it advances by charges alone.

The module runs interpreted, or compiled with ``clock.pxd``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

if not cython.compiled:
    from bsplib.core.atomics import cpu_ns, rounded

_PRELUDE_NS = 1_000_000
"""CPU time in ns. A process that computes no longer than this before its first charge, and
neither reads the clock nor ends a superstep before it, is taken to charge from its first line
on: its CPU time is not counted, so that the virtual time is the same in every run. The first
line of a program takes some 10 us, and several 100 where the caches are cold."""
_LIMIT_NS = 2.0**62
"""The time that a charge may lead to: integers of 64 bits have room for twice as much."""


class Clock:
    """Nanoseconds of one virtual processor. A new clock is stopped.

    Args:
        scale: virtual seconds for each second of CPU time of this computer.
        read: returns the CPU time of the thread in ns; the clock of the system if None.
    """

    def __init__(self, scale: float = 1.0, read: Callable[[], int] | None = None) -> None:
        self._scale = scale
        self._read = read
        self._ns = 0
        self._skipped_ns = 0  # not computed: waited, communicated, or before main
        self._charges = False
        self._is_prelude = True
        self._prelude_ns = 0  # measured, and not yet counted
        self._inside = 1  # primitives that are being executed, one inside the other
        self._resumed_ns = 0  # CPU time at which the clock last began to run
        self.empty_ns = 0
        """CPU time that the clock measures between two primitives with nothing in between."""

    def now(self) -> int:
        """Return the virtual time at which the clock was last stopped."""
        return self._ns

    def resume(self) -> None:
        """Leave a primitive: the clock runs if it was the outermost one."""
        if self._inside == 1 and not self._charges:
            self._resumed_ns = cpu_ns() if self._read is None else self._read()
        self._inside -= 1

    def pause(self) -> None:
        """Enter a primitive: the clock is stopped."""
        self._inside += 1
        if self._inside == 1 and not self._charges:
            now_ns = cpu_ns() if self._read is None else self._read()
            used_ns = now_ns - self._resumed_ns - self.empty_ns
            if used_ns > 0:
                self._measured(used_ns)

    def _measured(self, used_ns: int) -> None:
        if self._is_prelude:
            self._prelude_ns += used_ns
            if self._prelude_ns > _PRELUDE_NS:
                self.settle()
        else:
            self._ns += rounded(used_ns * self._scale)

    def settle(self) -> None:
        """Count what was measured so far, before the time is read or a superstep ends."""
        if self._is_prelude:
            self._is_prelude = False
            self._ns += rounded(self._prelude_ns * self._scale)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Let the clock run inside a primitive, for a function that the program gave it."""
        inside, self._inside = self._inside, 1
        self.resume()
        try:
            yield
        finally:
            self.pause()
            self._inside = inside

    def advance_to(self, moment_ns: int) -> None:
        """Set the clock forward to the end of a superstep, which does not count as computation."""
        if moment_ns > self._ns:
            self._skipped_ns += moment_ns - self._ns
            self._ns = moment_ns

    def restart(self) -> None:
        """Set the clock to 0, after the barrier before ``main``."""
        self._ns = self._skipped_ns = 0

    def computed_ns(self) -> int:
        """Return for how long the process has computed."""
        return self._ns - self._skipped_ns

    def charges(self) -> bool:
        """Tell whether it advances by charges alone."""
        return self._charges

    def charge(self, seconds: float) -> bool:
        """Advance by a charge, and from now on by charges alone.

        What was measured before is kept, except for the microseconds before the first charge
        of a program, which differ from run to run.

        Args:
            seconds: 0 or more.

        Returns:
            Whether this is the first charge, and the time that was measured before it is too
            long for a program that charges from its first line on.

        Raises:
            OverflowError: the clock would pass 2^62 ns, which is 146 years.
        """
        charged_ns = float(seconds) * 1e9
        if self._ns + charged_ns >= _LIMIT_NS:
            raise OverflowError("virtual time is limited to 2^62 ns, 146 years")
        is_late = not self._charges and self.computed_ns() > _PRELUDE_NS
        self._charges = True
        self._is_prelude = False
        self._ns += rounded(charged_ns)
        return is_late


class EmptyPrimitive:
    """Has a primitive of the core that does nothing, to find out what a clock measures then.

    Args:
        clock: that the primitive pauses.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def call(self) -> None:
        """Do nothing."""
        self._clock.pause()
        try:
            pass
        finally:
            self._clock.resume()
