"""The view "Traffic" in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Trace
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def ring_trace():
    """Four processes: a ring under ``ring``, a fan-in that takes long under ``collect``, and a
    fan-out under ``spread``."""
    made = Script(4)
    ring = (frame("main", 1, 5), frame("ring", 10, 12))
    collect = (frame("main", 1, 6), frame("collect", 20, 22))
    spread = (frame("main", 1, 7), frame("spread", 30, 33))
    for size in (1000, 2000, 4000, 8000):
        sends = [(pid, (pid + 1) % 4, size) for pid in range(4)]
        step(made, ring, [1e-3] * 4, 0, size * 1e-8 + 1e-5, sends)
    step(made, collect, [1e-3] * 4, 0, 5e-3, [(pid, 0, 1000) for pid in (1, 2, 3)])
    step(made, spread, [1e-3] * 4, 0, 4e-5, [(0, pid, 1000) for pid in (1, 2, 3)])
    return Trace((run_of(made, program="ring.py"),))


@pytest.fixture(scope="module")
def ring_url(ring_trace, served):
    with served(ring_trace) as url:
        yield url


@pytest.fixture
def traffic(tab, go, ids, ring_trace, ring_url, show):
    """Shows the traffic of a node, with more of a state."""

    def traffic(title, state=""):
        if not tab.url.startswith(ring_url):  # other tests show other runs
            show(tab, ring_url, "view=traffic")
        tab.mouse.move(0, 0)
        go(tab, f"view=traffic&node={ids(ring_trace)[title]}{state}")
        expect(tab.locator(".traffic .beside h2")).to_have_text(f"Traffic of {title}")
        return tab.locator("canvas.matrix")

    return traffic


LEFT, TOP, BARS = 46, 38, 73
"""Pixels of the canvas beside the cells, and those of the bars right of them."""


def at(canvas, row, column, size=4):
    """Position of the middle of a cell on the page; 1.2 times the size is in the bars."""
    box = canvas.bounding_box()
    side = min(460, box["width"] - LEFT - BARS)
    return (
        box["x"] + LEFT + (column + 0.5) / size * side,
        box["y"] + TOP + (row + 0.5) / size * side,
    )


def readout(tab):
    return tab.locator(".beside .readout")


def test_hovering_a_cell_tells_processes_bytes_and_messages(tab, traffic):
    canvas = traffic("main")
    tab.mouse.move(*at(canvas, 1, 2))
    expect(readout(tab)).to_contain_text("From process 1 to process 2")
    expect(readout(tab)).to_contain_text("15.0 kB in 4 messages, 23% of all")


def test_hovering_and_clicking_a_point_tells_and_selects_its_cost_centre(tab, traffic):
    traffic("main")
    centres = tab.get_by_role("table", name="Cost centres that depart most")
    expect(centres.get_by_role("row").nth(1)).to_contain_text(re.compile(r"line 22.*\+4\.\d+ ms"))
    scatter = tab.locator("canvas.scatter")
    scatter.scroll_into_view_if_needed()
    box = scatter.bounding_box()
    highest = highest_mark(scatter)
    tab.mouse.move(box["x"] + highest["x"], box["y"] + highest["y"] + 4)
    text = tab.locator(".scatter-part > .readout")
    expect(text).to_contain_text("Superstep 4")
    expect(text).to_contain_text("h 3.00 kB, fan-in")
    tab.mouse.down()
    tab.mouse.up()
    expect(tab.locator("#detail h2")).to_have_text("line 22")


def highest_mark(canvas):
    """Position of the highest pixel in the colour of fan-in."""
    script = """canvas => {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] > 150 && data[i] > 140 && data[i + 2] < 60) {
          return { x: i / 4 % canvas.width, y: Math.floor(i / 4 / canvas.width) };
        }
      }
    }"""
    return canvas.evaluate(script)


@pytest.mark.slow
def test_a_run_without_time_of_communication_says_so(tab, served, show):
    made = Script(2)
    step(made, (frame("main", 1, 5),), [1e-3] * 2, 0, 0, [(0, 1, 8)])
    with served(Trace((run_of(made),))) as url:
        show(tab, url, "view=traffic")
        expect(tab.locator(".scatter-part")).to_contain_text("No superstep of this run took time")
        expect(tab.locator("canvas.scatter")).to_be_hidden()


@pytest.mark.slow
def test_of_many_processes_blocks_are_shown(tab, served, show):
    made = Script(200)
    sends = [(pid, (pid + 1) % 200, 10) for pid in range(200)]
    step(made, (frame("main", 1, 5),), [1e-3] * 200, 0, 1e-4, sends)
    with served(Trace((run_of(made),))) as url:
        show(tab, url, "view=traffic")
        canvas = tab.locator("canvas.matrix")
        expect(tab.locator(".beside .ramp")).to_be_visible()
        canvas.focus()
        tab.keyboard.press("ArrowRight")
        expect(readout(tab)).to_contain_text("From processes 0 to 1 to processes 0 to 1")
