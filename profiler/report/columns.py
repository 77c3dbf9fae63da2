"""The columns and the names in the table of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from bsplib.profiler import format as fmt
from bsplib.profiler.report.lines import NumberColumn
from bsplib.profiler.rows import QUANTITIES, SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.rows import Row

KEEP = ("loss", "time", "supersteps", "comp", "h", "comm", "idle")
"""The quantities in the order in which a narrow terminal loses them, the last one first."""


def columns(rows: Sequence[Row], whole_s: float) -> list[NumberColumn]:
    """Return all columns of numbers for some rows.

    Args:
        rows: the rows.
        whole_s: time in ``main``, of which losses are given in percent.
    """
    return [
        NumberColumn(
            name,
            QUANTITIES[name].title.replace("supersteps", "super-\nsteps"),
            [Text(_loss(row, whole_s) if name == "loss" else row.text(name)) for row in rows],
        )
        for name in SHOWN
    ]


def _loss(row: Row, whole_s: float) -> str:
    """Return a loss with its share in percent of the time in ``main``, such as ``1.35 ms  12%``."""
    if not row.loss_s:
        return f"0 s{'':5}"  # where the others have their share
    share = f"{100 * row.loss_s / whole_s:.0f}" if row.loss_s >= whole_s / 200 else "<1"
    return f"{row.text('loss')} {share:>3}%"


MOST_CALLERS = 2
"""Callers that are named; the others are counted."""
MOST_INDENT = 20
"""Columns by which a row is indented at most; below that its depth is written."""


def labels(callgraph: CallGraph, name: str, *, callers: int = 1) -> Iterator[str]:
    """Yield the texts for a node: with two callers, with one, with their number, with none.

    Args:
        callgraph: the call graph.
        name: id of the node.
        callers: least number of callers that are told.
    """
    nodes = callgraph.graph.nodes
    own = fmt.label(nodes[name]["node"])
    calling = [fmt.label(nodes[caller]["node"]) for caller in callgraph.graph.predecessors(name)]
    if len(calling) >= max(callers, 1):
        for named in range(min(MOST_CALLERS, len(calling)), 0, -1):
            rest = len(calling) - named
            more = f" and {rest} more" if rest else ""
            yield f"{own} (from {', '.join(calling[:named])}{more})"
        if len(calling) > 1:
            yield f"{own} (from {len(calling)} callers)"
    yield own


def indent(depth: int) -> str:
    """Return the space before a row of a call tree; where it is deep, the depth as a number."""
    space = 2 * depth
    return " " * space if space <= MOST_INDENT else f"{f'({depth})':<{MOST_INDENT}} "
