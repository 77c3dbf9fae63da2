"""The functions that were executed below a cost centre unfold in the graph, from samples."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Doing, Frame, Trace
from tests.scripted import sampled

pytestmark = pytest.mark.browser

PREPARE = Frame("/home/app.py", "prepare", 30, 31)
BUSY = Frame("/home/app.py", "busy", 40, 41)


@pytest.fixture(scope="module")
def trace(script):
    """Process 0 prepares long for each ``exchange``, mostly in ``busy``."""
    program = script(2)
    for _ in range(4):
        program.step("main exchange", w=[9_000_000, 1_000_000])
        program.step("main other", w=[1_000_000, 1_000_000])
    run = program.run()
    main = run.stacks[0][0]
    rows = [(0, 2 * number, (main, PREPARE, BUSY), Doing.COMPUTING) for number in range(4)]
    return Trace((sampled(run, *rows, (1, 0, (main, PREPARE), Doing.BLOCKED)),))


@pytest.fixture(scope="module")
def url(trace, served):
    with served(trace) as url:
        yield url


@pytest.fixture
def page(tab, url, show):
    show(tab, url, fresh=False)
    expect(box(tab, "main")).to_be_visible()
    return tab


def box(page, name):
    return page.locator(f'.node[aria-label^="{name},"]')


def test_functions_are_folded_until_a_double_click_on_the_cost_centre(page):
    centre = box(page, "app.py line 12")
    expect(centre.locator(".badge")).to_have_text("+2")
    expect(box(page, "prepare")).to_have_count(0)
    centre.dblclick()
    expect(box(page, "prepare")).to_be_visible()
    expect(box(page, "prepare").locator(".value")).to_have_text("2.50 ms")
    expect(box(page, "busy")).to_have_class(re.compile(r"\bapart\b"))
    expect(page.locator(".line.folded")).to_have_count(2)
    expect(centre.locator(".badge")).to_have_count(0)
    box(page, "prepare").hover()
    for text in (
        "2.50 ms with all that it called, average of the processes, from samples",
        "2.00 ms computing, 500 µs blocked",
        "process 0: 4.00 ms",
        "process 1: 1.00 ms",
    ):
        expect(page.locator("#tooltip")).to_contain_text(text)
    box(page, "app.py line 22").click()
    box(page, "busy").click()
    expect(page.locator("#detail h2")).to_have_text("line 12")
    centre.dblclick()
    expect(box(page, "prepare")).to_have_count(0)


def test_a_key_unfolds_below_the_selected_cost_centre_and_the_address_keeps_it(page, url, show):
    box(page, "app.py line 12").click()
    page.keyboard.press("u")
    expect(box(page, "busy")).to_be_visible()
    page.wait_for_url(lambda address: "unfolded=" in address)
    show(page, *page.url.split("#"))
    expect(box(page, "busy")).to_be_visible()
    page.keyboard.press("u")
    expect(box(page, "busy")).to_have_count(0)
