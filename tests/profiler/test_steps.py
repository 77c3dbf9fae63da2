"""The supersteps of the root group, which are kept in narrow columns."""

from itertools import pairwise

import numpy as np
import pytest

from bsplib.profiler._steps import RootSteps, StepRows
from bsplib.profiler.window import hand_out
from bsplib.sync_kinds import Kind


@pytest.fixture
def uneven(script):
    """Nine supersteps, of which two take longest, and the processes wait for no one."""
    program = script(2)
    for w in [(3, 1), (9, 2), (1, 1), (2, 9), (9, 9), (4, 1), (1, 5), (9, 1), (2, 2)]:
        program.step("main", w=w, kind=Kind.OBLSYNC, waits=(0, 0))
    return program


@pytest.mark.parametrize("first", [0, 7, 2**40])
@pytest.mark.parametrize("gap", [0, 5])
def test_supersteps_have_their_numbers_and_times(uneven, first, gap):
    run = uneven.run()
    run.records["superstep"] += first
    run.records["superstep"][run.records["superstep"] >= first + 4] += gap
    steps = RootSteps(run)
    every = np.arange(steps.count)
    numbers = np.unique(run.records["superstep"])
    rows = [run.records[run.records["superstep"] == number] for number in numbers]
    assert steps.numbers(every).tolist() == numbers.tolist()
    assert steps.begins(every).tolist() == [row["start"].min() for row in rows]
    assert steps.ends(every).tolist() == [row["end"].max() for row in rows]
    assert steps.ended_ns == run.records["end"].max()
    assert run.records["superstep"][steps.records(every)].tolist() == numbers.tolist()


def test_of_several_that_take_longest_the_last_is_found(uneven):
    steps = RootSteps(uneven.run())
    every = np.arange(steps.count)
    lasted = steps.ends(every) - steps.begins(every)
    pairs = [(low, high) for low in every for high in every if low <= high]
    first, last = np.array(pairs).T
    wanted = [max(range(low, high + 1), key=lambda at: (lasted[at], at)) for low, high in pairs]
    assert steps.longest(first, last).tolist() == wanted


def test_moments_lie_in_supersteps_that_have_begun_and_not_ended(uneven):
    steps = RootSteps(uneven.run())
    every = np.arange(steps.count)
    begins, ends = steps.begins(every), steps.ends(every)
    edges = np.arange(0.0, steps.ended_ns + 1)
    _, first, last = steps.during(edges)
    for at, (low, high) in enumerate(pairwise(edges)):
        seen = np.flatnonzero((begins < high) & (ends > low))
        assert first[at] == np.flatnonzero(ends > low).min()
        assert last[at] == max(np.flatnonzero(begins < high).max(), first[at])
        assert set(seen) <= set(range(first[at], last[at] + 1))


def test_a_long_run_keeps_some_sixteen_bytes_of_a_superstep(uneven):
    taker = StepRows()
    hand_out(uneven.run(), [taker])
    number, *others = taker.close()
    assert len(number) == 1
    assert sum(column.itemsize for column in others) == 16
