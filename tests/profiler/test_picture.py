"""What each process spent its time for, by superstep and by time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler import picture as module
from bsplib.profiler import window as window_module
from bsplib.profiler.account import PARTS
from bsplib.profiler.book import LOST, Book
from bsplib.profiler.picture import LAYERS, picture_of
from bsplib.profiler.rates import Rates
from bsplib.profiler.survey import survey
from bsplib.recording.records import NOT_MEASURED
from tests.drawn import examples

from .test_properties import programs

FREE = Rates(g=0.0, l=0.0)
RATES = Rates(g=1e-9, l=5e-9)


def pictured(run, rates=FREE, **size):
    return picture_of(Book(run, rates), **{"most_rows": 256, **size})


def spent(window, column, row):
    """The parts of the account in a cell that are not 0."""
    cell = window.layers[column, : len(PARTS), row]
    return {name: float(ns) for name, ns in zip(PARTS, cell.round(3), strict=True) if ns}


def layer(window, name):
    """One layer of a window by row, each a list by column."""
    return window.layers[:, LAYERS.index(name)].T.round(6).tolist()


@pytest.fixture
def three(script):
    """Three supersteps of two processes: balanced, a straggler on 1, and one with a put."""
    program = script(2)
    program.step("main", w=[10, 10], transfer=2)
    program.step("main foo", w=[10, 40], calls=[6, 0], transfer=4)
    program.step("main", w=[5, 5], puts=[(0, 1, 8)])
    return program


@pytest.fixture
def nested(script):
    """One superstep, in which process 0 opens a sub-group after 5 ns, and works 3 ns after it."""
    program = script(2)
    program.clock = [5, 0]
    with program.partition(1, 1) as (left, right):
        program.step("main inner", w=70, group=left)
        program.step("main inner", w=50, group=right)
    program.step("main", w=[3, 4])
    run = program.run()
    run.records["start"][2] = 0  # the script begins the superstep late by what is in front
    return run


# -- by superstep -------------------------------------------------------------------------


def test_a_column_a_superstep_has_what_each_process_did_in_it(three):
    window = pictured(three.run()).by_superstep(0, 3, 100)
    assert layer(window, "useful") == [[10, 10, 5], [10, 40, 5]]
    assert layer(window, "idle") == [[0, 24, 0], [0, 0, 0]]
    assert layer(window, "h") == [[0, 0, 8], [0, 0, 8]]
    assert window.first.tolist() == window.last.tolist() == [0, 1, 2]
    assert window.supersteps.tolist() == [1, 1, 1]


def test_the_loss_of_a_superstep_lies_at_the_straggler_for_whom_others_wait(three):
    window = pictured(three.run()).by_superstep(0, 3, 3)
    assert layer(window, "loss") == [[0, 0, 0], [0, 24, 0]]


def test_the_loss_lies_at_the_slower_of_unequal_sub_groups(nested):
    window = pictured(nested).by_superstep(0, 1, 1)
    assert layer(window, "loss") == [[(5 + 70 + 3) - (50 + 4)], [0]]


# -- blocks of processes ------------------------------------------------------------------


@pytest.fixture
def crowd(script):
    """Ten processes, of which number 6 computes for long; process 3 receives from all."""
    program = script(10)
    program.step(
        "main", w=[10] * 6 + [110] + [10] * 3, puts=[(i, 3, 5) for i in range(10) if i != 3]
    )
    program.step("main", w=10)
    return program.run()


def test_the_straggler_of_a_block_is_not_averaged_away(crowd):
    window = pictured(crowd, most_rows=4).by_superstep(0, 2, 2)
    assert layer(window, "loss") == [[0, 0], [0, 0], [900, 0], [0, 0]]
    assert layer(window, "h") == [[5, 0], [45, 0], [5, 0], [5, 0]]


# -- by time ------------------------------------------------------------------------------


def test_time_and_supersteps_have_the_same_sums(nested, three):
    for run in (nested, three.run()):
        picture = pictured(run)
        by_time = picture.by_time(0, 10**6, 13).layers.sum(axis=0)
        by_superstep = picture.by_superstep(0, 10**6, 13).layers.sum(axis=0)
        assert by_time == pytest.approx(by_superstep)


# -- marks --------------------------------------------------------------------------------


def test_ranges_that_are_close_are_joined_where_there_are_too_many(script):
    program = script(1)
    for number in range(60):
        program.step("main odd" if number % 2 else "main even")
    run = program.run()
    odd = run.records["superstep"] % 2 == 1
    assert len(pictured(run).steps.ranges(odd, 100)) == 30
    assert pictured(run).steps.ranges(odd, 10) == [(0, 59)]
    first_half = odd & (run.records["superstep"] < 30)
    assert pictured(run).steps.ranges(first_half, 10) == [(0, 29)]


# -- what time was spent for


@pytest.fixture
def uneven(script):
    """Two processes; process 1 computes three times as long, then both exchange for 4 ns."""
    program = script(2)
    program.step("main", w=[10, 30], transfer=4, puts=[(0, 1, 2)])
    return program.run()


def test_time_blocked_and_without_a_core_is_spread_over_the_computing_part(script):
    program = script(1)
    program.step("main", w=[100], cpu=[50])
    run = program.run()
    run.records["comp_ready"] = 20
    window = pictured(run).by_time(0, 100, 2)
    assert spent(window, 0, 0) == {"useful": 25, "blocked": 15, "core": 10}


@examples(30)
@given(st.data(), st.integers(1, 12))
def test_the_parts_of_a_range_add_up_to_its_length_and_all_of_them_to_the_account(
    script, data, rows
):
    run = data.draw(programs(script, one_stack=False)).run()
    g, latency = data.draw(st.tuples(st.integers(0, 50), st.integers(0, 2000)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_module, "ROWS", rows)
        picture = pictured(run, Rates(g * 1e-9, latency * 1e-9))
        window = picture.by_time(picture.begin_ns, picture.end_ns, data.draw(st.integers(1, 9)))
    amounts = window.layers[:, : len(PARTS)]
    assert (amounts >= 0).all()
    if picture.book.elapsed_ns:
        assert amounts.sum(axis=0) == pytest.approx(picture.book.by_process(), abs=1e-3)
        lengths = np.diff(window.edges)[:, None] * np.ones(run.nprocs)
        assert amounts.sum(axis=1) == pytest.approx(lengths)
        assert np.sum(layer(window, "loss"), axis=1) == pytest.approx(rooted(picture), abs=1e-3)


def rooted(picture):
    """What is lost in the whole run, by the process that is its root."""
    origins = range(len(survey(picture.book.run).sums.origins))
    return picture.book.sums.by_root_process(origins)[list(LOST)].sum(axis=0)


def test_what_a_process_waited_for_is_where_another_one_was_longer(uneven):
    ((_, pid, ns),) = pictured(uneven).waited_for(0, 12, 22)
    assert (pid, ns) == (1, 10)
    assert pictured(uneven).waited_for(0, 0, 10) == []
    assert pictured(uneven).waited_for(1, 0, 34) == []


@pytest.fixture
def long_run(script):
    """400 supersteps of three processes, one of which computes longer."""
    program, drawn = script(3), np.random.default_rng(2)
    for step in range(400):
        w = [int(x) for x in drawn.integers(50, 100, 3)]
        w[2] += 100 * (step >= 200)
        program.step("main", w=w, transfer=20, puts=[(0, 1, 8)])
    run = program.run()
    run.records["comp_ready"] = NOT_MEASURED
    return run


@pytest.mark.lengthy
def test_a_long_run_is_summed_up_once_and_booked_again_where_it_is_seen_finely(
    long_run, monkeypatch
):
    exact = pictured(long_run, RATES)
    monkeypatch.setattr(module, "_BIN_CELLS", 1)
    monkeypatch.setattr(module, "LEAST_BINS", 128)
    monkeypatch.setattr(window_module, "ROWS", 200)
    binned = pictured(long_run, RATES)
    for low, high, columns in ((0, 400, 2), (250, 252, 2), (100, 300, 50)):
        same = exact.by_superstep(low, high, columns).layers
        assert binned.by_superstep(low, high, columns).layers == pytest.approx(same, abs=1e-6)
    end = exact.end_ns
    for low, high, columns in ((0, end, 32), (0.55 * end, 0.57 * end, 40)):
        one, other = (each.by_time(low, high, columns) for each in (exact, binned))
        times = slice(0, -3)
        assert other.layers[:, times] == pytest.approx(one.layers[:, times], abs=1e-6)
    middle = 0.5 * end
    assert binned.waited_for(0, middle, end) == exact.waited_for(0, middle, end)


@pytest.mark.lengthy
def test_a_range_is_booked_again_from_the_last_tail_before_it(long_run, monkeypatch):
    monkeypatch.setattr(window_module, "ROWS", 120)
    book = Book(long_run, RATES)
    spent_before = {int(each.account.position[0]): each.spent for each in book.by_window()}
    again = list(book.by_window(300, 380))
    assert len(again) < 5
    for each in again[:-1]:
        assert np.array_equal(each.spent, spent_before[int(each.account.position[0])])
