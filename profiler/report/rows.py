"""Which nodes a report shows, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from bsplib.profiler.costs import METRICS
from bsplib.profiler.rows import row_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.rows import Row

TREE = "tree"
"""Order of the call tree: each node under its nearest caller."""
SORTS = ("loss", "time", *METRICS, "supersteps", "name", TREE)
"""The orders of rows: by greatest loss, time, maximum of a metric or supersteps; by name."""

MOST_ROWS = 40
"""Rows that are shown unless a user asks for more."""


@dataclass(frozen=True)
class RowChoice:
    """Which nodes are shown, and in which order."""

    sort: str = "loss"
    """One of ``SORTS``."""
    top: int | None = None
    """Greatest number of rows; None: all."""
    depth: int | None = None
    """Greatest number of calls from ``main`` to a node; None: any."""

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise ValueError(f"no order is called {self.sort!r}; they are {', '.join(SORTS)}")

    @property
    def column(self) -> str:
        """The quantity that matters most in this order."""
        return "loss" if self.sort in {"name", TREE} else self.sort

    def ordered(self, rows: Iterable[Row]) -> list[Row]:
        """Return rows in the order; of equals the first comes first."""
        if self.sort == TREE:
            return list(rows)
        if self.sort == "name":
            return sorted(rows, key=lambda row: row.node.name)
        return sorted(rows, key=itemgetter(self.sort), reverse=True)


def choose(book: GraphBook, choice: RowChoice) -> tuple[list[Row], list[Row]]:
    """Return the rows to show, in order, and the others; of equals, those near ``main`` first."""
    depths = book.callgraph.depths()
    rows = [row for row in (row_of(book, name) for name in depths) if not _is_empty_end(row)]
    deepest = max(depths.values()) if choice.depth is None else choice.depth
    near = [row for row in rows if depths[row.node.id] <= deepest]
    if choice.sort != TREE:
        near.sort(key=lambda row: depths[row.node.id])
    chosen = choice.ordered(near)[: choice.top]
    shown = {row.node.id for row in chosen}
    return chosen, [row for row in rows if row.node.id not in shown]


def _is_empty_end(row: Row) -> bool:
    """Tell whether a row is the end of ``main``, and nothing was done there."""
    return row.node.sync == "end" and not any(row[metric] for metric in METRICS)
