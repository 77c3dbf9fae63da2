"""The panel of processes, in a real browser."""

import numpy as np
import pytest
from playwright.sync_api import expect

from bsplib.profiler.callgraph import build
from bsplib.recording.records import Trace
from bsplib.webui import services

pytestmark = pytest.mark.browser

MS = 1e-3


def programs(run_maker, frame, nprocs):
    """Four functions: a fixed and a rotating straggler, even work, and one superstep."""
    maker = run_maker(nprocs)
    work = {
        name: (frame("main", 1, line), frame(name, 10 * line, 10 * line + 1))
        for line, name in enumerate(("fixed", "rotating", "even", "single"), start=2)
    }
    some = np.arange(nprocs)
    for step in range(nprocs):
        maker.step(work["fixed"], np.where(some == 3, 4 * MS, MS), sends=[(3, 1, 1000)])
        maker.step(work["rotating"], np.where(some == step, 4 * MS, MS))
        maker.step(work["even"], MS)
    maker.step(work["single"], np.where(some == 2, 4 * MS, MS))
    return maker.run()


@pytest.fixture(scope="module")
def trace(run_maker, frame):
    return Trace((programs(run_maker, frame, 4), programs(run_maker, frame, 40)))


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


def sums(panel):
    return panel.locator("dl dd:not([aria-hidden])").all_inner_texts()


def test_a_few_processes_are_a_pie_with_a_slice_each(look):
    panel = look("fixed")
    expect(panel.locator(".slice")).to_have_count(4)
    expect(panel.locator(".slice.greatest")).to_have_attribute("data-pid", "3")
    expect(panel.locator(".readout")).to_have_text("process 3: 16.0 ms, 57% of all")
    expect(panel.locator(".sorted")).to_have_count(0)


def test_the_sum_of_maxima_stands_beside_the_maximum_of_sums_and_the_average(look):
    panel = look("fixed")
    assert sums(panel) == ["16.0 ms", "16.0 ms", "7.00 ms"]
    panel = look("rotating")
    assert sums(panel) == ["16.0 ms", "7.00 ms", "7.00 ms"]
    panel = look("even")
    assert sums(panel) == ["4.00 ms"] * 3
    expect(panel.locator(".greatest")).to_have_count(0)


def test_another_metric_is_chosen_in_the_panel(tab, look, unfold_paths):
    panel = look("fixed")
    expect(panel.get_by_role("button", name="comp", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    panel.get_by_role("button", name="h", exact=True).click()
    expect(panel.locator(".readout")).to_have_text("process 1: 4.00 kB, 50% of all")
    assert sums(panel) == ["4.00 kB", "4.00 kB", "2.00 kB"]
    panel.get_by_role("button", name="comm", exact=True).click()
    unfold_paths(tab)
    tab.get_by_role("radio", name="idle time, absolute", exact=True).check(force=True)
    expect(panel.get_by_role("button", name="idle", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_the_metric_of_the_path_is_shown_at_first(look):
    panel = look("fixed", state="metric=h-imb")
    expect(panel.locator(".readout")).to_contain_text("kB")


def test_the_pointer_and_the_arrow_keys_tell_a_process_and_its_value(tab, look):
    panel = look("fixed")
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
    tab.keyboard.press("ArrowDown")  # by rank: the next lower value
    expect(chart).to_have_attribute("aria-valuenow", "0")


def test_many_processes_are_sorted_bars_and_a_strip_by_pid(tab, look):
    panel = look("fixed", run=1)
    expect(panel.locator(".pie")).to_have_count(0)
    expect(panel.locator(".readout")).to_contain_text("process 3: 160 ms")
    box = panel.locator(".strip").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 20.5 / 40, box["y"] + 5)
    expect(panel.locator(".readout")).to_contain_text("process 20: 40.0 ms")
    box = panel.locator(".sorted").bounding_box()
    tab.mouse.move(box["x"] + 2, box["y"] + 20)
    expect(panel.locator(".readout")).to_contain_text("process 3: 160 ms")
    dark = panel.locator(".strip path").evaluate_all(
        "paths => paths.filter(path => path.getAttribute('d')).length"
    )
    assert dark == 2  # the straggler, and all others


@pytest.mark.slow
def test_processes_with_equal_greatest_shares_have_equal_bars(tab, run_maker, frame, served, show):
    maker = run_maker(20)
    for _ in range(2):
        maker.step((frame("main", 1, 2),), [9 * MS if pid in {5, 7} else MS for pid in range(20)])
    with served(Trace((maker.run(),))) as url:
        show(tab, url)
        bars = tab.locator(".sorted .greatest").get_attribute("d")
        assert bars.count("M") == 2


def test_an_edge_shows_its_own_part(tab, trace, url, show):
    graph = build(trace.runs[0]).graph
    ids = {node.name: name for name, node in graph.nodes(data="node")}
    show(tab, url, f"edge={ids['main']}.{ids['single']}")
    expect(tab.locator("#processes .readout")).to_contain_text("process 2: 4.00 ms")


@pytest.mark.slow
def test_a_thousand_processes_are_binned_and_asked_for_one_node_at_a_time(
    tab, run_maker, frame, served, show, monkeypatch
):
    monkeypatch.setattr(services, "MAX_SLICES", 100)
    maker = run_maker(5000)
    work = np.full(5000, MS)
    work[4321] = 7 * MS
    maker.step((frame("main", 1, 2),), work)
    with served(Trace((maker.run(),))) as url:
        show(tab, url)
        panel = tab.locator("#processes")
        expect(panel.locator(".readout")).to_have_text("process 4,321: 7.00 ms, 0.14% of all")
        columns = panel.locator(".sorted .bars").evaluate_all(
            "paths => paths.map(path => path.getAttribute('d').split('M').length - 1)"
        )
        assert sum(columns) == 260
        box = panel.locator(".strip").bounding_box()
        for step in range(3):  # the straggler's column is as wide as 19 processes
            tab.mouse.move(box["x"] + box["width"] * (4321.5 + step) / 5000, box["y"] + 5)
        expect(panel.locator(".readout")).to_contain_text("process 4,32")
