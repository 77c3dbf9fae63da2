"""How a process waits for others, and wakes those who wait for it.

It looks again and again, first without a pause, then yielding its core after each look,
then asleep between two looks. PROTOCOL.md argues why no wake-up is lost.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bsplib.backends.base import Stopped
from bsplib.backends.shm.control import ABORT, ASLEEP, OS_PID, WAITED
from bsplib.backends.shm.doorbell import Doorbell
from bsplib.backends.shm.fences import Fences

_MOST_SPINS = 1000
"""Looks before the first yield, about 50 us: longer than any meeting takes."""
_LEAST_SPINS = 200
"""Looks that remain where looking was in vain the last times."""
_FIRST_TRIAL = 32
_LAST_TRIAL = 1 << 10
"""Waits between two trials: at first, and where they were in vain again and again."""
_YIELDS = 64
"""Looks with a yield after each, before the time is looked at."""
_YIELD_NS = 500_000
"""A process yields for so long before it sleeps."""
_YIELDS_PER_LOOK_AT_CLOCK = 4
_LOOK_NS = 10_000_000
_LOOKS_PER_STATE = 200
"""Where a process may not sleep: how often it asks what is wrong, and who is stopped."""
_NAPS_PER_LOOK = 50  # about 2 s
_NAPS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Time-outs of a sleeper, which looks again then. It also asks what is wrong, if anything."""

_sched_yield = os.sched_yield


class Waiting:
    """The waiting of one process of a run.

    Args:
        control: the control words of the run.
        pid: this process.
        starts: by pid, the word at which the control words of the process begin.
        doorbells: by pid.
        fences: of this process.
        wait_by: ``spin``: it never sleeps, ``block``: it sleeps at once, ``auto``: both.
    """

    def __init__(
        self,
        control: memoryview,
        pid: int,
        starts: Sequence[int],
        doorbells: Sequence[Doorbell],
        fences: Fences,
        wait_by: str,
    ) -> None:
        self.control = control
        self.waited = starts[pid] + WAITED
        self._pid = pid
        self._starts = starts
        self._doorbells = doorbells
        self._fences = fences
        self._asleep = starts[pid] + ASLEEP
        self._told: set[int] = set()
        has_core = len(starts) <= len(os.sched_getaffinity(0)) or wait_by == "spin"
        self._yields = wait_by != "block"
        self._patience = _YIELDS  # halved each time that it ended asleep
        self._sleeps = wait_by != "spin"
        self._most_spins = self._spins = _MOST_SPINS if has_core and self._yields else 0
        self._waits_to_trial = self._trial = _FIRST_TRIAL

    def begin_anew(self) -> None:
        """Name processes again that are stopped: another task begins."""
        self._told.clear()

    # -- waking -------------------------------------------------------------------------

    def wake_if_waited(self) -> None:
        """Wake those who sleep until this process stores what it has just stored."""
        if self._fences.posts_need_fence:
            self._fences.full()
        if self.control[self.waited]:
            self.wake()

    def wake(self) -> None:
        """Wake all who sleep; called after a store that found WAITED set."""
        control = self.control
        control[self.waited] = 0
        self._fences.full()  # who sets WAITED again before it is cleared is seen asleep
        for pid, start in enumerate(self._starts):
            if control[start + ASLEEP]:
                self._doorbells[pid].release()

    # -- waiting --------------------------------------------------------------------------

    def arrives(self, word: int, floor: int) -> bool:
        """Spin, then yield, until a word has come to a floor; False where that was in vain.

        The caller has to fence before it reads what the word announces.
        """
        control = self.control
        if self._most_spins:
            for _ in range(self._spins_this_time()):
                if control[word] >= floor:
                    self._spins, self._trial = self._most_spins, _FIRST_TRIAL
                    return True
            self._give_up_spinning()
        if self._yields:
            for _ in range(self._patience):
                if control[word] >= floor:
                    self._patience = min(2 * self._patience, _YIELDS)
                    return True
                _sched_yield()
        return False

    def wait(
        self,
        ready: Callable[[], object],
        whom: Sequence[int],
        suspect: Callable[[], None],
        *,
        spun: bool = False,
    ) -> None:
        """Return as soon as ``ready()``: spin, then yield, then sleep.

        The caller has to fence before it reads what ``ready`` has found announced.

        Args:
            ready: cheap; becomes and stays true by what one of ``whom`` does.
            whom: root pids of the processes to be woken by.
            suspect: called now and then, raises where ``ready`` never will be true.
            spun: spinning has been in vain already.

        Raises:
            Stopped: the run ended while waiting.
        """
        if (spun or not self._spin_until(ready)) and not (
            self._yields and self._yield_until(ready, whom, suspect)
        ):
            self._patience = max(self._patience // 2, 1)
            self._sleep_until(ready, whom, suspect)

    def _spin_until(self, ready: Callable[[], object]) -> bool:
        for _ in range(self._spins_this_time()):
            if ready():
                self._spins, self._trial = self._most_spins, _FIRST_TRIAL
                return True
        self._give_up_spinning()
        return False

    def _spins_this_time(self) -> int:
        """Return how often to look: fully if that helped last time, ever less if it did not.

        Where another program has the core of whoever is waited for, spinning only
        keeps it from being run; a full trial now and then finds out if that is over.
        """
        self._waits_to_trial -= 1
        if not self._waits_to_trial:
            self._spins = self._most_spins
        return self._spins

    def _give_up_spinning(self) -> None:
        """Spin less the next time; after a full trial, look for another core."""
        if self._spins == self._most_spins > 0:
            self._move_to_own_core()
            self._trial = min(2 * self._trial, _LAST_TRIAL)
            self._waits_to_trial = self._trial
        self._spins = max(self._spins // 2, min(_LEAST_SPINS, self._most_spins))

    def _move_to_own_core(self) -> None:
        """Leave a core that this process may share with the one it waits for.

        The system sees no reason to part two processes that yield to each other on one
        core; after the move it is free to place them again.
        """
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {sorted(cores)[self._pid % len(cores)]})
        os.sched_setaffinity(0, cores)

    def _yield_until(
        self, ready: Callable[[], object], whom: Sequence[int], suspect: Callable[[], None]
    ) -> bool:
        looks = 0
        deadline = time.perf_counter_ns() + _YIELD_NS * self._patience // _YIELDS
        while True:
            for _ in range(_YIELDS_PER_LOOK_AT_CLOCK):
                if ready():
                    self._patience = min(2 * self._patience, _YIELDS)
                    return True
                _sched_yield()
            if self.control[ABORT]:
                return False
            if time.perf_counter_ns() < deadline:
                continue
            if self._sleeps:
                return False
            suspect()
            looks += 1
            if looks % _LOOKS_PER_STATE == 0:
                self._say_who_is_stopped(whom)
            deadline = time.perf_counter_ns() + _LOOK_NS

    def _sleep_until(
        self, ready: Callable[[], object], whom: Sequence[int], suspect: Callable[[], None]
    ) -> None:
        control, doorbell = self.control, self._doorbells[self._pid]
        waited = [self._starts[pid] + WAITED for pid in whom]
        naps = 0
        control[self._asleep] = 1
        self._fences.order()  # who finds WAITED set finds ASLEEP set, too
        try:
            while True:
                for word in waited:
                    control[word] = 1
                self._fences.all_processes()  # who stores from now on finds WAITED set
                aborted = control[ABORT]
                if ready():  # even if aborted: what is complete is each process's own to judge
                    return
                if aborted:
                    raise Stopped
                suspect()
                doorbell.acquire(timeout=_NAPS_S[min(naps, len(_NAPS_S) - 1)])
                naps += 1
                if naps % _NAPS_PER_LOOK == 0:
                    self._say_who_is_stopped(whom)
        finally:
            control[self._asleep] = 0

    def _say_who_is_stopped(self, whom: Sequence[int]) -> None:
        """Tell, once, of processes that are waited for and have been stopped."""
        for pid in whom:
            os_pid = self.control[self._starts[pid] + OS_PID]
            if pid not in self._told and is_stopped(os_pid):
                self._told.add(pid)
                # One call of write: others may write to the same stream.
                sys.stderr.write(
                    f"bsplib: process {self._pid} waits for process {pid}, which is stopped; "
                    f"continue it (kill -CONT {os_pid}) or end the run\n"
                )
                sys.stderr.flush()


def is_stopped(os_pid: int) -> bool:
    """Tell whether a process has been stopped by a signal."""
    try:
        stat = Path(f"/proc/{os_pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")
