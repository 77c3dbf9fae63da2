from __future__ import annotations

import pytest

from bsplib.profiler import departures as departing
from bsplib.profiler import window
from bsplib.profiler.departures import ExchangeSide, departures, summed_up
from bsplib.recording import tables
from bsplib.sync_kinds import Kind


@pytest.fixture
def steps(script):
    """Three processes: an even exchange, a fan-in, a fan-out that is late, the end of main."""
    program = script(3)
    program.step("main", puts=[(0, 1, 8), (1, 2, 8), (2, 0, 8)], transfer=18)
    program.step("main in", puts=[(0, 2, 10), (1, 2, 10)], transfer=30)
    program.step("main out", puts=[(0, 1, 10), (0, 2, 10)], transfer=130)
    program.step("main", kind=Kind.END)
    return program.run()


def test_the_prediction_is_g_h_plus_l(steps):
    found = departures(steps, g=1e-9, l=10e-9)
    assert found.h.tolist() == [8, 20, 20]
    assert found.predicted_s == pytest.approx([18e-9, 30e-9, 30e-9])
    assert found.over_s == pytest.approx([0, 0, 100e-9])


def test_fan_in_and_fan_out_are_told_apart(steps):
    found = departures(steps, 0, 0)
    assert found.pattern.tolist() == [ExchangeSide.EVEN, ExchangeSide.FAN_IN, ExchangeSide.FAN_OUT]


def test_the_rule_sum_adds_what_a_process_receives_to_what_it_sends(steps):
    assert departures(steps, 1, 0, "sum").h.tolist() == [16, 20, 20]


def test_communication_is_that_of_the_process_which_takes_longest(script):
    program = script(2)
    program.step("main", w=5, calls=[7, 1], transfer=2)
    assert departures(program.run(), 0, 0).comm_s == pytest.approx([9e-9])


def test_the_farthest_come_first_in_either_direction(steps):
    found = departures(steps, g=0, l=60e-9).farthest(2)
    assert found.superstep.tolist() == [2, 0]
    assert found.over_s == pytest.approx([70e-9, -42e-9])


def test_a_superstep_names_where_the_process_with_the_greatest_h_ended_it(script):
    program = script(3)
    for sender in (1, 2):
        places = ["main few", "main few", "main few"]
        places[sender] = "main much"
        program.step(places, puts=[(sender, 0, 4), (sender, 0, 4), (sender, 3 - sender, 4)])
    callgraph = program.reading().callgraph
    leaves = [callgraph.origins[at].chain[-2] for at in departures(callgraph.run, 0, 0).origin]
    assert [callgraph.graph.nodes[leaf]["node"].name for leaf in leaves] == ["much", "much"]


def test_supersteps_of_sub_groups_have_points_of_their_own(script):
    program = script(2)
    program.step("main")
    with program.partition(2) as (sub,):
        program.step("main inner", group=sub, puts=[(0, 1, 5)], transfer=3)
    program.step("main", transfer=1)
    found = departures(program.run(), 0, 0)
    assert found.group.tolist() == [0, 0, 1]
    assert found.root.tolist() == [0, 1, 1]
    assert found.h.tolist() == [0, 0, 5]


def test_departures_are_summed_up_by_origin(steps):
    over_s, count = summed_up(steps, g=0, l=10e-9).by_origin()
    known = [(s, n) for s, n in zip(over_s.tolist(), count.tolist(), strict=True) if n]
    assert [n for _, n in known] == [1, 1, 1]
    assert sorted(s for s, _ in known) == pytest.approx([8e-9, 20e-9, 120e-9])


@pytest.mark.parametrize("most_key", [2**60, 2**10], ids=["one number", "by rank"])
def test_one_superstep_stands_for_all_that_look_the_same_where_there_are_many(
    script, monkeypatch, most_key
):
    program = script(2)
    for number in range(60):
        program.step("main", puts=[(0, 1, 1 + number % 2)], transfer=100 + number % 3)
    run = program.run()
    every = summed_up(run, 0, 0)
    monkeypatch.setattr(tables, "ROWS", 16)
    monkeypatch.setattr(window, "ROWS", 16)
    monkeypatch.setattr(departing, "MOST_RANKED", 5)
    monkeypatch.setattr(departing, "_MOST_KEPT", 10)
    monkeypatch.setattr(departing, "_MOST_KEY", most_key)
    few = summed_up(run, 0, 0)
    assert len(few.rows().h) < 50
    assert few.rows().count.sum() == 60
    assert few.rows().farthest(5).superstep.tolist() == every.rows().farthest(5).superstep.tolist()
    points, count = every.rows().thinned(12)
    points_of_few, count_of_few = few.rows().thinned(12)
    assert points_of_few.superstep.tolist() == points.superstep.tolist()
    assert count_of_few.tolist() == count.tolist()
    for whole, summed in zip(every.by_origin(), few.by_origin(), strict=True):
        assert summed == pytest.approx(whole)


def test_many_points_are_thinned_and_each_says_for_how_many_it_stands(script):
    program = script(2)
    for number in range(60):
        program.step("main", puts=[(0, 1, 1 + number % 2)], transfer=100 + number % 3)
    program.step("main", puts=[(0, 1, 1000)], transfer=5000)
    found, count = departures(program.run(), 0, 0).thinned(12)
    assert count.sum() == 61
    assert len(count) <= 12
    assert 5e-6 in found.comm_s
    assert 102e-9 in found.comm_s, "of similar points the one that departs most stands for all"


def test_few_points_are_all_there(steps):
    found, count = departures(steps, 0, 0).thinned(100)
    assert len(found.h) == 3
    assert count.tolist() == [1, 1, 1]


def test_a_run_without_records_has_no_points(script):
    assert len(departures(script(2).run(), 1, 1).h) == 0
