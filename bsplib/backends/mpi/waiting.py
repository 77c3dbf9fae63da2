"""How a rank waits: it polls, then gives way after each look, then takes short naps.

Where it finds that other programs use its core, too, it naps after a few looks.

No MPI is asked to wait, so that the waiting is the same on each of them, and more processes than
cores do no harm. What MPI does while nobody is inside it differs; it goes on whenever this rank
looks.
"""

from __future__ import annotations

import os
import time

from mpi4py import MPI

from bsplib.backends.base import Stopped

_POLLS = 2
"""Looks before the first pause, where there are more ranks than cores."""
_POLLS_ON_OWN_CORE = 200
"""The same where each rank has a core: half a millisecond."""
_POLLS_AMONG_OTHERS = 10
"""The same where each rank should have a core, but shares it with other programs."""
_OWN_SHARE = 0.9
"""A rank that gets less of its core while it polls shares it with other programs."""
_LEAST_WAITS, _MOST_WAITS = 10, 1000
"""Waits after which it looks whether these have gone: fewer where it has not shared it for long."""
_YIELDS = 100
"""Pauses in which a rank only gives way, before it naps."""
_NAP_S = 2e-5
"""A nap takes 50 µs more where the system groups its timers."""
_SHARE = 1 / 50
"""A nap of a rank that only waits for others is such a part of the time that it has waited: so
it uses next to no processor, and comes so much later than it could."""
_MOST_NAP_S = 2e-3
_LAST_LOOKS = 10
LOOK_S = 0.02
"""A rank that waits asks itself so often whether it waits in vain."""
ASK_S = 0.2
"""It asks the others so often."""

_sched_yield, _sleep, _now, _cpu = os.sched_yield, time.sleep, time.perf_counter, time.thread_time


def polls_of(comm: MPI.Intracomm) -> int:
    """Return how often a rank looks before it pauses; all ranks call it.

    A rank that polls must not keep a core from the rank for which it waits.
    """
    host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    cores: set[int] = set().union(*host.allgather(os.sched_getaffinity(0)))
    has_core = host.size <= len(cores)
    host.Free()
    return _POLLS_ON_OWN_CORE if has_core else _POLLS


class Core:
    """The core of a rank, and whether the rank has it for itself, as far as it knows.

    The ranks of a host know of each other, but not of those in another container, and of no other
    program. So a rank that polls compares the time that passes with that of its processor. Where
    it has to share its core, the others soon need it: a nap gives way to them at once, while
    Linux may go on with a rank that yields, since the others are in other groups of processes.

    Args:
        polls: looks of a wait before its first pause; see :func:`polls_of`.
    """

    __slots__ = ("_left", "_next", "_polls")

    def __init__(self, polls: int) -> None:
        self._polls = polls
        self._next = _LEAST_WAITS
        self._left = 0
        """Waits until the rank looks again whether it has the core for itself."""

    def begin_wait(self) -> tuple[int, int]:
        """Return how often a wait polls, and how often it then yields before it naps."""
        if self._left:
            self._left -= 1
            return _POLLS_AMONG_OTHERS, 0
        return self._polls, _YIELDS

    def may_be_shared(self) -> bool:
        """Tell whether the next wait has to measure it."""
        return self._polls > _POLLS and not self._left

    def judge(self, passed_s: float, own_s: float) -> None:
        """Take the time in which the rank only polled, and that of its processor."""
        if own_s < _OWN_SHARE * passed_s:
            self._left, self._next = self._next, min(2 * self._next, _MOST_WAITS)
        else:
            self._next = _LEAST_WAITS


class LastLooks:
    """How often a rank may still look when the run has to stop.

    What it waits for may have come while others used the core. Then it finds the same error as
    they have, and reports it, too. Few looks for the whole run: otherwise processes without an
    error could go on among themselves.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin a run."""
        self.left = _LAST_LOOKS


class Patience:
    """One wait of a rank.

    Args:
        stop: a byte that is 1 once the run has to stop.
        last_looks: of the run.
        core: on which the rank waits.
        only_waits: MPI has nothing to do for this rank meanwhile, which would take more looks.
    """

    __slots__ = (
        *("_ask_at", "_began", "_core", "_last_looks", "_look_at", "_looks", "_nap_s"),
        *("_only_waits", "_polls_since", "_stop", "_yields"),
    )

    def __init__(
        self, stop: memoryview, last_looks: LastLooks, core: Core, *, only_waits: bool = False
    ) -> None:
        self._stop = stop
        self._last_looks = last_looks
        self._core = core
        self._polls_since = (_now(), _cpu()) if core.may_be_shared() else None
        polls, self._yields = core.begin_wait()
        self._looks = -polls
        self._only_waits = only_waits
        self._nap_s = _NAP_S
        self._began = 0.0
        self._look_at = 0.0
        self._ask_at = 0.0

    def hurry(self) -> None:
        """Note that something has come: the rest may come soon, too."""
        self._looks = min(self._looks, 0)

    def pause(self) -> bool:
        """Give way to others, for longer if there have been many pauses.

        Returns:
            Whether it is time to look whether the wait is in vain; see :meth:`asks`.

        Raises:
            Stopped: the run ends.
        """
        self._looks += 1
        if self._looks <= 0:
            return False
        if self._polls_since is not None:
            self._judge(*self._polls_since)
        if self._stop[0]:
            if not self._last_looks.left:
                raise Stopped
            self._last_looks.left -= 1
            return False
        if self._looks <= self._yields:
            _sched_yield()
            return False
        _sleep(self._nap_s)
        now = _now()
        if not self._look_at:
            self._began = now
            self._look_at, self._ask_at = now + LOOK_S, now + ASK_S
        if self._only_waits:
            self._nap_s = min(max(_NAP_S, (now - self._began) * _SHARE), _MOST_NAP_S)
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        return True

    def _judge(self, since: float, own_since: float) -> None:
        self._core.judge(_now() - since, _cpu() - own_since)
        self._polls_since = None
        if not self._core.may_be_shared():
            self._yields = 0

    def asks(self) -> bool:
        """Tell whether it is time to ask the others."""
        now = _now()
        if now < self._ask_at:
            return False
        self._ask_at = now + ASK_S
        return True
