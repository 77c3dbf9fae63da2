"""The profile of a trace on the terminal: what is lost, then a table of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.critical import TITLES, VIEWS
from bsplib.profiler.named import find
from bsplib.profiler.repeats import gathered
from bsplib.profiler.report.columns import KEEP, columns, indent, labels
from bsplib.profiler.report.head import (
    print_losses,
    print_rates,
    print_scaling,
    print_title,
    print_verdict,
)
from bsplib.profiler.report.lines import MARK, STYLE, Name, print_table, print_wrapped, wide_console
from bsplib.profiler.report.rows import MOST_ROWS, TREE, RowChoice, choose
from bsplib.profiler.report.sampled_lines import print_places
from bsplib.profiler.report.sandwich import print_sandwich

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.console import Console
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.rows import Row

__all__ = ["RowChoice", "print_report"]

_MOST_ON_PATH = 6
"""Nodes of the critical path that are named below the table."""


def print_report(
    runs: Iterable[RunProfile],
    *,
    path: str = "loss",
    choice: RowChoice | None = None,
    node: str | None = None,
    console: Console | None = None,
) -> None:
    """Print for each run its verdict, and a table of its functions and cost centres.

    Args:
        runs: the runs to print.
        path: the path to mark: ``loss``, or one of ``bsplib.profiler.critical.PATHS``.
        choice: which rows are shown, in which order; default: the 40 greatest losses.
        node: name or id of a node: show only this one, with its callers and callees.
        console: where to print; default: standard output.

    Raises:
        ValueError: there is no such path.
        UsageError: no node has this name, or several have it.
    """
    if path not in VIEWS:
        raise ValueError(f"no path is called {path!r}; they are {', '.join(VIEWS)}")
    choice = choice or RowChoice(top=MOST_ROWS)
    console = console or wide_console()
    runs = list(runs)
    found = None if node is None else find((entry.callgraph for entry in runs), node)
    listed = gathered(runs)
    for repeats in listed:
        profile = repeats.median
        print_title(profile, console)
        profile.verdict()  # the times of nodes come from the same pass
        chain = profile.critical_path(path)
        if found is None:
            print_verdict(repeats, console)
            print_scaling(profile, [each.median for each in listed], console)
            console.print()
            _print_nodes(profile, choice, set(chain), console)
            print_places(profile, console)
        elif found in profile.callgraph.graph:
            print_losses(profile, found, console)
            console.print()
            print_sandwich(profile, found, choice, set(chain), console)
        else:
            console.print("This node is not in the run.")
            continue
        print_wrapped(console, _legend(profile.callgraph, path, chain))
        print_rates(profile, console)


def _print_nodes(
    profile: RunProfile, choice: RowChoice, marked: set[str], console: Console
) -> None:
    """Print the chosen nodes of a run, and the sum of the others."""
    callgraph, depths, is_tree = profile.callgraph, profile.callgraph.depths(), choice.sort == TREE
    rows, rest = choose(profile.book(), choice)
    names = [
        Name(
            list(labels(callgraph, row.node.id, callers=2 if is_tree else 1)),
            indent(depths[row.node.id]) if is_tree else "",
            MARK if row.node.id in marked else " ",
            STYLE if row.node.id in marked else "",
        )
        for row in rows
    ]
    shown = columns(rows, profile.book().main.time_s)
    print_table(console, names, shown, keep=(choice.column, *KEEP), tail=_sum_of(rest))


def _sum_of(rest: list[Row]) -> str:
    """Return what nodes take that are not shown; functions would count their leaves twice."""
    if not rest:
        return ""
    leaves = [row for row in rest if row.node.kind == "cost_centre"]
    loss_s, time_s = sum(row.loss_s for row in leaves), sum(row.time_s for row in leaves)
    what = f"  and {fmt.counted(len(rest), 'more node')}"
    if not time_s:
        return what
    parts = f"loss {fmt.seconds(loss_s)}, time {fmt.seconds(time_s)}"
    return f"{what}: {parts} in the cost centres among them"


def _legend(callgraph: CallGraph, path: str, chain: list[str]) -> str:
    """Return which path is marked, with the nodes on it; of a long one the last."""
    title = TITLES.get(path, path)
    if not chain:
        return f"no critical path: {title} is 0 everywhere"
    names = [fmt.label(callgraph.graph.nodes[name]["node"]) for name in chain]
    if len(names) > _MOST_ON_PATH:
        names = [names[0], "…", *names[2 - _MOST_ON_PATH :]]
    return f"{MARK} critical path, {title}: {' > '.join(names)}"
