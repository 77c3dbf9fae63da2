from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import Cost, Summary
from bsplib.profiler.costs import METRICS
from bsplib.profiler.critical import PATHS, TITLES, critical_path, score, shades
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import Rates


@pytest.fixture
def cost():
    """A cost with maxima 8, 16, 24 and 32 and averages of three quarters of that."""
    return Cost(7, 1.0, *(Summary(8.0 * factor, 6.0 * factor, 1.0, ()) for factor in (1, 2, 3, 4)))


def test_there_are_seventeen_paths_each_with_a_title():
    assert len(PATHS) == 17
    assert PATHS[:5] == ("sync", "comp-abs", "comp-imb", "comp-rel", "comp-weighted")
    assert PATHS[5:10] == ("comm-abs", "comm-imb", "comm-rel", "comm-weighted", "idle-abs")
    assert PATHS[-4:] == ("h-abs", "h-imb", "h-rel", "h-weighted")
    assert tuple(TITLES) == PATHS
    assert len(set(TITLES.values())) == 17


@pytest.mark.parametrize(("factor", "metric"), list(enumerate(METRICS, start=1)))
def test_each_metric_is_scored_by_four_measures(cost, factor, metric):
    assert score(cost, f"{metric}-abs") == 8 * factor
    assert score(cost, f"{metric}-imb") == 2 * factor
    assert score(cost, f"{metric}-rel") == 0.25
    assert score(cost, f"{metric}-weighted") == 2 * factor * 0.25


@pytest.fixture
def lively(script):
    """A run in which `bad` is worse than `good` by every measure of every metric."""
    program = script(3)
    program.step("main good:15", w=[8, 9, 8], calls=[1, 1, 1], puts=[(0, 1, 2), (1, 2, 1)])
    for _ in range(3):
        program.step("main bad:25", w=[90, 5, 5], calls=[1, 30, 1], puts=[(0, 1, 90), (0, 2, 90)])
        program.step("main bad:26", w=2)
    return program


@pytest.mark.parametrize("path", PATHS)
def test_shades_are_square_roots_on_a_scale_that_means_something(lively, path):
    callgraph = lively.reading().callgraph
    costs = dict(callgraph.graph.nodes(data="cost"))
    metric, _, measure = path.partition("-")
    greatest = max(
        cost.count if path == "sync" else cost[metric].maximum for cost in costs.values()
    )
    whole = 1 if measure == "rel" else greatest
    shade = shades(callgraph, path)
    assert set(shade) == set(callgraph.graph)
    assert 0 < max(shade.values()) <= 1
    for name, value in shade.items():
        assert value == pytest.approx((score(costs[name], path) / whole) ** 0.5)


def test_measures_of_one_metric_lead_to_different_places(script):
    program = script(2)
    program.step("main much:15", w=[1000, 980])  # imbalance 10 of 1000
    program.step("main uneven:25", w=[16, 0])  # 8 of 16
    program.step("main skewed:35", w=[400, 360])  # 20 of 400
    reading = program.reading()
    chains = {
        path: reading.chain(critical_path(reading.callgraph, path)).split(" > ")[1]
        for path in ("comp-abs", "comp-imb", "comp-rel", "comp-weighted")
    }
    assert chains == {
        "comp-abs": "much",
        "comp-imb": "skewed",
        "comp-rel": "uneven",
        "comp-weighted": "uneven",
    }


def test_the_path_follows_the_greatest_loss_and_not_the_greatest_time(script):
    program = script(2)
    program.step("main large", w=[1000, 1000])
    program.step("main small uneven", w=[100, 0])
    reading = program.reading()
    graph_book = book_graph(reading.callgraph, Rates(g=0.0, l=0.0))
    names = reading.chain(graph_book.path())
    assert names.startswith("main > small > uneven > ")
    shades = graph_book.shades()
    red = 1100 / 10  # a tenth of the time in main, which is more than any loss
    assert shades[reading.ids["uneven"]] == pytest.approx((50 / red) ** 0.5)
    assert shades[reading.ids["large"]] == 0
