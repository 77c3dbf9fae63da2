"""The graph of calls, against networkx."""

import networkx
from hypothesis import given
from hypothesis import strategies as st

from bsplib.profiler.digraph import DirectedGraph, downwards
from tests.drawn import examples

NAMES = st.sampled_from("mabcdefg")


def built(edges):
    own, other = DirectedGraph(), networkx.DiGraph()
    for graph in (own, other):
        graph.add_node("m", cost=0)
        for number, (caller, callee) in enumerate(edges, start=1):
            for node in (caller, callee):
                graph.add_node(node, cost=ord(node))
            graph.add_edge(caller, callee, cost=number)
    return own, other


@given(st.lists(st.tuples(NAMES, NAMES), max_size=20))
@examples(100)
def test_a_graph_is_read_as_one_of_networkx(edges):
    own, other = built(edges)
    assert list(own) == list(other) == list(own.nodes)
    assert len(own) == len(other)
    assert dict(own.nodes) == dict(other.nodes)
    assert dict(own.nodes(data="cost")) == dict(other.nodes(data="cost"))
    assert list(own.nodes(data=True)) == list(other.nodes(data=True))
    assert list(own.edges) == list(other.edges)
    assert len(own.edges) == other.number_of_edges()
    assert list(own.edges(data="cost")) == list(other.edges(data="cost"))
    assert own.leaves() == [node for node, below in other.out_degree if not below]
    for node in other:
        assert own.nodes(data="cost")[node] == other.nodes[node]["cost"]
        assert list(own.successors(node)) == list(other.successors(node))
        assert list(own.predecessors(node)) == list(other.predecessors(node))
        assert own.out_degree(node) == other.out_degree(node)
        assert own.ancestors(node) == networkx.ancestors(other, node)
        assert all(own.has_edge(node, to) == other.has_edge(node, to) for to in "mabcdefgz")


@given(st.lists(st.tuples(NAMES, NAMES), max_size=20))
@examples(100)
def test_walks_are_those_of_networkx(edges):
    own, other = built(edges)
    walked = [node for node, _ in downwards("m", own.succ)]
    assert walked == list(networkx.dfs_preorder_nodes(other, "m"))
    tree, wanted = own.nearest_tree("m"), networkx.bfs_tree(other, "m")
    assert list(tree.edges) == list(wanted.edges)
    depths = networkx.single_source_shortest_path_length(wanted, "m")
    assert dict(downwards("m", tree.succ)) == depths == own.depths("m")


def test_a_node_without_edges_has_no_others():
    graph = DirectedGraph()
    graph.add_node("m")
    assert graph.ancestors("m") == set()
    assert graph.leaves() == ["m"]
    assert "x" not in graph
    assert not graph.has_edge("x", "m")
