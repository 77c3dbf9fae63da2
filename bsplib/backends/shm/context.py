"""What one process has of the run: its memory, its doorbell, its way of waiting."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bsplib.backends.base import LeftGroup, Stopped
from bsplib.backends.shm.control import ABORT, ASLEEP, BLOCKS, OS_PID, WAITED, WORD
from bsplib.backends.shm.doorbell import Doorbell
from bsplib.backends.shm.heap import Heap
from bsplib.backends.shm.outbox import Outbox
from bsplib.backends.shm.segment import Segment

_MOST_SPINS = 1000
"""Looks before the first yield, about 50 us: longer than any meeting takes."""
_LEAST_SPINS = 200
"""So few remain where looking was in vain."""
_FIRST_TRIAL = 32
_LAST_TRIAL = 1 << 10
"""Waits between two trials: at first, and where they were in vain again and again."""
_YIELDS = 64
"""At once, before the time is looked at."""
_YIELD_NS = 500_000
"""Yielding goes on for so long before the process sleeps."""
_YIELDS_PER_LOOK_AT_CLOCK = 4
_LOOK_NS = 10_000_000
_LOOKS_PER_STATE = 200
"""Where a process may not sleep: how often it asks what is wrong, and who is stopped."""
_NAPS_PER_LOOK = 50  # about 2 s
_NAPS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Time-outs of a sleeper: the doorbell may be missed once in a blue moon."""

_sched_yield = os.sched_yield

STORES_IN_ORDER = platform.machine().lower() in {"x86_64", "amd64", "i386", "i686"}


class ProcessContext:
    """A process of the run: segment, heap, outboxes, and waiting for others."""

    def __init__(
        self,
        segment: Segment,
        pid: int,
        doorbells: Sequence[Doorbell],
        wait_by: str = "auto",
    ) -> None:
        self.segment = segment
        self.pid = pid
        self.nprocs = len(doorbells)
        self.control = segment.control
        self.heap = Heap(segment, segment.area(pid))
        self._doorbells = doorbells
        self._order = threading.Lock()
        self._order.acquire()
        self._starts = [segment.control_start(other) // WORD for other in range(self.nprocs)]
        self.waited = self._starts[pid] + WAITED
        self._asleep = self._starts[pid] + ASLEEP
        self._outboxes: list[Outbox] = []
        self._told: set[int] = set()
        self.left_over: list[LeftGroup] = []
        """Groups that this process has left and others may still be in."""
        self.runs = 0
        """Tasks that have ended here."""
        has_core = self.nprocs <= len(os.sched_getaffinity(0)) or wait_by == "spin"
        self._yields = STORES_IN_ORDER and wait_by != "block"
        self._patience = _YIELDS  # less and less of them after each time that ended asleep
        self._sleeps = wait_by != "spin"
        self._most_spins = self._spins = _MOST_SPINS if has_core and self._yields else 0
        self._waits_to_trial = self._trial = _FIRST_TRIAL
        self.control[self._starts[pid] + OS_PID] = os.getpid()

    def begin_anew(self) -> None:
        """Forget all memory of a task that has ended in every process."""
        self.runs += 1
        self.heap.clear()
        self._outboxes.clear()
        self.left_over.clear()
        self._told.clear()

    def sweep(self) -> None:
        """Reclaim what belongs to groups that everybody has left."""
        self.left_over[:] = [group for group in self.left_over if not group.let_go()]

    def has_block(self) -> bool:
        """Tell whether this process can enter another group."""
        start = self._starts[self.pid]
        return 0 in self.control[start : start + BLOCKS].tolist()

    def start_of(self, pid: int) -> int:
        """Return the word at which the control words of a process begin."""
        return self._starts[pid]

    def take_outbox(self) -> Outbox:
        """Return an empty outbox."""
        return self._outboxes.pop() if self._outboxes else Outbox(self.heap)

    def give_outbox(self, outbox: Outbox) -> None:
        """Take back an outbox that nobody reads any more."""
        outbox.clear()
        self._outboxes.append(outbox)

    def fence(self) -> None:
        """Order the stores before against the loads and stores after, on any machine.

        On x86 this is not needed; elsewhere the atomic operations of a lock
        (release, then acquire) are the one fence that Python has.
        """
        if not STORES_IN_ORDER:
            self._order.release()
            self._order.acquire()

    def wake_if_waited(self) -> None:
        """Wake those who wait for what this process has just posted."""
        if self.control[self.waited]:
            self.wake()

    def wake(self) -> None:
        """Wake those who sleep; called after a post that found WAITED set."""
        control = self.control
        control[self.waited] = 0
        for pid, start in enumerate(self._starts):
            if control[start + ASLEEP]:
                self._doorbells[pid].release()

    def arrives(self, word: int, floor: int) -> bool:
        """Spin, then yield, until a word has come to a floor; False where that was in vain."""
        control = self.control
        if self._most_spins:
            for _ in range(self._turn()):
                if control[word] >= floor:
                    self._spins, self._trial = self._most_spins, _FIRST_TRIAL
                    self.fence()
                    return True
            self._give_up_spinning()
        if self._yields:
            for _ in range(self._patience):
                if control[word] >= floor:
                    self._patience = min(2 * self._patience, _YIELDS)
                    self.fence()
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

        Args:
            ready: cheap; becomes and stays true by what one of ``whom`` does.
            whom: root pids of the processes to be woken by.
            suspect: called now and then, raises where ``ready`` never will be true.
            spun: spinning has been in vain already.

        Raises:
            Stopped: the run ended while waiting.
        """
        if not spun and self._spin_until(ready):
            return
        if not (self._yields and self._yield_until(ready, whom, suspect)):
            self._patience = max(self._patience // 2, 1)
            self._sleep_until(ready, whom, suspect)
        self.fence()

    def _spin_until(self, ready: Callable[[], object]) -> bool:
        for _ in range(self._turn()):
            if ready():
                self._spins, self._trial = self._most_spins, _FIRST_TRIAL
                return True
        self._give_up_spinning()
        return False

    def _turn(self) -> int:
        """Return how often to look: fully if that helped last time, ever less if it did not.

        Where another program has the core of whoever is waited for, spinning only
        keeps it from being run; now and then a full turn finds out if that is over.
        """
        self._waits_to_trial -= 1
        if not self._waits_to_trial:
            self._spins = self._most_spins
        return self._spins

    def _give_up_spinning(self) -> None:
        """Spin less the next time; after a full turn, look for another core."""
        if self._spins == self._most_spins > 0:
            self._move_to_own_core()
            self._trial = min(2 * self._trial, _LAST_TRIAL)
            self._waits_to_trial = self._trial
        self._spins = max(self._spins // 2, min(_LEAST_SPINS, self._most_spins))

    def _move_to_own_core(self) -> None:
        """Leave a core that this process may share with the one it waits for.

        Two processes that yield to each other on one core look busy to nobody, and
        would be left there; after the move the system is free to place them again.
        """
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {sorted(cores)[self.pid % len(cores)]})
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
        control, bell = self.control, self._doorbells[self.pid]
        waited = [self._starts[pid] + WAITED for pid in whom]
        naps = 0
        control[self._asleep] = 1
        try:
            while True:
                for word in waited:
                    control[word] = 1
                self.fence()
                aborted = self.control[ABORT]
                if ready():  # even so: what is complete is each process's own to judge
                    return
                if aborted:
                    raise Stopped
                suspect()
                bell.acquire(timeout=_NAPS_S[min(naps, len(_NAPS_S) - 1)])
                naps += 1
                if naps % _NAPS_PER_LOOK == 0:
                    self._say_who_is_stopped(whom)
        finally:
            control[self._asleep] = 0

    def _say_who_is_stopped(self, whom: Sequence[int]) -> None:
        """Tell, once, of processes that are waited for and have been stopped."""
        for pid in whom:
            if pid not in self._told and is_stopped(self.control[self._starts[pid] + OS_PID]):
                self._told.add(pid)
                sys.stderr.write(  # there is nobody else to tell; in one piece, others may too
                    f"bsplib: process {self.pid} waits for process {pid}, which is stopped; "
                    f"continue it (kill -CONT {self.control[self._starts[pid] + OS_PID]}) or "
                    f"end the run\n"
                )
                sys.stderr.flush()


def is_stopped(os_pid: int) -> bool:
    """Tell whether a process has been stopped by a signal."""
    try:
        stat = Path(f"/proc/{os_pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")
