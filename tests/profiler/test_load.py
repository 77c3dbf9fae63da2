"""``bsplib.load``: profiles for programs and notebooks."""

from __future__ import annotations

import doctest
import json
import re
import sys
from xml.etree import ElementTree

import networkx
import pytest
from networkx.readwrite import json_graph

import bsplib
from bsplib import loading
from bsplib.errors import MissingExtraError, TraceError
from bsplib.profiler import profile as profiles
from bsplib.profiler.drawing.graphviz import LayoutError
from bsplib.profiler.profile import Profile
from bsplib.profiler.tables import facts
from bsplib.recording.records import Trace
from tests.processes import run_python

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


@pytest.mark.lengthy
def test_bsplib_imports_the_profiler_and_its_packages_when_they_are_used():
    code = (
        "import sys, bsplib; print(*sys.modules); "
        "import bsplib.profiler.profile; print(*sys.modules)"
    )
    done = run_python("-c", code, check=True)
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


# -- tables -------------------------------------------------------------------------------------


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
