"""The columns of a report: which of them fit, and the texts in them; names that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from bsplib.profiler import format as fmt
from bsplib.profiler.costs import METRICS
from bsplib.profiler.critical import METRIC_TITLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.report.rows import NodeRow

GAP = 2
"""Spaces between columns."""
KEEP = ("comp", "h", "comm", "idle")
"""The metrics in the order in which a narrow terminal loses them, the last one first."""


class NumberColumn(NamedTuple):
    """A column of numbers."""

    key: str
    title: tuple[str, str]
    """Two lines."""
    cells: list[str]

    @property
    def width(self) -> int:
        """Columns of the terminal that it takes."""
        return max(map(cell_len, (*self.title, *self.cells)))


def fitting(
    columns: Sequence[NumberColumn], width: int, name_width: int, first: str
) -> list[NumberColumn]:
    """Return the columns that fit beside the names, in their usual order.

    The number by which the rows are sorted stays longest; whole columns are left out, so
    that no number is cut.

    Args:
        columns: all columns.
        width: columns of the terminal.
        name_width: columns that are kept for the names.
        first: key of the column that stays longest.
    """
    room = width - name_width
    wanted = sorted(columns, key=lambda column: _rank(column.key, first))
    kept: set[str] = set()
    for column in wanted:
        room -= column.width + GAP
        if room < 0 and kept:
            break
        kept.add(column.key)
    return [column for column in columns if column.key in kept]


def _rank(key: str, first: str) -> int:
    """Return the place of a column in the order in which they are kept."""
    return [first, "loss", "time", "supersteps", *KEEP].index(key)


def columns(rows: Sequence[NodeRow], whole_s: float) -> list[NumberColumn]:
    """Return all columns of numbers for some rows.

    Args:
        rows: the rows.
        whole_s: time in ``main``, of which losses are given in percent.
    """
    return [
        _column("loss", "", rows, lambda row: loss(row.time.loss_s, whole_s)),
        _column("time", "", rows, lambda row: fmt.seconds(row.time.time_s)),
        _column("supersteps", "super-", rows, lambda row: str(row.cost.count), "steps"),
        *(_metric(metric, rows) for metric in METRICS),
    ]


def _metric(metric: str, rows: Sequence[NodeRow]) -> NumberColumn:
    title = METRIC_TITLES[metric]
    return _column(metric, "", rows, lambda row: fmt.summary(row.cost[metric], metric), title)


def _column(
    key: str, above: str, rows: Sequence[NodeRow], text: Callable[[NodeRow], str], title: str = ""
) -> NumberColumn:
    return NumberColumn(key, (above, title or key), [text(row) for row in rows])


def loss(lost_s: float, whole_s: float) -> str:
    """Return a loss with its share in percent of the time in ``main``, such as ``1.35 ms  12%``."""
    if not lost_s:
        return f"0 s{'':5}"  # where the others have their share
    share = f"{100 * lost_s / whole_s:.0f}" if lost_s >= whole_s / 200 else "<1"
    return f"{fmt.seconds(lost_s)} {share:>3}%"


# -- names of nodes that fit into a number of columns; all functions are pure ---------------------


MOST_CALLERS = 2
"""Callers that are named; the others are counted."""
MOST_INDENT = 20
"""Columns by which a row is indented at most; below that its depth is written."""
CUT = "…"


def label(callgraph: CallGraph, name: str, width: int, *, callers: int = 1) -> str:
    """Return the name of a node with those of its callers, as far as they fit.

    Args:
        callgraph: the call graph.
        name: id of the node.
        width: columns of the terminal.
        callers: least number of callers whose names are added.
    """
    texts = list(labels(callgraph, name, callers=callers))
    return next((text for text in texts if cell_len(text) <= width), cut(texts[-1], width))


def labels(callgraph: CallGraph, name: str, *, callers: int = 1) -> Iterator[str]:
    """Yield the texts for a node: with two callers, with one, with their number, with none."""
    nodes = callgraph.graph.nodes
    own = fmt.label(nodes[name]["node"])
    calling = [fmt.label(nodes[caller]["node"]) for caller in callgraph.graph.predecessors(name)]
    if len(calling) >= max(callers, 1):
        for named in range(min(MOST_CALLERS, len(calling)), 0, -1):
            yield f"{own} (from {_listed(calling, named)})"
        if len(calling) > 1:
            yield f"{own} (from {len(calling)} callers)"
    yield own


def _listed(names: list[str], most: int) -> str:
    """Return the first names, and the number of the others, as in ``a, b and 20 more``."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def indent(depth: int) -> str:
    """Return the space before a row of a call tree; where it is deep, the depth as a number."""
    space = 2 * depth
    return " " * space if space <= MOST_INDENT else f"{f'({depth})':<{MOST_INDENT}} "


def cut(text: str, width: int) -> str:
    """Return the end of a text, which tells most of it, within a width in columns."""
    if cell_len(text) <= width:
        return text
    text = text[-width:]
    while text and cell_len(text) > width - len(CUT):
        text = text[1:]
    return CUT + text


def padded(text: str, width: int) -> str:
    """Return a text, filled with spaces to a width in columns."""
    return set_cell_size(text, max(width, cell_len(text)))
