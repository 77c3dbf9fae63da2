"""A table as lines of a terminal: names on the left, and as many numbers as fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.padding import Padding
from rich.text import Text

from bsplib.console import Console

WIDTH_OF_FILES = 160
"""Columns of a report that is written into a file or a pipe, unless ``COLUMNS`` is set."""

MARK = "*"
"""Marks the rows of a path, also where the terminal has no colour."""
STYLE = "bold red"
"""Their colour."""
GAP = 2
"""Spaces between columns, and before a name for its mark."""
KEPT_WIDTH = 24
"""Columns that are kept for names and marks, where names are so long, besides the indentation."""
CUT = "…"


def wide_console() -> Console:
    """Return a console on standard output; a file or a pipe is wide enough for all columns."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_FILES
    return console


class Name(NamedTuple):
    """The left end of a row."""

    texts: Sequence[str]
    """The name, with less and less about its callers: the first that fits is shown."""
    space: str = ""
    """What indents it."""
    mark: str = " "
    style: str = ""

    def fitted(self, width: int) -> str:
        """Return the name within a width; what does not fit otherwise loses its beginning."""
        room = width - cell_len(self.space)
        text = next((text for text in self.texts if cell_len(text) <= room), None)
        return set_cell_size(self.space + (text or _cut(self.texts[-1], room)), width)


def _cut(text: str, width: int) -> str:
    """Return the end of a text, which tells most of it, within a width in columns."""
    text = text[-width:]
    while text and cell_len(text) > width - len(CUT):
        text = text[1:]
    return CUT + text


class NumberColumn(NamedTuple):
    """A column of numbers."""

    key: str
    title: str
    """Of two lines at most."""
    cells: list[Text]

    @property
    def width(self) -> int:
        """Columns of the terminal that it takes."""
        return max(map(cell_len, (*self.title.split("\n"), *map(str, self.cells))))


def print_table(
    console: Console,
    names: Sequence[Name],
    columns: Sequence[NumberColumn],
    *,
    keep: Sequence[str],
    heads: Mapping[int, str] | None = None,
    tail: str = "",
    is_divided: bool = False,
) -> None:
    """Print a table; whole columns are left out where the terminal is narrow.

    Args:
        console: where to print.
        names: the left end of each row.
        columns: the numbers, with a text for each row.
        keep: keys of the columns in the order in which they are kept.
        heads: lines before rows, by the position of the row.
        tail: a line after the last row.
        is_divided: whether columns that do not fit are printed in another table, not left out.
    """
    longest = max(cell_len(name.space + text) for name in names for text in name.texts)
    indented = max(cell_len(name.space) for name in names)
    least = min(KEPT_WIDTH + indented, GAP + longest)
    kept = _fitting(columns, console.width - least, keep)
    used = sum(column.width + GAP for column in kept)
    width = max(min(GAP + longest, console.width - used), GAP + cell_len(CUT))
    titles = [column.title.rpartition("\n")[::2] for column in kept]
    for line in zip(*titles, strict=True):
        if any(line):
            _print_row(console, " " * width, [Text(title) for title in line], kept)
    console.print(Text("─" * (width + used)), soft_wrap=True)
    for position, name in enumerate(names):
        if heads and position in heads:
            console.print(Text(heads[position]), soft_wrap=True)
        cells = [column.cells[position] for column in kept]
        text = f"{name.mark:<{GAP}}{name.fitted(width - GAP)}"
        _print_row(console, text, cells, kept, name.style)
    if tail:
        print_wrapped(console, tail)
    missing = [column for column in columns if column not in kept]
    if missing and is_divided:
        print_table(console, names, missing, keep=keep, heads=heads, tail=tail, is_divided=True)
    elif missing:
        titles_of = ", ".join(column.title.replace("-\n", "").strip() for column in missing)
        text = f"  left out on {console.width} columns: {titles_of}"
        print_wrapped(console, text, style="dim")


def _fitting(columns: Sequence[NumberColumn], room: int, keep: Sequence[str]) -> list[NumberColumn]:
    """Return the columns that fit, in their usual order; at least one."""
    kept: list[NumberColumn] = []
    for column in sorted(columns, key=lambda column: keep.index(column.key)):
        room -= column.width + GAP
        if room < 0 and kept:
            break
        kept.append(column)
    return [column for column in columns if column in kept]


def print_wrapped(console: Console, text: str, *, style: str = "") -> None:
    """Print a text that breaks at spaces; its other lines are indented by two columns."""
    lines = Text(text, style=style).wrap(console, max(console.width - 2, 1))
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Padding(line, (0, 0, 0, 2 if number else 0), expand=False))


def _print_row(
    console: Console,
    name: str,
    cells: Sequence[Text],
    columns: Sequence[NumberColumn],
    style: str = "",
) -> None:
    """Print a row: the name to the left, and the cells to the right of their columns."""
    line = Text(name, style=style)
    for cell, column in zip(cells, columns, strict=True):
        line.append(" " * (GAP + column.width - cell.cell_len)).append_text(cell)
    line.rstrip()
    console.print(line, soft_wrap=True)
