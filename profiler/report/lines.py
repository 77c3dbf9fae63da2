"""A table as lines of a terminal: names on the left, and as many numbers as fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bsplib.profiler.critical import METRIC_TITLES
from bsplib.profiler.report.columns import GAP, NumberColumn, cut, fitting, padded

MARK = "*"
"""Marks the rows of a path, also where the terminal has no colour."""
_MARKED, _UNMARKED = f"{MARK} ", "  "
_KEPT_WIDTH = 24
"""Columns that are kept for names and marks, where names are so long, besides the indentation."""
_LEAST_WIDTH = 8


class Name(NamedTuple):
    """The left end of a row."""

    texts: Sequence[str]
    """The name, with less and less about its callers: the first that fits is shown."""
    space: str = ""
    """What indents it."""
    marked: bool = False
    bold: bool = False

    def width(self) -> int:
        """Columns of the terminal that it takes if there is room for all of it."""
        return cell_len(self.space) + max(map(cell_len, self.texts))

    def fitted(self, width: int) -> str:
        """Return the name within a width; what does not fit otherwise loses its beginning."""
        room = width - cell_len(self.space)
        text = next((text for text in self.texts if cell_len(text) <= room), None)
        return self.space + (cut(self.texts[-1], room) if text is None else text)


def print_table(
    console: Console,
    names: Sequence[Name],
    columns: Sequence[NumberColumn],
    *,
    first: str = "loss",
    heads: Mapping[int, str] | None = None,
    tail: str = "",
) -> None:
    """Print a table; whole columns are left out where the terminal is narrow.

    Args:
        console: where to print.
        names: the left end of each row.
        columns: the numbers, with a text for each row.
        first: key of the column that is left out last.
        heads: lines before rows, by the position of the row.
        tail: a line after the last row.
    """
    longest = len(MARK) + 1 + max(name.width() for name in names)
    least = _KEPT_WIDTH + max(cell_len(name.space) for name in names)
    kept = fitting(columns, console.width, min(least, longest), first)
    used = sum(column.width + GAP for column in kept)
    width = max(min(longest, console.width - used), _LEAST_WIDTH)
    for line in (0, 1):
        titles = [column.title[line] for column in kept]
        _print(console, _line("", titles, kept, width))
    _print(console, "─" * (width + used))
    for position, name in enumerate(names):
        if heads and position in heads:
            _print(console, heads[position])
        mark = _MARKED if name.marked else _UNMARKED
        text = mark + name.fitted(width - len(mark))
        style = "bold red" if name.marked else "bold" if name.bold else ""
        cells = [column.cells[position] for column in kept]
        _print(console, _line(text, cells, kept, width), style)
    if tail:
        print_wrapped(console, tail)
    if missing := [column for column in columns if column not in kept]:
        titles = [METRIC_TITLES.get(column.key, column.key) for column in missing]
        text = f"  left out on {console.width} columns: {', '.join(titles)}"
        print_wrapped(console, text, style="dim")


def print_wrapped(console: Console, text: str, *, style: str = "") -> None:
    """Print a text that breaks at spaces; its other lines are indented by two columns."""
    lines = Text(text, style=style).wrap(console, max(console.width - 2, 1))
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Padding(line, (0, 0, 0, 2 if number else 0), expand=False))


def _line(name: str, cells: Sequence[str], columns: Sequence[NumberColumn], width: int) -> str:
    """Return a row: the name to the left, and the cells to the right of their columns."""
    numbers = [
        " " * (GAP + column.width - cell_len(cell)) + cell
        for cell, column in zip(cells, columns, strict=True)
    ]
    return padded(name, width) + "".join(numbers)


def _print(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line.rstrip(), style=style), soft_wrap=True)
