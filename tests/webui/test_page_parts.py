"""The header, the tabs, the function bar and the side panels, in a real browser."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from bsplib import webui

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", name="show")
def _show(show):
    """Most tests here need no page of their own."""
    return partial(show, fresh=False)


def test_keys_choose_a_view_and_fold_the_side_panels(tab, broadcast_url, show):
    show(tab, broadcast_url)
    chosen = tab.get_by_role("tab", selected=True)
    for key in "2", "6":
        tab.keyboard.press(key)
        expect(chosen).not_to_have_text("Graph")
        expect(tab.get_by_role("tabpanel")).to_have_attribute(
            "aria-labelledby", chosen.get_attribute("id")
        )
        tab.go_back()
        expect(chosen).to_have_text("Graph")
    for key, side in ("[", "#left"), ("]", "#right"):
        expect(tab.locator(side)).to_be_visible()
        before = tab.locator("#main").bounding_box()["width"]
        tab.keyboard.press(key)
        expect(tab.locator(side)).to_be_hidden()
        assert tab.locator("#main").bounding_box()["width"] > before + 100
        tab.keyboard.press(key)
        expect(tab.locator(side)).to_be_visible()


def test_in_a_narrow_window_the_side_panels_are_drawers(open_tab, broadcast_url, show):
    tab = open_tab(width=390, height=844)
    show(tab, broadcast_url)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    expect(tab.locator("#left")).to_be_hidden()
    tab.get_by_role("button", name="Costs").click()
    expect(tab.locator("#left")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.locator("#left")).to_be_hidden()
    tab.get_by_role("button", name="Node", exact=True).click()
    expect(tab.locator("#right h2")).to_be_visible()
    tab.mouse.click(20, 400)
    expect(tab.locator("#right")).to_be_hidden()


@pytest.mark.slow
def test_several_runs_and_traces_can_be_switched(
    tab, several_runs_trace, broadcast_trace, served, show
):
    with served(several_runs_trace, broadcast_trace) as url:
        show(tab, url)
        expect(tab.locator(".facts")).to_contain_text("8 processes")  # of the last run
        expect(tab.get_by_role("alert")).to_contain_text("AbortError: it was enough.")
        tab.get_by_label("Run", exact=True).select_option(index=0)
        expect(tab.locator(".facts")).to_contain_text("4 processes")
        assert "run=0" in tab.url
        tab.get_by_label("Trace", exact=True).select_option(index=1)
        expect(tab.locator(".facts")).to_contain_text("16 processes")
        expect(tab.get_by_role("alert")).to_be_hidden()
        tab.go_back()
        expect(tab.locator(".facts")).to_contain_text("4 processes")


def test_the_saved_page_works_without_server_and_network(
    open_tab, several_runs_trace, tmp_path, show, ids
):
    out = tmp_path / "profile.html"
    webui.write_html(several_runs_trace, out, machines=["ibm-sp2-pvm"])
    tab = open_tab()
    tab.context.set_offline(True)
    tab.context.route(re.compile("^https?:"), lambda route: route.abort())
    show(tab, out.as_uri(), "metric=h-imb&g=1e-6")
    expect(tab.locator("#legend .title")).to_have_text("h-relation, absolute imbalance")
    tab.get_by_label("Run", exact=True).select_option(index=0)
    expect(tab.locator(".facts")).to_contain_text("4 processes")
    tab.keyboard.press("m")
    panel = tab.get_by_role("dialog", name="Machine")
    expect(panel.locator(".saved")).to_contain_text("saved to a file with the Machines above")
    for name in "g in ns", "l in µs", "speed in x":
        expect(panel.get_by_label(name)).to_be_disabled()
    expect(panel.get_by_label("Machine").locator("option")).to_have_count(2)
    expect(panel).not_to_contain_text("with these figures")
    panel.get_by_label("Machine").select_option("IBM SP2, PVM")
    expect(panel).to_contain_text("with these figures")
    expect(tab.get_by_role("button", name="Library")).to_have_count(0)
    show(tab, out.as_uri(), f"run=0&hidden={ids(several_runs_trace)['bcast_onestage']}", fresh=True)
    expect(tab.locator(".stage[data-nodes='7']")).to_be_attached()
    boxes = tab.locator(".node .shape").evaluate_all(
        "shapes => shapes.map(s => s.getBoundingClientRect())"
        ".map(b => [b.x, b.y, b.right, b.bottom])"
    )
    for number, (left, top, right, bottom) in enumerate(boxes):
        for x, y, end, below in boxes[:number]:
            assert right <= x or end <= left or bottom <= y or below <= top
    tab.evaluate("location.hash += '&library=1'")
    expect(tab.locator("#status")).to_contain_text("bsp view shows them")


def test_the_theme_goes_from_the_system_s_to_light_and_dark(open_tab, broadcast_url, show):
    tab = open_tab()
    show(tab, broadcast_url)
    seen = []
    for _ in range(3):
        tab.keyboard.press("t")
        seen.append(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(set(seen)) == 2
    assert seen[0] == seen[2] != seen[1]


def test_the_verdict_opens_with_its_first_sentence_and_a_click_shows_where(
    tab, broadcast_url, show
):
    show(tab, broadcast_url, "metric=h-imb")
    sentences = tab.locator("#verdict li")
    expect(sentences.first).to_contain_text("are lost in bcast_onestage")
    rest = tab.locator("#verdict .rest")
    expect(rest).to_be_hidden()
    tab.locator("#verdict .more").click()
    expect(rest).to_be_visible()
    tab.locator("#chain button").first.click()
    expect(tab.locator("#detail h2")).to_have_text("main")
    sentences.first.get_by_role("button").click()
    expect(tab.locator("#detail h2")).to_have_text("line 18")
