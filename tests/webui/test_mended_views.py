"""What once was drawn wrongly: nothing around a hidden node, empty frames, views cut on paper."""

from __future__ import annotations

import threading
from io import BytesIO

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

pytestmark = pytest.mark.browser


def drawn(tab):
    """Wait until the graph is drawn."""
    expect(tab.locator(".stage[data-nodes]")).to_be_attached()


def box(tab, name):
    return tab.locator(".node", has=tab.locator(f".title:text-is('{name}')"))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["s", "f"])
def test_what_is_shown_from_a_hidden_node_is_not_empty(
    tab, broadcast_url, broadcast_trace, show, ids, key
):
    leaf = ids(broadcast_trace)["bcast.py line 18"]
    show(tab, broadcast_url, f"node={leaf}")
    drawn(tab)
    tab.keyboard.press("h")
    expect(box(tab, "line 18")).to_have_count(0)
    tab.keyboard.press(key)
    expect(box(tab, "line 18")).to_be_visible()
    tab.keyboard.press("h")  # hides the node around which the graph is shown
    expect(box(tab, "main")).to_be_visible()
    show(tab, broadcast_url, f"hidden={leaf}&from={leaf}")
    expect(box(tab, "line 18")).to_be_visible()


def test_while_a_run_is_read_the_page_says_so_and_shows_no_empty_frame(
    open_tab, broadcast_url, show
):
    tab = open_tab()
    read = threading.Event()

    def hold(route):
        held.append(route)
        read.set()

    held = []
    tab.route("**/runs/0.json*", hold)
    tab.goto(broadcast_url)
    expect(tab.locator("#status")).to_have_text("Reading the run …")
    expect(tab.locator("#body")).to_be_hidden()
    expect(tab.locator("#account")).to_be_hidden()
    tab.wait_for_function("() => document.querySelector('h1') !== null")
    while not held:
        tab.evaluate("() => new Promise(requestAnimationFrame)")
    held[0].continue_()
    expect(tab.locator("#body")).to_be_visible()
    expect(tab.locator("#status")).to_have_text("")


@pytest.mark.slow
def test_each_view_is_one_page_on_paper(open_tab, broadcast_trace, served, show):
    tab = open_tab()
    with served(broadcast_trace, broadcast_trace) as url:
        for view in "graph", "table", "timeline", "traffic", "source", "compare":
            show(tab, url, f"view={view}", fresh=False)
            expect(tab.locator(f"#view-{view} :is(svg, td, canvas, p)").first).to_be_visible()
            printed = tab.pdf(prefer_css_page_size=True)
            assert len(PdfReader(BytesIO(printed)).pages) == 1, view
