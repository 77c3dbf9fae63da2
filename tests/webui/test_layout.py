import shutil

import pytest

from bsplib.profiler import critical
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.sync_kinds import Kind
from bsplib.webui import services
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


@pytest.fixture(scope="module")
def callgraph(broadcast_trace):
    return build(broadcast_trace.runs[0])


@pytest.fixture(scope="module")
def laid_out(callgraph):
    return services.lay_out(callgraph, list(callgraph.graph), services.lines_under(callgraph))


def boxes(drawn):
    return {number: box for number, *box in drawn["nodes"]}


def test_every_node_has_a_box_in_both_layouts_and_none_overlap(callgraph, laid_out):
    for drawn in laid_out.values():
        found = boxes(drawn)
        assert set(found) == set(range(len(callgraph.graph)))
        for number, (x, y, width, height) in found.items():
            assert 0 <= x <= x + width <= drawn["width"]
            assert 0 <= y <= y + height <= drawn["height"]
            for other, (left, top, wide, high) in found.items():
                apart = (
                    x + width <= left or left + wide <= x or y + height <= top or top + high <= y
                )
                assert apart or number == other


def test_every_edge_runs_from_its_caller_to_its_callee(callgraph, laid_out):
    found = boxes(laid_out["wide"])
    edges = list(callgraph.graph.edges)
    order = list(callgraph.graph)
    links = laid_out["wide"]["links"]
    assert sorted(edge for _, _, edge, _ in links) == list(range(len(edges)))
    for caller, callee, edge, points in links:
        assert (order[caller], order[callee]) == edges[edge]
        assert len(points) % 3 == 1  # one point, then three for each Bezier curve
        for (x, y), (left, top, width, height) in zip(
            (points[0], points[-1]), (found[caller], found[callee]), strict=True
        ):
            assert left - 1 <= x <= left + width + 1
            assert top - 1 <= y <= top + height + 1


def test_calls_through_nodes_that_are_not_shown_are_one_line(callgraph):
    name = {data.name: node for node, data in callgraph.graph.nodes(data="node")}
    order = list(callgraph.graph)
    kept = [name["main"], name["foo"], name["bcast.py line 18"]]
    found = {(order[a], order[b]): edge for a, b, edge in services.links(callgraph.graph, kept)}
    assert found == {
        (name["main"], name["foo"]): list(callgraph.graph.edges).index((name["main"], name["foo"])),
        (name["foo"], name["bcast.py line 18"]): None,
        (name["main"], name["bcast.py line 18"]): None,  # through bar
    }


def test_a_small_graph_is_shown_whole_but_for_an_end_that_costs_nothing():
    made = Script(4)
    for line in (3, 4):
        step(made, (frame("main", 1, 2), frame("f", 1, line)), [1e-3, 2e-3, 1e-3, 1e-3])
    step(made, (frame("main", 1, 9),), 1e-9, kind=Kind.END)
    book = book_graph(build(run_of(made)))
    graph = book.callgraph.graph
    first = services.first_shown(book)
    left_out = {graph.nodes[name]["node"].name for name in set(graph) - set(first)}
    assert left_out == {"bcast.py line 9"}


@pytest.mark.lengthy
def test_of_a_large_graph_about_eighty_nodes_are_shown_with_all_critical_paths(tree_run):
    book = book_graph(build(tree_run(300)))
    callgraph = book.callgraph
    first = services.first_shown(book)
    assert 80 <= len(first) < 130
    assert set(first) >= {
        node for path in critical.PATHS for node in critical.critical_path(callgraph, path)
    } | set(book.path())
    assert [name for name in callgraph.graph if name in set(first)] == first


def test_where_dot_fails_the_page_is_left_to_lay_out_the_graph(callgraph, tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text(f"#!{shutil.which('sh')}\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert services.lay_out(callgraph, list(callgraph.graph), services.lines_under(callgraph)) == {}


@pytest.mark.parametrize("limit", ["MOST_LAID_OUT", "MOST_LINES"])
def test_a_graph_that_is_too_large_for_dot_is_left_to_the_page(callgraph, monkeypatch, limit):
    names = list(callgraph.graph)
    links = services.links(callgraph.graph, names)
    size = {"MOST_LAID_OUT": len(names), "MOST_LINES": len(links)}[limit]
    monkeypatch.setattr(services, "layouts", lambda *_: {"wide": []})
    monkeypatch.setattr(services, limit, size)
    assert services.lay_out(callgraph, names, services.lines_under(callgraph)) == {"wide": []}
    monkeypatch.setattr(services, limit, size - 1)
    assert services.lay_out(callgraph, names, services.lines_under(callgraph)) == {}
