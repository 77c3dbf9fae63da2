"""The profile of a trace as a table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from profiler import format as fmt
from profiler.callgraph import CallGraph, build
from profiler.costs import METRICS
from profiler.critical import METRIC_TITLES, TITLES, check_path, critical_path

if TYPE_CHECKING:
    from bsplib.records import Run, Trace

MARK = "*"
"""Stands before the rows of the critical path, also where there is no colour."""


def print_report(
    trace: Trace, *, run: int | None = None, path: str = "h-imb", console: Console | None = None
) -> None:
    """Print for each run a table of its functions and cost centres, in call-tree order.

    A node stands once, under the first of its callers, with all that it cost; where it
    has several callers they are named. Costs are written ``max (avg% | min%)``.

    Args:
        trace: what was recorded.
        run: position of the one run to print; all of them if None.
        path: which critical path to mark, one of ``profiler.critical.PATHS``.
        console: where to print; standard output if None.

    Raises:
        ValueError: there is no such run or path.
    """
    check_path(path)
    if run is not None and not 0 <= run < len(trace.runs):
        raise ValueError(f"there is no run {run}: the trace has {len(trace.runs)}, from 0")
    console = console or Console()
    chosen = range(len(trace.runs)) if run is None else [run]
    for number in chosen:
        callgraph = build(trace.runs[number])
        way = critical_path(callgraph, path)
        console.print(_title(number, callgraph), style="bold", soft_wrap=True)
        table = _table(callgraph, way, narrow=False)
        unlimited = console.options.update(max_width=10_000)
        if console.measure(table, options=unlimited).maximum > console.width:
            table = _table(callgraph, way, narrow=True)
        console.print(table)
        legend = f"{MARK} critical path: {TITLES[path]}"
        console.print(Text(legend if way else f"no critical path: {TITLES[path]} is 0 everywhere"))


def _title(number: int, callgraph: CallGraph) -> Text:
    """Say of which run the table is."""
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
    """One entry of the metadata, which may hold anything."""
    return fmt.visible(str(run.meta.get(key, "unknown")))


def _table(callgraph: CallGraph, way: list[str], *, narrow: bool) -> Table:
    """One row a node, those on the way marked; if narrow, costs stand on two lines."""
    graph, root = callgraph.graph, callgraph.root
    depth = {root: 0}
    for caller, name in networkx.dfs_edges(graph, root):
        depth[name] = depth[caller] + 1
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(min_width=len(MARK))
    table.add_column("function or\ncost centre", min_width=12, overflow="fold")
    for title in ("super-\nsteps", *(METRIC_TITLES[metric] for metric in METRICS)):
        table.add_column(title, justify="right", no_wrap=True)
    for name, indent in depth.items():
        cost = graph.nodes[name]["cost"]
        costs = [fmt.summary(cost[metric], metric) for metric in METRICS]
        if narrow:
            costs = [text.replace(" (", "\n(") for text in costs]
        on_way = name in way
        table.add_row(
            MARK if on_way else "",
            Text("  " * indent + _row_label(callgraph, name)),
            str(cost.count),
            *costs,
            style="bold red" if on_way else None,
        )
    return table


def _row_label(callgraph: CallGraph, name: str) -> str:
    """Name of a node, and of its callers where there are several."""
    nodes = callgraph.graph.nodes
    label = fmt.label(nodes[name]["node"])
    callers = [fmt.label(nodes[caller]["node"]) for caller in callgraph.graph.predecessors(name)]
    return f"{label} (from {', '.join(callers)})" if len(callers) > 1 else label
