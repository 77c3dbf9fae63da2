"""The account in time: what each process spent every moment for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler import spending as module
from bsplib.profiler import window as window_module
from bsplib.profiler._steps import RootSteps
from bsplib.profiler.account import PARTS, Account
from bsplib.profiler.book import Book
from bsplib.profiler.rates import Rates
from bsplib.profiler.spending import Spending
from bsplib.profiler.window import root_supersteps
from bsplib.recording.records import NOT_MEASURED
from tests.drawn import examples

from .test_properties import programs

FREE = Rates(g=0.0, l=0.0)
RATES = Rates(g=1e-9, l=5e-9)


def spending(run, rates=RATES, block=1):
    return Spending(run, rates, RootSteps(run), block)


def spent(amounts, column, row):
    """The parts of a cell that are not 0."""
    cell = amounts[column, :, row]
    return {name: float(ns) for name, ns in zip(PARTS, cell.round(3), strict=True) if ns}


@pytest.fixture
def uneven(script):
    """Two processes; process 1 computes three times as long, then both exchange for 4 ns."""
    program = script(2)
    program.step("main", w=[10, 30], transfer=4, puts=[(0, 1, 2)])
    return program.run()


def test_a_process_computes_then_waits_and_then_transfers(uneven):
    amounts = spending(uneven, Rates(g=1e-9, l=2e-9)).by_time(np.array([0.0, 10, 30, 32, 34]))
    assert spent(amounts, 0, 0) == {"useful": 10}
    assert spent(amounts, 1, 0) == {"imbalance": 20}
    assert spent(amounts, 0, 1) == {"useful": 10}
    assert spent(amounts, 1, 1) == {"useful": 20}
    assert spent(amounts, 2, 0) == {"transfers": 1, "latency": 1}


def test_a_column_inside_a_stretch_has_its_part_of_it(uneven):
    amounts = spending(uneven).by_time(np.array([5.0, 9.0, 12.0]))
    assert spent(amounts, 0, 0) == {"useful": 4}
    assert spent(amounts, 1, 0) == {"useful": 1, "imbalance": 2}


def test_a_row_of_several_processes_has_the_sum_of_them(uneven):
    amounts = spending(uneven, block=2).by_time(np.array([0.0, 30]))
    assert spent(amounts, 0, 0) == {"useful": 40, "imbalance": 20}


def test_time_blocked_and_without_a_core_is_spread_over_the_computing_part(script):
    program = script(1)
    program.step("main", w=[100], cpu=[50])
    run = program.run()
    run.records["comp_ready"] = 20
    amounts = spending(run, FREE).by_time(np.array([0.0, 50, 100]))
    assert spent(amounts, 0, 0) == {"useful": 25, "blocked": 15, "core": 10}


def test_a_superstep_is_interrupted_by_the_records_of_its_sub_groups(script):
    program = script(2)
    program.clock = [5, 5]
    with program.partition(1, 1) as (left, right):
        program.step("main inner", w=70, group=left)
        program.step("main inner", w=50, group=right)
    program.step("main", w=[3, 23])
    run = program.run()
    run.records["start"][run.records["group"] == 0] = 0
    amounts = spending(run, FREE).by_time(np.array([0.0, 5, 40, 55, 75, 78]))
    assert spent(amounts, 0, 0) == {"useful": 5}
    assert spent(amounts, 2, 1) == {"useful": 15}
    assert spent(amounts, 4, 0) == {"useful": 3}
    assert amounts.sum(axis=(0, 1)) == pytest.approx([78, 78])


def test_start_and_end_lie_around_the_records(script):
    program = script(2)
    program.clock = [4, 7]
    program.begun = {(0, 0): 4, (0, 1): 7}
    program.step("main", w=[6, 3])
    amounts = spending(program.run(), FREE).by_time(np.array([4.0, 7, 10]))
    assert spent(amounts, 0, 1) == {"ends": 3}
    assert spent(amounts, 1, 1) == {"useful": 3}


@examples(30)
@given(st.data())
def test_the_parts_of_a_range_add_up_to_its_length_and_all_of_them_to_the_account(script, data):
    run = data.draw(programs(script, one_stack=False)).run()
    g, latency = data.draw(st.tuples(st.integers(0, 50), st.integers(0, 2000)))
    rates = Rates(g * 1e-9, latency * 1e-9)
    account, columns = Book(run, rates), data.draw(st.integers(1, 9))
    if account.elapsed_ns == 0:
        return
    edges = np.linspace(account.begin_ns, account.end_ns, columns + 1)
    amounts = spending(run, rates).by_time(edges)
    assert (amounts >= 0).all()
    assert amounts.sum(axis=0) == pytest.approx(account.by_process(), abs=1e-3)
    assert amounts.sum(axis=1) == pytest.approx(np.diff(edges)[:, None] * np.ones(run.nprocs))


@examples(20)
@given(st.data())
def test_supersteps_have_what_is_booked_for_their_records(script, data):
    run = data.draw(programs(script, one_stack=False)).run()
    steps = RootSteps(run)
    edges = np.arange(steps.count + 1.0)
    amounts = spending(run).by_superstep(edges)
    wanted = np.zeros_like(amounts)
    position = np.searchsorted(steps.numbers(np.arange(steps.count)), root_supersteps(run))
    for part, booked in enumerate(Account(run, RATES).booked.parts):
        np.add.at(wanted[:, part], (position, run.records["pid"]), booked)
    assert np.array_equal(amounts, wanted)


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


def test_a_long_run_is_summed_up_once_and_booked_again_where_it_is_seen_finely(
    long_run, monkeypatch
):
    exact = spending(long_run)
    for name, value in (("_MOST_EXACT", 100), ("_BIN_CELLS", 1), ("_LEAST_BINS", 128)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(window_module, "ROWS", 200)
    binned = spending(long_run)
    end = exact.end_ns
    coarse, fine = np.linspace(0, end, 33), np.linspace(0.55 * end, 0.57 * end, 41)
    assert binned.by_time(coarse) == pytest.approx(exact.by_time(coarse))
    assert binned.by_time(fine) == pytest.approx(exact.by_time(fine), abs=1e-6)
    for edges in ([0.0, 100, 400], [250.0, 251, 252]):
        places = np.array(edges)
        assert binned.by_superstep(places) == pytest.approx(exact.by_superstep(places))


def test_an_empty_window_has_no_columns(uneven):
    found = spending(uneven)
    assert found.by_time(np.array([3.0])).shape == (0, len(PARTS), 2)
    assert found.by_superstep(np.array([0.0])).shape == (0, len(PARTS), 2)
