"""The profile of a trace as a table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import networkx
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from profiler import format as fmt
from profiler.callgraph import CallGraph, build
from profiler.costs import METRICS
from profiler.critical import METRIC_TITLES, TITLES, check_path, critical_path

if TYPE_CHECKING:
    from bsplib.recording.records import Run, Trace

MARK = "*"
"""Marks the rows of the critical path, also where the terminal has no colour."""

_STACKED_WIDTHS = 10, 13
"""Widths of the columns of supersteps and costs: equal in all tables of a narrow terminal."""


def print_report(
    trace: Trace,
    *,
    run: int | None = None,
    path: str = "h-imb",
    library: bool = False,
    console: Console | None = None,
) -> None:
    """Print for each run a table of its functions and cost centres, in call-tree order.

    Each node is shown once, under its first caller, with its total cost; where it has
    several callers, they are named. Costs are written as ``max (avg% | min%)``.

    Args:
        trace: the trace.
        run: position of the run to print; default: all runs.
        path: the critical path to mark, one of ``profiler.critical.PATHS``.
        library: also show the functions of bsplib itself, such as a collective.
        console: where to print; default: standard output.

    Raises:
        ValueError: there is no such run or path.
    """
    check_path(path)
    if run is not None and not 0 <= run < len(trace.runs):
        raise ValueError(f"there is no run {run}: the trace has {len(trace.runs)}, from 0")
    console = console or Console()
    chosen = range(len(trace.runs)) if run is None else [run]
    for number in chosen:
        callgraph = build(trace.runs[number], library=library)
        chain = critical_path(callgraph, path)
        console.print(_title(number, callgraph), style="bold", soft_wrap=True)
        if waiting := fmt.waiting(callgraph.run):
            console.print(Text(waiting), soft_wrap=True)
        table = _table(callgraph, chain)
        unlimited = console.options.update(max_width=10_000)
        fits = console.measure(table, options=unlimited).maximum <= console.width
        console.print(table if fits else _stacked_table(callgraph, chain))
        legend = f"{MARK} critical path: {TITLES[path]}"
        console.print(
            Text(legend if chain else f"no critical path: {TITLES[path]} is 0 everywhere")
        )


def _title(number: int, callgraph: CallGraph) -> Text:
    """Return a title that describes the run of the table."""
    run = callgraph.run
    elapsed_s = callgraph.graph.nodes[callgraph.root]["cost"].elapsed_s
    processes = "1 process" if run.nprocs == 1 else f"{run.nprocs} processes"
    parts = [
        f"run {number + 1}: {_meta(run, 'program')}",
        processes,
        f"backend {_meta(run, 'backend')}",
        fmt.seconds(elapsed_s),
        "complete" if run.complete else f"not complete: {_meta(run, 'error')}",
    ]
    return Text(", ".join(parts))


def _meta(run: Run, key: str) -> str:
    """Return an entry of the metadata, which may contain any text."""
    return fmt.visible(str(run.meta.get(key, "unknown")))


def _table(callgraph: CallGraph, chain: list[str]) -> Table:
    """Return a table with one row for each node; the rows of the call chain are marked."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(min_width=len(MARK))
    table.add_column("function or\ncost centre")
    _add_cost_columns(table)
    for row in _rows(callgraph, chain):
        label = Text("  " * row.depth + row.label)
        table.add_row(row.mark, label, row.supersteps, *row.costs, style=row.style)
    return table


def _stacked_table(callgraph: CallGraph, chain: list[str]) -> Group:
    """Return, for narrow terminals, the name of each node on one line and its costs below."""
    head = Table.grid(padding=(0, 1, 0, 0))
    _add_cost_columns(head, _STACKED_WIDTHS)
    head.add_row("supersteps", *(METRIC_TITLES[metric] for metric in METRICS))
    parts: list[Text | Table] = [Text(), head]
    for row in _rows(callgraph, chain):
        name = f"{row.mark:1} {'  ' * row.depth}{row.label}"
        costs = Table.grid(padding=(0, 1, 0, 0))
        _add_cost_columns(costs, _STACKED_WIDTHS)
        costs.add_row(row.supersteps, *(text.replace(" (", "\n(") for text in row.costs))
        costs.style = row.style or ""
        parts += [Text(name, style=row.style or "", overflow="fold"), costs]
    return Group(*parts, Text())


def _add_cost_columns(table: Table, widths: tuple[int | None, int | None] = (None, None)) -> None:
    """Add columns for the supersteps and the metrics."""
    steps, costs = widths
    table.add_column("super-\nsteps", justify="right", no_wrap=True, min_width=steps)
    for metric in METRICS:
        title = METRIC_TITLES[metric]
        table.add_column(title, justify="right", no_wrap=True, min_width=costs)


class _Row(NamedTuple):
    """A node, as the texts of its row in the report."""

    mark: str
    depth: int
    label: str
    supersteps: str
    costs: list[str]
    style: str | None


def _rows(callgraph: CallGraph, chain: list[str]) -> list[_Row]:
    """Return the rows of the nodes in call-tree order, with marks for those of the call chain."""
    graph, root = callgraph.graph, callgraph.root
    depth = {root: 0}
    for caller, name in networkx.dfs_edges(graph, root):
        depth[name] = depth[caller] + 1
    rows = []
    for name, indent in depth.items():
        cost = graph.nodes[name]["cost"]
        costs = [fmt.summary(cost[metric], metric) for metric in METRICS]
        mark, style = (MARK, "bold red") if name in chain else ("", None)
        rows.append(_Row(mark, indent, _row_label(callgraph, name), str(cost.count), costs, style))
    return rows


def _row_label(callgraph: CallGraph, name: str) -> str:
    """Return the name of a node, with those of its callers if there are several."""
    nodes = callgraph.graph.nodes
    label = fmt.label(nodes[name]["node"])
    callers = [fmt.label(nodes[caller]["node"]) for caller in callgraph.graph.predecessors(name)]
    return f"{label} (from {', '.join(callers)})" if len(callers) > 1 else label
