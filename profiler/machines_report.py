"""A run as it would be on several Machines, as a table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.console import Console
from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import build
from bsplib.profiler.graph_book import book_graph
from bsplib.profiler.rates import FITTED, rates_of_run, rates_on

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
    console: Console | None = None,
) -> None:
    """Print the times of the nodes of a run on several Machines.

    Args:
        run: the run.
        machines: by name; the run itself comes first. One that lacks a figure is left out, with a
            sentence that says how it can be given.
        speed: of a process of the Machines, as for :func:`bsplib.profiler.rates.rates_on`.
        most: number of nodes, None for all; those with the greatest times are shown.
        library: also show the functions of bsplib itself.
        console: where to print; default: standard output.
    """
    console = console or Console()
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
    beside = max(1, (console.width - _NAME_WIDTH) // _COLUMN_WIDTH)
    for first in range(0, len(books), beside):
        console.print(_table(callgraph, books, list(books)[first : first + beside], most))
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


_NAME_WIDTH = 34
_COLUMN_WIDTH = 13


def _table(
    callgraph: CallGraph, books: Mapping[str, GraphBook], shown: Sequence[str], most: int | None
) -> Table:
    """Return a table with the figures of the Machines, and below them the times of the nodes."""
    here = [books[title] for title in shown]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold", min_width=_NAME_WIDTH - 4)
    for title in shown:
        table.add_column(Text(title), justify="right", overflow="fold")
    for title, cells in _figures(here):
        table.add_row(title, *cells)
    table.add_section()
    nodes = sorted(callgraph.graph, key=lambda node: -_greatest_share(node, books.values()))
    leaders = [_leader(book) for book in here]
    for node in nodes[:most]:
        cells = [
            f"{MARK * (node == leader)} {fmt.seconds(book.nodes[node].time_s)}".strip()
            for book, leader in zip(here, leaders, strict=True)
        ]
        table.add_row(Text(fmt.label(callgraph.graph.nodes[node]["node"])), *cells)
    if most is not None and len(nodes) > most:
        table.add_row(f"({len(nodes) - most} more nodes take less)")
    table.caption = f"{MARK} takes longest of all cost centres there"
    return table


def _figures(books: Sequence[GraphBook]) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows that tell the figures of the Machines and the totals of the run."""
    rates = [book.rates for book in books]
    yield "g for a byte", [fmt.seconds(each.g) for each in rates]
    yield "l", [fmt.seconds(each.l) for each in rates]
    yield "h of a process", [_RULES[each.rule] for each in rates]
    yield "computation takes", [f"{each.ratio:.3g}x" for each in rates]
    yield "time in main", [fmt.seconds(book.main.time_s) for book in books]
    yield "lost of it", [fmt.seconds(book.main.loss_s) for book in books]


_RULES = {"max": "max in, out", "sum": "in + out"}


def _greatest_share(node: str, books: Iterable[GraphBook]) -> float:
    """Return the greatest share that a node has in the time of the run on any Machine."""
    return max(book.nodes[node].ns / (book.main.ns or 1) for book in books)


def _leader(book: GraphBook) -> str:
    """Return the cost centre that takes longest."""
    leaves = book.callgraph.leaves() or [book.callgraph.root]
    return max(leaves, key=lambda leaf: book.nodes[leaf].ns)


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
