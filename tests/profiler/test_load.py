"""``bsplib.load``: profiles for programs and notebooks."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import networkx
import numpy as np
import pytest
from networkx.readwrite import json_graph

import bsplib
from bsplib import loading
from bsplib.errors import MissingExtraError, TraceError, UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler import profile as profiles
from bsplib.profiler.account import PARTS
from bsplib.profiler.costs import METRICS
from bsplib.profiler.critical import VIEWS, critical_path
from bsplib.profiler.drawing.graphviz import LayoutError
from bsplib.profiler.profile import Profile
from bsplib.profiler.tables import facts
from bsplib.recording.records import Trace
from bsplib.sync_kinds import Kind

HOSTILE = "<script>alert('x')</script>\x1b[31m\x00\ud800"


def body(bsp, n):
    def work():
        bsp.charge(3e-3 if bsp.pid == 2 else 1e-3)
        bsp.send(0, bytes(100))
        bsp.sync()

    for _ in range(n):
        work()
    with bsp.partition([1, bsp.nprocs]) as sub:
        sub.sync()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "run.bsp"
    for n in (3, 5):
        bsplib.run(body, n, nprocs=4, backend="sim", profile=path)
    return path


@pytest.fixture(scope="module")
def run(file):
    return bsplib.load(file).runs[1]


def one(program, **meta):
    """The profile of a run that was written by hand."""
    return Profile(Trace((program.run(**meta),)), "x.bsp").runs[0]


# -- loading ------------------------------------------------------------------------------------


def test_a_file_becomes_a_profile_with_its_runs(file):
    profile = bsplib.load(str(file))
    assert [run.number for run in profile.runs] == [1, 2]
    assert [run.nprocs for run in profile.runs] == [4, 4]
    for run in profile.runs:
        assert (run.program, run.backend) == (facts(run.run, 1)["program"], "sim")
    assert repr(profile) == "<Profile of run.bsp: 2 runs>"
    assert repr(profile.runs[0]).startswith("<RunProfile run 1: ")
    assert repr(profile.runs[0]).endswith("4 processes, backend sim, 9.00 ms, complete>")


def test_a_file_that_is_no_trace_is_an_error(tmp_path):
    with pytest.raises(TraceError, match="cannot be read"):
        bsplib.load(tmp_path / "none.bsp")


def test_functions_of_bsplib_are_nodes_on_demand(script):
    program = script(2)
    program.step("main:7 bsplib/combinations.py/Group.allreduce:90")
    trace = Trace((program.run(),))
    counts = [len(Profile(trace, library=library).runs[0].graph()) for library in (False, True)]
    assert counts == [2, 3]


@pytest.mark.lengthy
def test_bsplib_imports_the_profiler_and_its_packages_when_they_are_used():
    code = (
        "import sys, bsplib; print(*sys.modules); "
        "import bsplib.profiler.profile; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = (set(line.split()) for line in done.stdout.splitlines())
    assert first & {"networkx", "rich", "pandas", "bsplib.profiler"} == set()
    assert "bsplib.profiler.profile" in second
    assert second & {"rich", "pandas"} == set()


@pytest.mark.lengthy
def test_the_examples_in_the_docstrings_run():
    found = [doctest.testmod(module) for module in (profiles, loading)]
    assert sum(each.attempted for each in found) > 20
    assert sum(each.failed for each in found) == 0


# -- losses -------------------------------------------------------------------------------------


def test_a_run_has_the_book_and_the_verdict_of_its_call_graph(run):
    assert run.book().main.loss_s == pytest.approx(5 * 1.5e-3)
    assert run.book() is run.book()
    assert repr(run.book()) == "<GraphBook of 6 nodes: 7.50 ms of 15.0 ms lost>"
    (first,) = run.verdict().sentences
    assert "lost in body.<locals>.work (test_load.py line 38), called by" in first.text
    assert "by process 2 in 5 supersteps" in first.text


@pytest.mark.parametrize("name", VIEWS)
def test_every_path_is_a_list_of_nodes_from_main(run, name):
    chain = run.critical_path(name)
    if name == "loss":
        assert chain == run.critical_path() == run.book().path()
    else:
        assert chain == critical_path(run.callgraph, name)
    assert chain[:1] in ([], [run.callgraph.root])


def test_a_path_that_is_none_is_an_error(run):
    with pytest.raises(ValueError, match="no critical path is called 'red'"):
        run.critical_path("red")


def test_another_machine_changes_times_and_not_what_was_measured(run):
    slow = bsplib.Machine(name="slow", source="", g=1e-3, l=2.0)
    there = run.on(slow, speed="0.5x")
    root, measured = run.callgraph.root, run.nodes().loc[run.callgraph.root]
    timed = there.nodes().loc[root]
    assert timed.useful_s == pytest.approx(2 * measured.useful_s)
    transfers_s = timed.transfers_s + timed.transfer_imbalance_s
    assert transfers_s == pytest.approx(5 * 300 * 1e-3)
    assert timed.latency_s == pytest.approx(6 * 2.0)
    assert timed.comp_max_s == measured.comp_max_s
    assert there.callgraph is run.callgraph
    assert (run.rates.source, there.rates.source) == ("ideal", "slow")
    assert run.machine.name == "ideal"


def test_a_run_on_another_machine_says_so(run):
    there = run.on("cray-t3e-mpi:l=1e-5", speed="1x")
    assert repr(there) == f"{repr(run)[:-1]}, as on Cray T3E, MPI>"
    assert "l = 10.0 µs; Cray T3E, MPI.</p>" in there._repr_html_()


def test_a_machine_may_be_named(run):
    assert run.on("ideal:g=0.1,l=0.7", speed="1x").rates.l == 0.7
    with pytest.raises(UsageError, match="there is no Machine 'nowhere'"):
        run.on("nowhere")


# -- tables -------------------------------------------------------------------------------------


def test_nodes_are_rows_with_the_greatest_loss_first(run):
    table = run.nodes()
    assert set(table.index) == set(run.callgraph.graph)
    assert table.index.name == "id"
    assert table.loss_s.is_monotonic_decreasing
    root = table.loc[run.callgraph.root]
    assert (root["name"], root["kind"], root["supersteps"]) == ("body", "function", 6)
    for metric, unit in zip(METRICS, ("s", "s", "s", "bytes"), strict=True):
        summary = run.callgraph.graph.nodes[run.callgraph.root]["cost"][metric]
        assert root[f"{metric}_max_{unit}"] == summary.maximum
        assert root[f"{metric}_avg_{unit}"] == summary.average
        assert root[f"{metric}_min_{unit}"] == summary.minimum


def test_losses_and_times_of_nodes_are_those_of_the_book_in_parts(run):
    table, book = run.nodes(), run.book()
    leaves = table[table.kind == "cost_centre"]
    assert leaves.loss_s.sum() == pytest.approx(book.main.loss_s)
    assert leaves.time_s.sum() == pytest.approx(book.main.time_s)
    lost = table[["imbalance_s", "transfer_imbalance_s", "blocked_s", "core_s"]].sum(axis=1)
    assert lost.to_numpy() == pytest.approx(table.loss_s.to_numpy())
    parts = table[[f"{part}_s" for part in PARTS]].sum(axis=1)
    assert parts.to_numpy() == pytest.approx(table.time_s.to_numpy())


def test_each_superstep_of_each_group_is_a_row(script):
    program = script(4)
    program.step("main foo:3", w=[1000, 3000, 2000, 2000], puts=[(1, 0, 50), (2, 0, 70)])
    with program.partition(1, 3) as (_, right):
        program.step("main bar:5", w=500, group=right)
    program.step(["main foo:3", None, "main foo:3", "main foo:3"], w=800, transfer=10)
    program.step("main:9", w=5, kind=Kind.END)
    table = one(program).supersteps()
    assert table.group.tolist() == [0, 0, 0, 2]
    assert table.superstep.tolist() == [0, 1, 2, 0]
    assert table.processes.tolist() == [4, 3, 4, 3]
    assert table.sync.tolist() == ["sync", "sync", "end", "sync"]
    assert [name.split()[2] for name in table.name] == ["3", "3", "9", "5"]
    first, second = table.iloc[0], table.iloc[1]
    assert (first.comp_max_pid, first.h_max_pid) == (1, 0)
    assert (first.comp_max_s, first.comp_avg_s, first.comp_min_s) == (3e-6, 2e-6, 1e-6)
    assert (first.h_max_bytes, first.h_avg_bytes, first.h_min_bytes) == (120, 60, 0)
    assert (first.start_s, first.end_s) == (0, 3e-6)
    assert (second.comp_max_s, second.comp_avg_s, second.comp_min_s) == (800e-9, 600e-9, 0)
    assert second.comm_max_s == 10e-9


def test_supersteps_add_up_to_the_run(run):
    table, book = run.supersteps(), run.book()
    root = run.nodes().loc[run.callgraph.root]
    own = table[table.group == 0]
    assert own.h_max_bytes.sum() == root.h_max_bytes
    assert own.comp_avg_s.sum() == pytest.approx(root.comp_avg_s)
    assert own.loss_s.sum() == pytest.approx(book.main.loss_s)


def test_a_run_without_records_has_tables_with_the_same_columns(script, run):
    empty = one(script(2))
    assert len(empty.nodes()) == 1
    assert list(empty.nodes().columns) == list(run.nodes().columns)
    assert len(empty.supersteps()) == 0
    assert list(empty.supersteps().columns) == list(run.supersteps().columns)


@pytest.mark.parametrize("table", ["nodes", "supersteps"])
def test_without_pandas_an_error_names_the_extra(run, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"needs pandas, .* in the extra 'notebook'"):
        getattr(run, table)()


# -- the graph ----------------------------------------------------------------------------------


def filled(values):
    """Attributes without empty texts, which GraphML loses, and what networkx adds."""
    return {key: value for key, value in values.items() if value not in ("", {})}


def parts(graph):
    """All attributes of a graph, its nodes and its edges."""
    nodes = {name: filled(values) for name, values in graph.nodes(data=True)}
    return filled(graph.graph), nodes, {edge[:2]: edge[2] for edge in graph.edges(data=True)}


def test_the_graph_has_plain_attributes_and_survives_json(run):
    graph = run.graph()
    text = json.dumps(json_graph.node_link_data(graph, edges="edges"))
    read = json_graph.node_link_graph(json.loads(text), edges="edges")
    assert parts(read) == parts(graph)
    assert graph.graph["nprocs"] == 4
    assert graph.nodes[run.callgraph.root]["name"] == "body"


def test_the_graph_survives_graphml(run, tmp_path):
    graph = run.graph()
    networkx.write_graphml(graph, tmp_path / "x.graphml")
    read = networkx.read_graphml(tmp_path / "x.graphml")
    assert parts(read) == parts(graph)
    edges = graph.edges[run.callgraph.root, run.critical_path()[1]]
    assert edges["loss_s"] == pytest.approx(run.book().main.loss_s)


def test_hostile_names_survive_graphml_and_json(script, tmp_path):
    program = script(1)
    program.step(f"main {HOSTILE}", w=1)
    graph = one(program, meta={"program": HOSTILE, "error": HOSTILE}, complete=False).graph()
    networkx.write_graphml(graph, tmp_path / "x.graphml")
    read = networkx.read_graphml(tmp_path / "x.graphml")
    assert parts(read) == parts(graph)
    assert json.loads(json.dumps(json_graph.node_link_data(graph, edges="edges")))


# -- notebooks ----------------------------------------------------------------------------------


def test_a_notebook_shows_the_verdict_and_the_greatest_losses(run):
    shown = run._repr_html_()
    assert shown.count("<tr>") == 1 + len(run.callgraph.graph)
    assert run.verdict().sentences[0].text in shown.replace("&lt;", "<").replace("&gt;", ">")
    assert "7.50 ms" in shown


def test_of_many_nodes_a_notebook_shows_ten(script):
    program = script(1)
    for number in range(30):
        program.step(f"main stage_{number}:{number}", w=1)
    shown = one(program)._repr_html_()
    assert shown.count("<tr>") == 1 + 10
    assert "and 51 more nodes" in shown


def test_a_notebook_shows_the_runs_of_a_profile(file):
    shown = bsplib.load(file)._repr_html_()
    assert shown.count("<tr>") == 1 + 2
    assert "sim" in shown


def test_names_are_escaped_in_notebooks(script):
    program = script(2)
    program.step(f"main {HOSTILE.replace(' ', '')}", w=[5, 0])
    meta = {"program": HOSTILE, "backend": HOSTILE, "error": HOSTILE}
    profile = Profile(Trace((program.run(meta=meta, complete=False),)), HOSTILE)
    for shown in (profile._repr_html_(), profile.runs[0]._repr_html_()):
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown
        assert shown.isprintable()
    assert repr(profile).isprintable()
    assert repr(profile.runs[0]).isprintable()


@pytest.mark.parametrize("name", ["loss", "comp-imb"])
def test_a_notebook_shows_the_shaded_call_graph_as_a_picture(run, name):
    picture = run.picture(name)
    root = ElementTree.fromstring(picture._repr_svg_())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = " ".join(root.itertext())
    assert "work" in texts
    assert re.fullmatch(r"<Picture of \d+ characters>", repr(picture))


def test_a_run_is_its_picture_where_no_html_is_shown(run, monkeypatch):
    assert run._repr_svg_() == run.picture().svg

    def fail(*_):
        raise LayoutError("dot took longer than 1 s")

    monkeypatch.setattr("bsplib.profiler.drawing.picture.run_dot", fail)
    assert run._repr_svg_() is None
    with pytest.raises(LayoutError, match="dot took longer than 1 s"):
        run.picture()


def test_a_picture_has_the_losses_of_the_machine_of_its_profile(run):
    slow = run.on(bsplib.Machine(name="slow", source="", g=1e-3, l=0.0), speed="1x")
    assert fmt.seconds(slow.book().main.loss_s) in slow.picture().svg
    assert fmt.seconds(slow.book().main.loss_s) not in run.picture().svg


def test_values_of_tables_are_python_numbers_or_texts(run):
    values = {type(value) for _, data in run.graph().nodes(data=True) for value in data.values()}
    assert values <= {str, int, float}
    assert not any(issubclass(kind, np.generic) for kind in values)
