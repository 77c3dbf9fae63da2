"""How a rank waits: it polls, then gives way after each look, then takes short naps.

No MPI is asked to wait, so that the waiting is the same on each of them, and more processes than
cores do no harm. What MPI does while nobody is inside it differs; it goes on whenever this rank
looks.
"""

from __future__ import annotations

import os
import time

from bsplib.backends.base import Stopped

_POLLS = 2
"""Looks before the first pause."""
_YIELDS = 100
"""Pauses in which a rank only gives way, before it naps."""
_NAP_S = 2e-5
"""A nap takes 50 µs more where the system groups its timers."""
LOOK_S = 0.02
"""A rank that waits asks itself so often whether it waits in vain."""
ASK_S = 0.2
"""It asks the others so often."""

_sched_yield, _sleep, _now = os.sched_yield, time.sleep, time.perf_counter


class Patience:
    """One wait of a rank.

    Args:
        stop: a byte that is 1 once the run has to stop.
    """

    __slots__ = ("_ask_at", "_look_at", "_looks", "_stop")

    def __init__(self, stop: memoryview) -> None:
        self._stop = stop
        self._looks = 0
        self._look_at = 0.0
        self._ask_at = 0.0

    def pause(self) -> bool:
        """Give way to others, for longer if there have been many pauses.

        Returns:
            Whether it is time to look whether the wait is in vain; see :meth:`asks`.

        Raises:
            Stopped: the run ends.
        """
        self._looks += 1
        if self._looks <= _POLLS:
            return False
        if self._stop[0]:
            raise Stopped
        if self._looks <= _POLLS + _YIELDS:
            _sched_yield()
            return False
        _sleep(_NAP_S)
        now = _now()
        if not self._look_at:
            self._look_at, self._ask_at = now + LOOK_S, now + ASK_S
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
