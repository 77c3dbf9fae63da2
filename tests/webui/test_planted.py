"""A person sees on the opening screen, at 1280 x 800 pixels, what was planted in a program."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Trace
from tests.profiler.planted import PROGRAMS, recorded

pytestmark = [pytest.mark.browser, pytest.mark.lengthy]

WIDTH, HEIGHT = 1280, 800
LOST = [name for name in PROGRAMS if name != "balanced"]
SHADES = """nodes => nodes.map(node => [node.getAttribute("aria-label"), Number(node.dataset.bin)])"""
UNCOVERED = """element => {
  const { x, y, width, height } = element.getBoundingClientRect();
  const corners = [[x + 2, y + 2], [x + width - 2, y + height - 2]];
  return corners.every(([left, top]) => {
    const there = document.elementFromPoint(left, top);
    return there !== null && (element.contains(there) || there.contains(element));
  });
}"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory, served):
    """Serve the pages of all planted programs, and give the address of each."""
    folder = tmp_path_factory.mktemp("planted")
    servers, urls = [], {}
    for number, (name, planted) in enumerate(PROGRAMS.items()):
        server = served(Trace((recorded(folder / f"{number}.bsp", planted),)))
        urls[name] = server.__enter__()
        servers.append(server)
    yield urls
    for server in servers:
        server.__exit__(None, None, None)


def on_screen(locator):
    """Tell whether an element lies in the window, with nothing above it."""
    box = locator.bounding_box()
    inside = (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= WIDTH
        and box["y"] + box["height"] <= HEIGHT
    )
    return inside and locator.evaluate(UNCOVERED)


def shades(tab):
    """Return the shade of each node that is drawn, by what is read aloud of it."""
    expect(tab.locator(".node").first).to_be_visible()
    return dict(tab.locator(".node").evaluate_all(SHADES))


@pytest.mark.parametrize("name", LOST)
def test_the_first_sentence_and_the_reddest_node_tell_what_was_planted(opened, tab, show, name):
    planted = PROGRAMS[name]
    show(tab, opened[name])
    sentence = tab.locator("#verdict li").first
    assert [word for word in planted.words if word not in sentence.inner_text()] == []
    assert on_screen(sentence)
    of_nodes = shades(tab)
    culprit = tab.locator(f'.node[aria-label^="{planted.function},"]')
    assert on_screen(culprit)
    if name != "too many supersteps":  # l that is paid is no loss
        assert of_nodes[culprit.get_attribute("aria-label")] == max(of_nodes.values()) > 0


def test_the_page_of_a_balanced_program_is_white(opened, tab, show):
    show(tab, opened["balanced"])
    expect(tab.locator("#verdict li")).to_have_count(1)
    expect(tab.locator("#verdict li")).to_contain_text("Balanced")
    assert set(shades(tab).values()) == {0}
