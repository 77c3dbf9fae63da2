"""``bsp papers`` computes numbers beside print, and says of each what differs."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from bsplib.apps.papers import places, session, show
from bsplib.apps.papers.entries import Item, figure_1, quick, table
from bsplib.tools.cli import main as bsp
from tests.commands import run_bsp

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
    assert {item.paper for item in items} <= {paper for paper, *_ in table("missing")}


PAGE = ROOT / "docs" / "maintaining" / "papers.md"


def test_the_page_of_the_documentation_has_what_is_computed_from_print(items):
    """Else write it anew: bsp papers --force --markdown docs/maintaining/papers.md."""
    page = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [line for line in show.as_markdown(items).splitlines() if line not in page]
    assert not missing


@pytest.fixture
def written(tmp_path):
    """What the command writes, where the runs are left out."""

    def write(*arguments):
        html, document = tmp_path / "a.html", tmp_path / "a.json"
        line = ["papers", "--html", str(html), "--out", str(document), *arguments]
        found = run_bsp(*line)
        assert found.exit_code == 0, found.output
        return html.read_text(encoding="utf-8"), json.loads(document.read_text(encoding="utf-8"))

    return write


def test_the_command_writes_a_page_and_a_document(written, monkeypatch):
    monkeypatch.setattr(session, "virtual", lambda advance: advance() or iter(()))
    monkeypatch.setattr(session, "story", lambda: iter(()))
    page, read = written()
    assert "1,908.35" in page
    assert "bsplib.apps.paradigms.farm:farm" in page
    assert {"items", "missing", "places"} == set(read)
    assert len(read["missing"]) == len(table("missing"))
    assert len(read["places"]) == len(places.read())


@pytest.mark.slow
def test_the_page_of_the_documentation_is_the_one_that_the_command_writes(tmp_path):
    """All differences are held by it, line by line; it takes less than two minutes."""
    page = tmp_path / "papers.md"
    found = run_bsp("papers", "--markdown", page)
    assert found.exit_code == 0, found.output
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    row = r"Figures 5 to 9 \| ([^|]*) \| (.*?) \| (.*?) \| (?:median and|likewise)"
    balances = re.findall(row, page.read_text())
    assert len(balances) == 8
    for what, printed, ours in balances:
        assert len(printed.split(r" \| ")) == len(ours.split(r" \| ")) == 2, what


def test_what_was_measured_once_is_kept_each_with_its_cause():
    rows = table("measured")
    assert {row[0] for row in rows} == {
        "Chittor 1995",
        "Roda et al. 1999",
        "Shi",
        "Gonzalez et al.",
    }
    for row in rows:
        assert all(row)


def test_texts_are_escaped_in_a_page():
    page = show.as_html([Item("<b>", "&", "a|b", "1", "2", "why", "where")])
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert r"a\|b" in show.as_markdown([Item("p", "t", "a|b", "1", "2", "why", "where")])


def test_a_file_that_cannot_be_written_is_one_sentence_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(session, "collected", lambda: pytest.fail("it was computed"))
    found = run_bsp("papers", "--out", "/proc/nowhere/a.json")
    assert found.exit_code == 1
    assert "out: there is no folder /proc/nowhere" in found.output
    assert "Traceback" not in found.output


# -- every equation, table, figure and system -----------------------------------------------------


def exists(place):
    """Tell whether a place of the list is there."""
    if place.startswith("bsp "):
        return place.split()[1] in bsp.list_commands(None)
    if "/" in place:
        return (ROOT / place).is_file()
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part, None) or getattr(found, "__dataclass_fields__", {}).get(part)
    return found is not None


def test_every_entry_lives_where_it_says_or_says_why_not():
    for entry in places.read():
        assert entry.what, entry
        assert entry.where or entry.why, entry
        for place in entry.where:
            assert exists(place), place


def test_a_place_that_does_not_exist_is_found():
    assert not exists("bsp nothing")
    assert not exists("apps/papers/nothing.py")
    assert not exists("bsplib.apps.papers.places:nothing")
    assert exists("bsplib.apps.papers.places:read")
    with pytest.raises(ModuleNotFoundError):
        exists("bsplib.apps.papers.nothing")


def numbered(first, last):
    return [str(number) for number in range(first, last + 1)]


ALL = {
    ("Jarvis et al. 2002", "equation"): numbered(1, 8),
    ("Jarvis et al. 2002", "table"): ["1"],
    ("Jarvis et al. 2002", "figure"): numbered(1, 9),
    ("Gonzalez et al.", "equation"): numbered(1, 8),
    ("Gonzalez et al.", "table"): numbered(1, 3),
    ("Gonzalez et al.", "figure"): numbered(1, 5),
    ("Roda et al. 1999", "equation"): numbered(1, 25),
    ("Roda et al. 1999", "table"): numbered(1, 3),
    ("Roda et al. 1999", "figure"): numbered(1, 12),
    ("Chittor 1995", "equation"): numbered(1, 18),
    ("Chittor 1995", "table"): numbered(1, 6),
    ("Chittor 1995", "figure"): numbered(1, 28),
    ("Shi", "equation"): [
        *("1.1", "1.2", "Amdahl", "Gustafson", "2.1", "2.2", "2.3", "2.4", "2.5"),
        *("3.1", "3.2", "3.3", "3.4", "3.5", "4.1", "4.2", "4.3", "4.4"),
        *("5.1", "5.2", "5.3", "5.4", "6.1", "6.2", "6.3", "7.1", "7.2", "7.3"),
    ],
    ("Shi", "table"): numbered(1, 6),
    ("Shi", "figure"): numbered(1, 6),
}
"""What is numbered in print."""


@pytest.mark.parametrize(("paper", "kind"), ALL)
def test_the_list_has_every_number_of_print_once(paper, kind):
    found = [entry.number for entry in places.read() if (entry.paper, entry.kind) == (paper, kind)]
    assert found == ALL[paper, kind]


def test_the_kinds_are_those_of_print_and_systems():
    kinds = places.counts(places.read())
    assert set(kinds) == set(places.NAMES.values())
    assert all(set(of) == {"equation", "table", "figure", "system"} for of in kinds.values())


def test_a_line_of_the_list_that_is_too_short_is_told():
    with pytest.raises(ValueError, match="too many or too few values"):
        places._entry({"paper": "shi", "kind": "table"})


def test_two_oblivious_supersteps_take_5_w_if_the_first_exchange_is_one_way():
    ways = [(True, True), (False, True), (True, False)]
    found = [figure_1(oblivious=oblivious, one_way=one_way) for oblivious, one_way in ways]
    assert found == pytest.approx([5, 6, 6])


def test_seeds_are_run_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_told_by_seeds", lambda: "seed,stage\n")
    path = tmp_path / "seeds.csv"
    assert run_bsp("papers", "--seeds", path).exit_code == 0
    assert path.read_text() == "seed,stage\n"
    refused = run_bsp("papers", "--html", "a.html", "--seeds", tmp_path / "b.csv")
    assert "--seeds makes runs and writes one file" in refused.output
