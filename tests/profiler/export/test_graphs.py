"""The call graph in DOT and GraphML, read back by pygraphviz and networkx."""

import networkx
import pygraphviz
import pytest

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import METRICS
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.tables import plain_graph

UNITS = {"comp": "s", "comm": "s", "idle": "s", "h": "bytes"}


def from_dot(exported, **options):
    return pygraphviz.AGraph(string=exported.text("dot", **options))


def from_graphml(exported):
    return networkx.parse_graphml(exported.text("graphml"))


def figures(cost):
    """The numbers that a node or an edge has to have."""
    found = {"supersteps": cost.count, "elapsed_s": cost.elapsed_s}
    for metric in METRICS:
        found[f"{metric}_max_{UNITS[metric]}"] = cost[metric].maximum
        found[f"{metric}_avg_{UNITS[metric]}"] = cost[metric].average
        found[f"{metric}_min_{UNITS[metric]}"] = cost[metric].minimum
    return found


def test_graphml_has_every_node_and_edge_with_its_numbers(broadcast):
    graph = from_graphml(broadcast)
    whole = broadcast.callgraph.graph
    assert set(graph) == set(whole)
    assert set(graph.edges) == set(whole.edges)
    for name, data in graph.nodes(data=True):
        assert figures(broadcast.costs[name]).items() <= data.items()
    for caller, callee, data in graph.edges(data=True):
        assert figures(whole.edges[caller, callee]["cost"]).items() <= data.items()


def test_graphml_names_the_run(broadcast):
    graph = from_graphml(broadcast).graph
    assert graph["root"] == broadcast.callgraph.root
    assert (graph["program"], graph["nprocs"], graph["backend"]) == ("bcast.py", 16, "shm")


def test_dot_has_every_node_and_edge_with_its_numbers(broadcast):
    graph = from_dot(broadcast)
    whole = broadcast.callgraph.graph
    assert set(graph.nodes()) == set(whole)
    assert set(graph.edges()) == set(whole.edges)
    for name, cost in broadcast.costs.items():
        attributes = graph.get_node(name).attr
        for figure, value in figures(cost).items():
            assert float(attributes[figure]) == value
    for caller, callee, cost in whole.edges(data="cost"):
        attributes = graph.get_edge(caller, callee).attr
        assert float(attributes["comp_max_s"]) == cost.comp.maximum


@pytest.mark.slow
def test_dot_has_all_nodes_of_a_large_graph_unless_fewer_are_asked_for(tree):
    assert len(from_dot(tree).nodes()) == 300
    assert len(from_dot(tree, top=20).nodes()) == 20


@pytest.mark.parametrize("reader", [from_dot, from_graphml])
def test_hostile_names_come_back_as_they_were(hostile, reader):
    graph = reader(hostile)
    for name, node in hostile.nodes.items():
        if reader is from_dot:
            found = graph.get_node(name).attr["name"].replace("\\\\", "\\")
        else:
            found = graph.nodes[name]["name"]
        assert found == fmt.visible(node.name)
    assert len(graph) == len(hostile.nodes)


def test_names_of_the_run_are_no_instructions_to_networkx(calling):
    assert plain_graph(book_graph(calling("f").callgraph)).graph["backend"] == "shm"
