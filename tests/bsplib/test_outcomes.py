"""How long the caller of a run waits for further outcomes once a process has failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from bsplib.backends import outcomes
from bsplib.backends.outcomes import GRACE_S, Limit, await_outcomes


@dataclass
class Way:
    failed: bool


@dataclass
class Observed:
    """Processes that end, each by itself, at given times of a clock of their own."""

    at: list[tuple[float, bool]]
    now: float = 0.0
    said_stop: list[float] = field(default_factory=list)

    @property
    def nprocs(self):
        return len(self.at)

    def news(self, timeout):
        until = self.now + timeout
        coming = [(time, pid) for pid, (time, _) in enumerate(self.at) if time > self.now]
        if not coming or min(coming)[0] > until:
            self.now = until
            return {}
        self.now, pid = min(coming)
        return {pid: Way(self.at[pid][1])}

    def tell_to_stop(self):
        self.said_stop.append(self.now)

    def stopped(self, ended):
        return []


@pytest.fixture
def ended(monkeypatch):
    """Return which processes are known to have ended, and when the caller knows enough."""

    def ended_of(*at):
        observed = Observed(list(at))
        clock = SimpleNamespace(monotonic=lambda: observed.now)
        monkeypatch.setattr(outcomes, "time", clock)
        found = sorted(await_outcomes(observed, Limit(None)))
        assert observed.said_stop == [min(time for time, failed in at if failed)]
        return found, pytest.approx(observed.now)

    return ended_of


def test_who_fails_within_the_grace_is_heard(ended):
    assert ended((1, True), (1 + 0.9 * GRACE_S, True)) == ([0, 1], 1 + 0.9 * GRACE_S)


def test_who_does_not_end_is_waited_for_no_longer_than_the_grace(ended):
    assert ended((1, True), (1 + 1.1 * GRACE_S, True)) == ([0], 1 + GRACE_S)


def test_but_the_caller_does_not_wait_for_ever(ended):
    found, now = ended(*((1 + 0.4 * GRACE_S * number, True) for number in range(30)))
    assert now == 1 + 3 * GRACE_S
    assert found == [*range(8)]
