"""The entries as text, as HTML, as JSON, and as the page of the documentation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.apps.papers.entries import Item, table
from bsplib.apps.papers.places import PaperEntry
from bsplib.apps.papers.places import read as all_places
from bsplib.output_file import PAGE_MARK

_TITLES = ("paper", "place", "what", "printed", "ours", "what differs", "computed by")
_PLACE_TITLES = ("paper", "number", "what", "where it lives", "remark")
_MISSING_TITLES = ("paper", "what", "why")
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


def as_table(items: Sequence[Item]) -> Table:
    """Return a table for a terminal."""
    shown = Table(*_TITLES[:5], box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for item in items:
        shown.add_row(*map(Text, _cells(item)[:5]))
    return shown


def as_json(items: Sequence[Item]) -> str:
    """Return a JSON document of the entries, what is missing, and where the code of each is."""
    found = {
        "items": [asdict(item) for item in items],
        "missing": [dict(zip(_MISSING_TITLES, row, strict=True)) for row in table("missing")],
        "places": [asdict(entry) for entry in all_places()],
    }
    return json.dumps(found, indent=1) + "\n"


def as_html(items: Sequence[Item]) -> str:
    """Return one page that needs no other file."""
    rows = [_html_row(_cells(item)) for item in items]
    places = [_html_row(_place_cells(entry)) for entry in all_places()]
    left = map(_html_row, table("missing"))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"{PAGE_MARK}<title>The papers</title>"
        f"<style>{_STYLE}</style><h1>The papers, beside print</h1>"
        f"<table>{_html_row(_TITLES, 'th')}{''.join(rows)}</table>"
        "<h2>Not computed by this command</h2>"
        f"<table>{_html_row(_MISSING_TITLES, 'th')}{''.join(left)}</table>"
        "<h2>Every equation, table, figure and system</h2>"
        f"<table>{_html_row(_PLACE_TITLES, 'th')}{''.join(places)}</table></html>\n"
    )


def _html_row(cells: Sequence[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def as_markdown(items: Sequence[Item]) -> str:
    """Return the page ``docs/maintaining/papers.md``."""
    lines = [
        "# The papers, beside print",
        "",
        "Written by `bsp papers --force --markdown docs/maintaining/papers.md`. What is not "
        "computed from printed constants is from runs on virtual processors, which take the same "
        "time everywhere. The stages of the SQL paper were run with several seeds by `bsp papers "
        "--seeds apps/papers/seeds.csv`; their "
        "rows have the median, the least and the greatest.",
        "",
        *_markdown(_TITLES[:-1], _likewise([_cells(item)[:-1] for item in items])),
        "",
        "## Measured on a computer with two cores",
        "",
        "[measured.csv](../../apps/papers/measured.csv) has the errors of the models, 100 "
        "(measured - predicted) / measured, each with its cause, as they were measured once, on "
        "two cores with caches of 2 MB each; `python -m bsplib.apps.fourier.experiment` measures "
        "Table 3 again. Beside other work, those at p = 1 and 2 were up to 15 points away.",
        "",
        "## Not computed by this command",
        "",
        *_markdown(_MISSING_TITLES, table("missing")),
        "",
        "## Every equation, table, figure and system",
        "",
        "[places.csv](../../apps/papers/places.csv) says where each of them lives: a module, a "
        "name in it after a colon, a file, or a command. A test looks whether each place exists.",
    ]
    return "\n".join(lines) + "\n"


def _likewise(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return rows whose last cell is not repeated where it is that of the row before."""
    before = [None, *(row[-1] for row in rows)]
    return [
        (*row[:-1], "likewise") if row[-1] == last and row[-1] != "nothing" else row
        for row, last in zip(rows, before, strict=False)
    ]


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [titles, ["---"] * len(titles), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines]
