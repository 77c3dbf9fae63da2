"""How long a process looks before it sleeps, on a clock that only its yields move."""

from __future__ import annotations

import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest

from bsplib.backends.shm import waiting
from bsplib.backends.shm.waiting import look
from bsplib.core.meeting import LONG_GAP_NS, Pause

SHORT_NS = 1000
LIMIT_NS = 2_000_000


class Yields:
    """The clock and the yields of a process; each yield takes some time."""

    def __init__(self, monkeypatch):
        self.count, self.now, self.takes = 0, 0, SHORT_NS
        monkeypatch.setattr(waiting, "_sched_yield", self._yield)
        clock = SimpleNamespace(perf_counter_ns=lambda: self.now)
        monkeypatch.setattr(waiting, "time", clock)

    def _yield(self):
        self.count += 1
        self.now += self.takes

    def of(self, look_once):
        """Return how many yields a look takes."""
        before = self.count
        look_once()
        return self.count - before


@pytest.fixture
def yields(monkeypatch):
    return Yields(monkeypatch)


def never():
    return False


def test_a_process_does_not_yield_where_it_is_true_already(yields):
    assert look(lambda: True, Pause(), 10) is True
    assert yields.count == 0


def test_looking_ends_when_it_is_true(yields):
    assert look(lambda: yields.count == 3, Pause(), 10) is True
    assert yields.count == 3


def test_who_is_to_sleep_at_once_looks_once(yields):
    looks = []
    assert look(lambda: looks.append(1), Pause(), 0) is False
    assert (len(looks), yields.count) == (1, 0)


def test_looking_ends_when_another_process_had_the_core_between_two_looks(yields):
    yields.takes = LONG_GAP_NS + 1
    assert look(never, Pause(), 10, LIMIT_NS) is False
    assert yields.count == 1


def test_who_never_sleeps_looks_on_whoever_has_the_core(yields):
    yields.takes = LONG_GAP_NS + 1
    assert look(never, None, 10) is False
    assert look(never, None, 10) is False
    assert yields.count == 20


def test_a_process_whose_core_was_needed_tries_again_only_after_many_waits(yields):
    pause = Pause()
    yields.takes = LONG_GAP_NS + 1
    tries = [turn for turn in range(500) if yields.of(lambda: look(never, pause, 10))]
    gaps = {later - former for former, later in pairwise(tries)}
    assert gaps == {65}


def test_a_process_with_other_threads_looks_only_shortly(yields, monkeypatch):
    """They would have to wait for the interpreter."""
    process = object.__new__(waiting.Waiting)
    process._has_core = process._sleeps = True
    process.yields = 10
    process.waiter = SimpleNamespace(pause=Pause())
    monkeypatch.setattr(waiting.Waiting, "_sleep_until", lambda *_: None)

    def wait():
        process.wait(never, [], lambda: None)

    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert yields.of(wait) == 10
    finally:
        end.set()
        thread.join()
    assert yields.of(wait) == waiting._LOOK_NS / SHORT_NS
