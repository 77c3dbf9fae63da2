"""How a process of a pool, or its caller, waits a short time: it yields before it sleeps.

To wake a process that sleeps takes some 30 us, as long as a small run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

YIELDS = 400
"""Looks of all processes of a pool together, with a yield after each, before they sleep: a caller
that has many small tasks sends the next one in less time than it takes to wake them."""
_LONG_YIELD_NS = 500_000
"""Time in ns of a yield after which a process only sleeps for some runs."""
_MOST_NS = 2_000_000
"""Time in ns of all yields, at most."""
_LEAST_PAUSE, _MOST_PAUSE = 16, 1024
"""Bounds of the number of these runs."""


class Idling:
    """How one process waits before it sleeps.

    Where another program runs on the core, a process that yields has to wait until the system
    takes the core from that program. One that sleeps gets the core at once when it is woken. So a
    process whose yield took long only sleeps for some runs, and twice as many after each trial.

    Args:
        yields: yields before it sleeps, at most.
    """

    def __init__(self, yields: int) -> None:
        self._yields = yields
        self._runs_without = 0
        self._next_pause = _LEAST_PAUSE

    def until(self, ready: Callable[[], object]) -> None:
        """Return when something is true, or when it is better to sleep until then.

        Args:
            ready: a fast function that tells whether it is true.
        """
        if self._runs_without:
            self._runs_without -= 1
        elif self._look(ready):
            self._next_pause = _LEAST_PAUSE
        else:
            self._runs_without = self._next_pause
            self._next_pause = min(2 * self._next_pause, _MOST_PAUSE)

    def _look(self, ready: Callable[[], object]) -> bool:
        """Look and yield again and again; return False if a yield took long."""
        before = began = time.perf_counter_ns()
        for _ in range(self._yields):
            if ready():
                break
            os.sched_yield()
            now = time.perf_counter_ns()
            if now - before > _LONG_YIELD_NS:
                return False
            if now - began > _MOST_NS:
                break
            before = now
        return True
