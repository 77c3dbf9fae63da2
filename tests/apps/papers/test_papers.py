"""``bsp papers`` computes numbers beside print, and says of each what differs."""

from __future__ import annotations

import csv
import importlib
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bsplib.apps.papers import on_this_computer, places, session, show
from bsplib.apps.papers.entries import MISSING, Item, figure_1, quick
from bsplib.apps.papers.msteps.measure import ModelledTime
from bsplib.tools.cli import main as bsp

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


PAGE = ROOT / "docs" / "papers.md"


def test_the_page_of_the_documentation_has_what_is_computed_from_print(items):
    """Else write it anew: bsp papers --force --markdown docs/papers.md."""
    page = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [line for line in show.as_markdown(items).splitlines() if line not in page]
    assert not missing


@pytest.fixture
def written(tmp_path):
    """What the command writes, where the runs are left out."""

    def write(*arguments):
        html, document = tmp_path / "a.html", tmp_path / "a.json"
        line = ["papers", "--html", str(html), "--out", str(document), *arguments]
        found = CliRunner().invoke(bsp, line)
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
    assert len(read["missing"]) == len(MISSING)
    assert len(read["places"]) == len(places.read())


@pytest.mark.slow
def test_the_page_of_the_documentation_is_the_one_that_the_command_writes(tmp_path):
    """All differences are held by it, line by line; it takes less than two minutes."""
    page = tmp_path / "papers.md"
    found = CliRunner().invoke(bsp, ["papers", "--markdown", str(page)])
    assert found.exit_code == 0, found.output
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    row = r"Figures 5 to 9 \| ([^|]*) \| (.*?) \| (.*?) \| median and range"
    balances = re.findall(row, page.read_text())
    assert len(balances) == 8
    for what, printed, ours in balances:
        assert len(printed.split(r" \| ")) == len(ours.split(r" \| ")) == 2, what


@pytest.mark.slow
def test_what_is_measured_here_is_added(written, monkeypatch, tmp_path):
    """Beside p = 1 and 2 only, and with a small program."""
    monkeypatch.setattr(session, "virtual", lambda _: iter(()))
    monkeypatch.setattr(session, "story", lambda: iter(()))
    monkeypatch.setattr(on_this_computer, "_COUNTS", (1, 2))
    monkeypatch.setattr(on_this_computer, "PROGRAMS", ["fractal"])
    monkeypatch.setattr(on_this_computer, "_transforms", lambda: iter(()))
    monkeypatch.setattr(on_this_computer, "_VALUES", 1 << 12)
    monkeypatch.setattr(on_this_computer, "_KEYS", 1 << 12)
    table = tmp_path / "measured.csv"
    _, read = written("--full", "--measured", str(table))
    found = {item["what"] for item in read["items"]}
    rows = list(csv.reader(table.read_text(encoding="utf-8").splitlines()))[1:]
    assert rows == [
        [item[key] for key in ("paper", "place", "what", "ours", "differs")]
        for item in read["items"][-len(rows) :]
    ]
    assert {"creation of processes here", "barrier here"} <= {row[2] for row in rows}
    assert {"creation of processes here", "barrier here"} <= found
    assert any(what.startswith("error of fractal") for what in found)


def test_where_processes_take_turns_the_error_without_and_with_them_is_told(monkeypatch):
    monkeypatch.setattr(on_this_computer, "own_cores", lambda: 2)
    assert on_this_computer._with_turns(ModelledTime(2, 3.0, 1.0, 4.0), "why") == ("+25%", "why")
    ours, why = on_this_computer._with_turns(ModelledTime(8, 3.0, 1.0, 4.0), "why")
    assert ours == "+75%; +25% corrected: constants measured with 8 at once"
    assert why.startswith("8 processes take turns on 2 cores")


def test_what_was_measured_once_is_in_the_page_each_with_its_cause():
    rows = show.measured_before()
    page = PAGE.read_text(encoding="utf-8")
    assert {row[0] for row in rows} == {
        on_this_computer.CHITTOR,
        on_this_computer.RODA,
        on_this_computer.SHI,
        on_this_computer.GONZALEZ,
    }
    for row in rows:
        assert all(row)
        assert show._markdown(("",), [row])[-1] in page


def test_every_program_that_is_measured_has_a_cause():
    assert set(on_this_computer._STEADY) == set(on_this_computer.PROGRAMS)


@pytest.mark.parametrize(("load", "text"), [(0.5, ""), (99.0, "; a load of 99 on ")])
def test_a_crowded_computer_is_told(monkeypatch, load, text):
    monkeypatch.setattr(on_this_computer.os, "getloadavg", lambda: (load, load, load))
    assert on_this_computer._crowd().startswith(text)
    assert bool(on_this_computer._crowd()) == bool(text)


def test_texts_are_escaped_in_a_page():
    page = show.as_html([Item("<b>", "&", "a|b", "1", "2", "why", "where")])
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert r"a\|b" in show.as_markdown([Item("p", "t", "a|b", "1", "2", "why", "where")])


def test_a_file_that_cannot_be_written_is_one_sentence_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(session, "collected", lambda **_: pytest.fail("it was computed"))
    found = CliRunner().invoke(bsp, ["papers", "--out", "/proc/nowhere/a.json"])
    assert found.exit_code == 1
    assert "out: there is no folder /proc/nowhere" in found.output
    assert "Traceback" not in found.output


# -- every equation, table, figure and system -----------------------------------------------------


def exists(place):
    """Tell whether a place of the list is there."""
    if place.startswith("bsp "):
        return place.removeprefix("bsp ") in bsp.list_commands(None)
    if "/" in place:
        return (ROOT / place).is_file()
    module, _, name = place.partition(":")
    found = importlib.import_module(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part, None) or getattr(found, "__dataclass_fields__", {}).get(part)
    return found is not None


@pytest.mark.parametrize("entry", places.read(), ids=lambda entry: f"{entry.paper} {entry.title}")
def test_every_entry_lives_where_it_says_or_says_why_not(entry):
    assert entry.what
    assert entry.where or entry.why
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


def test_a_table_of_what_was_measured_needs_a_measurement(tmp_path):
    found = CliRunner().invoke(bsp, ["papers", "--measured", str(tmp_path / "m.csv")])
    assert found.exit_code == 2
    assert "--measured writes what --full measures; add --full" in found.output


def test_two_oblivious_supersteps_take_5_w_if_the_first_exchange_is_one_way():
    ways = [(True, True), (False, True), (True, False)]
    found = [figure_1(oblivious=oblivious, one_way=one_way) for oblivious, one_way in ways]
    assert found == pytest.approx([5, 6, 6])


def test_seeds_are_run_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_told_by_seeds", lambda: "seed,stage\n")
    path = tmp_path / "seeds.csv"
    assert CliRunner().invoke(bsp, ["papers", "--seeds", str(path)]).exit_code == 0
    assert path.read_text() == "seed,stage\n"
    refused = CliRunner().invoke(bsp, ["papers", "--full", "--seeds", str(tmp_path / "b.csv")])
    assert "--seeds makes runs and writes one file" in refused.output
