"""The ledger: costs and losses are booked once, at the right places, and add up."""

from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import Rates

NS = 1e-9
FREE = Rates(g=0.0, l=0.0)
PRICED = Rates(g=1e-9, l=10e-9)


def booked(reading, place, rates=FREE):
    """What is booked for a node ``foo`` or an edge ``main > foo``."""
    ledger = book_graph(reading.callgraph, rates)
    ids = [reading.ids[name] for name in place.split(" > ")]
    return ledger.nodes[ids[0]] if len(ids) == 1 else ledger.edges[tuple(ids)]


def test_computation_goes_to_the_line_where_the_slowest_process_ended_the_superstep(script):
    program = script(4)
    program.step(["main heavy", *["main light"] * 3], w=[100, 20, 40, 40])
    reading = program.reading()
    assert booked(reading, "heavy").comp_s == pytest.approx(100 * NS)
    assert booked(reading, "heavy").loss_s == pytest.approx(50 * NS)
    assert booked(reading, "light").time_s == 0


def test_bytes_go_to_the_process_with_the_greatest_h_and_l_to_that_with_the_greatest_w(script):
    program = script(4)
    stacks = ["main root", "main worker", "main others", "main others"]
    puts = [(pid, 0, 8) for pid in (1, 2, 3)]
    program.step(stacks, w=[1, 5, 1, 1], puts=puts)
    reading = program.reading()
    root, worker = (booked(reading, name, PRICED) for name in ("root", "worker"))
    assert (root.comm_s, root.sync_s) == (pytest.approx(24 * NS), 0)
    assert root.lost_comm_s == pytest.approx((24 - (24 + 3 * 8) / 4) * NS)
    assert (worker.comm_s, worker.sync_s) == (0, pytest.approx(10 * NS))


def test_of_equal_processes_the_lowest_pid_is_blamed(script):
    program = script(3)
    program.step(["main zero", "main one", "main one"], w=[5, 9, 9])
    program.step(["main one", "main two", "main two"], w=[9, 9, 9])
    reading = program.reading()
    assert booked(reading, "one").comp_s == pytest.approx(18 * NS)


def test_the_rule_for_h_decides_what_bytes_cost(script):
    program = script(2)
    program.step("main", w=1, puts=[(0, 1, 10), (1, 0, 10)])
    reading = program.reading()
    assert booked(reading, "main", Rates(1e-9, 0)).comm_s == pytest.approx(10 * NS)
    assert booked(reading, "main", Rates(1e-9, 0, "sum")).comm_s == pytest.approx(20 * NS)


def test_the_stretch_after_the_last_sync_pays_no_l(script):
    program = script(2)
    program.step("main", w=1)
    program.step("main", w=1, kind=2)
    assert booked(program.reading(), "main", PRICED).sync_s == pytest.approx(10 * NS)


def unequal_groups(script):
    program = script(4)
    with program.partition(1, 3) as (small, large):
        program.step("main left", w=100, group=small)
        program.step("main right", w=[30, 40, 50], group=large)
    program.step("main join", w=10)
    return program.reading()


def test_of_sub_groups_side_by_side_only_the_one_that_costs_most_is_booked(script):
    reading = unequal_groups(script)
    assert booked(reading, "left").time_s == pytest.approx(100 * NS)
    assert booked(reading, "right").time_s == 0
    assert booked(reading, "main").time_s == pytest.approx(110 * NS)


def test_what_the_others_wait_for_a_sub_group_is_a_loss_of_the_superstep_of_the_parent(script):
    reading = unequal_groups(script)
    lost = 100 - (100 + 3 * 50) / 4
    assert booked(reading, "join").lost_groups_s == pytest.approx(lost * NS)
    assert booked(reading, "main").loss_s == pytest.approx(lost * NS)


def test_the_rates_choose_the_sub_group_that_costs_most(script):
    program = script(2)
    with program.partition(1, 1) as (few, many):
        program.step("main few", w=50, group=few)
        for _ in range(4):
            program.step("main many", w=1, group=many)
    program.step("main")
    reading = program.reading()
    assert booked(reading, "few").time_s == pytest.approx(50 * NS)
    assert booked(reading, "many").time_s == 0
    dear = Rates(0, 100e-9)
    assert booked(reading, "few", dear).time_s == 0
    assert booked(reading, "many", dear).time_s == pytest.approx(404 * NS)


def test_nested_sub_groups_count_only_inside_groups_that_are_booked(script):
    program = script(4)
    with program.partition(2, 2) as (slow, fast):
        program.step("main slow", w=100, group=slow)
        with program.partition(1, 1, group=fast) as (one, two):
            program.step("main one", w=30, group=one)
            program.step("main two", w=10, group=two)
        program.step("main fast", w=1, group=fast)
    program.step("main")
    reading = program.reading()
    assert booked(reading, "one").time_s == 0
    assert booked(reading, "fast").loss_s == 0


def test_processes_that_rest_wait_for_a_sub_group_too(script):
    program = script(4)
    with program.split([0]) as (alone,):
        program.step("main solo", w=100, group=alone)
    program.step("main")
    assert booked(program.reading(), "main").loss_s == pytest.approx(75 * NS)


def test_an_edge_has_the_part_that_came_through_it(script):
    program = script(2)
    program.step("main foo shared", w=[30, 10])
    program.step("main bar shared", w=[50, 50])
    reading = program.reading()
    assert booked(reading, "foo > shared").time_s == pytest.approx(30 * NS)
    assert booked(reading, "bar > shared").time_s == pytest.approx(50 * NS)
    assert booked(reading, "shared").time_s == pytest.approx(80 * NS)
    assert booked(reading, "foo > shared").loss_s == pytest.approx(10 * NS)


def test_the_path_follows_the_greatest_loss_and_not_the_greatest_cost(script):
    program = script(2)
    program.step("main large", w=[1000, 1000])
    program.step("main small uneven", w=[100, 0])
    reading = program.reading()
    ledger = book_graph(reading.callgraph, FREE)
    names = reading.chain(ledger.path())
    assert names.startswith("main > small > uneven > ")
    shades = ledger.shades()
    assert shades[reading.ids["uneven"]] == pytest.approx((50 / 1100) ** 0.5)
    assert shades[reading.ids["large"]] == 0


def test_where_nothing_is_lost_there_is_no_path(script):
    program = script(2)
    program.step("main", w=5)
    assert book_graph(program.reading().callgraph, FREE).path() == []


def test_a_run_without_records_costs_nothing(script):
    ledger = book_graph(build(script(2).run()))
    assert (ledger.main.time_s, ledger.main.loss_s, ledger.losses) == (0, 0, ())
    assert ledger.verdict().balanced


@pytest.fixture(scope="session")
def leaves():
    def of(callgraph):
        graph = callgraph.graph
        return [node for node in graph if graph.out_degree(node) == 0]

    return of


def test_costs_and_losses_of_the_leaves_add_up_to_the_run(script, leaves):
    program = script(4)
    for number in range(5):
        program.step("main foo leaf:5", w=[number, 2, 3, 4], puts=[(0, 1, number)])
        with program.partition(1, 3) as (small, large):
            program.step("main bar", w=7 * number, group=small)
            program.step("main bar baz", w=[30, 4, number], group=large, puts=[(1, 2, 9)])
        program.step("main foo", w=[1, 2, 3, number])
    callgraph = program.reading().callgraph
    ledger = book_graph(callgraph, PRICED)
    booked_leaves = [ledger.nodes[node] for node in leaves(callgraph)]
    assert sum(part.time_s for part in booked_leaves) == pytest.approx(ledger.main.time_s)
    assert sum(part.loss_s for part in booked_leaves) == pytest.approx(ledger.main.loss_s)
    listed = sum(loss.ns for loss in ledger.losses if loss.is_lost)
    assert listed == ledger.main.loss_ns
