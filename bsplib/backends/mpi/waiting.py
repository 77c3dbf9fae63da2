"""How a rank waits: it polls, then gives way after each look, then takes short naps.

No MPI is asked to wait, so that the waiting is the same on each of them, and more processes than
cores do no harm. What MPI does while nobody is inside it differs; it goes on whenever this rank
looks.
"""

from __future__ import annotations

import os
import time

from mpi4py import MPI

from bsplib.backends.base import Stopped
from bsplib.core.meeting import YIELDS

_POLLS = 2
"""Looks before the first pause, where there are more ranks than cores."""
_POLLS_ON_OWN_CORE = 200
"""The same where each rank has a core: half a millisecond."""
NAP_S = 2e-5
"""A nap takes 50 µs more where the system groups its timers."""
_SHARE = 1 / 50
"""Part of the time that a rank has waited for others that its next nap lasts: it uses hardly any
processor time, and comes later than it could by at most this part."""
_LAST_LOOKS = 10
LOOK_S = 0.02
"""Time after which a waiting rank checks again whether it waits in vain, and asks no other one."""
ASK_S = 10 * LOOK_S
"""Time after which it asks the other ranks, too."""

_sched_yield, _sleep, _now = os.sched_yield, time.sleep, time.perf_counter


def polls_of(comm: MPI.Intracomm) -> int:
    """Return how often a rank looks before it pauses; all ranks call it.

    A rank that polls must not keep a core from the rank for which it waits.
    """
    host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    cores: set[int] = set().union(*host.allgather(os.sched_getaffinity(0)))
    has_core = host.size <= len(cores)
    host.Free()
    return _POLLS_ON_OWN_CORE if has_core else _POLLS


class LastLooks:
    """How often a rank may still look when the run has to stop.

    What it waits for may have come while others used the core. Then it finds the same error as
    they have, and reports it, too. Few looks for the whole run: otherwise processes without an
    error could go on among themselves.
    """

    left = _LAST_LOOKS


class RankWait:
    """One wait of a rank.

    Args:
        stop: a byte that is 1 once the run has to stop.
        last_looks: of the run.
        polls: looks before the first pause; see :func:`polls_of`.
        only_waits: MPI has nothing to do for this rank meanwhile, which would take more looks.
    """

    __slots__ = (
        *("_ask_at", "_began", "_last_looks", "_look_at", "_looks", "_nap_s", "_only_waits"),
        "_stop",
    )

    def __init__(
        self, stop: memoryview, last_looks: LastLooks, polls: int, *, only_waits: bool = False
    ) -> None:
        self._stop = stop
        self._last_looks = last_looks
        self._looks = -polls
        self._only_waits = only_waits
        self._nap_s = NAP_S
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
        if self._stop[0]:
            if not self._last_looks.left:
                raise Stopped
            self._last_looks.left -= 1
            return False
        if self._looks <= YIELDS:
            _sched_yield()
            return False
        _sleep(self._nap_s)
        now = _now()
        if not self._look_at:
            self._began = now
            self._look_at, self._ask_at = now + LOOK_S, now + ASK_S
        if self._only_waits:
            self._nap_s = min(max(NAP_S, (now - self._began) * _SHARE), LOOK_S)
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        return True

    def asks(self) -> bool:
        """Tell whether it is time to ask the others."""
        now = _now()
        if now < self._ask_at:
            return False
        self._ask_at = now + ASK_S
        return True
