"""The bar of the account: what the elapsed time was used for, above everything else."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Trace

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


def test_its_parts_are_those_of_the_elapsed_time(page):
    parts = page.locator("#account .part")
    expect(parts).to_have_count(2)
    expect(parts.first).to_have_text("useful computation 63%")
    expect(parts.last).to_have_text("imbalance of computation 38%")


def test_a_click_shades_the_graph_by_a_part_and_lists_its_places(page):
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
    expect(places).to_have_count(0)
