"""The page prices a run at any rates exactly as bsplib.profiler.losses does."""

from __future__ import annotations

import pytest

from bsplib.profiler.callgraph import build
from bsplib.profiler.losses import book
from bsplib.profiler.rates import Rates, rates_of_run
from bsplib.webui import books, services
from bsplib.webui.services import describe_graph

pytestmark = pytest.mark.browser


@pytest.fixture
def priced(tab, broadcast_url, described):
    """Price a run in a browser: the result of ``price`` in pricing.js."""
    tab.goto(broadcast_url)

    def price(callgraph, rates):
        script = (
            "([run, rates]) => import('./static/pricing.js').then((it) => it.price(run, rates))"
        )
        return tab.evaluate(script, [described(callgraph), vars(rates)])

    return price


@pytest.fixture
def described(monkeypatch):
    """The data of the page, without layouts."""
    monkeypatch.setattr(services, "lay_out", lambda *_: {})
    return describe_graph


def divided_run(script):
    """Sub-groups of unequal cost, of which the rates decide which costs most."""
    program = script(6)
    for number in range(6):
        program.step("main work", w=[9, 1, 2, 3, 4, 5 * number], puts=[(0, 1, 50 * number)])
        with program.partition(2, 4) as (left, right):
            program.step("main left", w=[900, 100], group=left)
            for _ in range(3):
                program.step("main right", w=[10, 30, 20, 5], group=right, puts=[(2, 3, 400)])
            with program.partition(1, 3, group=right) as (one, three):
                program.step("main right inner", w=60, group=one)
                program.step("main right inner:77", w=[1, 2, 40], group=three)
            program.step("main right", w=1, group=right)
        program.step("main", w=1)
    return program.run()


def spread_run(script):
    """Small losses in many places below one function."""
    program = script(2)
    program.step("main", w=100)
    for number in range(40):
        program.step(f"main solve inner{number}", w=[10, 0])
    return program.run()


RATES = [
    Rates(0.0, 0.0),
    Rates(1e-9, 1e-7),
    Rates(5e-8, 1e-9, "sum", 0.5),
    Rates(1e-12, 1e-5, "max", 3.0),
]


@pytest.mark.parametrize("name", ["broadcast", "tree", "divided", "spread"])
def test_the_page_prices_as_the_profiler_does(priced, run_of, name):
    callgraph = build(run_of(name))
    for rates in RATES:
        ledger = book(callgraph, rates)
        page = priced(callgraph, rates)
        assert (page["cost"], page["lost"]) == pytest.approx((ledger.cost_s, ledger.lost_s))
        for part, booked in (("nodes", ledger.nodes), ("edges", ledger.edges)):
            shown = [(item["cost"], item["lost"]) for item in page[part]]
            expected = [(item.cost_s, item.lost_s) for item in booked.values()]
            assert shown == [pytest.approx(pair) for pair in expected]
        ids = list(callgraph.graph)
        path = ledger.path()
        assert [ids[node] for node in page["chain"]] == path
        through = [ledger.onward(path[:depth])[path[depth]] for depth in range(1, len(path))]
        assert page["chainLost"][1:] == pytest.approx([booked.lost_s for booked in through])


@pytest.mark.parametrize("name", ["broadcast", "tree", "divided", "spread"])
def test_the_page_adds_up_the_account_as_the_profiler_does(
    tab, broadcast_url, described, run_of, name
):
    callgraph = build(run_of(name))
    data = described(callgraph)
    tab.goto(broadcast_url)
    script = (
        "run => import('./static/pricing.js').then((it) => "
        "run.account.parts.map((part) => it.summedUp(run, part.origins).nodes[run.root]))"
    )
    account = book(callgraph).account
    covered = account.by_process().sum(axis=1) - account.outside.sum(axis=1)
    assert tab.evaluate(script, data) == pytest.approx(
        (covered / 1e9 / account.run.nprocs).tolist()
    )


def test_of_too_many_groups_those_at_the_default_rates_are_booked(
    priced, described, run_of, monkeypatch
):
    callgraph = build(run_of("divided"))
    rates = rates_of_run(callgraph.run)
    whole = priced(callgraph, rates)
    monkeypatch.setattr(books, "MOST_CELLS", 0)
    summed = priced(callgraph, rates)
    assert len(described(callgraph)["books"]["groups"]["parent"]) == 1
    assert summed["cost"] == pytest.approx(whole["cost"])
    assert [node["lost"] for node in summed["nodes"]] == pytest.approx(
        [node["lost"] for node in whole["nodes"]]
    )


@pytest.fixture(scope="module")
def run_of(broadcast_trace, tree_run, script):
    runs = {
        "broadcast": broadcast_trace.runs[0],
        "tree": tree_run(40),
        "divided": divided_run(script),
        "spread": spread_run(script),
    }
    return runs.__getitem__
