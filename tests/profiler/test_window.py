from __future__ import annotations

import pytest

from bsplib.errors import UsageError
from bsplib.profiler.callgraph import build
from bsplib.profiler.costs import h_relation
from bsplib.profiler.window import restricted


@pytest.fixture
def program(script):
    """Three supersteps of two processes; sub-groups, nested twice, in the second one."""
    program = script(2)
    program.step("main first", w=[1, 2], puts=[(0, 1, 8)])
    with program.partition(2) as (outer,):
        with program.partition(1, 1, group=outer) as (left, right):
            program.step("main inner", w=70, group=left)
            program.step("main inner", w=50, group=right)
            program.step("main inner", w=5, group=right)
        program.step("main outer", w=7, group=outer, gets=[(0, 1, 3)])
    program.step("main second", w=[10, 40], puts=[(1, 0, 5)])
    program.step("main third", w=[3, 4], puts=[(0, 1, 100)])
    return program


def test_a_range_keeps_its_supersteps_with_all_their_sub_groups(program):
    part = restricted(program.run(), 1, 1)
    assert part.records["group"].tolist() == [2, 3, 3, 1, 1, 0, 0]
    graph = build(part).graph
    names = {node.name for _, node in graph.nodes(data="node") if node.kind == "function"}
    assert names == {"main", "inner", "outer", "second"}


def test_the_traffic_of_a_range_still_belongs_to_the_records_that_asked(program):
    h_out, h_in = h_relation(restricted(program.run(), 1, 2))
    assert h_out.tolist() == [0, 0, 0, 3, 0, 0, 5, 100, 0]
    assert h_in.tolist() == [0, 0, 0, 0, 3, 5, 0, 0, 100]


def test_costs_of_the_parts_of_a_run_add_up_to_those_of_the_whole(program):
    run = program.run()

    def comp(part):
        callgraph = build(part)
        return callgraph.graph.nodes[callgraph.root]["cost"].comp.maximum

    assert comp(restricted(run, 0, 0)) + comp(restricted(run, 1, 2)) == pytest.approx(comp(run))


def test_a_falling_range_is_refused_with_its_numbers(program):
    with pytest.raises(UsageError, match="from 2 to 1"):
        restricted(program.run(), 2, 1)
