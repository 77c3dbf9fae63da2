"""The search, in a real browser."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.fixture
def search(tab, broadcast_url, show):
    """Types a text into the search; the nodes are those of the broadcast."""
    if tab.url.startswith(broadcast_url):  # loaded by the test before
        tab.evaluate("() => { document.activeElement.blur(); location.hash = ''; }")
        tab.evaluate("() => document.getElementById('help').close()")
    else:
        show(tab, broadcast_url)
    field = tab.get_by_label("Search nodes")

    def search(text):
        tab.evaluate("() => document.activeElement.blur()")
        tab.keyboard.press("/")
        expect(field).to_be_focused()
        field.fill(text)
        return tab.locator("#search-count")

    search.field = field
    return search


def selected(tab):
    return tab.locator("#detail h2")


FOUND = {
    "STAGE": "2 found",  # in names, whatever their case
    "line 34": "1 found",
    "bcast.py:41": "1 found",
    "bcast.py:4": "nothing found",  # the whole number of a line
    "/home/user": "9 found",
    "(": "1 found",  # bcast.py line 65 (end)
    "  ": "",
}


def test_enter_goes_to_the_next_and_shift_enter_back_in_a_circle(tab, search):
    count = search("stage")
    expect(count).to_have_text("2 found")
    seen = []
    for key in "Enter", "Enter", "Enter", "Shift+Enter":
        tab.keyboard.press(key)
        seen.append((selected(tab).text_content(), count.text_content()))
    first, second = "bcast_onestage", "bcast_twostage"
    assert seen == [
        (first, "1 of 2"),
        (second, "2 of 2"),
        (first, "1 of 2"),
        (second, "2 of 2"),
    ]
    assert search.field.input_value() == "stage"


def test_nodes_found_by_name_or_place_are_marked_in_the_graph_and_alone_in_the_table(tab, search):
    for text, count in FOUND.items():
        expect(search(text)).to_have_text(count)
    search("stage")
    expect(tab.locator(".stage .node.found")).to_have_count(2)
    tab.keyboard.press("Escape")
    expect(tab.locator(".stage .node.found")).to_have_count(0)
    tab.evaluate("() => { location.hash = 'view=table&search=stage'; }")
    expect(tab.locator("tr[data-node]")).to_have_count(2)
    search.field.press("Enter")
    expect(selected(tab)).to_have_text("bcast_onestage")
