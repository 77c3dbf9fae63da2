from __future__ import annotations

import pytest

from bsplib.profiler import departures as departing
from bsplib.profiler import window
from bsplib.profiler.departures import over_s, summed_up, thinned
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
    found = summed_up(steps, g=1e-9, l=10e-9).rows()
    assert found["h"].tolist() == [8, 20, 20]
    assert found["predicted_s"] == pytest.approx([18e-9, 30e-9, 30e-9])
    assert over_s(found) == pytest.approx([0, 0, 100e-9])


def test_a_superstep_names_where_the_process_with_the_greatest_h_ended_it(script):
    program = script(3)
    for sender in (1, 2):
        places = ["main few", "main few", "main few"]
        places[sender] = "main much"
        program.step(places, puts=[(sender, 0, 4), (sender, 0, 4), (sender, 3 - sender, 4)])
    callgraph = program.reading().callgraph
    leaves = [callgraph.origins[at][-2] for at in summed_up(callgraph.run, 0, 0).rows()["origin"]]
    assert [callgraph.graph.nodes[leaf]["node"].name for leaf in leaves] == ["much", "much"]


def test_one_superstep_stands_for_all_that_look_the_same_where_there_are_many(script, monkeypatch):
    program = script(2)
    for number in range(60):
        program.step("main", puts=[(0, 1, 1 + number % 2)], transfer=100 + number % 3)
    run = program.run()
    every = summed_up(run, 0, 0)
    monkeypatch.setattr(tables, "ROWS", 16)
    monkeypatch.setattr(window, "ROWS", 16)
    monkeypatch.setattr(departing, "MOST_KEPT", 20)
    few = summed_up(run, 0, 0)
    assert len(few.rows()) <= 20
    assert few.rows()["count"].sum() == 60
    points, points_of_few = thinned(every.rows()), thinned(few.rows())
    assert len(points) < 10
    assert points_of_few["superstep"].tolist() == points["superstep"].tolist()
    assert points_of_few["count"].tolist() == points["count"].tolist()
    for whole, summed in zip(every.by_origin(), few.by_origin(), strict=True):
        assert summed == pytest.approx(whole)
