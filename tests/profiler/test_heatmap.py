from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.costs import record_costs
from bsplib.profiler.heatmap import LAYERS, Heatmap
from bsplib.sync_kinds import Kind


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
    window = Heatmap(three.run()).by_superstep(0, 3, 100)
    assert layer(window, "comp") == [[10, 10, 5], [10, 40, 5]]
    assert layer(window, "comm") == [[2, 10, 0], [2, 4, 0]]
    assert layer(window, "idle") == [[0, 24, 0], [0, 0, 0]]
    assert layer(window, "h") == [[0, 0, 8], [0, 0, 8]]
    assert window.first.tolist() == window.last.tolist() == [0, 1, 2]
    assert window.supersteps.tolist() == [1, 1, 1]


def test_fewer_columns_hold_the_sums_of_their_supersteps(three):
    window = Heatmap(three.run()).by_superstep(0, 3, 2)
    assert layer(window, "comp") == [[20, 5], [50, 5]]
    assert (window.first.tolist(), window.last.tolist()) == ([0, 2], [1, 2])
    assert window.supersteps.tolist() == [2, 1]


def test_only_the_straggler_is_above_the_mean(three):
    window = Heatmap(three.run()).by_superstep(0, 3, 3)
    assert layer(window, "over") == [[0, 0, 0], [0, 15, 0]]


def test_the_process_above_the_mean_of_h_is_the_one_that_receives_from_all(script):
    program = script(3)
    program.step("main", puts=[(1, 0, 9), (2, 0, 9)])
    window = Heatmap(program.run()).by_superstep(0, 1, 1)
    assert layer(window, "h") == [[18], [9], [9]]
    assert layer(window, "over_h") == [[6], [0], [0]]


def test_the_longest_superstep_of_a_column_names_where_its_straggler_ended_it(three):
    three.step(["main early", "main late"], w=[10, 90], kind=Kind.OBLSYNC, waits=(0, 0))
    run = three.run()
    window = Heatmap(run).by_superstep(0, 4, 2)
    assert window.longest.tolist() == [1, 3]
    functions = [run.stacks[stack][-1].function for stack in window.ended_at["stack"]]
    assert functions == ["foo", "late"]
    assert window.ended_at["kind"].tolist() == [Kind.SYNC, Kind.OBLSYNC]


def test_a_window_is_clipped_to_the_run(three):
    window = Heatmap(three.run()).by_superstep(-5, 900, 100)
    assert window.first.tolist() == [0, 1, 2]
    assert Heatmap(three.run()).by_superstep(2, 1, 9).layers.shape == (0, len(LAYERS), 2)


def test_columns_know_when_they_began_and_ended(three):
    window = Heatmap(three.run()).by_superstep(1, 3, 2)
    assert window.began_ns.tolist() == [12, 56]
    assert window.ended_ns.tolist() == [56, 61]


def test_costs_in_sub_groups_belong_to_the_superstep_of_the_root(nested):
    window = Heatmap(nested).by_superstep(0, 1, 1)
    assert layer(window, "comp") == [[70 + nested_comp(nested, 0)], [50 + nested_comp(nested, 1)]]


def nested_comp(run, pid):
    """Computation of a process in the root group itself."""
    rows = (run.records["pid"] == pid) & (run.records["group"] == 0)
    return record_costs(run)[0][rows].sum()


def test_the_slower_of_unequal_sub_groups_is_above_the_mean_of_the_parent(nested):
    window = Heatmap(nested).by_superstep(0, 1, 1)
    work = [5 + 70 + 3, 50 + 4]
    assert layer(window, "over") == [[work[0] - sum(work) / 2], [0]]


def test_waiting_for_a_core_is_a_layer_of_its_own(script):
    program = script(2)
    program.step("main", w=[10, 10], cpu=[4, 10])
    window = Heatmap(program.run()).by_superstep(0, 1, 1)
    assert layer(window, "comp") == [[4], [10]]
    assert layer(window, "waiting") == [[6], [0]]


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


def test_rows_are_blocks_where_there_are_more_processes(crowd):
    heatmap = Heatmap(crowd, most_rows=4)
    assert (heatmap.block, heatmap.rows) == (3, 4)
    assert layer(heatmap.by_superstep(0, 2, 2), "comp") == [[30, 30], [30, 30], [130, 30], [10, 10]]


def test_the_straggler_of_a_block_is_not_averaged_away(crowd):
    window = Heatmap(crowd, most_rows=4).by_superstep(0, 2, 2)
    assert layer(window, "over") == [[0, 0], [0, 0], [90, 0], [0, 0]]
    assert layer(window, "h") == [[5, 0], [45, 0], [5, 0], [5, 0]]


def test_blocks_have_the_same_sums_in_time(crowd):
    window = Heatmap(crowd, most_rows=4).by_time(0, 200, 7)
    assert np.sum(layer(window, "comp"), axis=1) == pytest.approx([60, 60, 160, 20])


# -- by time ------------------------------------------------------------------------------


def test_columns_of_time_have_what_took_place_in_them(three):
    window = Heatmap(three.run()).by_time(0, 60, 6)
    assert layer(window, "comp")[1] == [10, 8, 10, 10, 10, 2 + 4]
    assert layer(window, "comm")[1] == [0, 2, 0, 0, 0, 4]
    assert layer(window, "idle")[0] == [0, 0, 2, 10, 10, 2]


def test_the_time_of_calls_is_spread_over_the_time_before_the_sync(three):
    window = Heatmap(three.run()).by_time(12, 28, 2)
    assert layer(window, "comp")[0] == [5, 5]
    assert layer(window, "comm")[0] == [3, 3]


def test_supersteps_in_time_are_fractions(three):
    window = Heatmap(three.run()).by_time(12, 56, 4)
    assert window.supersteps == pytest.approx([0.25] * 4)
    assert window.first.tolist() == window.last.tolist() == [1, 1, 1, 1]
    assert np.sum(layer(window, "over"), axis=1) == pytest.approx([0, 15])


def test_time_and_supersteps_have_the_same_sums(nested, three):
    for run in (nested, three.run()):
        heatmap = Heatmap(run)
        by_time = heatmap.by_time(0, 10**6, 13).layers.sum(axis=0)
        by_superstep = heatmap.by_superstep(0, 10**6, 13).layers.sum(axis=0)
        assert by_time == pytest.approx(by_superstep)


def test_what_a_process_computes_before_a_sub_group_is_shown_before_it(nested):
    comp = layer(Heatmap(nested).by_time(0, 78, 78), "comp")[0]
    assert sum(comp[:5]) == pytest.approx(5)
    assert comp[5:75] == [1] * 70
    assert sum(comp[75:]) == pytest.approx(3)


def test_an_empty_run_has_windows_without_columns(script):
    heatmap = Heatmap(script(2).run())
    assert heatmap.by_superstep(0, 5, 10).layers.shape == (0, len(LAYERS), 2)
    assert heatmap.by_time(0, 5, 10).layers.shape == (0, len(LAYERS), 2)


# -- windows finer than what is summed up once --------------------------------------------


def test_a_window_finer_than_the_sums_is_made_from_the_records(script, monkeypatch):
    program = script(2)
    for number in range(40):
        program.step("main", w=[number, 2 * number])
    run = program.run()
    fine = Heatmap(run).by_superstep(20, 24, 4)
    monkeypatch.setattr("bsplib.profiler.heatmap._SUMMED_CELLS", 16)
    coarse = Heatmap(run)
    assert layer(coarse.by_superstep(20, 24, 4), "comp") == layer(fine, "comp")
    whole = coarse.by_superstep(0, 40, 5)
    assert layer(whole, "comp") == layer(Heatmap(run).by_superstep(0, 40, 5), "comp")


def test_supersteps_of_numbers_with_great_gaps_keep_their_numbers(script):
    program = script(2)
    program.step("main", w=[1, 2])
    program.superstep[0] = 2**50
    program.step("main", w=[3, 4])
    window = Heatmap(program.run()).by_superstep(0, 2, 9)
    assert window.first.tolist() == [0, 2**50]
    assert layer(window, "comp") == [[1, 3], [2, 4]]


# -- marks --------------------------------------------------------------------------------


def test_the_supersteps_of_chosen_records_are_ranges_of_their_numbers(script):
    program = script(2)
    for letter in "aabaabbba":
        program.step(f"main {letter}")
    run = program.run()
    b = run.stacks.index(next(stack for stack in run.stacks if stack[-1].function == "b"))
    steps = Heatmap(run).steps
    assert steps.ranges(run.records["stack"] == b, 10) == [(2, 2), (5, 7)]
    assert steps.ranges(run.records["stack"] != b, 10) == [(0, 1), (3, 4), (8, 8)]
    assert steps.ranges(run.records["stack"] < 0, 10) == []


def test_ranges_that_are_close_are_joined_where_there_are_too_many(script):
    program = script(1)
    for number in range(60):
        program.step("main odd" if number % 2 else "main even")
    run = program.run()
    odd = run.records["superstep"] % 2 == 1
    assert len(Heatmap(run).steps.ranges(odd, 100)) == 30
    assert Heatmap(run).steps.ranges(odd, 10) == [(0, 59)]
    first_half = odd & (run.records["superstep"] < 30)
    assert Heatmap(run).steps.ranges(first_half, 10) == [(0, 29)]
