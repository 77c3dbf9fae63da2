import re
import shutil
from xml.etree import ElementTree

import networkx
import numpy as np
import pytest

from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace, write_trace
from bsplib.sync_kinds import Kind
from profiler import dot
from profiler import format as fmt
from profiler.callgraph import build
from profiler.dot import LayoutError
from webui import graph_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def callgraph(broadcast_trace):
    return build(broadcast_trace.runs[0])


@pytest.fixture(scope="module")
def drawing(callgraph):
    return ElementTree.fromstring(graph_svg.draw(callgraph))


def groups(drawing, kind):
    return {
        group.get("id"): group
        for group in drawing.iter(f"{SVG}g")
        if kind in group.get("class", "").split()
    }


def texts(group):
    return [text.text for text in group.iter(f"{SVG}text")]


def left(group):
    points = next(shape for shape in group if shape.tag != f"{SVG}text")
    numbers = re.findall(r"-?[\d.]+", points.get("points") or points.get("d"))
    return min(map(float, numbers[::2]))


def test_every_node_is_drawn_once_under_its_own_id(callgraph, drawing):
    assert list(groups(drawing, "node")) == list(callgraph.graph)


def test_functions_and_cost_centres_can_be_told_apart(callgraph, drawing):
    for name, group in groups(drawing, "node").items():
        assert group.get("class") == f"node {callgraph.graph.nodes[name]['node'].kind}"


def test_every_edge_is_drawn_once_under_its_generated_id(callgraph, drawing):
    edges = graph_svg.edge_ids(callgraph.graph)
    assert list(edges) == list(callgraph.graph.edges)
    assert set(groups(drawing, "edge")) == set(edges.values())


def test_a_node_says_name_count_and_the_four_metrics(callgraph, drawing):
    (name,) = [n for n, d in callgraph.graph.nodes(data="node") if d.name == "bcast_onestage"]
    cost = callgraph.graph.nodes[name]["cost"]
    lines = texts(groups(drawing, "node")[name])
    assert lines[:2] == ["bcast_onestage", "10 supersteps"]
    for metric, line in zip(("comp", "comm", "idle", "h"), lines[2:], strict=True):
        assert " ".join(line.split()) == f"{metric} {fmt.summary(cost[metric], metric)}"
    assert lines[5].endswith("(12% | 7%)")  # figure 3 of the paper


def test_callees_stand_to_the_right_of_their_callers(callgraph, drawing):
    nodes = groups(drawing, "node")
    for caller, callee in callgraph.graph.edges:
        assert left(nodes[caller]) < left(nodes[callee])


def test_only_edges_into_shared_functions_carry_a_count(callgraph, drawing):
    drawn = groups(drawing, "edge")
    for (caller, callee), edge in graph_svg.edge_ids(callgraph.graph).items():
        shared = callgraph.graph.in_degree(callee) > 1
        count = callgraph.graph.edges[caller, callee]["cost"].count
        assert texts(drawn[edge]) == ([f"{count}×"] if shared else [])  # noqa: RUF001
    assert any(texts(edge) for edge in drawn.values())


def test_nothing_but_shapes_and_text_comes_out_of_the_layout(drawing):
    for element in drawing.iter():
        assert element.tag.removeprefix(SVG) in {"svg", "g", "path", "polygon", "text"}
        assert not {name for name in element.attrib if name.startswith(("on", "style", "href"))}


def test_hostile_names_are_text_in_dot_and_svg(hostile_trace):
    callgraph = build(hostile_trace.runs[0])
    drawn = groups(ElementTree.fromstring(graph_svg.draw(callgraph)), "node")
    assert len(drawn) == len(callgraph.graph)
    for name, node in callgraph.graph.nodes(data="node"):
        shown = texts(drawn[name])[0]
        head, dots, tail = shown.partition("…")
        assert fmt.label(node).startswith(head)
        assert not dots or fmt.label(node).endswith(tail)


@pytest.mark.parametrize("name", ["<b>", "<lambda>", r"a\N", r"a\lb", "&lt;", 'a"b', "\\", "a\\"])
def test_a_short_name_is_shown_to_the_letter(name, run_maker, frame):
    maker = run_maker(1)
    maker.step((frame("main", 1, 2), frame(name, 5, 6)), [1e-3])
    drawn = groups(ElementTree.fromstring(graph_svg.draw(build(maker.run()))), "node")
    assert name in {texts(group)[0] for group in drawn.values()}


def test_a_wide_name_loses_its_middle_and_wide_letters_count_twice():
    assert graph_svg._shortened("a" * 24) == "a" * 24
    assert graph_svg._shortened("first_" + "x" * 30 + "_last") == "first_xxxxx…xxxxxx_last"
    assert graph_svg._shortened("数" * 13) == "数" * 5 + "…" + "数" * 5


def test_functions_that_call_each_other_in_a_circle_can_be_drawn(run_maker, frame):
    maker = run_maker(2)
    main, ping, pong = frame("main", 1, 2), frame("ping", 10, 12), frame("pong", 20, 22)
    maker.step((main, ping, pong), [1e-3, 2e-3])
    maker.step((main, pong, ping), [1e-3, 2e-3])
    callgraph = build(maker.run())
    assert not networkx.is_directed_acyclic_graph(callgraph.graph)
    drawn = ElementTree.fromstring(graph_svg.draw(callgraph))
    assert len(groups(drawn, "node")) == len(callgraph.graph)


def test_a_run_of_one_stretch_without_a_sync_can_be_drawn(run_maker, frame):
    maker = run_maker(1)
    maker.step((frame("main", 1, 2),), [1e-3], kind=Kind.END)
    drawn = groups(ElementTree.fromstring(graph_svg.draw(build(maker.run()))), "node")
    assert [texts(group)[:2] for group in drawn.values()] == [
        ["main", "0 supersteps"],
        ["bcast.py line 2 (end)", "0 supersteps"],
    ]


@pytest.fixture
def system_dot(tmp_path, monkeypatch):
    """Puts a program called dot, and nothing else, on PATH."""

    def install(script):
        program = tmp_path / "dot"
        program.write_text(f"#!{shutil.which('sh')}\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return install


def test_the_dot_on_the_path_lays_out_where_there_is_one(callgraph, system_dot):
    system_dot(
        "read -r first; "
        "echo \"<svg xmlns='http://www.w3.org/2000/svg'><text>$1 $first</text></svg>\""
    )
    assert texts(ElementTree.fromstring(graph_svg.draw(callgraph))) == ["-Tsvg digraph {"]


def test_a_dot_that_fails_is_quoted(callgraph, system_dot):
    system_dot("echo 'dot: no libraries' >&2; exit 3")
    with pytest.raises(LayoutError, match=r"dot failed \(status 3\) dot: no libraries"):
        graph_svg.draw(callgraph)


@pytest.mark.lengthy
def test_a_dot_that_is_busy_for_ever_is_ended_and_named(callgraph, system_dot, monkeypatch):
    monkeypatch.setattr(dot, "LAYOUT_SECONDS", 1)
    system_dot("while :; do :; done")
    with pytest.raises(LayoutError) as caught:
        graph_svg.draw(callgraph)
    assert str(caught.value) == (
        "the call graph has 9 nodes and 9 edges, and dot did not finish within 1 s: see bsp report"
    )


@pytest.mark.lengthy
def test_a_small_trace_whose_graph_is_a_tangle_is_refused_in_time(
    run_maker, frame, tmp_path, monkeypatch
):
    monkeypatch.setattr(dot, "LAYOUT_SECONDS", 1)
    random = np.random.default_rng(0)
    maker = run_maker(2)
    for _ in range(400):
        called = [frame(f"g{number}", 5, 5) for number in random.integers(0, 120, 25)]
        maker.step((frame("main", 1, 1), *called), 0.0)
    path = tmp_path / "tangle.bsp"
    write_trace(path, Trace((maker.run(),)))
    assert path.stat().st_size < 200_000
    with pytest.raises(LayoutError, match="not finish within 1 s"):
        graph_svg.draw(build(read_trace(path).runs[0]))


def test_without_a_dot_the_one_inside_pygraphviz_lays_out(callgraph, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    drawing = ElementTree.fromstring(graph_svg.draw(callgraph))
    assert len(groups(drawing, "node")) == len(callgraph.graph)
