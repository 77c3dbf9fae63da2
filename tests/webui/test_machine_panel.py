"""The choice of the Machine in the header, in a real browser."""

import json
from dataclasses import asdict

import pytest
from playwright.sync_api import expect

from bsplib import webui
from bsplib.machine import Machine
from bsplib.recording.records import Trace

pytestmark = pytest.mark.browser

HERE = Machine("here", "made up", g=1e-9, l=1e-6, speed=2e9)


@pytest.fixture(scope="module")
def url(run_maker, frame, served):
    """``relax`` computes 1 ms on process 0 only, ``gather`` sends 10^6 bytes to it."""
    maker = run_maker(3)
    maker.step((frame("main", 1, 3), frame("relax", 10, 11)), (1e-3, 0, 0))
    maker.step(
        (frame("main", 1, 4), frame("gather", 20, 21)), 0, sends=[(1, 0, 500_000), (2, 0, 500_000)]
    )
    run = maker.run(machine=asdict(HERE), machine_given=True)
    with served(Trace((run,))) as url:
        yield url


def open_panel(tab):
    tab.keyboard.press("m")
    panel = tab.get_by_role("dialog", name="Machine")
    expect(panel).to_be_visible()
    return panel


def outcome(tab):
    """Text of the time in ``main``."""
    return tab.locator(".outcome p").first


def test_the_button_says_on_which_machine_the_run_is_shown(tab, url, show):
    show(tab, url)
    opener = tab.locator("#machine .opener")
    expect(opener).to_have_text("Machine here ▾")
    expect(opener).to_have_attribute(
        "title", "g 1.00 ns per byte, l 1.00 µs per superstep, speed 1x (m)"
    )
    opener.click()
    expect(outcome(tab)).to_contain_text("main takes 1.00 ms")
    opener.click()
    expect(tab.get_by_role("dialog", name="Machine")).to_be_hidden()


def test_choosing_a_machine_asks_for_the_account_on_it_once(tab, url, show):
    show(tab, url)
    expect(tab.locator("#detail h2")).to_be_visible()
    requests = []
    tab.on("request", lambda request: requests.append(request.url))
    panel = open_panel(tab)
    panel.get_by_label("Machine").select_option("IBM SP2, PVM")
    # in + out of process 0 is 10^6 bytes, at 3.45e-8 s; l is 80.8 µs; w is 1 ms
    expect(outcome(tab)).to_contain_text("main takes 35.7 ms")
    expect(panel).to_contain_text("In the run it takes 1.00 ms")
    expect(panel).to_contain_text("Roda et al. 1999, Table 1")
    expect(panel).to_contain_text("Its speed is not known: it counts as that of the run")
    assert "machine=ibm-sp2-pvm" in tab.url
    assert ["/account.json?" in url for url in requests] == [True]
    tab.go_back()
    expect(outcome(tab)).to_contain_text("main takes 1.00 ms")


def test_another_machine_ranks_the_losses_anew(tab, url, show):
    show(tab, url)
    expect(tab.locator("#chain li").last).to_contain_text("line 11")
    panel = open_panel(tab)
    panel.get_by_label("speed in x").fill("1000")
    panel.get_by_label("speed in x").press("Enter")
    expect(tab.locator("#chain li").last).to_contain_text("line 21")
    expect(tab.locator("#verdict li").first).to_contain_text("gather")


def test_a_typed_figure_counts_and_one_that_is_impossible_is_the_machine_s(tab, url, show):
    show(tab, url)
    field = open_panel(tab).get_by_label("l in µs")
    for text, value in (("2.5", "2.5"), ("0", "0"), ("-1", "1"), ("", "1")):
        field.fill(text)
        field.press("Enter")
        expect(field).to_have_value(value)


def test_what_is_being_typed_stays_while_the_page_is_drawn_anew(tab, url, show):
    show(tab, url)
    field = open_panel(tab).get_by_label("l in µs")
    field.fill("3")
    tab.evaluate("location.hash += '&speed=2'")
    expect(tab.get_by_label("speed in x")).to_have_value("2")
    expect(field).to_have_value("3")
    field.press("Enter")
    expect(field).to_have_value("3")
    expect(field).to_have_class("set")


def test_reset_returns_to_the_figures_of_the_run(tab, url, show):
    show(tab, url, "machine=utp-lan-pvm&g=1e-6&speed=2")
    expect(tab.locator("#machine .opener")).to_have_text("Machine UTP LAN, PVM, changed ▾")
    panel = open_panel(tab)
    panel.get_by_role("button", name="Reset").click()
    expect(outcome(tab)).to_contain_text("main takes 1.00 ms")
    expect(tab.locator("#machine .opener")).to_have_text("Machine here ▾")
    assert "#" not in tab.url or tab.url.endswith("#")
    expect(panel.get_by_role("button", name="Reset")).to_be_disabled()


def test_a_figure_that_is_missing_is_said_until_it_is_set(tab, url, show):
    show(tab, url, "machine=cray-t3e-mpi")
    panel = open_panel(tab)
    note = panel.locator(".gap")
    expect(note).to_contain_text("Its l is not known (a fit gave -2.11e-05 s)")
    for name in "l in µs", "speed in x":
        panel.get_by_label(name).fill("3")
        panel.get_by_label(name).press("Enter")
    expect(note).to_be_hidden()


def test_escape_closes_the_panel_and_so_does_a_click_elsewhere(tab, url, show):
    show(tab, url)
    panel = open_panel(tab)
    tab.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(tab.locator("#machine .opener")).to_be_focused()
    open_panel(tab)
    tab.locator("h1").click()
    expect(panel).to_be_hidden()


def test_a_saved_page_has_the_machines_that_were_named_and_no_other_figures(
    tab, broadcast_trace, tmp_path, show
):
    out = tmp_path / "page.html"
    webui.write_html(broadcast_trace, out, machines=["ibm-sp2-pvm"])
    show(tab, f"file://{out}", "g=1e-6")
    panel = open_panel(tab)
    expect(panel.locator(".saved")).to_contain_text("saved to a file with the Machines above")
    for name in "g in ns", "l in µs", "speed in x":
        expect(panel.get_by_label(name)).to_be_disabled()
    expect(panel.get_by_label("Machine").locator("option")).to_have_count(2)
    expect(panel).not_to_contain_text("with these figures")
    panel.get_by_label("Machine").select_option("IBM SP2, PVM")
    expect(panel).to_contain_text("with these figures")


@pytest.mark.slow
def test_in_a_narrow_window_the_panel_fits(open_tab, url, show):
    tab = open_tab(width=390, height=844)
    show(tab, url)
    tab.locator("#machine .opener").click()
    boxes = tab.locator(".machine-panel, .machine-panel input").evaluate_all(
        "all => all.map(each => [each.getBoundingClientRect().left, "
        "each.getBoundingClientRect().right])"
    )
    assert all(left >= 0 and right <= 390 for left, right in boxes), json.dumps(boxes)
