from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from bsplib.profiler.account import PARTS
from bsplib.profiler.callgraph import build
from bsplib.profiler.costs import METRICS
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import Rates, rates_of_run
from bsplib.recording.records import Frame, Trace
from bsplib.recording.sources import digest
from bsplib.webui import services
from bsplib.webui.opened_runs import AddressError
from bsplib.webui.traces import Traces
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


@pytest.fixture(scope="module")
def callgraph(broadcast_trace):
    return build(broadcast_trace.runs[0])


@pytest.fixture(scope="module")
def data(callgraph):
    return services.describe_graph(callgraph)


def test_every_number_of_a_node_is_the_profilers(data, callgraph):
    assert [node["id"] for node in data["nodes"]] == list(callgraph.graph)
    for node, cost in zip(data["nodes"], callgraph.graph.nodes.values(), strict=True):
        expect_cost(node, cost["cost"], pies=True)


@pytest.mark.parametrize("rates", [None, Rates(1e-9, 1e-3, "sum", 3.0)])
def test_nodes_edges_and_paths_have_the_times_of_the_account(callgraph, rates):
    book = book_graph(callgraph, rates)
    times = services.describe_book(book)["times"]
    nodes, edges = list(callgraph.graph), list(callgraph.graph.edges)
    for part, name in enumerate(PARTS):
        assert times["nodes"][name] == [book.nodes[node].part_s(part) for node in nodes]
        assert times["edges"][name] == [book.edges[edge].part_s(part) for edge in edges]
    for shown, known in (times["nodes"], book.nodes), (times["edges"], book.edges):
        assert shown["time"] == [time.time_s for time in known.values()]
        assert shown["loss"] == [time.loss_s for time in known.values()]
    assert times["shades"]["loss"] == list(book.shades().values())
    assert times["scales"]["loss"] == book.full_of()
    assert [nodes[node] for node, _ in times["paths"]["loss"]] == book.path()
    assert times["paths"]["time"][0] == [0, book.main.time_s]


def test_only_a_range_of_supersteps_has_what_was_before_it(broadcast_trace):
    traces = Traces(broadcast_trace)
    whole, part = (traces.answer("0", 0, "run", query) for query in ({}, {"from": "1", "to": "3"}))
    assert whole["times"]["before"] is None
    account = part["account"]
    (ends,) = (each["seconds"] for each in account["parts"] if each["name"] == "ends")
    inside = part["times"]["nodes"]["time"][0] + part["times"]["before"]["time"]
    assert inside == pytest.approx(account["elapsed_s"] - ends)


@pytest.mark.lengthy
def test_a_run_on_another_machine_is_timed_anew(broadcast_trace):
    traces, run = Traces(broadcast_trace), broadcast_trace.runs[0]
    there = rates_of_run(run)
    told = traces.answer("0", 0, "account", {"speed": "0.5"})
    book = book_graph(build(run), Rates(there.g, there.l, there.rule, 2.0))
    assert told["times"]["nodes"]["time"][0] == book.main.time_s
    assert told["account"]["elapsed_s"] == book.elapsed_s
    assert (
        traces.answer("0", 0, "account", {})["times"] == traces.answer("0", 0, "run", {})["times"]
    )


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"machine": "/etc/passwd"}, "machine is '/etc/passwd': the page has "),
        ({"g": "-1"}, "g is '-1': give a number"),
        ({"speed": "nan"}, "speed is 'nan': give a number"),
    ],
)
def test_figures_that_mean_nothing_are_refused(broadcast_trace, query, why):
    with pytest.raises(AddressError, match=why):
        Traces(broadcast_trace).answer("0", 0, "account", query)


def expect_cost(shown, cost, *, pies):
    assert (shown["count"], shown["elapsed_s"]) == (cost.count, cost.elapsed_s)
    for metric in METRICS:
        numbers, summary = shown["cost"][metric], cost[metric]
        assert [numbers[key] for key in ("max", "avg", "min")] == [
            summary.maximum,
            summary.average,
            summary.minimum,
        ]
        if pies:
            assert numbers["pie"] == pytest.approx(summary.pie, rel=1e-5)
        else:
            assert "pie" not in numbers


def test_every_edge_has_what_came_through_its_caller_and_its_pie(data, callgraph):
    nodes = [node["id"] for node in data["nodes"]]
    shown = {(nodes[edge["from"]], nodes[edge["to"]]): edge for edge in data["edges"]}
    assert set(shown) == set(callgraph.graph.edges)
    for edge, described in shown.items():
        expect_cost(described, callgraph.graph.edges[edge]["cost"], pies=True)


def test_a_path_says_what_came_along_it_and_not_what_came_through_others(data):
    scores = {
        data["nodes"][node]["name"]: score for node, score in data["costs"]["paths"]["comp-abs"]
    }
    # Half of the one-stage broadcasts were foo's and not bar's.
    (shared,) = (node for node in data["nodes"] if node["name"] == "bcast_onestage")
    assert shared["cost"]["comp"]["max"] == pytest.approx(0.39)
    assert scores["bcast_onestage"] == pytest.approx(0.195)


def test_the_facts_say_where_and_how_the_program_ran():
    made = Script(4)
    step(made, (frame("main", 1, 2),), [1e-3] * 4)
    run = run_of(
        made,
        cores=2,
        host="node\x1b7",
        arguments=["--size", 10],
        started="2026-11-22T10:00:00+00:00",
        machine={"name": "cray-t3e", "g": 1},
    )
    assert services.describe_facts(run) == {
        "program": "bcast.py",
        "host": "node\\x1b7",
        "backend": "shm",
        "started": "2026-11-22T10:00:00+00:00",
        "error": None,
        "arguments": ["--size", "10"],
        "cores": 2,
        "nprocs": 4,
        "elapsed_s": 1e-3,
        "complete": True,
        "repeat": None,
        "supersteps": 1,
        "machine": "cray-t3e",
        "hosts": None,
    }


def test_metadata_may_hold_anything():
    made = Script(1)
    step(made, (frame("main", 1, 2),), [1e-3])
    facts = services.describe_facts(
        run_of(made, program=["a\x1b", 1], backend=None, arguments=3, machine="x", cores="many")
    )
    assert facts["program"] == "['a\\x1b', 1]"
    assert facts["backend"] is None
    assert (facts["arguments"], facts["machine"], facts["cores"]) == ([], None, None)


def test_functions_of_bsplib_are_shown_on_demand_and_marked():
    made = Script(2)
    inside = Frame("bsplib/combinations.py", "Group.allreduce", 1, 90, True)
    step(made, (Frame("app.py", "main", 1, 2), inside), [1e-3] * 2)
    traces = Traces(Trace((run_of(made),)))
    shown = {
        library: {
            node["name"]: node["library"]
            for node in traces.answer("0", 0, "run", {"library": library})["nodes"]
        }
        for library in ("0", "1")
    }
    assert shown["0"] == {"main": False, "app.py line 2 · allreduce": False}
    assert shown["1"] == {"main": False, "Group.allreduce": True, "combinations.py line 90": True}


@pytest.mark.lengthy
def test_an_answer_is_made_once_even_among_threads(broadcast_trace, monkeypatch):
    made = []
    original = services.build
    monkeypatch.setattr(
        "bsplib.webui.opened_runs.build", lambda *a, **k: made.append(a) or original(*a, **k)
    )
    traces = Traces(broadcast_trace)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: traces.answer("0", 0, "run", {}), range(8)))
    assert len(made) == 1


def test_where_there_are_too_many_processes_the_pies_of_one_part_are_asked_for(
    callgraph, monkeypatch
):
    monkeypatch.setattr(services, "MAX_SLICES", 16 * len(callgraph.graph) - 1)
    data = services.describe_graph(callgraph)
    assert not any("pie" in part["cost"]["h"] for part in (*data["nodes"], *data["edges"]))
    traces = Traces(Trace((callgraph.run,)))
    node, edge = data["nodes"][1]["id"], next(iter(callgraph.graph.edges))
    asked = traces.answer("0", 0, "processes", {"node": node})
    cost = callgraph.graph.nodes[node]["cost"]
    assert {metric: tuple(pie) for metric, pie in asked.items()} == {
        metric: pytest.approx(cost[metric].pie, rel=1e-5) for metric in METRICS
    }
    asked = traces.answer("0", 0, "processes", {"edge": ".".join(edge)})
    assert asked["comp"] == pytest.approx(callgraph.graph.edges[edge]["cost"].comp.pie, rel=1e-5)


def test_a_cost_centre_is_named_by_its_line_with_its_source_below(tmp_path):
    file = tmp_path / "solve.py"
    file.write_text("def main(bsp):\n    bsp.sync()  # all wait here\n", encoding="utf-8")
    made = Script(2)
    step(made, (frame("main", 1, 2)._replace(file=str(file)),), [1e-3, 2e-3])
    run = replace(run_of(made), sources={str(file): digest(file.read_bytes())})
    main, centre = services.describe_run(run)["nodes"]
    assert (main["short"], main["under"]) == ("main", "solve.py")
    assert (centre["short"], centre["under"]) == ("line 2", "bsp.sync()  # all wait here")
    file.write_text("def main(bsp):\n    another line\n", encoding="utf-8")
    _, centre = services.describe_run(run)["nodes"]
    assert centre["under"] == "solve.py", "it is not what ran"
