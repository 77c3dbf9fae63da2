"""What a run would take without a part of its time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler.account import Account
from bsplib.profiler.book import Book
from bsplib.profiler.rates import Rates
from bsplib.profiler.times_on_machine import retimed
from bsplib.profiler.whatif import Replay
from bsplib.profiler.window import windows
from bsplib.sync_kinds import Kind
from tests.drawn import examples

from .test_properties import programs

FREE = Rates(g=0.0, l=0.0)


def replayed(program):
    """Return the records of a program, and what it takes without some of their time."""
    run = program.run()
    (window,) = windows(run)
    account, elapsed_ns = Account(window, FREE), Book(run, FREE).elapsed_ns

    def without(saved_ns, after_ns=None):
        replay = Replay(run, 1)
        saved = np.array([saved_ns], float)
        replay.add(account, saved, saved * 0 if after_ns is None else after_ns[None])
        return elapsed_ns - round(float(replay.saved_ns()[0]))

    return account, elapsed_ns, without


@examples(50)
@given(st.data())
def test_less_time_of_any_record_never_makes_a_run_longer(script, data):
    account, elapsed_ns, without = replayed(data.draw(programs(script, one_stack=False)))
    assert 0 <= without(account.computing.core / 2.0) <= elapsed_ns


def test_two_imbalances_that_hide_each_other_save_together_what_neither_saves_alone(script):
    program = script(3)
    program.step("main", w=[100, 100, 10])
    *_, without = replayed(program)
    assert without(np.array([90.0, 0, 0])) == 100
    assert without(np.array([90.0, 90, 0])) == 10


@pytest.mark.parametrize("kind", [Kind.SYNC, Kind.OBLSYNC])
def test_what_a_sub_group_saves_its_parent_saves(script, kind):
    program = script(2)
    with program.partition(1, 1) as (left, right):
        program.step("main", w=30, group=left)
        program.step("main", w=80, group=right, kind=kind)
    program.step("main", w=10)
    account, _, without = replayed(program)
    saved = np.where(account.run.records["group"] == 2, 70.0, 0)
    assert without(saved) == 40


@pytest.mark.parametrize("depth", [1, 2])
def test_what_is_saved_before_sub_groups_is_saved_in_front_of_their_supersteps(script, depth):
    """Process 1 computes 90 before it opens them, the others 10, and all compute 30 afterwards."""
    program = script(4)
    program.clock = [10, 90, 10, 10]
    with program.partition(4) as (outer,):
        if depth == 2:
            with program.partition(4, group=outer) as (inner,):
                program.step("main", w=20, group=inner)
        program.step("main", w=20, group=outer)
    program.step("main", w=30)
    account, elapsed_ns, without = replayed(program)
    assert elapsed_ns == 120 + 20 * depth
    others = np.zeros(len(account.run.records) - 4)  # in the sub-groups
    assert without(np.append(others, [0, 80, 0, 0])) == elapsed_ns - 80
    assert without(np.append(others, [-20, 60, -20, -20])) == elapsed_ns - 60


def test_a_run_at_other_rates_takes_what_its_supersteps_cost(script):
    program = script(2)
    program.step("main", w=[10, 100], puts=[(0, 1, 20)], transfer=1000)
    program.step("main", w=[30, 10], transfer=1000)
    program.step("main", w=[7, 5], kind=Kind.END)
    rates = Rates(2e-9, 30e-9, ratio=2.0)
    run = retimed(program.run(), rates)
    account = Book(run, rates)
    assert account.elapsed_ns == 200 + 40 + 30 + 60 + 30 + 14
    assert account.whole()["unexplained"] == 0
