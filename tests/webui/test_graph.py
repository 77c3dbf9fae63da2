"""The view of the graph in a real browser: layout, shades, filters, keys, tooltips."""

import re
from functools import partial

import pytest
from playwright.sync_api import expect

from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import build
from bsplib.recording.records import Trace

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", name="show")
def _show(show):
    """Most tests here need no page of their own."""
    return partial(show, fresh=False)


CHAIN = ["main", "bar", "bcast_onestage", "line 18"]


def drawn(tab):
    """Wait until the graph is drawn, and return its names, as they are written in the boxes."""
    expect(tab.locator(".stage[data-nodes]")).to_be_attached()
    return tab.locator(".node .title").all_text_contents()


def box(tab, name):
    return tab.locator(".node", has=tab.locator(f".title:text-is('{name}')"))


def open_graph(tab, url, state="", *, show, **options):
    show(tab, url, state, **options)
    return drawn(tab)


def count_nodes(tab, number):
    expect(tab.locator(f".stage[data-nodes='{number}']")).to_be_attached()


def test_a_box_says_its_value_and_another_metric_shades_and_labels_it_in_place(
    tab, broadcast_url, show, unfold_paths
):
    names = open_graph(tab, broadcast_url, "metric=h-imb&all=1", show=show)
    assert len(names) == 9
    node = box(tab, "bcast_onestage")
    expect(node.locator(".value")).to_have_text("5.25 MB")
    assert node.locator(".bars").get_attribute("d").count("M") == 16
    expect(node).to_have_attribute("aria-label", re.compile("bcast_onestage, 5.25 MB, on the crit"))
    node = box(tab, "line 41")
    before = node.bounding_box()
    assert fill(node) == "rgb(255, 255, 255)"
    expect(node).to_have_attribute("data-bin", "0")
    unfold_paths(tab)
    tab.get_by_role("radio", name="computation, absolute", exact=True).check(force=True)
    expect(node).not_to_have_attribute("data-bin", "0")
    assert fill(node) != "rgb(255, 255, 255)"
    expect(node.locator(".value")).to_have_text(re.compile(r"^\d+\.\d ms$"))
    assert node.bounding_box() == before


def fill(node):
    return node.locator(".shape").evaluate("shape => getComputedStyle(shape).fill")


def test_hovering_fades_what_is_not_related_and_a_click_selects_a_node_and_lights_its_paths(
    tab, broadcast_url, broadcast_trace, show, ids
):
    graph = build(broadcast_trace.runs[0]).graph
    cost = graph.nodes[ids(broadcast_trace)["bcast_twostage"]]["cost"]
    open_graph(tab, broadcast_url, show=show)
    box(tab, "bcast_twostage").hover()
    tooltip = tab.get_by_role("tooltip")
    expect(tooltip).to_contain_text("bcast_twostage")
    expect(tooltip).to_contain_text("/home/user/bcast.py:24")
    expect(tooltip).to_contain_text(f"h-relation {fmt.summary(cost.h, 'h')}")
    faded = tab.locator(".fading .node:not(.lit) .title").all_text_contents()
    assert set(faded) == {"foo", "bcast_onestage", "line 18"}
    tab.mouse.move(640, 5)
    expect(tooltip).to_be_hidden()
    expect(tab.locator(".fading")).to_have_count(0)
    box(tab, "foo").click()
    expect(tab.locator("#detail h2")).to_have_text("foo")
    assert "node=" in tab.url
    lit = set(tab.locator(".node.lit .title").all_text_contents())
    assert lit == {"main", "foo", "bcast_onestage", "line 18"}
    tab.go_back()
    expect(tab.locator("#detail h2")).to_have_text("line 18")


def test_an_edge_shows_the_part_of_its_caller_in_panel_and_address(
    tab, broadcast_url, broadcast_trace, show, ids
):
    names = ids(broadcast_trace)
    edge = f"{names['foo']}.{names['bcast_onestage']}"
    open_graph(tab, broadcast_url, f"edge={edge}", show=show)
    expect(tab.locator("#detail .through")).to_have_text("the part called by foo")
    expect(tab.locator("#detail")).to_contain_text("5 supersteps")
    expect(tab.locator(".line.chosen")).to_have_count(1)
    line = tab.locator(".line.chosen .grip")
    x, y = line.evaluate(
        "path => { const m = path.getPointAtLength(path.getTotalLength() / 2)"
        ".matrixTransform(path.getScreenCTM()); return [m.x, m.y]; }"
    )
    open_graph(tab, broadcast_url, show=show)
    tab.mouse.click(x, y)
    expect(tab.locator("#detail .through")).to_have_text("the part called by foo")
    assert f"edge={edge}" in tab.url
    open_graph(tab, broadcast_url, f"node={names['bcast_onestage']}", show=show)
    expect(tab.get_by_role("region", name="Calls").locator("li")).to_have_count(1)
    callers = tab.get_by_role("region", name="Called by").locator("li")
    callers.filter(has_text="foo").locator(".part").click()
    expect(tab.locator("#detail .through")).to_have_text("the part called by foo")


FILTERED = {
    "f": {"main", "foo", "bcast_onestage", "line 18"},
    "s": {"foo", "bcast_onestage", "line 18"},
    "h": {"main", "bar", *CHAIN[2:], "bcast_twostage", "line 34", "line 41"},
    "c": {"main", "foo", "bar", *CHAIN[2:], "bcast_twostage", "line 34", "line 41"},
}


def test_a_key_filters_the_graph_and_r_resets_it(tab, broadcast_url, broadcast_trace, show, ids):
    node = ids(broadcast_trace)["foo"]
    for key, names in FILTERED.items():
        everything = open_graph(tab, broadcast_url, f"node={node}", show=show)
        tab.keyboard.press(key)
        count_nodes(tab, len(names))
        assert set(drawn(tab)) == names
        address = tab.url
        tab.keyboard.press("r")
        count_nodes(tab, len(everything))
        assert set(open_graph(tab, *address.split("#"), show=show, fresh=True)) == names


def test_the_graph_is_walked_by_arrow_keys_and_enter_selects(tab, broadcast_url, show):
    open_graph(tab, broadcast_url, "metric=h-imb", show=show, fresh=True)  # nothing was walked to
    tab.locator("#bar button").last.focus()
    focused = "document.activeElement.querySelector('.title')?.textContent"
    tab.locator(".node[tabindex='0']").focus()
    assert tab.evaluate(focused) == "line 18"
    seen = set()
    for key in ["ArrowUp", "ArrowLeft"] * 4:
        tab.keyboard.press(key)
        seen.add(tab.evaluate(focused))
    assert "main" in seen
    expect(tab.locator(".node[tabindex='0']")).to_have_count(1)
    name = tab.evaluate(focused)
    tab.keyboard.press("Enter")
    expect(tab.locator("#detail h2")).to_have_text(name)


def transform(tab):
    return tab.locator(".drawing > g").get_attribute("transform")


def test_the_graph_is_moved_and_zoomed_and_the_address_follows(tab, broadcast_url, show):
    open_graph(tab, broadcast_url, show=show)
    whole = transform(tab)
    tab.mouse.move(600, 700)
    tab.mouse.wheel(0, -400)
    tab.wait_for_url(re.compile("zoom="))
    zoomed = tab.url
    tab.mouse.down()
    tab.mouse.move(650, 720, steps=3)
    tab.mouse.up()
    expect(tab.locator("#detail h2")).to_have_text("line 18")  # nothing was selected
    tab.wait_for_function("before => location.href !== before", arg=zoomed)
    moved = transform(tab)
    assert moved != whole
    open_graph(tab, *tab.url.split("#"), show=show, fresh=True)
    before, after = (list(map(float, re.findall(r"-?[\d.]+", t))) for t in (moved, transform(tab)))
    assert after == pytest.approx(before, abs=1)
    tab.keyboard.press("0")
    assert transform(tab) == whole
    tab.keyboard.press("+")
    assert transform(tab) != whole


def letters(tab):
    """Sizes in pixels of all letters in the boxes that are seen."""
    return tab.locator(".node text").evaluate_all(
        "texts => texts.filter(t => t.getBoundingClientRect().width > 0)"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
    )


def inside(tab):
    """Whether all boxes lie inside the view."""
    return tab.evaluate(
        """() => {
          const stage = document.querySelector(".stage").getBoundingClientRect();
          return [...document.querySelectorAll(".node .shape")].every((shape) => {
            const box = shape.getBoundingClientRect();
            return box.left >= stage.left && box.right <= stage.right
              && box.top >= stage.top && box.bottom <= stage.bottom;
          });
        }"""
    )


COVERED_BADGES = """() => {
  const meet = (a, b) => a.left < b.right && b.left < a.right
    && a.top < b.bottom && b.top < a.bottom;
  const shapes = [...document.querySelectorAll(".node .shape")];
  return [...document.querySelectorAll(".badge")].filter((badge) => shapes.some((shape) =>
    shape.parentElement !== badge.parentElement
      && meet(badge.getBoundingClientRect(), shape.getBoundingClientRect())))
    .map((badge) => badge.textContent);
}"""


@pytest.mark.slow
def test_a_large_graph_opens_readable_on_the_greatest_loss_and_says_what_is_folded(
    tab, tree_run, served, show
):
    with served(Trace((tree_run(300),))) as url:
        open_graph(tab, url, show=show)
        assert min(letters(tab)) >= 11
        expect(tab.locator(".note")).to_contain_text("of 300 nodes are not shown")
        selected = tab.locator("#detail h2").text_content()
        expect(box(tab, selected)).to_be_in_viewport()
        shown = int(tab.locator(".stage").get_attribute("data-nodes"))
        assert 80 <= shown < 130
        assert tab.locator(".badge").count() > 10
        assert tab.evaluate(COVERED_BADGES) == []
        tab.get_by_role("button", name="Show all", exact=True).click()
        assert inside(tab)
        expect(tab.locator(".node .value").first).to_be_hidden()
        expect(tab.locator(".node .far").first).to_be_visible()


def test_hostile_names_are_shown_as_text_and_run_nothing(tab, hostile_trace, served, show):
    with served(hostile_trace) as url:
        open_graph(tab, url, "all=1", show=show)
        titles = tab.locator(".node .title").all_text_contents()
        assert "<b>html?</b>" in titles
        for node in tab.locator(".node").all():
            node.dispatch_event("click")
            title = node.locator(".title").text_content().removesuffix("…")
            expect(tab.locator("#detail h2")).to_contain_text(title)
        expect(tab.locator("main script, aside script, main img, aside img, h1 *")).to_have_count(0)
        expect(tab.locator("h1")).to_contain_text("<script>alert('program')</script>")
