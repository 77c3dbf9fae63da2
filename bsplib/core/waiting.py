"""How a process looks for the posts of others, and wakes those that wait for its own.

It looks again and again, first without a pause; then it lets other processes run after each
look. If the post does not come by then, the caller sleeps (:mod:`bsplib.backends.shm.waiting`)
until the process that it waits for wakes it. PROTOCOL.md argues why no wake-up is lost.
"""

from __future__ import annotations

from array import array as numbers
from collections.abc import Callable, Sequence

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
if not cython.compiled:
    from bsplib.core.atomics import (
        compiler_fence,
        full_fence,
        give_way,
        load,
        now_ns,
        peek,
        relax,
        store,
        wake_up,
    )

MOST_SPINS = 2000 if cython.compiled else 500
"""Number of looks before a process first lets others run. They take about 50 us, more than a
meeting takes if all processes come to it at the same time."""
_LEAST_SPINS = MOST_SPINS // 5
"""Least number of these looks, even after several waits in which looking was in vain."""
_FIRST_TRIAL = 32
_LAST_TRIAL = 1 << 10
"""Waits with fewer looks after which it tries all of them once more: at first, and at most."""
MOST_YIELDS = 64
"""The most looks that follow, each of which lets others run (``sched_yield``)."""
LONG_GAP_NS = 200_000
"""Looks take so long only where another process had the core between them."""


class Waiter:
    """The looks of one process, and its wake-ups.

    Args:
        waited: address of the word that is 1 where another process sleeps until this one posts.
        asleep: by pid, addresses of the words that are 1 while the process sleeps.
        futexes: by pid, addresses of the words that change to wake the process.
        spins: looks without a pause, at most; 0 where processes share cores.
        yields: looks that give way, at most.
        sleeps: this process may sleep in the place of giving way.
        posts_need_fence: this process has to fence after a post for which others may sleep.
        move: moves this process to another core; called when spinning was in vain.
    """

    def __init__(
        self,
        waited: int,
        asleep: Sequence[int],
        futexes: Sequence[int],
        spins: int,
        yields: int,
        sleeps: bool,
        posts_need_fence: bool,
        move: Callable[[], None],
    ) -> None:
        self.waited = waited
        self._asleep = numbers("Q", asleep)
        self._futexes = numbers("Q", futexes)
        self._count = len(futexes)
        self._posts_need_fence = posts_need_fence
        self._move = move
        self._most_spins = self._spins = spins
        self._most_yields = yields
        self.patience = yields
        """Looks that give way this time: 0 since another process had the core meanwhile, until
        giving way was good in a trial."""
        self.lost_core = False
        """Another process had the core of this one while it gave way. It is for the reader to
        set it to False."""
        self._keeps_core = sleeps and spins > 0
        self._waits_to_trial = self._trial = _FIRST_TRIAL

    # -- waiting --------------------------------------------------------------------------

    def arrives(self, address: int, floor: int) -> bool:
        """Look until a word has at least some value, but not long; return whether it has."""
        if self._most_spins:
            for _look in range(self.spins_this_time()):
                if load(address) >= floor:
                    self.spun_well()
                    return True
                relax()
            self.give_up_spinning()
        return self.patience > 0 and self._give_way_until(address, floor)

    def _give_way_until(self, address: int, floor: int) -> bool:
        began = now_ns()
        found = False
        for _look in range(self.patience):
            if load(address) >= floor:
                found = True
                break
            give_way()
        if self._keeps_core and now_ns() - began > LONG_GAP_NS:
            self.lost_core = True
            self.patience = 0
        elif found:
            self.be_patient()
        return found

    def spins_this_time(self) -> int:
        """Return how often to look: less often each time that it was in vain.

        If another program has the core of the process that is waited for, spinning only delays
        it. A trial with all looks from time to time finds out whether that has changed.
        """
        self._waits_to_trial -= 1
        if not self._waits_to_trial:
            self._spins = self._most_spins
        return self._spins

    def spun_well(self) -> None:
        """Note that spinning was long enough."""
        self._spins, self._trial = self._most_spins, _FIRST_TRIAL

    def give_up_spinning(self) -> None:
        """Spin less the next time; after a trial with all looks, move to another core."""
        if self._spins == self._most_spins > 0:
            self._move()
            self._trial = min(2 * self._trial, _LAST_TRIAL)
            self._waits_to_trial = self._trial
        self._spins = max(self._spins // 2, min(_LEAST_SPINS, self._most_spins))

    def be_patient(self) -> None:
        """Note that giving way was long enough."""
        self.patience = min(max(2 * self.patience, 1), self._most_yields)

    def be_impatient(self, gives_way: bool) -> None:
        """Note that giving way was in vain: do it less often the next time.

        Args:
            gives_way: False to do it no more, until :meth:`be_patient` is called.
        """
        self.patience = min(max(self.patience // 2, 1), self._most_yields) if gives_way else 0

    # -- waking ---------------------------------------------------------------------------

    def posted(self) -> None:
        """Wake processes that sleep until this one posts; called after each post."""
        if self._posts_need_fence:
            full_fence()
        else:
            compiler_fence()
        if peek(self.waited):
            self.wake()

    def wake(self) -> None:
        """Wake all sleeping processes."""
        store(self.waited, 0)
        full_fence()  # the cleared WAITED, before the loads of ASLEEP
        for pid in range(self._count):
            if peek(self._asleep[pid]):
                wake_up(self._futexes[pid])
