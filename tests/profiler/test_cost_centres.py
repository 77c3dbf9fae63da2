"""Leaves of the call graph: lines of the program, whatever bsplib called below them."""

from __future__ import annotations

import numpy as np
import pytest

from bsplib.profiler.callgraph import build
from bsplib.sync_kinds import Kind
from tests.recordings import record_run

ALLREDUCE = "bsplib/collectives.py/Collectives.allreduce:90 bsplib/collectives.py/_fold:95"


def leaves(callgraph):
    nodes = callgraph.graph.nodes(data="node")
    return [node for _, node in nodes if node.kind == "cost_centre"]


def test_frames_of_the_library_are_shown_on_demand(script):
    program = script(1)
    program.step(f"main {ALLREDUCE}", w=7)
    callgraph = build(program.run(), library=True)
    names = [node.name for _, node in callgraph.graph.nodes(data="node")]
    assert names == ["main", "Collectives.allreduce", "_fold", "collectives.py line 95"]


def test_ids_depend_on_nothing_but_the_node_itself(script):
    program, other = script(1), script(1)
    for written in (program, other):
        written.first_lines = {"main": 1, "foo": 11, "bar": 21}
    program.step("main foo")
    other.step("main bar")
    other.step("main foo", kind=Kind.OBLSYNC)
    other.step("main foo")
    reading, another = program.reading(), other.reading()
    assert reading.ids["foo"] == another.ids["foo"]
    ids = [node.id for _, node in another.callgraph.graph.nodes(data="node")]
    assert len(set(ids)) == 6  # the two kinds of sync on one line differ
    assert all(name.isidentifier() for name in ids)


COLLECTIVES = {
    "broadcast": lambda bsp: bsp.broadcast(1),
    "gather": lambda bsp: bsp.gather(1),
    "allgather": lambda bsp: bsp.allgather(1),
    "scatter": lambda bsp: bsp.scatter([1] * bsp.nprocs),
    "alltoall": lambda bsp: bsp.alltoall([1] * bsp.nprocs),
    "reduce": lambda bsp: bsp.reduce(1),
    "allreduce": lambda bsp: bsp.allreduce(np.ones(9)),
    "scan": lambda bsp: bsp.scan(1),
    "split": lambda bsp: bsp.split(bsp.pid % 2).done(),
    "oblsync": lambda bsp: bsp.oblsync(0),
}


def recorded_leaves(main, folder):
    path = folder / "trace.bsp"
    run = record_run(path, main, nprocs=3, backend="sim")
    return [leaf for leaf in leaves(build(run)) if leaf.sync != "end"]


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_primitive_that_ends_supersteps_is_named_at_its_line(name, tmp_path):
    program = COLLECTIVES[name]
    line = f"test_cost_centres.py line {program.__code__.co_firstlineno}"
    shown = line if name == "oblsync" else f"{line} · {name}"
    assert {leaf.name for leaf in recorded_leaves(program, tmp_path)} == {shown}
