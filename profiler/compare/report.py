"""A comparison as a table on the terminal."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from bsplib.console import Console
from bsplib.profiler.compare.conditions import differences
from bsplib.profiler.compare.node_texts import LESS, MORE, STATUS_MARKS, label, short_label, values
from bsplib.profiler.compare.quantities import QUANTITIES, SHOWN
from bsplib.profiler.compare.verdict import verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.profiler.compare.comparison import Compared, Comparison

_LEAST_NAME = 23
"""Width of names from which on they have a column of their own."""
_GAPS = (2, 1)
"""Spaces between columns: as many as there is room for."""
_LEAST_WIDTH = 76
"""Width of the widest values; on a narrower terminal, lines go on below."""


def print_comparison(
    comparison: Comparison,
    *,
    title: str = "",
    sort: str = "time",
    top: int = 20,
    console: Console | None = None,
) -> None:
    """Print what changed: a verdict, then a table of the nodes that changed most.

    Args:
        comparison: two runs.
        title: a line above the verdict.
        sort: the quantity by whose change the nodes are sorted, or ``name``.
        top: how many nodes to show beside the whole run; 0 for all.
        console: where to print; default: standard output.
    """
    console = console or Console()
    if title:
        console.print(Text(title, style="bold"), soft_wrap=True)
    whole_lines = not console.is_terminal  # which a program can search
    console.print(Text(verdict(comparison)), soft_wrap=whole_lines)
    if unlike := differences(comparison.before.callgraph.run, comparison.after.callgraph.run):
        console.print(
            Text(f"The runs differ beside the code: {', '.join(unlike)}."), soft_wrap=whole_lines
        )
    if scaling := comparison.scaling:
        console.print(Text(f"{scaling}."), soft_wrap=whole_lines)
    console.print()
    rows = rows_of(comparison, sort)
    shown = rows[: top + 1] if top else rows
    console.print(_table(shown, console.width), width=max(console.width, _LEAST_WIDTH))
    console.print(Text(_legend(comparison, len(rows) - len(shown))))


class ComparedRow(NamedTuple):
    """A node, and what the table calls it."""

    node: Compared
    name: str


def rows_of(comparison: Comparison, sort: str) -> list[ComparedRow]:
    """Return the whole run, then each function, with the greatest change first.

    The cost centres of a function follow it; those of ``main`` stand for themselves. What
    cost nothing in both runs is left out.

    Args:
        comparison: two runs.
        sort: a quantity, or ``name``.
    """
    inside: defaultdict[str, list[Compared]] = defaultdict(list)
    for node in comparison.cost_centres:
        inside[node.known.function.id].append(node)
    root = comparison.whole.known.node.id
    functions = [node for node in comparison.nodes[1:] if node.known.node.kind == "function"]
    rows = [ComparedRow(comparison.whole, "whole run")]
    for node in sorted((*functions, *inside.pop(root, [])), key=_order(sort)):
        rows.append(ComparedRow(node, f"{STATUS_MARKS[node.status]} {label(node)}"))
        leaves = sorted(inside[node.known.node.id], key=_order(sort))
        rows += [ComparedRow(it, f"{STATUS_MARKS[it.status]}   {short_label(it)}") for it in leaves]
    return [row for row in rows if any(_is_some(row.node, quantity) for quantity in SHOWN)]


def _order(sort: str) -> Callable[[Compared], tuple[float, str]]:
    """Return a key that sorts nodes by a change or by name."""
    if sort == "name":
        return lambda node: (0.0, label(node))
    return lambda node: (-abs(node.change(sort)), label(node))


def _is_some(node: Compared, quantity: str) -> bool:
    return QUANTITIES[quantity].unit != "%" and any(node.values(quantity))


def _table(rows: list[ComparedRow], width: int) -> Table | Group:
    """Return a table; where it is too narrow for names, they have lines of their own."""
    cells = [[_cell(row.node, quantity) for quantity in SHOWN] for row in rows]
    titles = [Text(QUANTITIES[quantity].title) for quantity in SHOWN]
    columns = zip(titles, *cells, strict=True)
    widths = [max(cell.cell_len for cell in column) for column in columns]
    names = [row.name for row in rows]
    for gap in _GAPS:
        if width - sum(widths) - gap * len(widths) >= _LEAST_NAME:
            return _side_by_side(names, titles, cells, gap)
    return _stacked(names, titles, cells, widths)


def _side_by_side(names: list[str], titles: list[Text], cells: list[list[Text]], gap: int) -> Table:
    """Return a table with one row for each node, and spaces between its columns."""
    table = Table(box=SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), show_edge=False, pad_edge=False)
    table.add_column("function or cost centre", overflow="fold")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for name, row in zip(names, cells, strict=True):
        table.add_row(Text(name), *row)
    return table


def _stacked(
    names: list[str], titles: list[Text], cells: list[list[Text]], widths: list[int]
) -> Group:
    """Return, for narrow terminals, the name of each node on one line and its values below."""

    def line(row: list[Text]) -> Table:
        grid = Table.grid(padding=(0, 1, 0, 0))
        for width in widths:
            grid.add_column(justify="right", no_wrap=True, min_width=width)
        grid.add_row(*row)
        return grid

    parts: list[Text | Table] = [line(titles)]
    for name, row in zip(names, cells, strict=True):
        parts += [Text(name, overflow="fold"), line(row)]
    return Group(*parts)


def _cell(node: Compared, quantity: str) -> Text:
    """Return a value: what became worse is red, better green, and what is as before dim."""
    text = values(node, quantity)
    if not {MORE, LESS}.intersection(text):
        return Text(text, style="" if node.status in {"new", "vanished"} else "dim")
    better = (node.change(quantity) > 0) == QUANTITIES[quantity].more_is_better
    return Text(text, style="green" if better else "red")


def _legend(comparison: Comparison, left_out: int) -> str:
    """Return what the marks mean, and how many nodes the table leaves out."""
    counts = {status: comparison.count(status) for status in ("moved", "new", "vanished")}
    marks = [f"{STATUS_MARKS[it]} {it}: {count}" for it, count in counts.items() if count]
    more = [f"{left_out} more rows with --top 0"] if left_out else []
    return ", ".join([f"{LESS} less, {MORE} more than before", *marks, *more])
