"""The account of a run by node: times and losses are booked once, at their root, and add up."""

from __future__ import annotations

import pytest

from bsplib.profiler.account import IMBALANCE, LATENCY, TRANSFER_IMBALANCE, TRANSFERS
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import Rates

NS = 1e-9
FREE = Rates(g=0.0, l=0.0)
PRICED = Rates(g=1e-9, l=10e-9)


def booked(reading, place, rates=FREE):
    """What is booked for a node ``foo`` or an edge ``main > foo``."""
    graph_book = book_graph(reading.callgraph, rates)
    ids = [reading.ids[name] for name in place.split(" > ")]
    return graph_book.nodes[ids[0]] if len(ids) == 1 else graph_book.edges[tuple(ids)]


def test_uneven_bytes_go_to_the_process_with_the_greatest_h_and_l_to_each_process(script):
    program = script(4)
    stacks = ["main root", "main worker", "main others", "main others"]
    puts = [(pid, 0, 8) for pid in (1, 2, 3)]
    program.step(stacks, w=[1, 5, 1, 1], puts=puts)
    reading = program.reading()
    root, worker, others = (booked(reading, name, PRICED) for name in ("root", "worker", "others"))
    assert root.part_s(TRANSFERS) == pytest.approx(24 / 4 * NS)
    assert root.part_s(TRANSFER_IMBALANCE) == pytest.approx(3 * (24 - 8) / 4 * NS)
    assert worker.part_s(TRANSFERS) == pytest.approx(8 / 4 * NS)
    assert worker.loss_s == worker.part_s(IMBALANCE) == pytest.approx(3 * (5 - 1) / 4 * NS)
    assert others.loss_s == 0
    by_node = [each.part_s(LATENCY) for each in (root, worker, others)]
    assert by_node == pytest.approx([10 / 4 * NS, 10 / 4 * NS, 20 / 4 * NS])


def test_the_rates_decide_which_sub_group_the_others_wait_for(script):
    program = script(2)
    with program.partition(1, 1) as (few, many):
        program.step("main few", w=50, group=few)
        for _ in range(4):
            program.step("main many", w=1, group=many)
    program.step("main")
    reading = program.reading()
    few, many = (booked(reading, name) for name in ("few", "many"))
    assert few.loss_s == pytest.approx((50 - 4) / 2 * NS)
    assert (many.loss_s, many.time_s) == (0, pytest.approx(4 / 2 * NS))
    dear = Rates(0, 100e-9)
    few, many = (booked(reading, name, dear) for name in ("few", "many"))
    assert few.time_s == pytest.approx((50 + 100) / 2 * NS)
    waited = (4 + 4 * 100) - (50 + 100)  # for l, which is no loss
    assert many.time_s == pytest.approx((4 + 4 * 100 + waited) / 2 * NS)
    assert booked(reading, "main", dear).loss_s == 0


def test_the_path_follows_the_greatest_loss_and_not_the_greatest_time(script):
    program = script(2)
    program.step("main large", w=[1000, 1000])
    program.step("main small uneven", w=[100, 0])
    reading = program.reading()
    graph_book = book_graph(reading.callgraph, FREE)
    names = reading.chain(graph_book.path())
    assert names.startswith("main > small > uneven > ")
    shades = graph_book.shades()
    red = 1100 / 10  # a tenth of the time in main, which is more than any loss
    assert shades[reading.ids["uneven"]] == pytest.approx((50 / red) ** 0.5)
    assert shades[reading.ids["large"]] == 0
