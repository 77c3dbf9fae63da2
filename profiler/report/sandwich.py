"""One node of the call graph between its callers and its callees."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.report.columns import columns, labels
from bsplib.profiler.report.lines import Name, print_table
from bsplib.profiler.report.rows import NodeRow, RowChoice, ordered
from bsplib.profiler.report.sampled_lines import print_executed

if TYPE_CHECKING:
    from rich.console import Console

    from bsplib.profiler.profile import RunProfile


def print_sandwich(
    profile: RunProfile, name: str, choice: RowChoice, marked: set[str], console: Console
) -> None:
    """Print a node with its callers above it and its callees below it.

    The numbers of a caller are the part of the node that came through it; those of a
    callee are the part of the callee that came through the node.

    Args:
        profile: the run.
        name: id of the node.
        choice: order and greatest number of callers, and of callees.
        marked: ids of the nodes that are marked.
        console: where to print.
    """
    callers, callees = neighbours(profile, name)
    above, below = (ordered(profile.callgraph, rows, choice.sort) for rows in (callers, callees))
    rows = [*above[: choice.top], own_row(profile, name), *below[: choice.top]]
    first_callee = min(len(above), choice.top or len(above)) + 1
    heads = {0: _head("callers", above, choice)} if above else {}
    if below:
        heads[first_callee] = _head("callees", below, choice)
    entry = profile.callgraph.graph.nodes[name]["node"]
    console.print(Text(f"{fmt.label(entry)}: {fmt.visible(entry.file)}:{entry.line}, id {name}"))
    names = [
        Name(
            list(labels(profile.callgraph, row.node, callers=2)),
            "" if row.node == name else "  ",
            row.node in marked,
            row.node == name,
        )
        for row in rows
    ]
    whole_s = profile.book().main.time_s
    print_table(console, names, columns(rows, whole_s), first=choice.column, heads=heads)
    print_executed(profile, name, console)


def neighbours(profile: RunProfile, name: str) -> tuple[list[NodeRow], list[NodeRow]]:
    """Return the callers of a node and its callees, with the parts that came through the edges."""
    graph = profile.callgraph.graph
    callers = ((caller, (caller, name)) for caller in graph.predecessors(name))
    callees = ((callee, (name, callee)) for callee in graph.successors(name))
    return _rows(profile, callers), _rows(profile, callees)


def _rows(profile: RunProfile, edges: Iterable[tuple[str, tuple[str, str]]]) -> list[NodeRow]:
    graph, times = profile.callgraph.graph, profile.book().edges
    return [NodeRow(node, 0, graph.edges[edge]["cost"], times[edge]) for node, edge in edges]


def own_row(profile: RunProfile, name: str) -> NodeRow:
    """Return the row of a node itself."""
    cost = profile.callgraph.graph.nodes[name]["cost"]
    return NodeRow(name, 0, cost, profile.book().nodes[name])


def _head(title: str, rows: list[NodeRow], choice: RowChoice) -> str:
    """Return the line before callers or callees, with how many are not shown."""
    left_out = len(rows) - len(rows[: choice.top])
    return f"{title}" + (f" ({left_out} more are not shown)" if left_out else "")
