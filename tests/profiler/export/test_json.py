"""The whole profile as JSON, read back by the json module."""

import json

import pytest

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import METRICS
from bsplib.recording.records import Trace
from bsplib.recording.trace import write_trace
from tests.commands import run_bsp

UNITS = {"comp": "s", "comm": "s", "idle": "s", "h": "bytes"}


def read(exported):
    (run,) = json.loads(exported.text("json"))["runs"]
    return run


def costs_of(entry):
    return {
        metric: tuple(entry[f"{metric}_{part}_{UNITS[metric]}"] for part in ("max", "avg", "min"))
        for metric in METRICS
    }


def expected(cost):
    return {
        metric: (cost[metric].maximum, cost[metric].average, cost[metric].minimum)
        for metric in METRICS
    }


def test_nodes_and_edges_have_all_numbers_of_the_call_graph(broadcast):
    profile = read(broadcast)
    nodes = {entry["id"]: entry for entry in profile["nodes"]}
    assert nodes.keys() == broadcast.costs.keys()
    for name, cost in broadcast.costs.items():
        assert nodes[name]["supersteps"] == cost.count
        assert costs_of(nodes[name]) == expected(cost)
        for metric in METRICS:
            pie = nodes[name][f"{metric}_by_process_{UNITS[metric]}"]
            assert tuple(pie) == cost[metric].pie
    edges = broadcast.callgraph.graph.edges
    assert [(entry["caller"], entry["callee"]) for entry in profile["edges"]] == list(edges)
    for entry in profile["edges"]:
        assert costs_of(entry) == expected(edges[entry["caller"], entry["callee"]]["cost"])


def test_a_part_of_the_run_has_the_rates_of_the_whole_run(broadcast):
    (part,) = json.loads(broadcast.text("json", supersteps=(0, 2)))["runs"]
    assert part["rates"] == read(broadcast)["rates"]
    assert 0 < part["time_s"] < read(broadcast)["time_s"]


def test_of_repeats_the_run_of_median_time_is_written_with_the_intervals_of_all(script, tmp_path):
    runs = []
    for number, excess in enumerate((100, 90, 120)):
        program = script(2)
        program.step("main relax", w=[1000, 1000 + 10 * excess])
        runs.append(program.run(meta={"repeat": [number, 3], "program": "app.py"}))
    write_trace(tmp_path / "r.bsp", Trace(tuple(runs)))
    asked = ["export", str(tmp_path / "r.bsp"), "--out", "-", "--format", "json"]
    done = run_bsp(*asked)
    content = json.loads(done.output)
    assert [run["run"] for run in content["runs"]] == [1]
    assert content["repeats"][0]["runs"] == [1, 2, 3]
    assert content["repeats"][0]["elapsed_s"] == pytest.approx([1.9e-6, 2.2e-6])


def test_hostile_names_are_strings_without_control_characters(hostile):
    names = [entry["name"] for entry in read(hostile)["nodes"]]
    assert sorted(names) == sorted(fmt.visible(node.name) for node in hostile.nodes.values())
    assert all(name.isprintable() for name in names)
