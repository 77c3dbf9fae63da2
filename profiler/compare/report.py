"""A comparison as a table on the terminal."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rich.text import Text

from bsplib.profiler.compare.comparison import STATUS_MARKS
from bsplib.profiler.compare.conditions import differences
from bsplib.profiler.compare.node_texts import LESS, MORE, label, short_label, values
from bsplib.profiler.compare.verdict import verdict
from bsplib.profiler.report.lines import (
    Name,
    NumberColumn,
    print_table,
    print_wrapped,
    wide_console,
)
from bsplib.profiler.rows import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsplib.console import Console
    from bsplib.profiler.compare.comparison import Compared, Comparison

SHOWN = ("time", "loss", "h", "supersteps", "balance")
"""The quantities of tables, in their order."""


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
    console = console or wide_console()
    if title:
        print_wrapped(console, title, style="bold")
    print_wrapped(console, verdict(comparison))
    if unlike := differences(comparison.before.callgraph.run, comparison.after.callgraph.run):
        print_wrapped(console, f"The runs differ beside the code: {', '.join(unlike)}.")
    if scaling := comparison.scaling:
        print_wrapped(console, f"{scaling}.")
    console.print()
    rows = rows_of(comparison, sort)
    shown = rows[: top + 1] if top else rows
    columns = [
        NumberColumn(name, QUANTITIES[name].title, [_cell(node, name) for node, _ in shown])
        for name in SHOWN
    ]
    keep = SHOWN if sort == "name" else (sort, *SHOWN)
    print_table(console, [name for _, name in shown], columns, keep=keep)
    print_wrapped(console, _legend(comparison, len(rows) - len(shown)))


def rows_of(comparison: Comparison, sort: str) -> list[tuple[Compared, Name]]:
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
    rows = [(comparison.whole, Name(["whole run"]))]
    for node in sorted((*functions, *inside.pop(root, [])), key=_order(sort)):
        rows.append((node, Name([label(node)], mark=STATUS_MARKS[node.status])))
        rows += [
            (leaf, Name([short_label(leaf)], "  ", STATUS_MARKS[leaf.status]))
            for leaf in sorted(inside[node.known.node.id], key=_order(sort))
        ]
    return [row for row in rows if any(_is_some(row[0], quantity) for quantity in SHOWN)]


def _order(sort: str) -> Callable[[Compared], tuple[float, str]]:
    """Return a key that sorts nodes by a change or by name."""
    if sort == "name":
        return lambda node: (0.0, label(node))
    return lambda node: (-abs(node.change(sort)), label(node))


def _is_some(node: Compared, quantity: str) -> bool:
    return QUANTITIES[quantity].unit != "%" and any(node.values(quantity))


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
