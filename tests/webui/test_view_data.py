"""The data of the views "Timeline" and "Traffic", without a browser."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from bsplib.profiler.account import PARTS
from bsplib.profiler.callgraph import build
from bsplib.recording.records import Lifetime
from bsplib.webui import page, services, timeline, traffic
from bsplib.webui.opened_runs import AddressError, OpenRun
from bsplib.webui.traces import Traces
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


@pytest.fixture
def opened(broadcast_trace):
    """Eight supersteps of a one-stage broadcast, then twenty of a two-stage one, 16 processes."""
    return OpenRun(broadcast_trace.runs[0])


def node_id(opened, name):
    graph = build(opened.run).graph
    return next(node for node, data in graph.nodes(data=True) if data["node"].name == name)


def amounts(answer, layer):
    numbers = np.frombuffer(base64.b64decode(answer["layers"][layer]), "<u2")
    return numbers.reshape(answer["rows"], -1) * np.array(answer["units"][layer])


def test_a_window_has_the_idle_time_of_each_process_in_each_superstep(opened):
    answer = timeline.timeline(opened, {"low": "0", "high": "3", "columns": "100"})
    records = opened.run.records
    idle = (records["released"] - records["arrive"]) / 1e9
    expected = idle.reshape(-1, 16)[:3].T
    assert amounts(answer, "idle") == pytest.approx(expected, rel=1e-3)
    assert answer["edges"] == [0, 1, 2, 3]


@pytest.mark.parametrize("axis", ["superstep", "time"])
def test_a_cell_has_the_shares_of_the_parts_of_the_account(opened, axis):
    answer = timeline.timeline(opened, {"axis": axis, "columns": "20"})
    shares = [np.frombuffer(base64.b64decode(answer["parts"][part]), "u1") for part in PARTS]
    assert np.sum(shares, axis=0, dtype=int) == pytest.approx(255, abs=len(PARTS))
    assert len(shares[0]) == 20 * answer["rows"]
    useful = shares[0].reshape(answer["rows"], -1)
    assert useful[0].mean() > 1.5 * useful[1:].mean(), "process 0 computes, the others wait for it"


def test_the_axis_of_time_begins_with_the_start_of_the_run(opened):
    last = int(opened.run.records["end"].max())
    known = (0,) * 16
    life = Lifetime(-50_000_000, known, known, known, last, last + 10_000_000)
    run = replace(opened.run, lifetime=life)
    answer = timeline.timeline(OpenRun(run), {"axis": "time", "columns": "100"})
    assert answer["begin_s"] == answer["edges"][0] == -0.05
    assert answer["end_s"] == pytest.approx(answer["edges"][-1])
    ends = np.frombuffer(base64.b64decode(answer["parts"]["ends"]), "u1").reshape(16, -1)
    assert (ends[:, 0] == 255).all()
    assert (ends[:, 20] == 0).all()


@pytest.fixture
def in_turns():
    """Three supersteps at lines of their own, in each of which another process is late."""
    made = Script(3)
    for late in (1, 2, 0):
        work = [3e-3 if pid == late else 1e-3 for pid in range(3)]
        step(made, (frame("main", 1, 2 + late),), work)
    return OpenRun(run_of(made))


def test_the_loss_of_a_cell_is_what_all_lose_by_its_process(in_turns):
    answer = timeline.timeline(in_turns, {"columns": "10"})
    lost = amounts(answer, "loss")
    assert lost / 4e-3 == pytest.approx(np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]))
    book = services.describe_run(in_turns.run)["times"]
    assert lost.sum() / 3 == pytest.approx(book["nodes"]["loss"][0])


def test_a_cell_that_waits_says_for_which_process_and_line(in_turns):
    answer = timeline.timeline(in_turns, {"columns": "10"})
    for column, late in enumerate((1, 2, 0)):
        low, high = (str(answer[name][column]) for name in ("began_s", "finished_s"))
        (found,) = timeline.waited(
            in_turns, {"row": str((late + 1) % 3), "low": low, "high": high}
        )["waited"]
        assert (found["pid"], found["seconds"]) == (late, pytest.approx(2e-3))
        assert found["node"] == node_id(in_turns, f"bcast.py line {2 + late}")
    assert timeline.waited(in_turns, {"row": "1", "low": "0", "high": "1e-3"}) == {"waited": []}
    for query in ({}, {"row": "3", "low": "0", "high": "1"}, {"row": "0", "low": "0"}):
        with pytest.raises(AddressError, match="row below 3"):
            timeline.waited(in_turns, query)


def test_the_supersteps_of_a_node_are_marked_by_ranges(opened):
    foo = timeline.marks(opened, {"node": node_id(opened, "foo")})
    assert foo == {"ranges": [(0, 4)]}
    assert timeline.marks(opened, {"node": "unknown"}) == {"ranges": []}


def test_a_value_that_means_nothing_is_refused_with_the_value(opened):
    for query in ({"axis": "space"}, {"axis": "time", "low": "nan"}, {"columns": "-3"}):
        with pytest.raises(AddressError, match=next(reversed(query.values()))):
            timeline.timeline(opened, query)


def test_the_matrix_of_a_node_has_its_transfers_only(opened):
    whole = traffic.traffic(opened, {})
    foo = traffic.traffic(opened, {"node": node_id(opened, "foo")})
    assert foo["bytes"] == 5 * 15 * 40_000
    assert foo["cells"]["sender"] == [0] * 15
    assert foo["h_out"]["total"] == [5 * 15 * 40_000] + [0] * 15
    assert whole["bytes"] == int(opened.run.traffic["bytes"].sum())


def test_a_range_of_supersteps_is_priced_at_the_rates_of_the_whole_run(broadcast_trace):
    traces = Traces(broadcast_trace)
    whole, part = (traces.answer("0", 0, "run", query) for query in ({}, {"from": "0", "to": "1"}))
    assert part["run"]["supersteps"] == 2
    assert part["rates"] == whole["rates"]
    assert whole["rates"]["g"] > 0


def test_departures_come_with_the_line_that_is_fitted_to_the_whole_run(opened):
    whole, part = (traffic.scatter(opened, query) for query in ({}, {"from": "0", "to": "1"}))
    assert (whole["g"], whole["l"]) == (part["g"], part["l"])
    assert part["supersteps"] == 2
    points = whole["points"]
    predicted = whole["g"] * points["h"][0] + whole["l"]
    assert points["predicted_s"][0] == pytest.approx(predicted, rel=1e-4)
    assert [whole["patterns"][number] for number in points["pattern"][:3]] == ["fan-out"] * 3


def test_the_cost_centres_that_depart_most_come_first(opened):
    centres = traffic.scatter(opened, {})["centres"]
    sizes = [abs(centre["over_s"]) for centre in centres]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(centre["supersteps"] for centre in centres) == 30


@pytest.mark.lengthy
def test_a_saved_page_has_a_coarse_timeline_and_the_matrix_of_the_root(broadcast_trace):
    answers = page.saved_answers(Traces(broadcast_trace))
    folder = "traces/0/runs/0"
    for axis in ("superstep", "time"):
        answer = answers[f"{folder}/timeline.json?axis={axis}&coarse=1"]
        assert (answer["rows"], len(answer["first"])) == (16, 250 if axis == "time" else 31)
        assert set(answer["parts"]) == set(PARTS)
    assert answers[f"{folder}/traffic.json"]["nprocs"] == 16
    assert f"{folder}/departures.json" in answers


@pytest.mark.lengthy
def test_what_a_saved_page_has_of_a_large_run_stays_below_a_megabyte():
    made, rng = Script(128), np.random.default_rng(1)
    stack = (frame("main", 1, 2),)
    for _ in range(60):
        sends = [(int(a), int((a + b) % 128), 7) for a, b in rng.integers(1, 128, (400, 2))]
        step(made, stack, rng.uniform(0.1, 1, 128), 0, rng.uniform(0, 1), sends)
    opened = OpenRun(run_of(made))
    answers = [
        *(timeline.timeline(opened, query) for query in timeline.saved(opened)),
        traffic.traffic(opened, {}),
        traffic.scatter(opened, {}),
    ]
    assert len(json.dumps(answers)) < 10**6
