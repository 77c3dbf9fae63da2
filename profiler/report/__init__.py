"""The profile of a trace on the terminal: what is lost, then a table of nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bsplib.console import Console
from bsplib.profiler import format as fmt
from bsplib.profiler.critical import LOSS, TITLES, VIEWS
from bsplib.profiler.repeats import gathered
from bsplib.profiler.report.columns import columns, indent, labels
from bsplib.profiler.report.head import (
    print_losses,
    print_prices,
    print_scaling,
    print_title,
    print_verdict,
)
from bsplib.profiler.report.lines import MARK, Name, print_table, print_wrapped
from bsplib.profiler.report.rows import MOST_ROWS, TREE, RowChoice, choose, find
from bsplib.profiler.report.sampled_lines import print_places
from bsplib.profiler.report.sandwich import print_sandwich

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.report.rows import NodeRow, Rest

__all__ = ["RowChoice", "print_report"]

WIDTH_OF_FILES = 160
"""Columns of a report that is written into a file or a pipe, unless ``COLUMNS`` is set."""


_MOST_ON_PATH = 6
"""Nodes of the critical path that are named below the table."""


def print_report(
    runs: Iterable[RunProfile],
    *,
    path: str = LOSS,
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
    console = console or _console()
    runs = list(runs)
    found = None if node is None else find((entry.callgraph for entry in runs), node)
    listed = gathered(runs)
    for repeats in listed:
        profile = repeats.median
        print_title(profile, console)
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
        print_prices(profile, console)


def _console() -> Console:
    """Return a console on standard output; a file or a pipe is wide enough for all columns."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH_OF_FILES
    return console


def _print_nodes(
    profile: RunProfile, choice: RowChoice, marked: set[str], console: Console
) -> None:
    """Print the chosen nodes of a run, and the sum of the others."""
    rows, rest = choose(profile, choice)
    names = [_name(profile, row, choice.sort == TREE, row.node in marked) for row in rows]
    whole_s = profile.book().main.time_s
    tail = _sum_of(rest) if rest.nodes else ""
    print_table(console, names, columns(rows, whole_s), first=choice.column, tail=tail)


def _name(profile: RunProfile, row: NodeRow, tree: bool, marked: bool) -> Name:
    """Return the left end of a row; a call tree shows the first caller by its order."""
    texts = list(labels(profile.callgraph, row.node, callers=2 if tree else 1))
    return Name(texts, indent(row.depth) if tree else "", marked)


def _sum_of(rest: Rest) -> str:
    what = f"and {fmt.counted(rest.nodes, 'more node')}"
    if not rest.time_s:
        return f"  {what}"
    parts = f"loss {fmt.seconds(rest.loss_s)}, time {fmt.seconds(rest.time_s)}"
    return f"  {what}: {parts} in the cost centres among them"


def _legend(callgraph: CallGraph, path: str, chain: list[str]) -> str:
    """Return which path is marked, with the nodes on it; of a long one the last."""
    title = "loss" if path == LOSS else TITLES[path]
    if not chain:
        return f"no critical path: {title} is 0 everywhere"
    names = [fmt.label(callgraph.graph.nodes[name]["node"]) for name in chain]
    if len(names) > _MOST_ON_PATH:
        names = [names[0], "…", *names[2 - _MOST_ON_PATH :]]
    return f"{MARK} critical path, {title}: {' > '.join(names)}"
