"""The profile of a trace on the terminal: what is lost, then a table of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.critical import TITLES, VIEWS
from bsplib.profiler.named import find
from bsplib.profiler.repeats import gathered
from bsplib.profiler.report.head import (
    print_losses,
    print_rates,
    print_scaling,
    print_title,
    print_verdict,
)
from bsplib.profiler.report.lines import MARK, print_wrapped, wide_console
from bsplib.profiler.report.nodes import print_nodes, print_sandwich
from bsplib.profiler.report.rows import MOST_ROWS, RowChoice
from bsplib.profiler.report.sampled_lines import print_places

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.console import Console
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.profile import RunProfile

__all__ = ["RowChoice", "print_report"]


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
            print_nodes(profile, choice, chain, console)
            print_places(profile, console)
        elif found in profile.callgraph.graph:
            print_losses(profile, found, console)
            console.print()
            print_sandwich(profile, found, choice, chain, console)
        else:
            console.print("This node is not in the run.")
            continue
        print_wrapped(console, _legend(profile.callgraph, path, chain))
        print_rates(profile, console)


def _legend(callgraph: CallGraph, path: str, chain: list[str]) -> str:
    """Return which path is marked, with the nodes on it."""
    title = TITLES.get(path, path)
    if not chain:
        return f"no critical path: {title} is 0 everywhere"
    names = [fmt.label(callgraph.graph.nodes[name]["node"]) for name in chain]
    return f"{MARK} critical path, {title}: {' > '.join(names)}"
