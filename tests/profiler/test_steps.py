"""The supersteps of the root group, by position, and in the columns of a picture."""

from itertools import pairwise

import numpy as np
import pytest

from bsplib.profiler import _steps, window
from bsplib.profiler._steps import ColumnSteps, RootSteps, TimeColumns
from bsplib.recording import tables
from bsplib.sync_kinds import Kind


@pytest.fixture
def uneven(script):
    """Nine supersteps, of which two take longest, and the processes wait for no one."""
    program = script(2)
    for w in [(3, 1), (9, 2), (1, 1), (2, 9), (9, 9), (4, 1), (1, 5), (9, 1), (2, 2)]:
        program.step("main", w=w, kind=Kind.OBLSYNC, waits=(0, 0))
    return program


@pytest.fixture(params=["kept", "read again"])
def windows_of_two(request, monkeypatch):
    """Windows of two records, and a run that is short, or so long that it is read again."""
    monkeypatch.setattr(tables, "ROWS", 2)
    monkeypatch.setattr(window, "ROWS", 2)
    monkeypatch.setattr(_steps, "_KEPT_STEPS", 2**21 if request.param == "kept" else 4)
    return request.param


def drawn(steps, columns, low, high):
    """Take in the supersteps of a range of positions."""
    for rows in steps.rows(low, high):
        columns.add(rows)
    return columns


def times(run):
    """When each superstep of a run began and ended."""
    numbers = np.unique(run.records["superstep"])
    rows = [run.records[run.records["superstep"] == number] for number in numbers]
    return [row["start"].min() for row in rows], [row["end"].max() for row in rows]


@pytest.mark.parametrize("first", [0, 7, 2**40])
@pytest.mark.parametrize("gap", [0, 5])
@pytest.mark.usefixtures("windows_of_two")
def test_supersteps_have_their_numbers_and_times(uneven, first, gap):
    run = uneven.run()
    run.records["superstep"] += first
    run.records["superstep"][run.records["superstep"] >= first + 4] += gap
    steps = RootSteps(run)
    every = np.arange(steps.count)
    numbers = np.unique(run.records["superstep"])
    columns = drawn(steps, ColumnSteps(np.arange(steps.count + 1.0)), 0, steps.count)
    begins, ends = times(run)
    assert steps.numbers(every).tolist() == numbers.tolist()
    assert columns.began_ns.tolist() == begins
    assert columns.ended_ns.tolist() == ends
    assert steps.ended_ns == run.records["end"].max()
    found = np.concatenate([steps.positions(each) for each in window.windows(run)])
    assert np.sort(found).tolist() == np.repeat(every, 2).tolist()


@pytest.mark.usefixtures("windows_of_two")
def test_of_several_that_take_longest_the_last_is_found(uneven):
    steps = RootSteps(uneven.run())
    begins, ends = times(uneven.run())
    lasted = np.subtract(ends, begins)
    for low in range(9):
        for high in range(low, 9):
            columns = drawn(steps, ColumnSteps(np.array([low, high + 1.0])), low, high + 1)
            longest = max(range(low, high + 1), key=lambda at: (lasted[at], at))
            assert columns.longest.tolist() == [longest]


@pytest.mark.parametrize("begin", [-3, 0, 11, 38])
@pytest.mark.usefixtures("windows_of_two")
def test_columns_of_time_have_the_supersteps_that_have_begun_and_not_ended(uneven, begin):
    steps = RootSteps(uneven.run())
    begins, ends = map(np.array, times(uneven.run()))
    edges = np.arange(float(begin), steps.ended_ns + 1)
    columns = drawn(steps, TimeColumns(edges, steps), *steps.during(edges[0], edges[-1]))
    for at, (low, high) in enumerate(pairwise(edges)):
        first, last = columns.first[at], columns.last[at]
        seen = np.flatnonzero((begins < high) & (ends > low))
        assert first == np.flatnonzero(ends > low).min()
        assert last == max(np.flatnonzero(begins < high).max(initial=-1), first)
        assert set(seen) <= set(range(first, last + 1))
        assert (columns.began_ns[at], columns.ended_ns[at]) == (begins[first], ends[last])
    assert columns.places() == pytest.approx(
        np.interp(edges, [*begins, steps.ended_ns], np.arange(10))
    )


def test_what_is_known_of_a_long_run_does_not_grow_with_its_supersteps(uneven, monkeypatch):
    monkeypatch.setattr(_steps, "_KEPT_STEPS", 8)
    index = RootSteps(uneven.run())._index
    assert index.kept is None
    assert [len(column) for column in index[:-1]] == [1, 1, 2, 1, 1]
