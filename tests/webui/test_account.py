"""The bar of the account: what the elapsed time was used for, above everything else."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import NOT_MEASURED, Trace

pytestmark = pytest.mark.browser


@pytest.fixture
def page(tab, script, served, show):
    """Two processes; one computes longer in ``heavy``, and an eighth of the time is even."""
    program = script(2)
    for _ in range(10):
        program.step("main heavy", w=[1_000_000, 7_000_000])
        program.step("main even", w=[1_000_000, 1_000_000])
    with served(Trace((program.run(),))) as url:
        show(tab, url)
        yield tab


def test_a_click_on_a_part_of_the_elapsed_time_shades_the_graph_and_lists_its_places(page):
    parts = page.locator("#account .part")
    expect(parts).to_have_text(["useful computation 63%", "imbalance of computation 38%"])
    part = page.locator('#account .part[data-part="imbalance"]')
    part.click()
    expect(part).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#legend .title")).to_have_text("imbalance of computation")
    places = page.locator(".account-places")
    expect(places).to_contain_text("imbalance of computation: 30.0 ms on average")
    expect(places).to_contain_text("app.py line 12 30.0 ms")
    expect(places).to_contain_text("process 0 60.0 ms")
    expect(page.locator('.node[aria-label^="even,"]')).to_have_attribute("data-bin", "0")
    part.click()
    expect(places).to_be_hidden()


@pytest.fixture
def narrow_parts(script):
    """Of 200 ms, 2 are blocked, and so are a fifth of the 8 of idle time that follow."""
    program = script(2)
    program.step("main even", w=[90_000_000, 90_000_000], cpu=[90_000_000, 88_000_000])
    program.step("main uneven", w=[2_000_000, 10_000_000], cpu=[2_000_000, 10_000_000])
    run = program.run()
    run.records["comp_ready"] = 0
    run.records["comm_ready"] = NOT_MEASURED
    return Trace((run,))


@pytest.mark.slow
def test_the_text_of_a_narrow_part_is_shorter_but_never_cut(open_tab, narrow_parts, served, show):
    tab = open_tab()
    with served(narrow_parts) as url:
        show(tab, url)
        for width in (1280, 390):
            tab.set_viewport_size({"width": width, "height": 844})
            for part in tab.locator("#account .part").all():
                assert part.evaluate("part => part.scrollWidth <= part.clientWidth"), width
            expect(tab.locator('#account .part[data-part="useful"]')).to_have_text(
                "useful computation 95%"
            )


@pytest.fixture
def sleeper(script):
    """Two processes, one of which is blocked for most of the time, and computes as the other."""
    program = script(2)
    for _ in range(10):
        program.step("main sleeps", w=[1_000_000, 9_000_000], cpu=[1_000_000, 1_000_000])
        program.step("main even", w=[1_000_000, 1_000_000], cpu=[1_000_000, 1_000_000])
    run = program.run()
    run.records["comp_ready"] = 0
    return Trace((run,))


def test_a_page_opens_on_the_greatest_sentence_unless_the_address_says_otherwise(
    tab, sleeper, served, show
):
    with served(sleeper) as url:
        show(tab, url)
        sentence = re.compile(r"lost in sleeps .* by process 1 in 10 supersteps \(blocked: ")
        expect(tab.locator("#verdict li").first).to_contain_text(sentence)
        expect(tab.locator("#legend .title")).to_have_text("blocked")
        expect(tab.locator("#detail h2")).to_have_text("line 12")
        assert "metric" not in tab.url
        tab.get_by_role("radio", name="loss", exact=True).check(force=True)
        tab.wait_for_url(lambda address: "metric=loss" in address)
        show(tab, *tab.url.split("#"))
        expect(tab.locator("#legend .title")).to_have_text("loss")
        tab.get_by_role("radio", name="time", exact=True).check(force=True)
        tab.go_back()
        expect(tab.locator("#legend .title")).to_have_text("loss")
