"""The view "Compare": its answer, what it shows in a real browser, and saved pages."""

import json
import re

import pytest
from playwright.sync_api import expect

from bsplib import webui
from bsplib.recording.records import Trace
from bsplib.webui.opened_runs import AddressError
from bsplib.webui.traces import Traces
from tests.made_runs import frame, run_of, step
from tests.scripted import Script


def solver(relax_s, *, line=11, size=8, gone=True, nprocs=2, **meta):
    """A run of a few functions: ``relax`` takes so long by process, ``gone`` is left out later."""
    made = Script(nprocs)
    main = [frame("main", 1, line) for line in range(2, 9)]
    idle = [0] * (nprocs - 2)
    step(made, (main[0], frame("relax", 10, line)), (*relax_s, *idle), sends=[(0, 1, size)])
    if gone:
        step(made, (main[1], frame("gone", 20, 21)), 1e-3)
    else:
        step(made, (main[1], frame("fresh", 30, 31)), 2e-3)
        step(made, (main[2], frame("<b>bold\x1b</b>", 40, 41)), 1e-3)
    return run_of(made, program="solver.py", **meta)


@pytest.fixture(scope="module")
def traces():
    """A trace of two runs after, and one of two runs before."""
    before = solver((1e-3, 9e-3))
    after = solver((5e-3, 5e-3), line=14, size=80, gone=False)
    other = solver((1e-3, 1e-3), nprocs=3)
    return Trace((after, other)), Trace((before, before))


@pytest.fixture(scope="module")
def url(traces, served):
    with served(*traces) as url:
        yield url


@pytest.fixture
def view(tab, url, show):
    """The view in a tab."""
    show(tab, url, "view=compare&run=0")
    return tab.locator("#view-compare")


def row(view, name):
    return view.get_by_role("row", name=re.compile(rf"^{re.escape(name)}\b"))


# -- the answer ----------------------------------------------------------------------------------


def test_the_answer_compares_the_run_of_the_address_with_the_one_of_the_query(traces):
    shown = Traces(*traces)
    answer = shown.answer("0", 0, "compare", {"with": "1.0"})
    assert json.loads(json.dumps(answer)) == answer
    assert answer["verdict"].startswith("8.00 ms instead of 10.0 ms: relax loses 4.00 ms less")
    whole, *nodes = answer["nodes"]
    assert (whole["before"]["h"], whole["after"]["h"]) == (8, 80)
    statuses = {node["label"]: node["status"] for node in nodes}
    assert statuses["relax · bcast.py line 11 → 14"] == "moved"
    assert (statuses["gone"], statuses["fresh"]) == ("vanished", "new")
    (leaf,) = (node for node in nodes if node["short"] == "line 11 → 14")
    assert answer["nodes"][leaf["parent"]]["label"] == "relax"


@pytest.mark.lengthy
def test_both_runs_are_timed_anew_by_the_figures_of_the_query(traces):
    shown = Traces(*traces)
    query = {"with": "1.0", "g": "1", "l": "0", "speed": "0.5"}
    whole = shown.answer("0", 0, "compare", query)["nodes"][0]
    # 4 ms of computation, twice as slow; h is 8 bytes on both processes
    assert whole["before"]["loss"] == pytest.approx(8e-3)
    assert whole["after"]["loss"] == pytest.approx(0)
    own = shown.answer("0", 0, "compare", {"with": "1.0"})["nodes"][0]
    assert own["before"]["loss"] == pytest.approx(4e-3)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({}, "with must be a trace and the number of a run, as in 1.0"),
        ({"with": "1"}, "with must be"),
        ({"with": "../1.0"}, "with must be"),
        ({"with": "1.0", "g": "-1"}, "g is '-1': give a number that is not negative"),
        ({"with": "1.0", "g": "1", "l": "inf"}, "l is 'inf'"),
        ({"with": "1.0", "machine": "none"}, "machine is 'none': the page has "),
    ],
)
def test_a_query_that_means_nothing_is_refused(traces, query, error):
    with pytest.raises(AddressError, match=error):
        Traces(*traces).answer("0", 0, "compare", query)


# -- in the browser ------------------------------------------------------------------------------


@pytest.mark.browser
def test_the_view_opens_on_the_run_of_the_same_number_with_marks_and_colours_of_changes(view):
    expect(view.locator(".before-run")).to_have_text(re.compile("^compared with .*, run 1: "))
    expect(view.locator(".comparison")).to_contain_text(
        "8.00 ms instead of 10.0 ms: relax loses 4.00 ms less waiting for process 1"
    )
    expect(view.locator("tbody tr").first).to_contain_text("whole run")
    time = row(view, "relax").locator("td").first
    expect(time).to_have_text(re.compile("▼ 5.00 ms\\s*9.00 ms\\s*\N{MINUS SIGN}44%"))
    expect(time).to_have_class(re.compile("better"))
    h = row(view, "relax").locator("td").nth(2)
    expect(h).to_have_text(re.compile(r"▲ 80 B\s*8 B\s*\+900%"))
    expect(h).to_have_class(re.compile("worse"))
    colours = {
        cell.locator(".after").evaluate("element => getComputedStyle(element).color")
        for cell in (time, h)
    }
    assert len(colours) == 2
    balance = row(view, "relax").locator("td").last
    expect(balance).to_have_text(re.compile(r"▲ 100%\s*56%"))
    expect(balance).to_have_class(re.compile("better"))


@pytest.mark.browser
@pytest.mark.slow
def test_another_run_before_is_chosen_and_the_address_holds_it(view, tab):
    tab.get_by_label("Compare with").select_option("0.1")
    expect(view.locator(".conditions")).to_contain_text("2 processes instead of 3 processes")
    expect(view.locator(".scaling")).to_have_text(re.compile("^computation scaling .* on 3[.]$"))
    assert "compared=0.1" in tab.url
    tab.go_back()
    expect(view.locator(".scaling")).to_be_hidden()
    expect(view.locator(".conditions")).to_be_hidden()


@pytest.mark.browser
def test_the_graph_is_shaded_by_change_and_is_not_cut_on_paper(view, tab):
    view.get_by_role("radio", name="graph").check(force=True)
    expect(view.locator(".change-legend")).to_be_in_viewport(ratio=1)  # nothing is cut
    expect(tab.locator("#legend")).to_be_hidden()  # that of the shades by cost
    better = view.get_by_role("button", name="relax, ▼ \N{MINUS SIGN}44%")
    worse = view.get_by_role("button", name="fresh, 2.00 ms new")
    expect(better).to_have_attribute("data-bin", re.compile(r"b\d"))
    expect(worse).to_have_attribute("data-bin", re.compile(r"w\d"))
    expect(view.locator(".graph-host .note")).to_have_text(
        "2 vanished nodes are in the table only."
    )
    fills = {
        node.locator(".shape").evaluate("element => getComputedStyle(element).fill")
        for node in (better, worse)
    }
    assert len(fills) == 2
    view.get_by_role("radio", name="supersteps").check(force=True)
    expect(view.get_by_role("button", name="relax, 1")).to_have_attribute("data-bin", "0")
    expect(view.get_by_role("table")).to_be_hidden()
    box = view.get_by_role("button", name="relax, 1")
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    room, lowest = (each.bounding_box() for each in (view.locator("svg"), box))
    assert lowest["y"] + lowest["height"] <= room["y"] + room["height"]
    assert room["height"] > 2 * lowest["height"]
    tab.emulate_media(media="screen")


# -- saved pages ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.browser
def test_a_page_saved_with_a_comparison_shows_it_offline(tab, traces, tmp_path, show):
    after, before = traces
    out = tmp_path / "page.html"
    webui.write_html(after, out, before=[before], names=["after.bsp", "before.bsp"])
    show(tab, f"file://{out}", "view=compare&run=0&speed=0.5")
    view = tab.locator("#view-compare")
    expect(view.locator(".before-run")).to_contain_text("before.bsp, run 1: 2 processes")
    expect(view.locator(".comparison")).to_contain_text("8.00 ms instead of 10.0 ms")
    expect(view.locator(".remark")).to_contain_text("Times are those of the runs")
    tab.get_by_label("Compare with").select_option("1.1")
    expect(view.locator(".remark")).to_contain_text("bsp view shows them")
