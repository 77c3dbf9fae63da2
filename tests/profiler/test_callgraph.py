from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import Summary, build
from bsplib.sync_kinds import Kind


def test_equations_2_to_5_of_jarvis_on_two_passes_by_three_processes(script):
    program = script(3)
    program.step("main:7", w=[6, 3, 0])
    program.step("main:7", w=[1, 2, 6])
    reading = program.reading()
    maximum = 6 + 6  # equation 2: greatest of each pass, summed
    average = (6 + 3 + 0) / 3 + (1 + 2 + 6) / 3  # equation 3
    minimum = 0 + 1  # equation 4
    assert reading.ns("app.py line 7") == (maximum, average, minimum)
    assert reading.cost("app.py line 7").count == 2
    assert reading.pie_ns("app.py line 7") == [7, 5, 6]
    assert max(reading.pie_ns("app.py line 7")) == 7  # equation 5: less than equation 2


def test_nodes_say_what_they_are_in_the_order_of_the_call_tree(script):
    program = script(1)
    program.step("main foo:34")
    program.step("main bar:56", kind=Kind.OBLSYNC)
    program.step("main src/bsp.py/foo:35")
    nodes = [node for _, node in program.reading().callgraph.graph.nodes(data="node")]
    assert [(node.kind, node.name, node.file, node.line, node.sync) for node in nodes] == [
        ("function", "main", "app.py", 1, ""),
        ("function", "foo", "app.py", 11, ""),
        ("cost_centre", "app.py line 34", "app.py", 34, "sync"),
        ("function", "bar", "app.py", 21, ""),
        ("cost_centre", "app.py line 56", "app.py", 56, "oblsync"),
        ("function", "foo", "src/bsp.py", 11, ""),
        ("cost_centre", "bsp.py line 35", "src/bsp.py", 35, "sync"),
    ]


def test_balanced_processes_have_no_imbalance_of_rounding(script):
    program = script(3)
    for _ in range(1000):
        program.step("main", w=100_000_001)
    comp = program.reading().cost("main").comp
    assert comp.maximum == comp.average == comp.minimum


def test_a_run_without_records_has_a_root_that_cost_nothing(script):
    callgraph = build(script(2).run())
    assert list(callgraph.graph) == [callgraph.root]
    nothing = Summary(0, 0, 0, (0, 0))
    cost = callgraph.graph.nodes[callgraph.root]["cost"]
    assert (cost.count, cost.elapsed_s, cost.comp, cost.h) == (0, 0, nothing, nothing)


def test_stacks_that_begin_differently_get_one_root_above_them(script):
    program = script(2)
    program.step(["one deep:15", "two:25"], w=[3, 5])
    program.step("<genexpr>:35")
    reading = program.reading()
    assert reading.callgraph.graph.nodes[reading.callgraph.root]["node"].file == ""
    assert reading.edges() == {
        "main > one",
        "one > deep",
        "deep > app.py line 15",
        "main > two",
        "two > app.py line 25",
        "main > app.py line 35",
    }
    assert reading.ns("main") == (5, 4, 3)


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (Summary(8, 1, 0, ()), (12, 0)),  # 12.5 to the even 12
        (Summary(8, 3, 1, ()), (38, 12)),  # 37.5 to the even 38
        (Summary(200, 3, 1, ()), (2, 0)),  # 1.5 and 0.5
        (Summary(8e-9, 3e-9, 1e-9, ()), (38, 12)),  # halves in spite of binary seconds
        (Summary(3, 3, 3, ()), (100, 100)),
        (Summary(0, 0, 0, ()), (100, 100)),
    ],
)
def test_percentages_are_of_the_maximum_and_round_half_to_even(summary, expected):
    assert summary.percentages() == expected
