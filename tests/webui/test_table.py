"""The view "Table" in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import rates_of_run
from bsplib.profiler.window import restricted

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def _opened(_shared_tab, broadcast_url, show):
    show(_shared_tab.page, broadcast_url, "view=table")


@pytest.fixture
def table(tab, go, _opened):
    """Shows the table with a state."""

    def table(state=""):
        go(tab, f"view=table&{state}")
        expect(rows(tab).first).to_be_visible()
        return tab.get_by_role("grid")

    return table


def rows(tab):
    return tab.locator(".rows tbody tr[data-node]")


def names(tab):
    return rows(tab).locator(".node-name").all_inner_texts()


def graph(trace):
    """Cost by name of node."""
    nodes = build(trace.runs[0]).graph.nodes(data=True)
    return {data["node"].name: data["cost"] for _, data in nodes}


SORTED_BY = {"computation": "comp", "supersteps": "sync"}


def test_it_begins_with_the_greatest_loss_and_a_column_sorts_it(tab, table, broadcast_trace):
    grid = table()
    losses = rows(tab).locator(".of-loss > span:nth-child(2)").all_inner_texts()
    assert names(tab)[0] == "main"
    assert names(tab)[1:3] == ["bcast_onestage", "line 18"]
    assert [text.split()[1] for text in losses[:3]] == ["ms"] * 3
    sizes = [float(text.split()[0]) for text in losses if text.endswith(" ms")]
    assert sizes == sorted(sizes, reverse=True)
    expect(grid.locator("[aria-sort]")).to_have_text(re.compile("loss"))
    row = rows(tab).filter(has=tab.locator(".node-name", has_text=re.compile("^foo$")))
    expect(row.locator(".of-comp")).to_contain_text(re.compile(r"195 ms\s*\(\d+% \| \d+%\)"))
    expect(row.locator(".of-sync")).to_have_text("5")
    costs = graph(broadcast_trace)
    for title, key in SORTED_BY.items():
        grid = table()
        by_name = {
            name.removeprefix("bcast.py "): cost.count if key == "sync" else cost[key].maximum
            for name, cost in costs.items()
        }
        grid.get_by_role("button", name=title).click()
        expect(grid.locator("[aria-sort=descending]")).to_have_text(re.compile(title))
        assert f"sort={key}" in tab.url
        falling = [by_name[name.removesuffix(" (end)")] for name in names(tab)]
        assert falling == sorted(falling, reverse=True)
        grid.get_by_role("button", name=title).click()
        expect(grid.locator("[aria-sort=ascending]")).to_have_text(re.compile(title))
        rising = [by_name[name.removesuffix(" (end)")] for name in names(tab)]
        assert rising == sorted(rising)
        tab.go_back()
        expect(grid.locator("[aria-sort=descending]")).to_be_visible()


def test_a_click_and_arrows_select_rows_which_are_marked_and_back_undoes_it(tab, table):
    grid = table("sort=name")
    chosen = rows(tab).and_(tab.locator("[aria-selected=true]"))
    rows(tab).filter(has_text="bcast_twostage").click()
    expect(tab.locator("#detail h2")).to_have_text("bcast_twostage")
    expect(chosen).to_contain_text("bcast_twostage")
    tab.go_back()
    expect(tab.locator("#detail h2")).to_have_text("line 18")
    rows(tab).first.click()
    tab.keyboard.press("ArrowDown")
    expect(grid).to_be_focused()
    second = names(tab)[1]
    active = grid.get_attribute("aria-activedescendant")
    expect(tab.locator(f"#{active} .node-name")).to_have_text(second)
    expect(tab.locator("#detail h2")).to_have_text(second)
    tab.keyboard.press("End")
    expect(tab.locator("#detail h2")).to_have_text("main")


def test_what_a_range_waits_for_from_before_is_a_row_of_its_own(tab, table, broadcast_trace):
    table()
    expect(tab.locator(".table tfoot")).to_have_count(0)
    table("brush=1,2")
    run = broadcast_trace.runs[0]
    book = book_graph(build(restricted(run, 1, 2)), rates_of_run(run))
    row = tab.locator(".table .rows tfoot tr")
    expect(row.locator("th")).to_have_text("before these supersteps")
    expect(row.locator(".of-time")).to_have_text(fmt.seconds(book.book.before.time_s))
