"""The order in which virtual processors run, without a world around them."""

from __future__ import annotations

import greenlet
import numpy as np
import pytest

from bsplib.core.switch import Process, Rounds

SEED = 7


class Crew:
    """Some virtual processors that call a function each, and what they have noted."""

    def __init__(self, number, body):
        self.noted = []
        hub = greenlet.getcurrent()
        self.rounds = Rounds(np.random.default_rng(SEED), hub)
        self.processes = [
            Process(greenlet.greenlet(lambda name=name: body(self, name), hub))
            for name in range(number)
        ]
        self.rounds.wake(self.processes)

    def wait(self, name):
        self.rounds.wait(self.processes[name], "in a test")


def rounds_of(waiting, number):
    """Return the order of successive rounds; those who run wait again in that order."""
    random = np.random.default_rng(SEED)
    noted = []
    for _ in range(number):
        waiting = [waiting[index] for index in random.permutation(len(waiting))][::-1]
        noted += waiting
    return noted


def test_a_seed_determines_the_order_of_every_round():
    def body(crew, name):
        for _ in range(3):
            crew.noted.append(name)
            crew.rounds.wake([crew.processes[name]])
            crew.wait(name)

    crew = Crew(5, body)
    crew.rounds.run()
    assert crew.noted == rounds_of(range(5), 3)


def test_a_process_runs_again_only_after_another_has_woken_it():
    def body(crew, name):
        if name:
            crew.noted.append(f"{name} waits")
            crew.wait(name)
            crew.noted.append(f"{name} goes on")
        else:
            crew.noted.append("nobody wakes 1")

    crew = Crew(2, body)
    crew.rounds.run()
    assert sorted(crew.noted) == ["1 waits", "nobody wakes 1"]
    crew.rounds.wake([crew.processes[1]])
    crew.rounds.run()
    assert crew.noted[-1] == "1 goes on"


def test_the_current_process_is_known_and_waits_with_a_text():
    def body(crew, name):
        mine = crew.processes[name]
        crew.noted.append((crew.rounds.current is mine, mine.is_current(), mine.doing))
        crew.wait(name)

    crew = Crew(3, body)
    crew.rounds.run()
    assert crew.noted == [(True, True, "not started")] * 3
    assert [process.doing for process in crew.processes] == ["in a test"] * 3
    assert not crew.processes[0].is_current()


def test_what_is_cleared_does_not_run():
    crew = Crew(3, lambda crew, name: crew.noted.append(name))
    crew.rounds.clear()
    crew.rounds.run()
    assert crew.noted == []


def test_an_error_thrown_at_a_waiting_process_comes_out_of_its_wait():
    def body(crew, name):
        with pytest.raises(ZeroDivisionError, match="thrown"):
            crew.wait(name)
        crew.noted.append("raised")

    crew = Crew(1, body)
    crew.rounds.run()
    crew.processes[0].greenlet.throw(ZeroDivisionError("thrown"))
    assert crew.noted == ["raised"]
