"""A run on several Machines, as a table and sentences on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from bsplib.console import Console
from bsplib.profiler import format as fmt
from bsplib.profiler.callgraph import build
from bsplib.profiler.losses import book
from bsplib.profiler.rates import FITTED, rates_of_run
from bsplib.profiler.reprice import FIGURES, LossAt, Scan, scan

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.losses import Ledger
    from bsplib.profiler.rates import Rates
    from bsplib.recording.records import Run

HERE = "this run"
"""Title of the column with the rates of the run itself."""
MARK = "*"
"""Marks the cost centre that costs most on a Machine."""


class MachineColumn(NamedTuple):
    """A Machine, and what the run costs there."""

    title: str
    ledger: Ledger

    @property
    def rates(self) -> Rates:
        """The figures of the Machine."""
        return self.ledger.rates


def print_machines(
    run: Run,
    others: Sequence[Rates],
    *,
    most: int | None = 20,
    library: bool = False,
    console: Console | None = None,
) -> None:
    """Print what the nodes of a run cost on several Machines, and the crossovers.

    Args:
        run: the run.
        others: the rates of the Machines; those of the run itself come first.
        most: number of nodes, None for all; those with the greatest costs are shown.
        library: also show the functions of bsplib itself.
        console: where to print; default: standard output.
    """
    console = console or Console()
    callgraph = build(run, library=library)
    here = rates_of_run(run)
    titles = {HERE: here} | {each.source: each for each in others if each != here}
    columns = [MachineColumn(title, book(callgraph, rates)) for title, rates in titles.items()]
    beside = max(1, (console.width - _NAME_WIDTH) // _COLUMN_WIDTH)
    for first in range(0, len(columns), beside):
        console.print(_table(callgraph, columns, range(first, first + beside), most))
    for line in (*_assumptions(columns), *_crossovers(callgraph, columns)):
        console.print(Text(line), soft_wrap=True)


_NAME_WIDTH = 34
_COLUMN_WIDTH = 13


def _table(
    callgraph: CallGraph, columns: Sequence[MachineColumn], shown: range, most: int | None
) -> Table:
    """Return a table with the figures of the Machines, and below them the costs of the nodes."""
    here = [column for number, column in enumerate(columns) if number in shown]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold", min_width=_NAME_WIDTH - 4)
    for column in here:
        table.add_column(Text(column.title), justify="right", overflow="fold")
    for title, cells in _figures(here):
        table.add_row(title, *cells)
    table.add_section()
    nodes = sorted(callgraph.graph, key=lambda node: -_greatest_share(node, columns))
    leaders = [_leader(callgraph, column.ledger) for column in here]
    for node in nodes[:most]:
        cells = [
            f"{MARK * (node == leader)} {fmt.seconds(column.ledger.nodes[node].cost_s)}".strip()
            for column, leader in zip(here, leaders, strict=True)
        ]
        table.add_row(Text(fmt.label(callgraph.graph.nodes[node]["node"])), *cells)
    if most is not None and len(nodes) > most:
        table.add_row(f"({len(nodes) - most} more nodes cost less)")
    table.caption = f"{MARK} costs most of all cost centres there"
    return table


def _figures(columns: Sequence[MachineColumn]) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows that tell the figures of the Machines and the totals of the run."""
    rates = [column.rates for column in columns]
    yield "g for a byte", [fmt.seconds(each.g) for each in rates]
    yield "l", [fmt.seconds(each.l) for each in rates]
    yield "h of a process", [_RULES[each.rule] for each in rates]
    yield "computation takes", [f"{each.ratio:.3g}x" for each in rates]
    yield "cost of the run", [fmt.seconds(column.ledger.cost_s) for column in columns]
    yield "lost of it", [fmt.seconds(column.ledger.lost_s) for column in columns]


_RULES = {"max": "max in, out", "sum": "in + out"}


def _greatest_share(node: str, columns: Sequence[MachineColumn]) -> float:
    """Return the greatest share that a node has in the cost of the run on any Machine."""
    return max(
        column.ledger.nodes[node].cost_s / column.ledger.cost_s if column.ledger.cost_s else 0.0
        for column in columns
    )


def _leader(callgraph: CallGraph, ledger: Ledger) -> str:
    """Return the cost centre that costs most."""
    leaves = callgraph.leaves()
    leader: str = max(leaves, key=lambda leaf: ledger.nodes[leaf].cost_s)
    return leader


def _assumptions(columns: Sequence[MachineColumn]) -> Iterator[str]:
    """Yield where the rates of the run itself come from, and what they lack."""
    rates = columns[0].rates
    if rates.note:
        yield f"This run: {rates.note}"
    elif rates.source == FITTED:
        yield "This run: g and l were fitted to its communication times."
    elif any(column.title == rates.source for column in columns[1:]):
        yield f"This run: g and l were given to it, in place of those of {rates.source}."
    else:
        yield f"This run: g and l are those of {rates.source}."


def _crossovers(callgraph: CallGraph, columns: Sequence[MachineColumn]) -> Iterator[str]:
    """Yield a sentence for each crossover between the least and the greatest of each figure."""
    sentences = [
        sentence
        for found, alike in _scans(callgraph, columns)
        for sentence in _sentences(callgraph, found, alike)
    ]
    if sentences:
        yield "As one figure grows and the others stay as in this run:"
        yield from (f"- {sentence}" for sentence in sentences)
    elif len(columns) > 1:
        yield "No figure between these Machines changes which node costs or loses most."


def _scans(
    callgraph: CallGraph, columns: Sequence[MachineColumn]
) -> Iterator[tuple[Scan, Sequence[MachineColumn]]]:
    """Yield a scan of each figure, for g and each rule for h, and the Machines that it covers."""
    first = columns[0].rates
    for figure in FIGURES:
        rules = {column.rates.rule for column in columns} if figure == "g" else {first.rule}
        for rule in sorted(rules):
            covered = [each for each in columns if figure != "g" or each.rates.rule == rule]
            values = [getattr(each.rates, figure) for each in (columns[0], *covered)]
            if min(values) < max(values):
                rates = replace(first, rule=rule)
                yield scan(callgraph, rates, figure, min(values), max(values)), covered


def _sentences(
    callgraph: CallGraph, found: Scan, columns: Sequence[MachineColumn]
) -> Iterator[str]:
    for value, node, other, leads in found.overtakings:
        most = ", and most of all" if leads else ""
        yield (
            f"{_from(found, value, columns)} {_place(callgraph, node)} costs more than "
            f"{_place(callgraph, other)}{most}."
        )
    for value, before, after in found.new_losses:
        yield (
            f"{_from(found, value, columns)} the greatest loss is {_loss(callgraph, after)}; "
            f"below, it is {_loss(callgraph, before)}."
        )


def _from(found: Scan, value: float, columns: Sequence[MachineColumn]) -> str:
    """Return the beginning of a sentence: from which value on, and where that is so."""
    above = [each.title for each in columns if getattr(each.rates, found.figure) >= value]
    where = f" (as on {'; '.join(above)})" if above else ""
    if found.figure == "ratio":
        return f"Where computation takes {value:.3g} times as long as recorded, or longer{where},"
    unit = f" for a byte ({_RULES[found.rule]})" if found.figure == "g" else ""
    return f"From {found.figure} = {fmt.seconds(value)}{unit} on{where},"


def _place(callgraph: CallGraph, node: str) -> str:
    """Return the name of a cost centre with the function that contains it."""
    nodes, callers = callgraph.graph.nodes, list(callgraph.graph.pred[node])
    name = fmt.label(nodes[node]["node"])
    return f"{name} in {fmt.label(nodes[callers[0]]['node'])}" if len(callers) == 1 else name


def _loss(callgraph: CallGraph, loss: LossAt) -> str:
    place = f" at {_place(callgraph, loss.chain[-1])}" if loss.chain else ""
    return f"{_KINDS.get(loss.kind, loss.kind)}{place}"


_KINDS = {
    "fixed": "a fixed straggler",
    "rotating": "a rotating straggler",
    "one-off": "a straggler of one superstep",
    "too many supersteps": "l, for too many supersteps",
}
