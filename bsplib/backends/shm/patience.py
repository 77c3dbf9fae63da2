"""How long a process that waits looks for a post before it sleeps.

To be woken takes some 50 us, in which nothing is done. A process that looks goes on at once, but
keeps a core busy. This is right as long as nobody else needs that core, and the wait ends soon.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bsplib.core.meeting import LONG_GAP_NS

SHORT_NS = 500_000
"""A process looks so long, at most, where it had better leave its core to others."""
LONGEST_NS = 12_000_000
"""A process looks so long, at most, before it sleeps."""
_NEXT_QUESTION_NS = 2_000_000
"""After so long it asks again whether another process needs the core."""
_SHARE_OF_DELAY = 0.1
"""A process that was ready, but without a core, for this part of the time lacks one."""
_FIRST_PAUSE, _LONGEST_PAUSE = 4, 256
"""Waits in which a process that found its core needed sleeps at once: at first, at most."""


class Patience:
    """How long one process looks, learned from its waits.

    It does not look where another process needs a core: where its own looks are far apart, or
    where it or a process that it waits for was ready to run without a core. Then it sleeps at once
    in its next waits, except in trials that become rarer and rarer. A process that has used its
    core, or gave way, before it slept has to wait until others had their share of the core when it
    is woken; one that slept at once gets the core at once.

    At first it looks only shortly: its first wait shows how long is worth it. Where waits were
    longer than it looked, it looks half as long the next time, since it kept a core busy in vain.

    Args:
        has_core: the processes of the run do not outnumber the cores that they may use.
    """

    def __init__(self, *, has_core: bool) -> None:
        self._has_core = has_core
        self._is_granted: bool | None = None
        self._limit_ns = SHORT_NS
        self._waits_to_trial = 0
        self.is_considerate = False
        """The process had better sleep at once in this wait, since another needs its core."""
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
        self.is_considerate = self._waits_to_trial > 0
        self._waits_to_trial -= self.is_considerate
        self._may_be_long = self._is_calm()
        self._began = self._last_look = time.perf_counter_ns()
        self._deadline = self._began + int(SHORT_NS * (1 if self._may_be_long else part))

    def _is_calm(self) -> bool:
        # Other threads of this process would have to wait for the interpreter.
        return (
            self._has_core
            and not self.is_considerate
            and self._limit_ns > SHORT_NS
            and threading.active_count() == 1
        )

    def lasts(self, os_pids: Iterable[int]) -> bool:
        """Tell whether the process goes on looking; called again and again.

        Args:
            os_pids: of this process and of those for which it waits, for the system.
        """
        now, before = time.perf_counter_ns(), self._last_look
        self._last_look = now
        if self._has_core and now - before > LONG_GAP_NS:
            self.be_considerate()
            return False
        return now < self._deadline or (self._may_be_long and self._goes_on(now, os_pids))

    def _goes_on(self, now: int, os_pids: Iterable[int]) -> bool:
        left = self._began + self._limit_ns - now
        if left <= 0 or not self._is_allowed():
            return False
        lacks = [self._lacks_core(os_pid) for os_pid in os_pids]  # of all, not until one does
        if any(lacks):
            self.be_considerate()
            return False
        self._last_look = time.perf_counter_ns()
        self._deadline = now + min(_NEXT_QUESTION_NS, left)
        return True

    def be_considerate(self) -> None:
        """Sleep at once in some waits from now on, since another process needs the core."""
        if not self._has_core:
            return
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
        if not self.is_considerate and not self._waits_to_trial:
            self._pause = max(self._pause // 2, _FIRST_PAUSE)

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


# -- whether a process may keep a core busy while it waits: what the computer grants it -----------
# Where a control group has a quota of CPU time, time that a process spends looking is missing for
# its work. On battery it costs energy that the user has to pay for.


_SUPPLIES = Path("/sys/class/power_supply")
_OF_THIS_PROCESS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def may_keep_core_busy() -> bool:
    """Tell whether this process runs on mains, and its CPU time has no quota below its cores."""
    return not on_battery() and quota() >= len(os.sched_getaffinity(0))


def on_battery(supplies: Path = _SUPPLIES) -> bool:
    """Tell whether this computer runs on a battery now.

    Args:
        supplies: the folder in which the system lists its supplies of power.
    """
    try:
        found = sorted(supplies.iterdir())
    except OSError:
        return False
    # A battery of a mouse or a headset has the scope "Device".
    ours = [each for each in found if _text(each / "scope") != "Device"]
    return any(
        _text(each / "type") == "Battery" and _text(each / "status") == "Discharging"
        for each in ours
    )


def quota(of_this_process: Path = _OF_THIS_PROCESS, groups: Path = _GROUPS) -> float:
    """Return how many cores the control groups of this process let it use, all the time.

    Args:
        of_this_process: the file that names the control groups of this process.
        groups: the folder in which the system lists control groups.

    Returns:
        Infinity where there is no quota, or none that can be read.
    """
    return min(
        (
            share
            for line in _text(of_this_process).splitlines()
            for folder in _folders(line, groups)
            for share in (_share(folder), _share_v1(folder))
        ),
        default=float("inf"),
    )


def _folders(line: str, groups: Path) -> Iterator[Path]:
    """Yield the folders of a control group, from its line in the file, and of all above it."""
    _number, controllers, path = line.split(":", 2)
    if controllers and "cpu" not in controllers.split(","):
        return
    # Version 1 has one tree for each list of controllers, version 2 one tree for all of them.
    for tree in (groups / controllers, groups / "cpu") if controllers else (groups,):
        names = Path(path.strip("/")).parts
        yield from (tree.joinpath(*names[:depth]) for depth in range(len(names) + 1))


def _share(folder: Path) -> float:
    """Return the quota of a control group of version 2, in cores."""
    allowed, _, period = _text(folder / "cpu.max").partition(" ")
    return int(allowed) / int(period) if period and allowed != "max" else float("inf")


def _share_v1(folder: Path) -> float:
    """Return the quota of a control group of version 1, in cores."""
    allowed, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    return int(allowed) / int(period) if period and int(allowed or -1) > 0 else float("inf")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


# -- how a process of a pool, or its caller, waits a short time: it yields before it sleeps -------
# To wake a process that sleeps takes some 30 us, as long as a small run.


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
