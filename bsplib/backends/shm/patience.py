"""How long a process that waits looks for a post before it sleeps.

To be woken takes some 50 us, in which nothing is done. A process that looks goes on at once, but
keeps a core busy. This is right as long as nobody else needs that core, and the wait ends soon.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable

from bsplib.backends.shm.allowance import may_keep_core_busy

SHORT_NS = 500_000
"""A process looks so long, at most, where it had better leave its core to others."""
LONGEST_NS = 12_000_000
"""A process looks so long, at most, before it sleeps."""
_NEXT_QUESTION_NS = 2_000_000
"""After so long it asks again whether another process needs the core."""
_LONG_GAP_NS = 200_000
"""Two looks are so far apart only where another process had the core between them."""
_SHARE_OF_DELAY = 0.1
"""A process that was ready, but without a core, for this part of the time lacks one."""
_FIRST_PAUSE, _LONGEST_PAUSE = 4, 256
"""A process that found its core needed looks only shortly in so many waits: at first, at most."""


class Patience:
    """How long one process looks, learned from its waits.

    It does not look long where another process needs a core: where its own looks are far
    apart, or where it or a process that it waits for was ready to run without a core. By sleeping
    it leaves a core. At first it looks only shortly: its first wait shows how long is worth it.
    Where waits were longer than it looked, it looks half as long the next time, since it kept a
    core busy in vain.

    Args:
        has_core: the processes of the run do not outnumber the cores that they may use.
    """

    def __init__(self, *, has_core: bool) -> None:
        self._has_core = has_core
        self._is_granted: bool | None = None
        self._limit_ns = SHORT_NS
        self._waits_to_trial = 0
        self._pause = _FIRST_PAUSE
        self._delays: dict[int, tuple[int, int]] = {}
        self._began = self._last_look = self._deadline = 0
        self._may_be_long = False

    def begin(self, part: float) -> None:
        """Begin to wait.

        Args:
            part: of the short time, for which the process looks where it may not look long.
        """
        self._learn()
        self._may_be_long = self._is_calm()
        self._began = self._last_look = time.perf_counter_ns()
        self._deadline = self._began + int(SHORT_NS * (1 if self._may_be_long else part))

    def _is_calm(self) -> bool:
        if self._waits_to_trial:
            self._waits_to_trial -= 1
            return False
        # Other threads of this process would have to wait for the interpreter.
        return self._has_core and self._limit_ns > SHORT_NS and threading.active_count() == 1

    def lasts(self, os_pids: Iterable[int]) -> bool:
        """Tell whether the process goes on looking; called again and again.

        Args:
            os_pids: of this process and of those for which it waits, for the system.
        """
        now, before = time.perf_counter_ns(), self._last_look
        self._last_look = now
        if self._may_be_long and now - before > _LONG_GAP_NS:
            self._be_considerate()
            return False
        return now < self._deadline or (self._may_be_long and self._goes_on(now, os_pids))

    def _goes_on(self, now: int, os_pids: Iterable[int]) -> bool:
        left = self._began + self._limit_ns - now
        if left <= 0 or not self._is_allowed():
            return False
        lacks = [self._lacks_core(os_pid) for os_pid in os_pids]  # of all, not until one does
        if any(lacks):
            self._be_considerate()
            return False
        self._last_look = time.perf_counter_ns()
        self._deadline = now + min(_NEXT_QUESTION_NS, left)
        return True

    def _be_considerate(self) -> None:
        """Look only shortly in some waits from now on, since another process needs the core."""
        self._waits_to_trial = self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def slept(self) -> None:
        """End a wait in which the process slept."""
        self._last_look = time.perf_counter_ns()

    def _learn(self) -> None:
        """Learn from the last wait; only now, since at its end others may wait for this process."""
        waited = self._last_look - self._began
        if waited > LONGEST_NS:
            self._limit_ns = max(self._limit_ns // 2, SHORT_NS)
            return
        self._limit_ns = max(self._limit_ns, min(2 * waited, LONGEST_NS))
        if self._may_be_long and not self._waits_to_trial:
            self._pause = _FIRST_PAUSE

    def _is_allowed(self) -> bool:
        if self._is_granted is None:
            self._is_granted = may_keep_core_busy()
            self._has_core = self._has_core and self._is_granted
        return self._is_granted

    def _lacks_core(self, os_pid: int) -> bool:
        """Tell whether a process was ready without a core for long, since the last question."""
        now, delay = time.perf_counter_ns(), run_delay_ns(os_pid)
        before, delay_before = self._delays.get(os_pid, (now, delay))
        self._delays[os_pid] = now, delay
        return delay - delay_before > _SHARE_OF_DELAY * (now - before)


def run_delay_ns(os_pid: int) -> int:
    """Return for how many ns a process was ready, but had no core; 0 where this is not known."""
    try:
        file = os.open(f"/proc/{os_pid}/schedstat", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(file, 100).split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    finally:
        os.close(file)
