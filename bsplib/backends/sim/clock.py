"""The virtual time of one process.

It runs with the processor while the process computes, stands still while another
one does, and is set forward by what communication is priced at. From the first
``charge`` on it moves by what is charged alone, so that it is the same in every run.
"""

from __future__ import annotations

import time


class Clock:
    """Nanoseconds of one virtual processor."""

    def __init__(self) -> None:
        self._ns = 0
        self._resumed_ns: int | None = None  # real time since when it runs; None if it stands
        self._mark_ns = 0  # where the superstep began
        self._charged = False
        self._skipped_ns = 0  # not computed: waited, communicated, or before main

    def now(self) -> int:
        """Return the virtual time."""
        if self._resumed_ns is None or self._charged:
            return self._ns
        return self._ns + time.perf_counter_ns() - self._resumed_ns

    def resume(self) -> None:
        """The process runs."""
        self._resumed_ns = time.perf_counter_ns()

    def pause(self) -> int:
        """The process waits, or another one runs; return the virtual time."""
        self._ns = now = self.now()
        self._resumed_ns = None
        return now

    def advance_to(self, moment_ns: int) -> None:
        """The process goes on at a moment; a new superstep begins."""
        if moment_ns > self._ns:
            self._skipped_ns += moment_ns - self._ns
            self._ns = moment_ns
        self._mark_ns = self._ns

    def restart(self) -> None:
        """Time begins here."""
        self._ns = self._mark_ns = self._skipped_ns = 0

    def computed_ns(self) -> int:
        """Return for how long the process has computed."""
        return self.now() - self._skipped_ns

    def charge(self, seconds: float) -> int:
        """The process has computed for so long; what was measured does not count.

        Returns:
            Since when: where the superstep began, or now if it was charged before.
        """
        if not self._charged:
            self._charged = True
            self._ns = self._mark_ns
        since = self._ns
        self._ns += round(seconds * 1e9)
        return since
