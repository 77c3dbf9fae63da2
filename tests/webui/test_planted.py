"""A person sees on the opening screen, at 1280 x 800 pixels, what was planted in a program."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Trace
from tests.profiler.planted import PROGRAMS, recorded

pytestmark = [pytest.mark.browser, pytest.mark.lengthy]

WIDTH, HEIGHT = 1280, 800
LOST = [name for name in PROGRAMS if name != "balanced"]
SHADES = (
    """nodes => nodes.map(node => [node.getAttribute("aria-label"), Number(node.dataset.bin)])"""
)
UNCOVERED = """(element, parts) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return parts.every(([right, down]) => {
    const there = document.elementFromPoint(x + right * width, y + down * height);
    return there !== null && element.contains(there);
  });
}"""
PARTS = [(0.2, 0.3), (0.5, 0.5), (0.8, 0.3)]
"""Points of an element, as fractions of its width and height."""


@pytest.fixture(scope="module")
def url(tmp_path_factory, served):
    """Serve the traces of all planted programs, in their order."""
    folder = tmp_path_factory.mktemp("planted")
    traces = [
        Trace((recorded(folder / f"{number}.bsp", planted),))
        for number, planted in enumerate(PROGRAMS.values())
    ]
    with served(*traces) as address:
        yield address


@pytest.fixture
def opened(tab, show, url):
    """Open the page of a planted program, and return the tab."""

    def opened(name):
        show(tab, url, f"trace={list(PROGRAMS).index(name)}")
        return tab

    return opened


def on_screen(locator):
    """Tell whether an element lies in the window, with nothing above it."""
    box = locator.bounding_box()
    inside = (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= WIDTH
        and box["y"] + box["height"] <= HEIGHT
    )
    return inside and locator.evaluate(UNCOVERED, PARTS)


def shades(tab):
    """Return the shade of each node that is drawn, by what is read aloud of it."""
    expect(tab.locator(".node").first).to_be_visible()
    return dict(tab.locator(".node").evaluate_all(SHADES))


@pytest.mark.parametrize("name", LOST)
def test_the_first_sentence_and_the_reddest_node_tell_what_was_planted(opened, name):
    planted = PROGRAMS[name]
    tab = opened(name)
    sentence = tab.locator("#verdict li > *").first
    assert [word for word in planted.words if word not in sentence.inner_text()] == []
    assert on_screen(sentence)
    of_nodes = shades(tab)
    (place,) = re.findall(r"\((planted\.py line \d+)", sentence.inner_text())
    culprit = tab.locator(f'.node[aria-label^="{place}"]')
    expect(culprit).to_have_attribute("aria-pressed", "true")
    assert on_screen(tab.locator(f'.node[aria-label^="{planted.function},"]'))
    if name != "too many supersteps":  # l that is paid is no loss
        assert of_nodes[culprit.get_attribute("aria-label")] == max(of_nodes.values()) > 0


def test_the_pie_of_one_process_alone_has_one_slice(opened):
    expect(opened("branch").locator(".pie .slice[d]")).to_have_count(1)


def test_the_page_of_a_balanced_program_is_white(opened):
    tab = opened("balanced")
    expect(tab.locator("#verdict li")).to_have_count(1)
    expect(tab.locator("#verdict li")).to_contain_text("Balanced")
    assert set(shades(tab).values()) == {0}
