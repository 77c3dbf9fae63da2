import networkx
import pytest

from bsplib.profiler.drawing.shown_nodes import ShownLink, chosen, links


def called(*edges):
    return networkx.DiGraph(edges)


@pytest.fixture
def graph():
    """main calls a and b; a calls c, which calls d and e; b calls e."""
    return called("ma", "mb", "ac", "cd", "ce", "be")


def ranks(**values):
    return {name: (float(value),) for name, value in values.items()}


def test_the_nodes_of_the_greatest_rank_are_chosen_in_the_order_of_the_graph(graph):
    rank = ranks(m=9, a=1, b=7, c=2, d=8, e=3)
    assert chosen(graph, rank, [], 3) == ["m", "b", "d"]


def test_what_is_always_shown_counts_among_the_most(graph):
    rank = ranks(m=9, a=1, b=7, c=2, d=8, e=3)
    assert chosen(graph, rank, ["m", "a"], 3) == ["m", "a", "d"]
    assert chosen(graph, rank, ["m", "a", "c"], 1) == ["m", "a", "c"]


def test_a_second_value_decides_between_equal_ranks(graph):
    rank = dict.fromkeys("mabcde", (0.0, 0.0)) | {"c": (0.0, 5.0)}
    assert chosen(graph, rank, [], 1) == ["c"]


def test_a_chain_through_nodes_that_are_not_shown_is_one_link(graph):
    assert set(links(graph, ["m", "d", "e"])) == {
        ShownLink("m", "d", False),
        ShownLink("m", "e", False),
    }


def test_an_edge_between_nodes_that_are_shown_is_direct(graph):
    assert links(graph, ["m", "a", "c"]) == [ShownLink("m", "a", True), ShownLink("a", "c", True)]


def test_a_shown_node_ends_a_chain(graph):
    assert set(links(graph, ["m", "a", "e"])) == {
        ShownLink("m", "a", True),
        ShownLink("m", "e", False),
        ShownLink("a", "e", False),
    }


def test_all_nodes_are_linked_by_the_edges_of_the_graph(graph):
    assert {link[:2] for link in links(graph, list(graph))} == set(graph.edges)


def test_functions_that_call_each_other_end_the_search():
    graph = called("ma", "ab", "ba", "bc")
    assert links(graph, ["m", "c"]) == [ShownLink("m", "c", False)]
