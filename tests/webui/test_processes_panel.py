"""The panel of processes, in a real browser."""

import numpy as np
import pytest
from playwright.sync_api import expect

from bsplib.profiler.callgraph import build
from bsplib.recording.records import Trace
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

pytestmark = pytest.mark.browser

MS = 1e-3


def programs(nprocs):
    """Four functions: a fixed and a rotating straggler, even work, and one superstep."""
    made = Script(nprocs)
    work = {
        name: (frame("main", 1, line), frame(name, 10 * line, 10 * line + 1))
        for line, name in enumerate(("fixed", "rotating", "even", "single"), start=2)
    }
    some = np.arange(nprocs)
    for turn in range(nprocs):
        step(made, work["fixed"], np.where(some == 3, 4 * MS, MS), sends=[(3, 1, 1000)])
        step(made, work["rotating"], np.where(some == turn, 4 * MS, MS))
        step(made, work["even"], MS)
    step(made, work["single"], np.where(some == 2, 4 * MS, MS))
    return run_of(made)


@pytest.fixture(scope="module")
def trace():
    return Trace((programs(4), programs(40)))


@pytest.fixture(scope="module")
def url(trace, served):
    with served(trace) as url:
        yield url


@pytest.fixture
def look(tab, url, show, trace):
    """Shows the panel for a function of the program, with 4 processes or (run 1) 40."""

    def look(name, run=0, state=""):
        nodes = build(trace.runs[run]).graph.nodes(data="node")
        node = next(each.id for _, each in nodes if each.name == name)
        if tab.url.startswith(url):
            tab.evaluate("hash => { location.hash = hash; }", f"run={run}&node={node}&{state}")
        else:
            show(tab, url, f"run={run}&node={node}&{state}")
        expect(tab.locator("#detail h2")).to_have_text(name)
        return tab.locator("#processes")

    return look


def test_a_few_processes_are_a_pie_of_which_pointer_and_arrow_keys_tell_each_slice(tab, look):
    panel = look("fixed")
    expect(panel.locator(".slice")).to_have_count(4)
    expect(panel.locator(".slice.greatest")).to_have_attribute("data-pid", "3")
    expect(panel.locator(".readout")).to_have_text("process 3: 16.0 ms, 57% of all")
    expect(panel.locator(".by-pid")).to_have_count(0)
    panel.locator("[data-pid='0']").hover()
    expect(panel.locator(".readout")).to_have_text("process 0: 4.00 ms, 14% of all")
    chart = panel.get_by_role("slider", name="Process")
    chart.focus()
    tab.keyboard.press("ArrowRight")
    expect(panel.locator(".readout")).to_have_text("process 1: 4.00 ms, 14% of all")
    expect(chart).to_have_attribute("aria-valuenow", "1")
    expect(panel.locator(".marked")).to_have_attribute("data-pid", "1")
    tab.keyboard.press("End")
    tab.keyboard.press("ArrowRight")
    expect(chart).to_have_attribute("aria-valuetext", "process 3: 16.0 ms, 57% of all")


def test_many_processes_are_bars_by_pid(tab, look):
    panel = look("fixed", run=1)
    expect(panel.locator(".pie")).to_have_count(0)
    expect(panel.locator(".readout")).to_contain_text("process 3: 160 ms")
    box = panel.locator(".by-pid").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 20.5 / 40, box["y"] + 5)
    expect(panel.locator(".readout")).to_contain_text("process 20: 40.0 ms")
    columns = [path.get_attribute("d").count("M") for path in panel.locator(".bars").all()]
    assert columns == [39, 1]  # the straggler is apart
