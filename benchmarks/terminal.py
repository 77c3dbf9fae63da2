"""The figures as tables on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.report import Document, GoalFigures, duration, quartiles, ratios, tally

_WIDTH = 150
_COLOURS = {True: "green", False: "red", None: "yellow"}


def show_goals(rows: Sequence[GoalFigures], console: Console | None = None) -> None:
    """Show each goal and how far it is met, by section."""
    if not rows:
        return
    console = console or _console()
    table = Table("", title=tally(rows), title_justify="left")
    table.add_column("took", justify="right")
    table.add_column("goal")
    for name in ("measured", "quartiles", "of the least"):
        table.add_column(name, justify="right")
    table.add_column("met")
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            table.add_section()
            table.add_row(escape(section), style="bold")
        verdict = f"[{_COLOURS[row.met]}]{row.verdict}"
        table.add_row(
            f"  {escape(row.case)}",
            row.took,
            escape(row.goal),
            row.median,
            row.quartiles,
            row.of_least,
            verdict,
        )
    console.print(table)


def show_figures(found: Sequence[Document], console: Console | None = None) -> None:
    """Show the time of every case."""
    console = console or _console()
    for document in found:
        for section in document["sections"]:
            table = Table(title=escape(section["title"]), title_justify="left")
            table.add_column("")
            for name in (f"one {section['unit']}", "quartiles", "least"):
                table.add_column(name, justify="right")
            counted = any("lines" in case for case in section["cases"])
            if counted:
                table.add_column("lines", justify="right")
            table.add_column("compared with")
            for case in section["cases"]:
                took = case["seconds"]
                table.add_row(
                    escape(case["name"]),
                    duration(took["median"]),
                    quartiles(took),
                    duration(took["least"]),
                    *([str(case.get("lines", ""))] if counted else []),
                    escape("\n".join(ratios(case["against"]))),
                )
            console.print(table)


def _console() -> Console:
    """Return the terminal, or a wide console if the output goes to a file or a pipe."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH)
