"""The header, the tabs, the function bar and the side panels, in a real browser."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

import bsplib
from bsplib import webui
from bsplib.profiler import format as fmt
from bsplib.profiler.account import PARTS, TITLES
from bsplib.profiler.book import LOST
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.recording.records import Trace
from bsplib.recording.trace import read_trace

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", name="show")
def _show(show):
    """Most tests here need no page of their own."""
    return partial(show, fresh=False)


def ids(trace, run=0):
    """Node ids by name."""
    return {node.name: name for name, node in build(trace.runs[run]).graph.nodes(data="node")}


def test_a_page_opens_on_loss_with_the_end_of_its_path_selected(tab, broadcast_url, show):
    show(tab, broadcast_url)
    expect(tab.locator("h1")).to_have_text("bcast.py")
    expect(tab.get_by_role("radio", name="loss")).to_be_checked()
    expect(tab.locator("#detail h2")).to_have_text("line 18")
    expect(tab.get_by_role("tab", selected=True)).to_have_text("Graph")


def test_a_view_is_chosen_by_its_number_and_back_undoes_it(tab, broadcast_url, show):
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


def test_tabs_are_walked_by_arrow_keys(tab, broadcast_url, show):
    show(tab, broadcast_url)
    tab.get_by_role("tab", name="Graph").focus()
    tab.keyboard.press("ArrowLeft")
    expect(tab.get_by_role("tab", selected=True)).to_have_text("Compare")
    expect(tab.get_by_role("tab", name="Compare")).to_be_focused()


def test_the_address_holds_path_and_node_by_their_names(
    tab, broadcast_url, broadcast_trace, show, unfold_paths
):
    show(tab, broadcast_url)
    unfold_paths(tab)
    tab.get_by_role("radio", name="idle time, relative imbalance").check(force=True)
    tab.locator("#chain").get_by_role("button", name="main").click()
    assert f"node={ids(broadcast_trace)['main']}" in tab.url
    show(tab, *tab.url.split("#"), fresh=True)
    expect(tab.locator("#detail h2")).to_have_text("main")
    expect(tab.locator("#legend .title")).to_have_text("idle time, relative imbalance")


def test_an_address_that_names_nothing_shows_the_default(tab, broadcast_url, show):
    for state in (
        *("run=9", "metric=nonsense", "node=n99", "run=x&metric=&node=", "view=none&zoom=1"),
        *("metric=__proto__&node=toString", "trace=7", "edge=a.b&brush=x,y"),
    ):
        show(tab, broadcast_url, state)
        expect(tab.locator("#detail h2")).to_have_text("line 18")
        expect(tab.get_by_role("tab", selected=True)).to_have_text("Graph")
        expect(tab.locator("#status")).to_have_text("")


def test_the_side_panels_fold_by_key(tab, broadcast_url, show):
    show(tab, broadcast_url)
    for key, side in ("[", "#left"), ("]", "#right"):
        expect(tab.locator(side)).to_be_visible()
        before = tab.locator("#main").bounding_box()["width"]
        tab.keyboard.press(key)
        expect(tab.locator(side)).to_be_hidden()
        assert tab.locator("#main").bounding_box()["width"] > before + 100
        tab.keyboard.press(key)
        expect(tab.locator(side)).to_be_visible()


def test_a_side_panel_is_as_wide_as_it_is_dragged(tab, broadcast_url, show):
    show(tab, broadcast_url)
    before = tab.locator("#right").bounding_box()["width"]
    grip = tab.locator("#right-grip").bounding_box()
    tab.mouse.move(grip["x"] + 2, 400)
    tab.mouse.down()
    tab.mouse.move(grip["x"] - 98, 400, steps=3)
    tab.mouse.up()
    assert tab.locator("#right").bounding_box()["width"] == pytest.approx(before + 100, abs=2)
    tab.locator("#right-grip").focus()
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#right").bounding_box()["width"] == pytest.approx(before + 84, abs=2)


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


def test_the_help_lists_every_shortcut(tab, broadcast_url, show):
    show(tab, broadcast_url)
    tab.keyboard.press("?")
    listed = tab.locator("#help dt").all_inner_texts()
    assert {"t", "?", "1", "6", "[", "]"} <= {key.strip() for key in listed}
    tab.keyboard.press("Escape")
    expect(tab.locator("#help")).to_be_hidden()


@pytest.mark.slow
def test_several_runs_and_traces_can_be_switched(
    tab, several_runs_trace, broadcast_trace, served, show
):
    with served(several_runs_trace, broadcast_trace) as url:
        show(tab, url)
        tab.get_by_label("Run", exact=True).select_option(index=2)
        expect(tab.locator(".facts")).to_contain_text("8 processes")
        expect(tab.get_by_role("alert")).to_contain_text("AbortError: it was enough.")
        assert "run=2" in tab.url
        tab.get_by_label("Trace", exact=True).select_option(index=1)
        expect(tab.locator(".facts")).to_contain_text("16 processes")
        expect(tab.get_by_role("alert")).to_be_hidden()
        tab.go_back()
        expect(tab.locator(".facts")).to_contain_text("8 processes")


def test_the_saved_page_works_without_server_and_network(
    open_tab, several_runs_trace, tmp_path, show
):
    out = tmp_path / "profile.html"
    webui.write_html(several_runs_trace, out)
    tab = open_tab()
    tab.context.set_offline(True)
    tab.context.route(re.compile("^https?:"), lambda route: route.abort())
    show(tab, out.as_uri(), "metric=h-imb")
    expect(tab.locator("#legend .title")).to_have_text("h-relation, absolute imbalance")
    tab.get_by_label("Run", exact=True).select_option(index=2)
    expect(tab.locator(".facts")).to_contain_text("8 processes")
    tab.evaluate("location.hash += '&library=1'")
    expect(tab.locator("#status")).to_contain_text("bsp view shows them")


@pytest.mark.slow
def test_a_trace_without_runs_says_so(tab, served):
    with served(Trace(())) as url:
        tab.goto(url)
        expect(tab.locator("#status")).to_have_text("The trace has no runs.")


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


def test_a_loss_that_happened_once_is_shown_in_the_timeline(tab, run_maker, frame, served, show):
    maker = run_maker(4)
    for number in range(20):
        work_s = [1e-3, 1e-3, 0.1 if number == 7 else 1e-3, 1e-3]
        maker.step((frame("main", 1, 2),), work_s)
    with served(Trace((maker.run(),))) as url:
        show(tab, url)
        tab.locator("#verdict button").first.click()
        expect(tab.get_by_role("tab", selected=True)).to_have_text("Timeline")


def test_a_click_in_the_function_bar_shows_the_scores_of_that_path(
    tab, broadcast_url, show, unfold_paths
):
    show(tab, broadcast_url)
    expect(tab.locator("#paths input")).to_have_count(29)
    unfold_paths(tab)
    tab.get_by_role("radio", name="h-relation, absolute", exact=True).check(force=True)
    expect(tab.locator("#legend")).to_contain_text("h-relation, absolute in MB")
    expect(tab.locator("#chain .score").first).to_have_text("6.75 MB")
    assert tab.locator("#legend .limits span").all_text_contents() == [
        "0", "0.27", "1.1", "2.4", "4.4", "6.8",
    ]  # fmt: skip


def test_the_panel_says_what_is_booked_at_a_node_by_part(tab, broadcast_url, broadcast_trace, show):
    node = ids(broadcast_trace)["bcast_twostage"]
    booked = book_graph(build(broadcast_trace.runs[0])).nodes[node]
    show(tab, broadcast_url, f"node={node}")
    rows = tab.locator("#detail .booked tbody tr").all_inner_texts()
    parts = [
        [TITLES[name], seconds, seconds if part in LOST else ""]
        for part, name in enumerate(PARTS)
        if booked.parts[part]
        for seconds in [fmt.seconds(booked.part_s(part))]
    ]
    whole = ["in all", fmt.seconds(booked.time_s), fmt.seconds(booked.loss_s)]
    assert [row.split("\t") for row in rows] == [*parts, whole]


def test_callers_and_callees_are_listed_with_the_part_that_came_through(
    tab, broadcast_url, broadcast_trace, show
):
    graph = build(broadcast_trace.runs[0]).graph
    names = ids(broadcast_trace)
    show(tab, broadcast_url, f"metric=comp-abs&node={names['bcast_onestage']}")
    callers = tab.get_by_role("region", name="Called by").locator("li")
    part = graph.edges[names["foo"], names["bcast_onestage"]]["cost"]
    expect(callers.filter(has_text="foo").locator(".part")).to_have_text(
        fmt.summary(part.comp, "comp")
    )
    expect(tab.get_by_role("region", name="Calls").locator("li")).to_have_count(1)
    callers.filter(has_text="foo").locator(".part").click()
    expect(tab.locator("#detail .through")).to_have_text("the part called by foo")
    callers.filter(has_text="foo").locator(".name").click()
    expect(tab.locator("#detail h2")).to_have_text("foo")


def with_sub_groups(bsp):
    bsp.charge(1e-3)
    bsp.sync()
    with bsp.partition([1, 2]) as sub:
        for _ in range(3 - bsp.pid):
            sub.sync()
    bsp.sync()


def test_the_header_counts_supersteps_as_main_does(tab, served, show, tmp_path):
    path = tmp_path / "groups.bsp"
    bsplib.run(with_sub_groups, nprocs=2, backend="sim", profile=path)
    with served(read_trace(path)) as url:
        show(tab, url)
        expect(tab.locator(".facts")).to_contain_text("5 supersteps, 3 of them in sub-groups")
        expect(tab.locator("#detail")).to_contain_text("5 supersteps")


def test_both_panels_are_drawers_where_a_view_would_have_little_room(open_tab, broadcast_url, show):
    tab = open_tab(width=1099, height=800)
    show(tab, broadcast_url)
    for side in ("left", "right"):
        expect(tab.locator(f"#{side}")).to_be_hidden()
        tab.locator(f"#open-{side}").click()
        expect(tab.locator(f"#{side}")).to_be_visible()
        tab.keyboard.press("Escape")
    tab.set_viewport_size({"width": 1100, "height": 800})
    for side in ("left", "right"):
        expect(tab.locator(f"#{side}")).to_be_visible()
        expect(tab.locator(f"#open-{side}")).to_be_hidden()


def test_a_grip_says_how_wide_its_panel_is(tab, broadcast_url, show):
    show(tab, broadcast_url)
    grip = tab.get_by_role("separator", name="Width of the left panel")
    before = int(grip.get_attribute("aria-valuenow"))
    assert before == round(tab.locator("#left").bounding_box()["width"])
    grip.press("ArrowLeft")
    expect(grip).to_have_attribute("aria-valuenow", str(before - 16))
    assert int(grip.get_attribute("aria-valuemin")) < before
    assert int(grip.get_attribute("aria-valuemax")) > before


def test_the_header_says_with_what_a_run_is_compared(tab, broadcast_trace, served, show):
    with served(broadcast_trace, broadcast_trace, names=("after.bsp", "before.bsp")) as url:
        show(tab, url)
        chosen = tab.get_by_label("Compare with").locator("option:checked")
        expect(chosen).to_contain_text("compared with before.bsp, run 1: 16 processes")
