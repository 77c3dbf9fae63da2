"""One row for a node: the book, report, JSON, CSV, graph, page and tests say the same numbers."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bsplib
from bsplib.profiler.account import PARTS
from bsplib.profiler.compare.comparison import compare_runs, figures_of
from bsplib.profiler.compare.report import as_data
from bsplib.profiler.export.table import FORMATS, Request
from bsplib.profiler.profile import RunProfile
from bsplib.profiler.report.document import document
from bsplib.profiler.rows import AMOUNTS, METRIC_UNITS, RowChoice, choose
from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace
from bsplib.webui.services import describe_graph
from tests.bsplib.random_programs.checks import record
from tests.bsplib.random_programs.generator import Narrow
from tests.bsplib.random_programs.seeded import program_of
from tests.drawn import examples
from tests.recordings import record_run

from .test_book import any_program
from .test_properties import programs
from .test_windows_of_waits import late_for_messages, of_mpi


def written(run, name, **options):
    """What an export of a run has in a format of text."""
    (form,) = (form for form in FORMATS if form.name == name)
    file = io.BytesIO()
    form.write(Request(Trace((run,)), **options), file)
    return file.getvalue().decode()


def amounts(row, seconds="{}_s"):
    """Time, loss and the parts of the account in a row of an output, by name."""
    return {name: float(row[seconds.format(name)]) for name in AMOUNTS}


def check(run):
    """Check that all outputs say of each node of a run what its book says."""
    profile = RunProfile(run, 1)
    book = profile.book()
    truth = {
        name: {"time": time.time_s, "loss": time.loss_s}
        | {part: time.part_s(number) for number, part in enumerate(PARTS)}
        for name, time in book.nodes.items()
    }
    told = document([profile])["runs"][0]
    rows = {row["id"]: row for row in told["nodes"]}
    for name, row in rows.items():
        assert amounts(row) == truth[name]
    assert told["time_s"] == truth[profile.callgraph.root]["time"]
    assert told["loss_s"] == truth[profile.callgraph.root]["loss"]
    shown, left_out = choose(book, RowChoice())
    assert {row.node.id: amounts(row, "{}") for row in shown} == {
        name: truth[name] for name in rows
    }
    for row in csv.DictReader(io.StringIO(written(run, "csv"))):
        assert amounts(row) == truth[row["id"]]
    for name, row in profile.graph().nodes(data=True):
        assert amounts(row) == truth[name]
    page = describe_graph(profile.callgraph)
    for position, node in enumerate(page["nodes"]):
        said = {name: values[position] for name, values in page["times"]["nodes"].items()}
        assert said == truth[node["id"]]
    for node in as_data(compare_runs(run, run))["nodes"]:
        assert node["before"] == node["after"]
        assert amounts(node["after"], "{}") == truth[node["after"]["id"]]
    for name in truth:
        assert figures_of(run, name).time_s == truth[name]["time"]
        assert figures_of(run, name).loss_s == truth[name]["loss"]
    check_sums(truth, rows, profile, left_out)


def check_sums(truth, rows, profile, left_out):
    """Check that parts add up to times, leaves to ``main``, and processes to their averages."""
    graph = profile.callgraph.graph
    for said in truth.values():
        assert 0 <= said["loss"] <= said["time"]
        assert sum(said[part] for part in PARTS) == pytest.approx(said["time"], abs=1e-12)
    leaves = profile.callgraph.leaves()
    for amount in AMOUNTS:
        whole = truth[profile.callgraph.root][amount]
        assert sum(truth[leaf][amount] for leaf in leaves) == pytest.approx(whole, abs=1e-12)
    for name, row in rows.items():
        for metric, unit in METRIC_UNITS.items():
            pie = row[f"{metric}_by_process_{unit}"]
            assert np.mean(pie) == pytest.approx(row[f"{metric}_avg_{unit}"])
            assert row[f"{metric}_max_{unit}"] == graph.nodes[name]["cost"][metric].maximum
    assert all(truth[row.node.id]["loss"] == row.loss_s for row in left_out)


@pytest.mark.slow
@examples(12)
@given(st.data())
def test_all_outputs_say_the_same_of_each_node_of_any_run(script, data):
    check(data.draw(programs(script, one_stack=False)).run())


@pytest.mark.parametrize("seed", range(3))
def test_all_outputs_say_the_same_of_groups_and_oblivious_supersteps(tmp_path, seed):
    path = tmp_path / "run.bsp"
    bsplib.run(any_program, seed, 3, 1, nprocs=5, backend="sim", profile=path)
    check(read_trace(path).runs[0])


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(2))
def test_all_outputs_say_the_same_of_real_processes(seed):
    _, run = record(program_of(seed, Narrow), "shm")
    check(run)


@pytest.mark.lengthy
def test_all_outputs_say_the_same_of_a_program_of_mpi4py(script):
    made, at = late_for_messages(script, (20_000, 90_000, 40_000))
    check(of_mpi(made, [(at[0, step], at[1, step]) for step in range(3)]))


def test_a_range_of_supersteps_says_the_same_in_every_format(tmp_path):
    path = tmp_path / "run.bsp"
    run = record_run(path, any_program, 1, 3, 1, nprocs=3, backend="sim")
    part = {"supersteps": (2, 5)}
    told = json.loads(written(run, "json", **part))["runs"][0]
    rows = list(csv.DictReader(io.StringIO(written(run, "csv", **part))))
    by_id = {row["id"]: row for row in rows}
    for row in told["nodes"]:
        assert amounts(by_id[row["id"]]) == amounts(row)
