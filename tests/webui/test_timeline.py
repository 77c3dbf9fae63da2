"""The view "Timeline" in a real browser."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Trace
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

pytestmark = pytest.mark.browser

STEPS = 3000


@pytest.fixture(scope="module")
def long_trace():
    """Four processes and 3000 supersteps: in the second half process 2 computes three times as
    long as the others; superstep 700 takes a hundred times as long as the others."""
    made = Script(4)
    first = (frame("main", 1, 5), frame("even", 10, 12))
    second = (frame("main", 1, 6), frame("uneven", 20, 22))
    for turn in range(STEPS):
        work_s = np.full(4, 1e-3 if turn != 700 else 0.1)
        if turn >= STEPS // 2:
            work_s[2] *= 3
        sends = [(0, 1, 100)] if turn % 2 else []
        step(made, first if turn < STEPS // 2 else second, work_s, 0, 1e-4, sends)
    return Trace((run_of(made, program="long.py"),))


@pytest.fixture(scope="module")
def _opened(_shared_tab, long_trace, served, show):
    with served(long_trace) as url:
        show(_shared_tab.page, url, "view=timeline")
        yield


@pytest.fixture
def timeline(tab, go, _opened):
    """Shows the timeline with a state; gives its canvas once it is drawn.

    Unless the state says otherwise, its colours are the losses by superstep.
    """

    def timeline(state="", usual="axis=superstep&layer=loss"):
        tab.mouse.move(0, 0)
        chosen = "&".join(word for word in usual.split("&") if word.split("=")[0] not in state)
        go(tab, f"view=timeline&{chosen}&{state}")
        expect(tab.locator("canvas.heat[aria-busy=false]")).to_be_visible()
        return tab.locator("canvas.heat")

    return timeline


LEFT, RIGHT, BOTTOM = 58, 12, 30
"""Width of what is beside and below the heat map, in pixels."""


def spot(canvas, part, row, rows=4, strips=2):
    """Position on the canvas of a part (0 to 1) of the axis, in the middle of a row."""
    box = canvas.bounding_box()
    top = 16 + 50 * strips
    y = top + (row + 0.5) / rows * (box["height"] - BOTTOM - top)
    return {"x": LEFT + part * (box["width"] - LEFT - RIGHT), "y": y}


def at(canvas, part, row, **more):
    """The same on the page, for the mouse."""
    box, position = canvas.bounding_box(), spot(canvas, part, row, **more)
    return box["x"] + position["x"], box["y"] + position["y"]


def pixel(canvas, x, y):
    """Colour of a pixel of the canvas, once what was asked for has been drawn."""
    canvas.page.evaluate("() => new Promise(done => requestAnimationFrame(() => done()))")
    return canvas.evaluate(PIXEL, [x, y])


PIXEL = """(canvas, [x, y]) => {
  const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, x, y, 1, 1, 0, 0, 1, 1);
  return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


def is_red(colour):
    return colour[0] > colour[1] + 40


def seen(url):
    """The part of the axis that is seen, as the address has it."""
    found = re.search(r"span=([\d.]+),([\d.]+)", url)
    return tuple(map(float, found.groups())) if found else (0, STEPS)


def readout(tab):
    return tab.locator(".timeline .readout")


def axis_of_time(tab):
    """The choice of the axis; the shades of the graph have a choice of the same name."""
    return tab.get_by_role("radiogroup", name="Axis").get_by_role("radio", name="time", exact=True)


def test_colour_and_axis_are_chosen_and_back_undoes_it(tab, timeline):
    canvas = timeline()
    assert is_red(pixel(canvas, **spot(canvas, 0.8, 2)))
    tab.get_by_role("radio", name="idle", exact=True).check(force=True)
    assert is_red(pixel(canvas, **spot(canvas, 0.8, 1)))
    assert not is_red(pixel(canvas, **spot(canvas, 0.8, 2))), "others wait for it"
    axis_of_time(tab).check(force=True)
    assert "axis=superstep" not in tab.url, "time is the usual axis"
    assert "layer=idle" in tab.url
    expect(tab.locator(".timeline .ramp")).to_contain_text("idle time, of the time")
    tab.go_back()
    expect(tab.get_by_role("radio", name="supersteps", exact=True)).to_be_checked()
    tab.go_back()
    expect(tab.get_by_role("radio", name="loss", exact=True).last).to_be_checked()


def test_it_opens_on_time_with_what_each_process_used_it_for(tab, timeline):
    canvas = timeline(usual="")
    expect(tab.get_by_role("radio", name="account", exact=True)).to_be_checked()
    expect(axis_of_time(tab)).to_be_checked()
    legend = tab.locator(".stacks-legend li")
    expect(legend).to_contain_text(["useful computation", "imbalance of computation"])
    colour = legend.first.locator(".part-swatch").evaluate(
        "swatch => getComputedStyle(swatch).backgroundColor.match(/\\d+/g).map(Number)"
    )
    assert pixel(canvas, **spot(canvas, 0.9, 2, strips=1)) == colour, "the straggler computes"
    tab.mouse.move(*at(canvas, 0.9, 1, strips=1))
    expect(readout(tab)).to_contain_text("imbalance of computation 6")
    other = pixel(canvas, **spot(canvas, 0.2, 1, strips=1))
    assert other == colour, "nobody waits in the first half"


@pytest.mark.parametrize("axis", ["superstep", "time"])
def test_one_superstep_is_shown_over_the_whole_width(tab, timeline, axis):
    canvas = timeline(f"axis={axis}", usual="layer=account")
    strips = 1 if axis == "time" else 2
    is_fine = re.compile("one in each" if axis == "superstep" else "µs in each")
    tab.mouse.move(*at(canvas, 0.5, 0, strips=strips))
    for _ in range(2):
        tab.keyboard.press("z")
        expect(canvas).to_have_attribute("aria-description", is_fine)
    length = 1 if axis == "superstep" else 3.1e-3
    tab.wait_for_url(lambda url: np.diff(seen(url)) == pytest.approx(length, rel=0.01))
    if axis == "time":
        for part, what in ((0.2, "useful computation"), (0.6, "imbalance of computation")):
            tab.mouse.move(*at(canvas, part, 0, strips=1))
            expect(readout(tab)).to_contain_text(f"{what} 100%")


def test_the_wheel_zooms_and_a_finer_window_is_asked_for(tab, timeline):
    canvas = timeline()
    tab.mouse.move(*at(canvas, 0.5, 0))
    with tab.expect_request(re.compile("timeline.json.*low=")):
        for _ in range(4):
            tab.mouse.wheel(0, -400)
    tab.wait_for_url(lambda url: 0 < seen(url)[0] < 1500 < seen(url)[1] < 3000)
    tab.keyboard.press("0")
    tab.wait_for_url(re.compile("^[^=]*view=timeline&axis=superstep&layer=loss$"))


def test_dragging_with_shift_restricts_the_run_to_a_range_of_supersteps(tab, timeline):
    canvas = timeline("span=0,100")
    tab.keyboard.down("Shift")
    tab.mouse.move(*at(canvas, 0.205, 1))
    tab.mouse.down()
    tab.mouse.move(*at(canvas, 0.455, 1), steps=4)
    tab.mouse.up()
    tab.keyboard.up("Shift")
    tab.wait_for_url(re.compile("brush=20,45"))
    expect(tab.locator("#detail")).to_contain_text("26 supersteps")
    expect(tab.locator("#brushed")).to_contain_text("Only supersteps 20 to 45")
    tab.keyboard.press("Escape")
    expect(tab.locator("#detail")).to_contain_text("1,500 supersteps")


def test_enter_selects_what_the_cursor_is_at_and_a_click_on_waiting_what_is_waited_for(
    tab, timeline
):
    timeline("span=1495,1505")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    expect(readout(tab)).to_contain_text("Superstep 1,496, process 1")
    for _ in range(6):
        tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    expect(tab.locator("#detail h2")).to_have_text("line 22")
    canvas = timeline("span=2000,2010")
    tab.mouse.move(*at(canvas, 0.55, 0))
    expect(readout(tab)).to_contain_text("waits: a click goes to the process and line")
    tab.mouse.click(*at(canvas, 0.55, 0))
    expect(readout(tab)).to_contain_text("Superstep 2,005, process 2")
    expect(tab.locator("#detail h2")).to_have_text("line 22")
