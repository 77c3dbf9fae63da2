"""A process of a pool, or its caller, yields for a short time before it sleeps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bsplib.backends.shm import patience
from bsplib.backends.shm.patience import Idling


class Yields:
    """The clock and the yields of a process; each yield takes some time."""

    def __init__(self, monkeypatch):
        self.count, self.now, self.takes = 0, 0, 1000
        monkeypatch.setattr(patience.os, "sched_yield", self._yield)
        clock = SimpleNamespace(perf_counter_ns=lambda: self.now)
        monkeypatch.setattr(patience, "time", clock)

    def _yield(self):
        self.count += 1
        self.now += self.takes


@pytest.fixture
def yields(monkeypatch):
    return Yields(monkeypatch)


def never():
    return False


def test_looking_ends_when_it_is_true_or_after_some_yields(yields):
    process = Idling(10)
    process.until(never)
    assert yields.count == 10
    process.until(lambda: yields.count == 13)
    assert yields.count == 13


def test_a_process_does_not_yield_where_it_is_true_already(yields):
    Idling(10).until(lambda: True)
    assert yields.count == 0


def test_looking_ends_when_a_yield_took_long(yields):
    yields.takes = 500_001
    Idling(10).until(never)
    assert yields.count == 1


def test_looking_ends_after_two_milliseconds(yields):
    yields.takes = 400_000
    Idling(1000).until(never)
    assert yields.count == 6


def test_a_process_whose_yields_take_long_sleeps_for_more_and_more_runs(yields):
    process = Idling(10)

    def runs_until_it_yields():
        before, runs = yields.count, 0
        while yields.count == before:
            process.until(never)
            runs += 1
        return runs

    yields.takes = 1_000_000
    assert [runs_until_it_yields() for _ in range(8)] == [1, 17, 33, 65, 129, 257, 513, 1025]
    assert runs_until_it_yields() == 1025
    yields.takes = 1000
    assert [runs_until_it_yields() for _ in range(3)] == [1025, 1, 1]
    yields.takes = 1_000_000
    assert [runs_until_it_yields() for _ in range(2)] == [1, 17]


def test_a_process_that_may_not_yield_does_not(yields):
    Idling(0).until(never)
    assert yields.count == 0
