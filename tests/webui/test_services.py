import ast
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import webui
from bsplib.recording.records import Frame, Trace
from profiler import critical
from profiler import format as fmt
from profiler.callgraph import build
from profiler.costs import METRICS
from webui import services


@pytest.fixture(scope="module")
def run(broadcast_trace):
    return services.describe_run(broadcast_trace.runs[0])


@pytest.fixture(scope="module")
def callgraph(broadcast_trace):
    return build(broadcast_trace.runs[0])


def test_every_number_of_a_node_is_the_profilers(run, callgraph):
    for name, cost in callgraph.graph.nodes(data="cost"):
        shown = run["nodes"][name]["cost"]
        assert shown["supersteps"] == f"{cost.count} supersteps"
        for metric in METRICS:
            summary = cost[metric]
            numbers = shown["metrics"][metric]
            assert numbers["text"] == fmt.summary(summary, metric)
            assert numbers["max"] == fmt.amount(summary.maximum, metric)
            assert (numbers["avgPercent"], numbers["minPercent"]) == summary.percentages()


def test_a_pie_has_a_value_and_a_text_for_each_process(run, callgraph):
    for name, cost in callgraph.graph.nodes(data="cost"):
        for metric in METRICS:
            pie = run["nodes"][name]["cost"]["metrics"][metric]["pie"]
            assert pie["values"] == pytest.approx(cost[metric].pie, rel=1e-5)
            assert pie["texts"] == [fmt.amount(value, metric) for value in cost[metric].pie]
            assert len(pie["values"]) == run["nprocs"] == 16


def test_every_edge_says_what_came_through_its_caller(run, callgraph):
    shown = {(e["caller"], e["callee"]): e["cost"] for e in run["edges"].values()}
    assert set(shown) == set(callgraph.graph.edges)
    for (caller, callee), cost in shown.items():
        part = callgraph.graph.edges[caller, callee]["cost"]
        assert cost["supersteps"] == f"{part.count} supersteps"
        assert cost["metrics"]["h"]["text"] == fmt.summary(part.h, "h")


def test_all_seventeen_paths_are_there_with_shades_and_way(run, callgraph):
    assert list(run["paths"]) == list(critical.PATHS)
    for path, shown in run["paths"].items():
        assert [step["node"] for step in shown["chain"]] == critical.critical_path(callgraph, path)
        assert shown["shades"] == pytest.approx(critical.shades(callgraph, path), abs=1e-3)
        assert shown["shades"][shown["at"]] == max(shown["shades"].values()) > 0


def test_the_way_says_what_came_along_it_and_not_what_came_through_others(run):
    scores = {
        run["nodes"][step["node"]]["name"]: step["score"]
        for step in run["paths"]["comp-abs"]["chain"]
    }
    # Half of the one-stage broadcasts were foo's and not bar's.
    (shared,) = (node for node in run["nodes"].values() if node["name"] == "bcast_onestage")
    assert shared["cost"]["metrics"]["comp"]["max"] == "390 ms"
    assert scores["bcast_onestage"] == "195 ms"


@pytest.mark.parametrize(
    ("path", "score"),
    [("sync", "30"), ("h-rel", "88%"), ("h-abs", "6.75 MB"), ("h-imb", "5.58 MB")],
)
def test_the_greatest_score_has_the_unit_of_its_path(run, path, score):
    assert run["paths"][path]["greatest"] == score


def test_where_nothing_scores_there_is_no_way_and_no_shade(several_runs_trace):
    alone = services.describe_run(several_runs_trace.runs[1])
    assert alone["paths"]["h-imb"]["chain"] == []
    assert set(alone["paths"]["h-imb"]["shades"].values()) == {0}


def test_a_run_is_json_without_nan(run):
    assert json.loads(json.dumps(run, allow_nan=False)) == run


def test_the_heading_says_size_backend_length_and_whether_it_ended(several_runs_trace):
    overview = services.describe_trace(several_runs_trace)
    assert overview["runs"] == [
        "run 1: 4 processes, shm, 369 ms",
        "run 2: 1 process, shm, 368 ms",
        "run 3: 8 processes, shm, 175 ms, not complete",
    ]
    broken = services.describe_run(several_runs_trace.runs[2])
    assert broken["error"].startswith("AbortError: it was enough.")


def test_waiting_for_a_core_is_told_where_cpu_time_was_measured(run_maker, frame):
    maker = run_maker(4)
    maker.step((frame("main", 1, 2),), [1e-3] * 4)
    run = maker.run(cores=2)
    assert services.describe_run(run)["waiting"] == ""
    run.records["cpu"] = 250_000
    waiting = services.describe_run(run)["waiting"]
    assert waiting == "waiting for a core: 3.00 ms of 4 processes on 2 cores"


def test_functions_of_bsplib_are_shown_only_on_demand(run_maker):
    maker = run_maker(2)
    inside = Frame("bsplib/combinations.py", "Group.allreduce", 1, 90, True)
    maker.step((Frame("app.py", "main", 1, 2), inside), [1e-3] * 2)
    trace = Trace((maker.run(),))
    shown = {
        library: {
            node["name"] for node in services.Views(trace, library=library).run(0)["nodes"].values()
        }
        for library in (False, True)
    }
    assert shown[False] == {"main", "app.py line 2 · allreduce"}
    assert shown[True] == {"main", "Group.allreduce", "combinations.py line 90"}


def test_metadata_may_hold_anything(run_maker, frame):
    maker = run_maker(1)
    maker.step((frame("main", 1, 2),), [1e-3])
    described = services.describe_run(maker.run(program=["a\x1b", 1], backend=None, complete=False))
    assert described["program"] == "['a\\x1b', 1]"
    assert described["error"] == "error unknown"


def test_a_trace_without_runs_has_an_overview():
    assert services.describe_trace(Trace(()))["runs"] == []


def test_a_view_is_made_once_even_among_threads(broadcast_trace, monkeypatch):
    made = []
    original = services.describe_run
    monkeypatch.setattr(
        services, "describe_run", lambda run, **more: made.append(run) or original(run, **more)
    )
    views = services.Views(broadcast_trace)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(views.run, [0] * 8))
    assert len(made) == 1
    assert all(result is results[0] for result in results)


@pytest.mark.parametrize("number", [-1, 1])
def test_a_run_that_is_not_there_is_named(broadcast_trace, number):
    with pytest.raises(IndexError, match=rf"no run {number}: the trace has 1, from 0"):
        services.Views(broadcast_trace).run(number)


@pytest.mark.parametrize("module", ["services", "graph_svg", "page"])
def test_what_makes_the_views_knows_no_web_framework(module):
    source = Path(webui.__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert not imported & {"flask", "waitress", "werkzeug"}
