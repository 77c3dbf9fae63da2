"""The profile of a trace on the terminal: what is lost, then a table of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from bsplib.profiler import format as fmt
from bsplib.profiler.critical import TITLES, VIEWS
from bsplib.profiler.efficiency import scaling_among
from bsplib.profiler.format import where
from bsplib.profiler.named import find
from bsplib.profiler.repeats import gathered
from bsplib.profiler.report.lines import KEPT_WIDTH, MARK, print_wrapped, wide_console
from bsplib.profiler.report.nodes import print_nodes, print_places, print_sandwich
from bsplib.profiler.rows import MOST_ROWS, RowChoice
from bsplib.profiler.system_time import own_threads_sentence, steal_sentence
from bsplib.profiler.verdict import MOST_SENTENCES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.console import Console
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.profile import RunProfile
    from bsplib.profiler.repeats import Repeats

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
            if scaling := scaling_among(profile, [each.median for each in listed]):
                print_wrapped(console, str(scaling))
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


def print_title(profile: RunProfile, console: Console) -> None:
    """Print what the run is, on one line or two."""
    room = console.width - 2
    head = f"run {profile.number}: "
    head += fmt.program(profile.run, most=max(room - len(head), KEPT_WIDTH))
    how = fmt.circumstances(profile.run)
    fits = cell_len(f"{head}, {how}") <= room
    print_wrapped(console, f"{head}, {how}" if fits else head, style="bold")
    if not fits:
        print_wrapped(console, f"  {how}", style="bold")
    if on := where(profile.run):
        print_wrapped(console, f"  {on}")


def print_verdict(repeats: Repeats, console: Console) -> None:
    """Print the verdict on a run, with intervals where it was repeated, and its efficiencies."""
    verdict, book = repeats.median.verdict(), repeats.median.book()
    repeated = len(repeats.runs) > 1
    if repeated:
        print_wrapped(console, f"the run of median time; {repeats.elapsed()}")
    if verdict.short:
        print_wrapped(console, verdict.short.text)
    for interval in repeats.intervals():
        doubt = f" [{interval}]" if repeated else ""
        print_wrapped(console, f"{interval.sentence.text}{doubt}")
    if verdict.rest:
        print_wrapped(console, verdict.rest.text)
        for about in (own_threads_sentence, steal_sentence):
            if text := about(repeats.median.run):
                print_wrapped(console, text)
        found = book.efficiencies
        is_measured = repeats.median.run.meta.get("backend") != "sim"
        print_wrapped(
            console,
            f"parallel efficiency {found.parallel:.0%} = load balance {found.load_balance:.0%} x "
            f"serialisation {found.serialisation:.0%} x transfer {found.transfer:.0%}"
            f"{'; from one run' if is_measured and not repeated else ''}",
        )


def print_losses(profile: RunProfile, node: str, console: Console) -> None:
    """Print the greatest losses at a node and below it."""
    here = [loss for loss in profile.book().losses if node in (*loss.chain, *loss.callers)]
    for loss in here[:MOST_SENTENCES]:
        print_wrapped(console, loss.text)


def print_rates(profile: RunProfile, console: Console) -> None:
    """Print how numbers are to be read, and the g and l of transfers and latency."""
    reading = "max (avg% | min%) over all processes, summed over supersteps"
    print_wrapped(console, reading)
    print_wrapped(console, profile.rates.sentence())
