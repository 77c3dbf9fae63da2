import networkx
import pytest

from bsplib.profiler.drawing.picture import chosen_nodes, links_between


def called(*edges):
    return networkx.DiGraph(edges)


@pytest.fixture
def graph():
    """main calls a and b; a calls c, which calls d and e; b calls e."""
    return called("ma", "mb", "ac", "cd", "ce", "be")


def ranks(**values):
    return {name: (float(value),) for name, value in values.items()}


def test_what_is_always_shown_counts_among_the_most(graph):
    rank = ranks(m=9, a=1, b=7, c=2, d=8, e=3)
    assert chosen_nodes(graph, rank, ["m", "a"], 3) == ["m", "a", "d"]
    assert chosen_nodes(graph, rank, ["m", "a", "c"], 1) == ["m", "a", "c"]


def test_a_chain_through_nodes_that_are_not_shown_is_one_link(graph):
    assert set(links_between(graph, ["m", "d", "e"])) == {("m", "d"), ("m", "e")}
