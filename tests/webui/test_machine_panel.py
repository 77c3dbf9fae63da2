"""The choice of the Machine in the header, in a real browser."""

from dataclasses import asdict

import pytest
from playwright.sync_api import expect

from bsplib.machine import Machine
from bsplib.recording.records import Trace
from tests.made_runs import frame, run_of, step
from tests.scripted import Script

pytestmark = pytest.mark.browser

HERE = Machine("here", "made up", g=1e-9, l=1e-6, speed=2e9)


@pytest.fixture(scope="module")
def url(served):
    """``relax`` computes 1 ms on process 0 only, ``gather`` sends 10^6 bytes to it."""
    made = Script(3)
    step(made, (frame("main", 1, 3), frame("relax", 10, 11)), (1e-3, 0, 0))
    step(
        made,
        (frame("main", 1, 4), frame("gather", 20, 21)),
        0,
        sends=[(1, 0, 500_000), (2, 0, 500_000)],
    )
    run = run_of(made, machine=asdict(HERE), machine_given=True)
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


def test_another_speed_ranks_the_losses_anew_and_what_is_being_typed_stays(tab, url, show):
    show(tab, url)
    expect(tab.locator("#chain li").last).to_contain_text("line 11")
    field = open_panel(tab).get_by_label("l in µs")
    field.fill("3")
    tab.evaluate("location.hash += '&speed=1000'")
    expect(tab.get_by_label("speed in x")).to_have_value("1000")
    expect(tab.locator("#chain li").last).to_contain_text("line 21")
    expect(tab.locator("#verdict li").first).to_contain_text("gather")
    expect(field).to_have_value("3")
    field.press("Enter")
    expect(field).to_have_value("3")
    expect(field).to_have_class("set")
