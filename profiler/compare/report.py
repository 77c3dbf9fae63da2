"""The whole of ``bsp compare``: what changed, as tables on the terminal or as values for JSON."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from bsplib.profiler.compare.comparison import (
    LESS,
    MORE,
    STATUS_MARKS,
    compare_traces,
    label,
    values,
)
from bsplib.profiler.compare.limits import parse, violations
from bsplib.profiler.compare.verdict import differences, verdict
from bsplib.profiler.report.lines import (
    Name,
    NumberColumn,
    print_table,
    print_wrapped,
    wide_console,
)
from bsplib.profiler.rows import EXACT, QUANTITIES
from bsplib.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bsplib.console import Console
    from bsplib.profiler.compare.comparison import Compared, Comparison
    from bsplib.profiler.rows import Row
    from bsplib.recording.records import Trace


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
            (leaf, Name([label(leaf, is_short=True)], "  ", STATUS_MARKS[leaf.status]))
            for leaf in sorted(inside[node.known.node.id], key=_order(sort))
        ]
    amounts = [quantity for quantity in SHOWN if QUANTITIES[quantity].unit != "%"]
    return [row for row in rows if any(any(row[0].values(amount)) for amount in amounts)]


def _order(sort: str) -> Callable[[Compared], tuple[float, str]]:
    """Return a key that sorts nodes by a change or by name."""
    if sort == "name":
        return lambda node: (0.0, label(node))
    return lambda node: (-abs(node.change(sort)), label(node))


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


def compare_and_print(
    before: Trace,
    after: Trace,
    *,
    limits: str | None = None,
    sort: str = "time",
    top: int = 20,
    as_json: bool = False,
    **options: Any,
) -> bool:
    """Compare the runs of two traces and print what changed.

    Args:
        before: the first trace.
        after: the second trace.
        limits: as for ``bsplib.profiler.compare.limits.parse``; a sentence about each violation is
            printed on standard error.
        sort: the quantity by whose change the rows are sorted, or ``name``.
        top: how many rows to show; 0 for all.
        as_json: print JSON instead of tables.
        **options: as for ``bsplib.profiler.compare.comparison.compare_traces``.

    Returns:
        Whether all limits hold.

    Raises:
        LimitError: the limits cannot be understood, or name a node that is not there.
        UsageError: there is no such run, or the Machine lacks a figure.
    """
    wanted = [] if limits is None else parse(limits)
    pairs = compare_traces(before, after, **options)
    found = [(after, it) for _, after, pair in pairs for it in violations(pair, wanted)]
    if as_json:
        runs = [{"run_before": one, "run_after": two, **as_data(it)} for one, two, it in pairs]
        print(json.dumps({"runs": runs}, indent=1))
    for one, two, comparison in [] if as_json else pairs:
        other = "" if one == two else f" before, run {two} after"
        title = "" if len(pairs) == one == two == 1 else f"run {one}{other}"
        print_comparison(comparison, title=title, sort=sort, top=top)
    for number, violation in found:
        run = f"run {number}, " if len(pairs) > 1 else ""
        print(visible(f"{run}{violation}."), file=sys.stderr)
    return not found


# -- a comparison as values for JSON: numbers without units in their text, seconds and bytes ------


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as values for JSON.

    Args:
        comparison: two runs.

    Returns:
        ``verdict`` (a sentence), ``conditions`` (what differs beside the code, a list of
        texts), ``computation_scaling`` (a fraction; null where both runs have equally many
        processes), and ``nodes``, the whole run first: each with ``status``, ``kind``, its
        ``label``, the ``short`` one below that of its function, ``parent`` (the position of the
        function that a cost centre is in, else null) and the sides ``before`` and ``after``, null
        where there was no such node. A side has the ``id``, ``name``, ``function``, ``file``,
        ``line`` and ``sync`` of the node, and the quantities by their names: times in seconds, h in
        bytes, balance as a fraction.
    """
    before, after = comparison.before.callgraph.run, comparison.after.callgraph.run
    scaling = comparison.scaling
    functions = {
        node.known.node.id: position
        for position, node in enumerate(comparison.nodes)
        if node.known.node.kind == "function"
    }
    return {
        "verdict": verdict(comparison),
        "conditions": differences(before, after),
        "computation_scaling": scaling.fraction if scaling else None,
        "nodes": [_node(node, functions) for node in comparison.nodes],
    }


def _node(node: Compared, functions: Mapping[str, int]) -> dict[str, Any]:
    is_function = node.known.node.kind == "function"
    return {
        "status": node.status,
        "kind": node.known.node.kind,
        "label": label(node),
        "short": label(node, is_short=True),
        "parent": None if is_function else functions.get(node.known.function.id),
        "before": _side(node.before),
        "after": _side(node.after),
    }


def _side(side: Row | None) -> dict[str, Any] | None:
    if side is None:
        return None
    node = side.node
    names = {"name": node.name, "function": side.function.name, "file": node.file}
    place = {"id": node.id, "line": node.line, "sync": node.sync}
    numbers = {name: side[name] for name in QUANTITIES}
    exact = {name: int(numbers[name]) for name in EXACT}
    return {name: visible(text) for name, text in names.items()} | place | numbers | exact
