"""How a process waits for others, and wakes those that wait for it.

It looks again and again: first without a pause, then giving way after each look, and at last
sleeping between two looks. A process that sleeps is woken, which takes some 50 us; one that looks
goes on at once, but keeps a core busy. PROTOCOL.md argues why no wake-up is lost.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time
from collections.abc import Callable, Sequence

from bsplib.backends.base import Stopped
from bsplib.backends.shm.control import ABORT, ASLEEP, FUTEX, WAITED, WORD
from bsplib.core import atomics
from bsplib.core.atomics import STORES_IN_ORDER, full_fence
from bsplib.core.meeting import LONG_GAP_NS, SPINS, YIELDS, Pause, Waiter

_LOOK_NS = 6_000_000
"""Time for which a process that has a core looks before it sleeps. To be woken takes some 1 % of a
wait that is longer."""
_FIRST_NAP_NS, _LONGEST_NAP_NS = 1_000_000, 50_000_000
"""Time-outs of a sleeping process, each twice as long as the one before. It then looks again, and
checks whether it waits in vain."""

_sched_yield = os.sched_yield


class Waiting:
    """The waiting of one process of a run.

    Args:
        control: the control words of the run.
        pid: this process.
        starts: by pid, the word at which the control words of the process begin.
        futexes: their addresses, by pid.
        fences: of this process.
        wait_by: ``spin``: it never sleeps; ``block``: it sleeps at once; ``auto``: it spins, then
            yields, then sleeps.
        has_core: each process has a core of its own; None where that is found out here.
    """

    def __init__(
        self,
        control: memoryview,
        pid: int,
        starts: Sequence[int],
        futexes: Sequence[int],
        fences: Fences,
        wait_by: str,
        has_core: bool | None = None,
    ) -> None:
        self.control = control
        self._pid = pid
        self._starts = starts
        self._futexes = futexes
        self._fences = fences
        self._asleep = starts[pid] + ASLEEP
        self._sleeps = wait_by != "spin"
        self.yields = 0 if wait_by == "block" else YIELDS
        """Looks that give way where this process may have no core of its own."""
        if has_core is None:
            has_core = len(starts) <= len(os.sched_getaffinity(0))
        self._has_core = wait_by == "spin" or (wait_by == "auto" and has_core)
        address = futexes[pid] - WORD * (starts[pid] + FUTEX)
        self.waiter = Waiter(
            address + WORD * (starts[pid] + WAITED),
            [address + WORD * (start + ASLEEP) for start in starts],
            futexes,
            SPINS if self._has_core else 0,
            self.yields,
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
    ) -> None:
        """Return as soon as ``ready()``: look, giving way, then sleep.

        The caller has to fence before it reads what ``ready`` has found announced.

        Args:
            ready: a fast function; what one of ``whom`` posts makes it true for good.
            whom: pids in the root group of the processes that wake this one.
            suspect: called from time to time; raises if ``ready`` can never become true.

        Raises:
            Stopped: the run ended while waiting.
        """
        pause = self.waiter.pause if self._has_core and self._sleeps else None
        # Other threads of this process would have to wait for the interpreter.
        alone = threading.active_count() == 1 or not self._sleeps
        limit_ns = _LOOK_NS if self._has_core and alone else 0
        while not look(ready, pause, self.yields, limit_ns):
            if self._sleeps:
                self._sleep_until(ready, whom, suspect)
                return
            if self.has_to_stop():
                raise Stopped
            suspect()

    def move_to_own_core(self) -> None:
        """Leave a core that this process may share with the process that it waits for.

        After the move the system may place this process on any core again.
        """
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {sorted(cores)[self._pid % len(cores)]})
        os.sched_setaffinity(0, cores)

    def _sleep_until(
        self, ready: Callable[[], object], whom: Sequence[int], suspect: Callable[[], None]
    ) -> None:
        control, futex = self.control, self._futexes[self._pid]
        waited = [self._starts[pid] + WAITED for pid in whom]
        nap_ns = _FIRST_NAP_NS
        control[self._asleep] = 1
        self._fences.order()  # release: ASLEEP, before WAITED
        try:
            while True:
                for word in waited:
                    control[word] = 1
                self._fences.all_processes()  # a process that posts from now on finds WAITED set
                seen = atomics.load(futex)
                aborted = self.has_to_stop()
                if ready():  # even if aborted: the wait is over, and this process may go on
                    return
                if aborted:
                    raise Stopped
                suspect()
                atomics.sleep_while(futex, seen, nap_ns)
                nap_ns = min(2 * nap_ns, _LONGEST_NAP_NS)
        finally:
            control[self._asleep] = 0

    def has_to_stop(self) -> bool:
        """Tell whether the run has to stop."""
        return bool(self.control[ABORT])


def look(ready: Callable[[], object], pause: Pause | None, yields: int, limit_ns: int = 0) -> bool:
    """Look and give way again and again; return whether ``ready()`` in the end.

    Args:
        ready: a fast function that tells whether the wait is over.
        pause: of this process, which only looks once while it lasts, and begins one where another
            process has its core between two looks. None: it looks all the same.
        yields: how often it gives way at least.
        limit_ns: how long it looks at least.
    """
    if pause is not None and pause.waits:
        pause.waits -= 1
        return bool(ready())
    count, began = 0, time.perf_counter_ns()
    before = began
    while not ready():
        if count >= yields and before - began >= limit_ns:
            return False
        _sched_yield()
        count += 1
        now = time.perf_counter_ns()
        if pause is not None and now - before > LONG_GAP_NS:
            pause.begin()
            return False
        before = now
    return True


# -- fences: they make other processes see loads and stores in the order that is needed ------------
# Python has no fence instruction. A lock that is released and acquired again is one, since both are
# atomic instructions that no load or store passes; it takes some 70 ns. On x86 most places need
# none, because stores become visible in program order and loads are done in program order. Only a
# load may be done before an *earlier store* is visible. PROTOCOL.md lists every fence and says what
# it is for.


_MEMBARRIER = {"x86_64": 324, "aarch64": 283, "riscv64": 283}.get(platform.machine())
"""Number of the system call on Linux."""
_QUERY = 0
_GLOBAL_EXPEDITED = 1 << 1
_REGISTER_GLOBAL_EXPEDITED = 1 << 2
_NEEDED = _GLOBAL_EXPEDITED | _REGISTER_GLOBAL_EXPEDITED

_system_call = ctypes.PyDLL(None).syscall  # never waits: no need to release the interpreter's lock
_system_call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_long)
_system_call.restype = ctypes.c_long


class Fences:
    """The fences of one process of a run; only the thread that runs ``main`` uses them."""

    def __init__(self) -> None:
        self.weak = not STORES_IN_ORDER
        """The machine may swap loads or stores, so that :meth:`order` has to do something."""
        self.posts_need_fence = not _can_fence_all()
        """A store for which others may sleep and the next load of WAITED need :meth:`full`."""

    def register(self) -> None:
        """Let others fence this process from now on; called in it, before its first post.

        Raises:
            OSError: the system refuses what it said it could do.
        """
        if not self.posts_need_fence and not _membarrier(_REGISTER_GLOBAL_EXPEDITED):
            raise OSError("membarrier: the system does not register this process")

    def order(self) -> None:
        """Keep the order of loads and stores, except of a store and a later load.

        It is the release fence before a store that others look for, and the acquire fence
        after a load that found such a store. On x86 it does nothing.
        """
        if self.weak:
            self.full()

    def full(self) -> None:
        """Complete all earlier loads and stores, visibly, before any later one."""
        full_fence()

    def all_processes(self) -> None:
        """Fence here, and at some moment of this call in every process of the run, too.

        So the processes that post need no fence of their own. Where the system call is missing
        or forbidden, all processes find that, and fence at each post.
        """
        if self.posts_need_fence:
            self.full()
        else:
            _membarrier(_GLOBAL_EXPEDITED)


def _can_fence_all() -> bool:
    """Tell whether the system can fence all processes that are registered."""
    able = _ask_membarrier(_QUERY)
    return able > 0 and able & _NEEDED == _NEEDED


def _membarrier(command: int) -> bool:
    return _ask_membarrier(command) == 0


def _ask_membarrier(command: int) -> int:
    if _MEMBARRIER is None:
        return -1
    answer: int = _system_call(_MEMBARRIER, command, 0)
    return answer
