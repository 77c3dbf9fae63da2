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


def test_the_parts_of_a_shared_function_add_up_to_it_exactly(script):
    program = script(2)
    for _ in range(3):
        program.step("main foo bcast_onestage:9", w=[5, 2], puts=[(0, 1, 8)])
    for _ in range(4):
        program.step("main bar bcast_onestage:9", w=[1, 8], puts=[(1, 0, 6)])
    reading = program.reading()
    foo, bar = "foo > bcast_onestage", "bar > bcast_onestage"
    assert reading.ns(foo) == (3 * 5, 3 * 3.5, 3 * 2)
    assert reading.ns(bar) == (4 * 8, 4 * 4.5, 4 * 1)
    assert reading.ns("bcast_onestage") == (47, 28.5, 10)
    assert (reading.cost(foo).count, reading.cost(bar).count) == (3, 4)
    assert reading.cost("bcast_onestage").count == 7
    assert reading.h("bcast_onestage") == (3 * 8 + 4 * 6,) * 3
    assert reading.pie_ns(foo) == [15, 6]
    assert reading.pie_ns("bcast_onestage") == [19, 38]


def test_a_function_is_one_node_however_many_lines_of_it_call(script):
    program = script(1)
    program.step("main:3 foo:12")
    program.step("main:4 foo:12")
    reading = program.reading()
    assert reading.edges() == {"main > foo", "foo > app.py line 12"}
    assert reading.cost("foo").count == 2


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


def test_the_end_of_main_is_a_cost_centre_of_its_own_and_no_superstep(script):
    program = script(2)
    program.step("main:7", w=10)
    program.step("main:7", w=[3, 5], kind=Kind.END)
    callgraph = build(program.run())
    costs = {
        data["node"].sync: (data["cost"].count, data["cost"].comp.maximum)
        for _, data in callgraph.graph.nodes(data=True)
    }
    assert costs == {"": (1, 15e-9), "sync": (1, 10e-9), "end": (0, 5e-9)}


def test_mutual_recursion_counts_a_record_once_for_the_outermost_caller(script):
    program = script(1)
    program.step("main even odd even:15", w=4)
    program.step("main odd even odd:25", w=3)
    reading = program.reading()
    assert reading.ns("even") == reading.ns("odd") == (7, 7, 7)
    assert reading.ns("main > even") == reading.ns("even > odd") == (4, 4, 4)
    assert reading.ns("main > odd") == reading.ns("odd > even") == (3, 3, 3)
    assert reading.ns("even > app.py line 15") == (4, 4, 4)


@pytest.mark.parametrize("frame", ["<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"])
def test_comprehension_frames_are_dropped(script, frame):
    program = script(1)
    program.step(f"main main.<locals>.{frame} foo foo.<locals>.{frame}:34", w=4)
    assert program.reading().edges() == {"main > foo", "foo > app.py line 34"}


def test_nested_sub_groups_are_combined_from_the_inside_out(script):
    program = script(4)
    with program.partition(2, 2) as (left, right):
        with program.partition(1, 1, group=left) as (first, second):
            program.step("main solve:15", w=4, group=first)
            program.step("main solve:15", w=2, group=second)
            program.step("main solve:15", w=2, group=second)
            program.step("main solve:15", w=2, group=second)
        program.step("main solve:16", w=[1, 3], group=left)
        program.step("main solve:16", w=8, group=right)
    reading = program.reading()
    # inside left: sums 4 and 6, side by side (6, 5, 4); with line 16 of left (9, 7, 5)
    assert reading.ns("app.py line 15") == (6, (4 + 6) / 4, 0)  # right has nothing there
    assert reading.ns("solve") == (9, (4 + 6 + 1 + 3 + 8 + 8) / 4, 5)
    assert reading.cost("solve").count == 3 + 1
    assert reading.ns("app.py line 16") == (8, (1 + 3 + 8 + 8) / 4, 1)


def test_time_in_sub_groups_is_not_counted_twice(script):
    program = script(2)
    with program.partition(2) as (sub,):
        program.step("main solve", w=[100, 100], transfer=50, group=sub)
    program.step("main:9", w=[7, 3])
    reading = program.reading()
    assert reading.ns("app.py line 9") == (7, 5, 3)
    assert reading.ns("main") == (107, 105, 103)
    assert reading.ns("main", "comm") == (50, 50, 50)
    assert reading.cost("main").elapsed_s == pytest.approx(157e-9)


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
