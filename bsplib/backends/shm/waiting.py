"""How a process waits for others, and wakes those that wait for it.

It looks again and again: first without a pause, then giving way after each look
(:mod:`bsplib.core.meeting`), then sleeping between two looks. PROTOCOL.md argues why no
wake-up is lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bsplib.backends.base import Stopped
from bsplib.backends.shm.control import ABORT, ASLEEP, FUTEX, OS_PID, WAITED, WORD
from bsplib.backends.shm.fences import Fences
from bsplib.backends.shm.patience import Patience
from bsplib.backends.shm.segment import Segment
from bsplib.core import atomics
from bsplib.core.meeting import MOST_SPINS, MOST_YIELDS, Waiter

_YIELDS_PER_LOOK_AT_CLOCK = 4
_ASKED = 4
"""Processes, of those that it waits for, of which it asks whether they have a core."""
_SPINS_PER_CALL = 4
"""Looks of the core that take as long as one call of a function that looks."""
_NS_PER_CHECK = 10_000_000
"""Time after which a process that may not sleep checks again whether it waits in vain."""
_NAPS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Time-outs of a sleeping process, which then looks again, and checks whether it waits in vain."""

_sched_yield = os.sched_yield


class Outside(NamedTuple):
    """What a process has that another backend has started, which also watches it."""

    stop: memoryview
    """One byte, in place of ABORT: 1 once the run has to stop. Nobody changes the futex then,
    so that a process that sleeps finds it after its nap."""
    has_core: bool
    """Each process has a core of its own."""


class Waiting:
    """The waiting of one process of a run.

    Args:
        control: the control words of the run.
        pid: this process.
        starts: by pid, the word at which the control words of the process begin.
        futexes: by pid.
        fences: of this process.
        wait_by: ``spin``: it never sleeps; ``block``: it sleeps at once; ``auto``: it spins, then
            yields, then sleeps.
        outside: where another backend has started the process: what stops it.
    """

    def __init__(
        self,
        control: memoryview,
        pid: int,
        starts: Sequence[int],
        futexes: Sequence[Futex],
        fences: Fences,
        wait_by: str,
        outside: Outside | None = None,
    ) -> None:
        self._outside = outside
        self.control = control
        self._pid = pid
        self._starts = starts
        self._futexes = futexes
        self._fences = fences
        self._asleep = starts[pid] + ASLEEP
        has_core = wait_by == "spin" or (
            len(starts) <= len(os.sched_getaffinity(0)) if outside is None else outside.has_core
        )
        self._yields = wait_by != "block"
        self._sleeps = wait_by != "spin"
        self._patience = Patience(has_core=has_core and wait_by == "auto")
        address = futexes[pid].address - WORD * (starts[pid] + FUTEX)
        self.waiter = Waiter(
            address + WORD * (starts[pid] + WAITED),
            [address + WORD * (start + ASLEEP) for start in starts],
            [futex.address for futex in futexes],
            MOST_SPINS if has_core and self._yields else 0,
            MOST_YIELDS if self._yields else 0,
            self._sleeps,
            fences.posts_need_fence,
            self.move_to_own_core,
        )

    # -- waiting --------------------------------------------------------------------------

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
            ready: a fast function; what one of ``whom`` posts makes it true for good.
            whom: pids in the root group of the processes that wake this one.
            suspect: called from time to time; raises if ``ready`` can never become true.
            spun: the caller has spun already.

        Raises:
            Stopped: the run ended while waiting.
        """
        if not spun and self._spin_until(ready):
            return
        if not self._look_until(ready, whom, suspect):
            self.waiter.be_impatient(gives_way=not self._patience.is_considerate)
            self._sleep_until(ready, whom, suspect)
            self._patience.slept()

    def _spin_until(self, ready: Callable[[], object]) -> bool:
        for _ in range(self.waiter.spins_this_time() // _SPINS_PER_CALL):
            if ready():
                self.waiter.spun_well()
                return True
        self.waiter.give_up_spinning()
        return False

    def move_to_own_core(self) -> None:
        """Leave a core that this process may share with the process that it waits for.

        The system may leave two processes that yield to each other on one core. After the
        move it may place this process on any core again.
        """
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {sorted(cores)[self._pid % len(cores)]})
        os.sched_setaffinity(0, cores)

    def _look_until(
        self, ready: Callable[[], object], whom: Sequence[int], suspect: Callable[[], None]
    ) -> bool:
        """Look without sleeping; return whether the wait is over."""
        if self.waiter.lost_core:
            self.waiter.lost_core = False
            self._patience.be_considerate()
        self._patience.begin(self.waiter.patience / MOST_YIELDS)
        if self._patience.is_considerate or not self._yields:
            return False
        os_pids = [self.control[self._starts[pid] + OS_PID] for pid in (self._pid, *whom[:_ASKED])]
        found = self._yield_while(ready, lambda: self._patience.lasts(os_pids))
        if found is None and not self._sleeps:
            found = self._yield_while(ready, self._watch(suspect))
        if found:
            self.waiter.be_patient()
        return bool(found)

    def _yield_while(self, ready: Callable[[], object], goes_on: Callable[[], bool]) -> bool | None:
        """Look and yield; return whether ``ready()``, or None if this does not go on."""
        while not self.has_to_stop():
            for _ in range(_YIELDS_PER_LOOK_AT_CLOCK):
                if ready():
                    return True
                _sched_yield()
            if not goes_on():
                return None
        return False

    def _watch(self, suspect: Callable[[], None]) -> Callable[[], bool]:
        """Return a function that checks from time to time whether this process waits in vain."""
        deadline = 0

        def goes_on() -> bool:
            nonlocal deadline
            if time.perf_counter_ns() >= deadline:
                suspect()
                deadline = time.perf_counter_ns() + _NS_PER_CHECK
            return True

        return goes_on

    def _sleep_until(
        self, ready: Callable[[], object], whom: Sequence[int], suspect: Callable[[], None]
    ) -> None:
        control, futex = self.control, self._futexes[self._pid]
        waited = [self._starts[pid] + WAITED for pid in whom]
        naps = 0
        control[self._asleep] = 1
        self._fences.order()  # release: ASLEEP, before WAITED
        try:
            while True:
                for word in waited:
                    control[word] = 1
                self._fences.all_processes()  # a process that posts from now on finds WAITED set
                seen = futex.look()
                aborted = self.has_to_stop()
                if ready():  # even if aborted: the wait is over, and this process may go on
                    return
                if aborted:
                    raise Stopped
                suspect()
                futex.acquire(seen, _NAPS_S[min(naps, len(_NAPS_S) - 1)])
                naps += 1
        finally:
            control[self._asleep] = 0

    def has_to_stop(self) -> bool:
        """Tell whether the run has to stop."""
        words = self.control if self._outside is None else self._outside.stop
        return bool(words[ABORT])


# -- the futex of a process, which wakes it: a word of shared memory ------------------------------
# A process that sleeps waits until the word changes; who wakes it changes the word. A
# word has no name and no file descriptor, and disappears with the memory in which it lies, so
# that nothing has to be cleaned up when a process is killed. A semaphore of ``multiprocessing``
# has a name and a page of its own in /dev/shm, and under ``spawn`` and ``forkserver`` the
# name stays until it is removed explicitly.


class Futex:
    """The futex at an address of this process."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def look(self) -> int:
        """Return what the word is, to be given to :meth:`acquire`."""
        return atomics.load(self.address)

    def release(self) -> None:
        """Wake the process that waits, or let its next wait return at once."""
        atomics.wake_up(self.address)

    def acquire(self, seen: int, timeout: float) -> None:
        """Wait to be woken, unless that has happened since a look.

        It also returns after a time, and when a signal has come: the caller has to look
        again in any case.

        Args:
            seen: what :meth:`look` returned.
            timeout: in seconds.
        """
        atomics.sleep_while(self.address, seen, int(timeout * 1e9))


def futexes(segment: Segment, nprocs: int) -> list[Futex]:
    """Return the futexes of all processes of a run, by pid."""
    base = segment.address + FUTEX * WORD
    return [Futex(base + segment.control_start(pid)) for pid in range(nprocs)]
