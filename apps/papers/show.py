"""The entries as text, as HTML, as JSON, and as the page of the documentation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.apps.papers.entries import MISSING, Item
from bsplib.apps.papers.places import PaperEntry
from bsplib.apps.papers.places import read as all_places
from bsplib.output_file import PAGE_MARK

_TITLES = ("paper", "place", "what", "printed", "ours", "what differs", "computed by")
_PLACE_TITLES = ("paper", "number", "what", "where it lives", "remark")
_MEASURED_TITLES = ("paper", "place", "what", "measured", "what differs")
_STYLE = (
    "body{font:15px system-ui;margin:2em auto;max-width:75em}"
    "table{border-collapse:collapse}td,th{border-bottom:1px solid #ccc;padding:.3em .6em;"
    "text-align:left;vertical-align:top}"
)


def _cells(item: Item) -> tuple[str, ...]:
    return (
        *(item.paper, item.place, item.what, item.printed, item.ours),
        *(item.differs or "nothing", item.lives),
    )


def _place_cells(entry: PaperEntry) -> tuple[str, ...]:
    where = ", ".join(entry.where) or "nowhere"
    return entry.paper, entry.title, entry.what, where, entry.why


def measured_before() -> list[list[str]]:
    """Return what was measured once on a computer: paper, place, what, ours and what differs."""
    text = files("bsplib.apps.papers").joinpath("measured.csv").read_text(encoding="utf-8")
    return list(csv.reader(text.splitlines(), strict=True))[1:]


def as_csv(items: Sequence[Item]) -> str:
    """Return the table that :func:`measured_before` reads, of entries that were measured."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("paper", "place", "what", "ours", "differs"))
    writer.writerows((one.paper, one.place, one.what, one.ours, one.differs) for one in items)
    return text.getvalue()


def as_table(items: Sequence[Item]) -> Table:
    """Return a table for a terminal."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in _TITLES[:5]:
        table.add_column(title)
    for item in items:
        table.add_row(*map(Text, _cells(item)[:5]))
    return table


def as_json(items: Sequence[Item]) -> str:
    """Return a JSON document of the entries, what is missing, and where the code of each is."""
    found = {
        "items": [asdict(item) for item in items],
        "missing": [asdict(m) for m in MISSING],
        "places": [asdict(entry) for entry in all_places()],
    }
    return json.dumps(found, indent=1) + "\n"


def as_html(items: Sequence[Item]) -> str:
    """Return one page that needs no other file."""
    rows = [_html_row(_cells(item)) for item in items]
    places = [_html_row(_place_cells(entry)) for entry in all_places()]
    left = [_html_row((one.paper, one.what, one.why)) for one in MISSING]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"{PAGE_MARK}<title>The papers</title>"
        f"<style>{_STYLE}</style><h1>The papers, beside print</h1>"
        f"<table>{_html_row(_TITLES, 'th')}{''.join(rows)}</table>"
        "<h2>Not computed by this command</h2>"
        f"<table>{_html_row(('paper', 'what', 'why'), 'th')}{''.join(left)}</table>"
        "<h2>Every equation, table, figure and system</h2>"
        f"<table>{_html_row(_PLACE_TITLES, 'th')}{''.join(places)}</table></html>\n"
    )


def _html_row(cells: Sequence[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def as_markdown(items: Sequence[Item]) -> str:
    """Return the page ``docs/papers.md``."""
    lines = [
        "# The papers, beside print",
        "",
        "Written by `bsp papers --force --markdown docs/papers.md`; `--full` adds what is "
        "measured on the computer at hand. What is not computed from printed constants is from "
        "runs on virtual processors, which take the same time everywhere. The stages of the SQL "
        "paper were run with several seeds by `bsp papers --seeds apps/papers/seeds.csv`; their "
        "rows have the median, the least and the greatest.",
        "",
        *_markdown(_TITLES, [_cells(item) for item in items]),
        "",
        "## Measured on a computer with two cores",
        "",
        "What `--full` adds, as it was measured once, on two cores with caches of 2 MB each, by "
        "`bsp papers --full --force --measured apps/papers/measured.csv`. Errors are 100 "
        "(measured - predicted) / measured. In another run, beside other work, those at p = 1 and "
        "2 were up to 15 points away (elimination +27%, matrices -22% at p = 1). What predicts "
        "the programs of Roda et al. and Shi is measured with processes that keep their memory "
        "and, where each has a core, spin while they wait; of each time the least of many counts.",
        "",
        *_markdown(_MEASURED_TITLES, measured_before()),
        "",
        "## Not computed by this command",
        "",
        *_markdown(("paper", "what", "why"), [(m.paper, m.what, m.why) for m in MISSING]),
        "",
        "## Every equation, table, figure and system",
        "",
        "A place is a module, a name in it after a colon, a file, or a command. Read from "
        "`apps/papers/places.csv`; a test looks whether each place exists.",
        "",
        *_markdown(_PLACE_TITLES, [_place_cells(entry) for entry in all_places()]),
    ]
    return "\n".join(lines) + "\n"


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [titles, ["---"] * len(titles), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines]
