"""What holds for the call graph of any run."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from bsplib.profiler.compare.comparison import compare
from bsplib.profiler.compare.matching import match
from bsplib.profiler.compare.report import as_data
from bsplib.profiler.costs import METRICS
from bsplib.profiler.critical import PATHS, critical_path, score
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rows import QUANTITIES
from bsplib.sync_kinds import Kind
from tests.drawn import examples

STACKS = [
    "main:2",
    "main a:12",
    "main b a:12",
    "main b a:13",
    "main a b a:12",
    "main a main.<locals>.<genexpr> c:42",
    "main b b b:22",
    "main a c b:22",
]
TIMES = st.integers(0, 1000)


@st.composite
def steps(draw, nprocs, one_stack):
    """The arguments of a superstep of ``nprocs`` processes."""
    stack = st.sampled_from(STACKS)
    times = st.lists(TIMES, min_size=nprocs, max_size=nprocs)
    pids = st.integers(0, nprocs - 1)
    transfers = st.lists(
        st.tuples(pids, pids, TIMES).filter(lambda transfer: transfer[0] != transfer[1]), max_size=4
    )
    return {
        "stacks": draw(stack if one_stack else st.lists(stack, min_size=nprocs, max_size=nprocs)),
        "w": draw(times),
        "calls": draw(times),
        "transfer": draw(TIMES),
        "puts": draw(transfers) if nprocs > 1 else [],
        "gets": draw(transfers) if nprocs > 1 else [],
    }


def programs(script, *, one_stack):
    """Runs of up to four processes, with sub-groups only where stacks may differ."""

    @st.composite
    def program(draw):
        nprocs = draw(st.integers(1, 4))
        written = script(nprocs)
        for _ in range(draw(st.integers(1, 6))):
            if not one_stack and nprocs > 1 and draw(st.booleans()):
                cut = draw(st.integers(1, nprocs - 1))
                with written.partition(cut, nprocs - cut) as groups:
                    for group, size in zip(groups, (cut, nprocs - cut), strict=True):
                        for step in draw(st.lists(steps(size, one_stack), max_size=3)):
                            step["puts"] = step["gets"] = ()
                            written.step(**step, group=group)
            written.step(**draw(steps(nprocs, one_stack)))
        written.step("main:3", draw(TIMES), kind=Kind.END)
        return written

    return program()


def leaf_costs(reading):
    nodes = reading.callgraph.graph.nodes(data=True)
    return [data["cost"] for _, data in nodes if data["node"].kind == "cost_centre"]


@examples(50)
@given(st.data())
def test_parts_of_any_run_add_up(script, data):
    reading = data.draw(programs(script, one_stack=False)).reading()
    graph = reading.callgraph.graph
    for name, whole in graph.nodes(data="cost"):
        parts = [edge["cost"] for edge in graph.pred[name].values()]
        for metric in METRICS:
            summary = whole[metric]
            assert 0 <= summary.minimum <= summary.average <= summary.maximum
            # Equation 5 is at most equation 2, whatever ran side by side.
            assert max(summary.pie) <= summary.maximum * (1 + 1e-12)
            if parts:
                pies = zip(*(cost[metric].pie for cost in parts), strict=True)
                assert [math.fsum(slices) for slices in pies] == pytest.approx(summary.pie)
            assert all(cost[metric].maximum <= summary.maximum for cost in parts)


@examples(50)
@given(st.data())
def test_the_root_is_the_sum_of_the_leaves(script, data):
    reading = data.draw(programs(script, one_stack=False)).reading()
    root = reading.callgraph.graph.nodes[reading.callgraph.root]["cost"]
    for metric in METRICS:
        pies = zip(*(cost[metric].pie for cost in leaf_costs(reading)), strict=True)
        assert [math.fsum(slices) for slices in pies] == pytest.approx(root[metric].pie)


@examples(50)
@given(st.data())
def test_where_stacks_are_shared_everything_adds_up(script, data):
    reading = data.draw(programs(script, one_stack=True)).reading()
    graph = reading.callgraph.graph
    nodes = dict(graph.nodes(data="cost"))
    wholes = {name: [edge["cost"] for edge in graph.pred[name].values()] for name in nodes}
    wholes[reading.callgraph.root] = leaf_costs(reading)
    for name, parts in wholes.items():
        assert nodes[name].count == sum(cost.count for cost in parts)
        for metric in METRICS:
            for field in ("maximum", "average", "minimum"):
                total = math.fsum(getattr(cost[metric], field) for cost in parts)
                assert total == pytest.approx(getattr(nodes[name][metric], field))


@examples(50)
@given(st.data(), st.sampled_from(PATHS))
def test_a_critical_path_is_a_walk_from_the_root_to_a_leaf(script, data, path):
    callgraph = data.draw(programs(script, one_stack=False)).reading().callgraph
    chain = critical_path(callgraph, path)
    if not chain:
        assert score(callgraph.graph.nodes[callgraph.root]["cost"], path) == 0
        return
    assert chain[0] == callgraph.root
    assert callgraph.graph.nodes[chain[-1]]["node"].kind == "cost_centre"
    assert all(callgraph.graph.has_edge(*step) for step in itertools.pairwise(chain))


@pytest.mark.lengthy
@examples(12, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_node_of_two_runs_is_compared_once_and_both_ways_alike(script, data):
    before, after = (data.draw(programs(script, one_stack=False)).reading().callgraph for _ in "ab")
    pairs = match(before, after)
    assert sorted(old for old, _ in pairs if old) == sorted(before.graph)
    assert sorted(new for _, new in pairs if new) == sorted(after.graph)
    assert {(old, new) for new, old in match(after, before)} == set(pairs)
    assert all(old == new for old, new in match(before, before))
    first, second = map(book_graph, (before, after))
    forth, back = compare(first, second), compare(second, first)
    for quantity in QUANTITIES:
        assert forth.whole.change(quantity) == -back.whole.change(quantity)
    assert {node.status for node in compare(second, second).nodes} == {"same"}
    assert json.dumps(as_data(forth))
