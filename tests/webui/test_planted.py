"""The page opens on what was planted in a program, and a person sees it at 1280 x 800 pixels."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from bsplib.recording.records import Trace
from bsplib.webui import services
from tests.profiler.planted import PROGRAMS, recorded

pytestmark = pytest.mark.lengthy

WIDTH, HEIGHT = 1280, 800
UNEVEN = "imbalance", "transfer_imbalance"
LOST = [name for name in PROGRAMS if name != "balanced"]
UNCOVERED = """(element, parts) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return parts.every(([right, down]) => {
    const there = document.elementFromPoint(x + right * width, y + down * height);
    return there !== null && element.contains(there);
  });
}"""
PARTS = [(0.2, 0.3), (0.5, 0.5), (0.8, 0.3)]
"""Points of an element, as fractions of its width and height."""


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


def opening_shades(data):
    """Return the shades of the nodes by what the first sentence is about, as the page opens."""
    part = data["verdict"]["sentences"][0]["part"]
    return data["times"]["shades"]["loss" if part in {None, *UNEVEN} else part]


@pytest.mark.parametrize("name", LOST)
def test_the_first_sentence_and_the_reddest_node_tell_what_was_planted(tmp_path, name):
    planted = PROGRAMS[name]
    data = services.describe_run(recorded(tmp_path / "planted.bsp", planted))
    first = data["verdict"]["sentences"][0]
    assert [word for word in planted.words if word not in first["text"]] == []
    (place,) = re.findall(r"\((planted\.py line \d+)", first["text"])
    assert data["nodes"][first["node"]]["name"].startswith(place)
    assert first["node"] in data["shown"]
    if name != "too many supersteps":  # l that is paid is no loss
        shades = opening_shades(data)
        assert shades[first["node"]] == max(shades) > 0


@pytest.mark.browser
def test_the_sentence_its_node_and_the_pie_of_one_process_are_seen(tab, show, served, tmp_path):
    planted = PROGRAMS["branch"]
    with served(Trace((recorded(tmp_path / "planted.bsp", planted),))) as url:
        show(tab, url)
        assert on_screen(tab.locator("#verdict li > *").first)
        culprit = tab.locator('.node[aria-pressed="true"]')
        expect(culprit).to_have_attribute("aria-label", re.compile(r"^planted\.py line \d+"))
        expect(culprit).to_have_attribute("data-bin", "4")
        assert on_screen(tab.locator(f'.node[aria-label^="{planted.function},"]'))
        expect(tab.locator(".pie .slice[d]")).to_have_count(1)
