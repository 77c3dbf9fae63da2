from __future__ import annotations

import re

import numpy as np
import pytest
from click.testing import CliRunner

import bsplib
from bsplib.apps.broadcast import broadcast
from bsplib.profiler.callgraph import build
from bsplib.recording.trace import read_trace

ONESTAGE, TWOSTAGE = 3, 5
SIZE = 64


@pytest.mark.parametrize(
    ("nprocs", "backend"),
    [
        *((1, "shm"), (3, "shm"), (16, "sim")),
        *(pytest.param(nprocs, "shm", marks=pytest.mark.slow) for nprocs in (2, 16)),
    ],
)
@pytest.mark.parametrize("size", [1, 15, 16, 1000])
@pytest.mark.parametrize(("onestage", "twostage"), [(1, 0), (0, 2)])
def test_every_process_gets_the_values_of_process_0(nprocs, backend, size, onestage, twostage):
    results = bsplib.run(broadcast.main, size, onestage, twostage, nprocs=nprocs, backend=backend)
    assert len(results) == nprocs
    for values in results:
        assert np.array_equal(values, broadcast.reference(size))


def test_without_a_broadcast_the_others_have_nothing():
    first, second = bsplib.run(broadcast.main, 4, 0, 0, nprocs=2)
    assert (first.tolist(), second.tolist()) == ([0, 1, 2, 3], [0, 0, 0, 0])


# -- the call graph of Figure 3 ------------------------------------------------------------------


class Graph:
    """A call graph, by the names of its functions and the order of its cost centres."""

    def __init__(self, run):
        self.graph = build(run).graph
        nodes = dict(self.graph.nodes(data="node"))
        self.ids = {node.name: name for name, node in nodes.items() if node.kind == "function"}
        self.centres = {
            function: sorted(
                (child for child in self.graph.successors(name) if nodes[child].kind != "function"),
                key=lambda child: nodes[child].line,
            )
            for function, name in self.ids.items()
        }

    def of(self, function):
        return self.graph.nodes[self.ids[function]]["cost"]

    def at(self, function, number):
        return self.graph.nodes[self.centres[function][number]]["cost"]


@pytest.fixture(scope="module", params=["shm", "sim"])
def graph(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("broadcast") / "trace.bsp"
    bsplib.run(
        broadcast.main, SIZE, ONESTAGE, TWOSTAGE, nprocs=16, profile=path, backend=request.param
    )
    return Graph(read_trace(path).runs[0])


@pytest.mark.lengthy
def test_main_calls_foo_and_bar_and_these_the_broadcasts(graph):
    names = {name: function for function, name in graph.ids.items()}
    calls = {
        (names[caller], names[callee]) for caller, callee in graph.graph.edges if callee in names
    }
    assert calls == {
        ("main", "foo"),
        ("main", "bar"),
        ("foo", "bcast_onestage"),
        ("bar", "bcast_onestage"),
        ("bar", "bcast_twostage"),
    }


def test_the_h_relation_of_one_stage_reads_as_in_the_paper(graph):
    cost = graph.of("bcast_onestage")
    assert cost.count == 2 * ONESTAGE
    assert cost.h.maximum == 2 * ONESTAGE * 15 * SIZE * 8
    assert cost.h.percentages() == (12, 7)  # 2/16 = 12.5 and 1/15, half to even


def test_the_second_superstep_of_two_stages_is_in_balance(graph):
    first, second = graph.at("bcast_twostage", 0), graph.at("bcast_twostage", 1)
    assert (first.count, second.count) == (TWOSTAGE, TWOSTAGE)
    assert first.h.percentages() == (12, 7)
    assert second.h.percentages() == (100, 100)
    assert first.h.maximum == second.h.maximum == TWOSTAGE * 15 * (SIZE // 16) * 8


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def command():
    def run(*args):
        return CliRunner().invoke(broadcast.command, [*map(str, args)])

    return run


def test_the_command_says_what_it_did(command):
    result = command("--nprocs", 3, "--size", 10, "--onestage", 1, "--twostage", 2)
    assert result.exit_code == 0, result.output
    assert result.output == "4 broadcasts of 10 values reached 3 processes\n"


def test_the_command_records(command, tmp_path):
    path = tmp_path / "trace.bsp"
    result = command(
        "--nprocs", 2, "--size", 4, "--onestage", 1, "--twostage", 1, "--profile", path
    )
    assert result.exit_code == 0, result.output
    (run,) = read_trace(path).runs
    assert run.nprocs == 2
    assert run.meta["main"] == "main"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--size", 0), ("--size", -1), ("--onestage", -1), ("--twostage", -1), ("--nprocs", 0)],
)
def test_numbers_that_cannot_be_are_refused(command, option, value):
    result = command(option, value)
    assert result.exit_code == 2
    assert re.search(rf"Invalid value for .*'{option}'", result.output)
