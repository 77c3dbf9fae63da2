"""How the caller of a run waits for the outcomes of processes that are not inside it."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from bsplib.backends.launching import Death, Ended, Interrupted, TimeIsOver
from bsplib.backends.whereabouts import Whereabouts

GRACE_S = 0.5
"""Between the first failure and the end of the processes that do not notice it: others may
fail by themselves before their next sync, and are reported too."""
_LOOK_S = 2.0
"""After so long without news the caller asks whether a process has been stopped."""

Outcomes = dict[int, Ended | Death]
"""How processes ended, by pid."""


class Limit:
    """The time that a run may take, from now on.

    Args:
        seconds: None for as long as it takes.
    """

    def __init__(self, seconds: float | None) -> None:
        self._ends = math.inf if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Tell whether it has passed."""
        return time.monotonic() >= self._ends

    def cut(self, seconds: float) -> float:
        """Return a time to wait that ends not much later than the limit."""
        return min(seconds, self._ends - time.monotonic() + 0.001)


class Observed(Protocol):
    """The processes of a run as their caller sees them."""

    nprocs: int

    def news(self, timeout: float) -> Mapping[int, Ended | Death]:
        """Return the outcomes that come within some seconds, as soon as there is one."""

    def tell_to_stop(self) -> None:
        """Have processes end that wait for others, now or later."""

    def whereabouts(self, ended: Collection[int]) -> Sequence[Whereabouts]:
        """Return where all processes are, of which some have ended."""

    def report_stopped(self, ended: Collection[int]) -> None:
        """Say so if the run waits for processes that have been stopped by a signal."""


def await_outcomes(observed: Observed, limit: Limit) -> Outcomes:
    """Wait until all processes have ended, or some time after the first failure.

    Returns:
        How they ended; nothing of those that have to be brought to an end.

    Raises:
        TimeIsOver: the limit has passed, and no process has failed.
        Interrupted: Ctrl-C came.
    """
    outcomes: Outcomes = {}
    try:
        _await(observed, limit, outcomes)
    except KeyboardInterrupt as interrupt:
        raise Interrupted(interrupt, observed.whereabouts(outcomes)) from None
    return outcomes


def _await(observed: Observed, limit: Limit, outcomes: Outcomes) -> None:
    deadline: float | None = None
    while len(outcomes) < observed.nprocs:
        if limit.is_over() and deadline is None:
            raise TimeIsOver(observed.whereabouts(outcomes))
        timeout = limit.cut(_LOOK_S) if deadline is None else deadline - time.monotonic()
        if timeout <= 0:
            return
        news = observed.news(timeout)
        outcomes.update(news)
        if deadline is not None:
            continue
        if not news:
            observed.report_stopped(outcomes)
        if any(outcome.failed for outcome in news.values()):
            observed.tell_to_stop()
            deadline = time.monotonic() + GRACE_S
