"""How the caller of a run waits for the outcomes of its processes, on backends with real ones."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from bsplib.backends.launching import Death, Ended, Interrupted, TimeIsOver
from bsplib.backends.members import Whereabouts
from bsplib.backends.signals import answer_quit, seconds_to_look

GRACE_S = 0.5
"""Seconds after a failure until processes that have not come to a sync are killed: they may fail by
themselves before that, and are reported, too."""
_MOST_GRACE_S = 3 * GRACE_S
"""The time is counted from the last outcome, so that processes which come late since they share
cores are heard; but from the first failure no more than this."""
_LOOK_S = 2.0
"""Seconds without an outcome after which the caller checks whether processes are stopped."""

Outcomes = dict[int, Ended | Death]
"""How processes ended, by pid."""


class Limit:
    """The time that a run may take, from now on.

    Args:
        seconds: None where there is no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._ends = math.inf if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Tell whether the time has passed."""
        return time.monotonic() >= self._ends

    def cut(self, seconds: float) -> float:
        """Return a number of seconds to wait, shortened so that it ends just after the limit."""
        return min(seconds, self._ends - time.monotonic() + 0.001)


class StoppedProcess(NamedTuple):
    """A process that a signal has stopped."""

    pid: int
    os_pid: int
    """Its number in the operating system of its host."""


class Observed(Protocol):
    """The processes of a run as their caller sees them."""

    nprocs: int

    def news(self, timeout: float) -> Mapping[int, Ended | Death]:
        """Wait for outcomes, at most ``timeout`` seconds; return as soon as there is one."""

    def tell_to_stop(self) -> None:
        """Stop every process that waits for others, now or later."""

    def whereabouts(self, ended: Collection[int]) -> Sequence[Whereabouts]:
        """Return where all processes are; ``ended`` are those whose outcomes are known.

        The run may go on: outcomes that are found meanwhile are kept for :meth:`news`.
        """

    def stopped(self, ended: Collection[int]) -> Sequence[StoppedProcess]:
        """Return the processes that a signal has stopped, and that have not ended."""


def await_outcomes(observed: Observed, limit: Limit) -> Outcomes:
    """Wait until all processes have ended, or some time after a failure.

    Returns:
        How they ended; processes that still have to be killed are missing.

    Raises:
        TimeIsOver: the limit has passed, and no process has failed.
        Interrupted: Ctrl-C ended the run.
    """
    outcomes: Outcomes = {}
    try:
        _await(observed, limit, outcomes)
    except KeyboardInterrupt as interrupt:
        raise Interrupted(interrupt, observed.whereabouts(outcomes)) from None
    return outcomes


def _news(observed: Observed, timeout: float, outcomes: Outcomes) -> Mapping[int, Ended | Death]:
    """Wait for outcomes, at most ``timeout`` seconds.

    If somebody asks meanwhile where the processes are (by SIGQUIT), this is answered.
    """
    ends = time.monotonic() + timeout
    while True:
        left = max(ends - time.monotonic(), 0.0)
        part = seconds_to_look(left)
        news = observed.news(part)
        if len(outcomes.keys() | news.keys()) < observed.nprocs:
            answer_quit(lambda: observed.whereabouts({*outcomes, *news}))  # noqa: B023  # at once
        if news or part >= left:
            return news


def _await(observed: Observed, limit: Limit, outcomes: Outcomes) -> None:
    deadline: float | None = None
    latest = math.inf
    told: set[int] = set()
    while len(outcomes) < observed.nprocs:
        if limit.is_over() and deadline is None:
            raise TimeIsOver(observed.whereabouts(outcomes))
        timeout = limit.cut(_LOOK_S) if deadline is None else deadline - time.monotonic()
        if timeout <= 0:
            return
        news = _news(observed, timeout, outcomes)
        outcomes.update(news)
        if deadline is not None:
            if news:
                deadline = min(time.monotonic() + GRACE_S, latest)
            continue
        if not news:
            _tell_of_stopped(observed.stopped(outcomes), told)
        if any(outcome.failed for outcome in news.values()):
            observed.tell_to_stop()
            deadline = time.monotonic() + GRACE_S
            latest = deadline - GRACE_S + _MOST_GRACE_S


def _tell_of_stopped(stopped: Sequence[StoppedProcess], told: set[int]) -> None:
    """Print, once for each of them, that the run waits for processes."""
    for pid, os_pid in stopped:
        if pid not in told:
            told.add(pid)
            print(
                f"bsplib: the run waits for process {pid}, which is stopped; continue it "
                f"(kill -CONT {os_pid}) or end the run",
                file=sys.stderr,
                flush=True,
            )
