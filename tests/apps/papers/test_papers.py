"""``bsp papers`` computes numbers beside print, and says of each what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from apps.papers import show
from apps.papers.items import MISSING, Item, full, quick
from bsplib.cli import main as bsp

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def items():
    return list(quick())


def test_every_item_is_equal_to_print_or_says_why_not(items):
    for item in items:
        assert item.differs or item.printed == item.ours, item


def test_every_item_and_gap_names_its_paper_and_its_module(items):
    for item in items:
        assert all((item.paper, item.place, item.what, item.printed, item.ours, item.lives))
        module = ROOT / item.lives.replace(".", "/")
        assert module.is_dir() or module.with_suffix(".py").is_file(), item.lives
    assert {item.paper for item in items} <= {one.paper for one in MISSING}


def test_the_page_of_the_documentation_is_the_one_that_is_computed(items):
    """Else write it anew: bsp papers --markdown docs/papers.md."""
    assert (ROOT / "docs" / "papers.md").read_text(encoding="utf-8") == show.as_markdown(items)


def test_the_command_writes_a_page_and_a_document(tmp_path):
    html, document = tmp_path / "a.html", tmp_path / "a.json"
    found = CliRunner().invoke(bsp, ["papers", "--html", str(html), "--json", str(document)])
    assert found.exit_code == 0, found.output
    assert "1,908.35" in html.read_text(encoding="utf-8")
    read = json.loads(document.read_text(encoding="utf-8"))
    assert {"items", "missing"} == set(read)
    assert len(read["missing"]) == len(MISSING)


def test_texts_are_escaped_in_a_page():
    page = show.as_html([Item("<b>", "&", "a|b", "1", "2", "why", "where")])
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert r"a\|b" in show.as_markdown([Item("p", "t", "a|b", "1", "2", "why", "where")])


def test_a_file_that_cannot_be_written_is_one_sentence():
    found = CliRunner().invoke(bsp, ["papers", "--json", "/proc/nowhere/a.json"])
    assert found.exit_code == 1
    assert "papers: /proc/nowhere/a.json cannot be written" in found.output
    assert "Traceback" not in found.output


@pytest.mark.slow
def test_all_balances_of_the_story_are_computed():
    """Each within 10 points of print: see the tests of the story."""
    for item in full():
        for printed, ours in zip(item.printed.split(" | "), item.ours.split(" | "), strict=True):
            assert abs(int(printed[:-1]) - int(ours[:-1])) <= 10, item
