"""A run as it would be on several Machines, as a table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import FITTED, rates_of_run, rates_on
from bsplib.profiler.report.lines import Name, NumberColumn, print_table

if TYPE_CHECKING:
    from bsplib.machine import Machine
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.rates import Rates
    from bsplib.recording.records import Run

HERE = "this run"
"""Title of the column with the rates of the run itself."""
MARK = "*"
"""Marks the cost centre that takes longest on a Machine."""


def print_machines(
    run: Run,
    machines: Mapping[str, Machine],
    speed: str | None = None,
    *,
    most: int | None = 20,
    library: bool = False,
) -> None:
    """Print the times of the nodes of a run on several Machines.

    Args:
        run: the run.
        machines: by name; the run itself comes first. One that lacks a figure is left out, with a
            sentence that says how it can be given.
        speed: of a process of the Machines, as for :func:`bsplib.profiler.rates.rates_on`.
        most: number of nodes, None for all; those with the greatest times are shown.
        library: also show the functions of bsplib itself.
    """
    console = Console()
    callgraph = build(run, library=library)
    here = rates_of_run(run)
    others, gaps = [], []
    for name, machine in machines.items():
        try:
            others.append(rates_on(machine, run, speed=speed))
        except UsageError:
            gaps.append((name, machine))
    titles = {HERE: here} | {each.source: each for each in others if each != here}
    books = {title: book_graph(callgraph, rates) for title, rates in titles.items()}
    _print_table(callgraph, books, most, console)
    for line in (*_assumptions(here, others), *_left_out(gaps)):
        console.print(Text(line), soft_wrap=True)


def _left_out(gaps: Sequence[tuple[str, Machine]]) -> Iterator[str]:
    """Yield which Machines are left out, and how what they lack can be given."""
    without_l = [name for name, machine in gaps if machine.l is None or machine.l < 0]
    without_speed = [name for name, _ in gaps if name not in without_l]
    if without_speed:
        yield (
            f"Left out, since their speed compared with the run is not known: "
            f"{', '.join(without_speed)}; give it, as in --speed 0.5x."
        )
    if without_l:
        yield (
            f"Left out, since their l is not known: {', '.join(without_l)}; give it, as in "
            f"--machine {without_l[0]}:l=1e-5."
        )


def _print_table(
    callgraph: CallGraph, books: Mapping[str, GraphBook], most: int | None, console: Console
) -> None:
    """Print a table with the figures of the Machines, and below them the times of the nodes."""
    every, graph = list(books.values()), callgraph.graph
    nodes = sorted(graph, key=lambda node: -max(_share(book, node) for book in every))
    shown = nodes[:most]
    columns = []
    for title, book in books.items():
        leader = max(callgraph.leaves() or [callgraph.root], key=lambda leaf: book.nodes[leaf].ns)
        times = {node: fmt.seconds(book.nodes[node].time_s) for node in shown}
        if leader in times:
            times[leader] = f"{MARK} {times[leader]}"
        cells = [Text(cell) for cell in (*_figures(book).values(), *times.values())]
        columns.append(NumberColumn(title, title, cells))
    tail = f"{MARK} takes longest of all cost centres there"
    if more := len(nodes) - len(shown):
        tail = f"and {fmt.counted(more, 'more node')}; {tail}"
    figures = list(_figures(every[0]))
    labels = [*figures, *(fmt.label(graph.nodes[node]["node"]) for node in shown)]
    names, heads = [Name([label]) for label in labels], {len(figures): ""}
    print_table(console, names, columns, keep=list(books), heads=heads, tail=tail, is_divided=True)


def _share(book: GraphBook, node: str) -> float:
    """Return the share that a node has in the time of the run."""
    return book.nodes[node].ns / (book.main.ns or 1)


def _figures(book: GraphBook) -> dict[str, str]:
    """Return the rows that tell the figures of a Machine and the totals of the run."""
    return {
        "g for a byte": fmt.seconds(book.rates.g),
        "l": fmt.seconds(book.rates.l),
        "h of a process": _RULES[book.rates.rule],
        "computation takes": f"{book.rates.ratio:.3g}x",
        "time in main": fmt.seconds(book.main.time_s),
        "lost of it": fmt.seconds(book.main.loss_s),
    }


_RULES = {"max": "max in, out", "sum": "in + out"}


def _assumptions(rates: Rates, others: Sequence[Rates]) -> Iterator[str]:
    """Yield where the rates of the run itself come from, and what they lack."""
    if rates.note:
        yield f"This run: {rates.note}"
    elif rates.source == FITTED:
        yield "This run: g and l were fitted to its communication times."
    elif any(each.source == rates.source and each != rates for each in others):
        yield f"This run: g and l were given to it, in place of those of {rates.source}."
    else:
        yield f"This run: g and l are those of {rates.source}."
