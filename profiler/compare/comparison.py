"""Two runs, node by node: what each cost before and after."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bsplib.profiler.compare.matching import match, owner
from bsplib.profiler.compare.verdict import verdict
from bsplib.profiler.efficiency import computation_scaling
from bsplib.profiler.rows import QUANTITIES, row_of

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import Node
    from bsplib.profiler.efficiency import ComputationScaling
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.rows import Row

STATUS_MARKS = {"same": " ", "moved": "↷", "new": "+", "vanished": "-"}
"""What may have become of a node, with the marks in tables."""


@dataclass(frozen=True)
class Side:
    """A node in one of the two runs."""

    row: Row
    function: Node
    """The function that a cost centre is in; the node itself if it is a function."""

    @property
    def node(self) -> Node:
        """The node."""
        return self.row.node


@dataclass(frozen=True)
class Compared:
    """A node of the first run, of the second, or of both."""

    before: Side | None
    after: Side | None

    @property
    def status(self) -> str:
        """One of ``STATUS_MARKS``; a function moved where its file or name changed."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "vanished"
        return "same" if _place(self.before) == _place(self.after) else "moved"

    @property
    def known(self) -> Side:
        """The node after, or before where it vanished."""
        known = self.after or self.before
        assert known is not None
        return known

    def values(self, quantity: str) -> tuple[float | None, float | None]:
        """Return a quantity before and after; None where there was no such node."""
        return (
            None if self.before is None else self.before.row[quantity],
            None if self.after is None else self.after.row[quantity],
        )

    def change(self, quantity: str) -> float:
        """Return the value after less the value before.

        A missing node counts 0; it has no balance, which then does not change.
        """
        before, after = self.values(quantity)
        if QUANTITIES[quantity].unit == "%" and None in (before, after):
            return 0.0
        return (after or 0.0) - (before or 0.0)


@dataclass(frozen=True)
class Comparison:
    """Two runs compared."""

    before: GraphBook
    after: GraphBook
    nodes: tuple[Compared, ...]
    """The whole run first, then the other nodes in the order of the call tree after, then
    those that vanished."""

    @property
    def whole(self) -> Compared:
        """The whole run: the roots of both call graphs."""
        return self.nodes[0]

    @cached_property
    def cost_centres(self) -> tuple[Compared, ...]:
        """The leaves, whose times add up to that of ``main``."""
        return tuple(it for it in self.nodes if it.known.node.kind == "cost_centre")

    @cached_property
    def scaling(self) -> ComputationScaling | None:
        """The computation scaling; None where both runs have equally many processes."""
        if self.before.callgraph.run.nprocs == self.after.callgraph.run.nprocs:
            return None
        return computation_scaling(self.before.book, self.after.book)

    def __str__(self) -> str:
        return verdict(self)

    def count(self, status: str) -> int:
        """Return how many nodes have a status."""
        return sum(node.status == status for node in self.nodes)


def compare(before: GraphBook, after: GraphBook) -> Comparison:
    """Compare two runs, of any numbers of processes and on any Machines.

    Args:
        before: the first run.
        after: the second run.
    """
    pairs = match(before.callgraph, after.callgraph)
    nodes = tuple(Compared(_side(before, old), _side(after, new)) for old, new in pairs)
    return Comparison(before, after, nodes)


def _side(book: GraphBook, name: str | None) -> Side | None:
    if name is None:
        return None
    row = row_of(book, name)
    return Side(row, owner(book.callgraph, row.node))


def _place(side: Side) -> tuple[str, str, int]:
    """Return what a node that did not move keeps: a function may begin at another line."""
    node = side.node
    line = node.line if node.kind == "cost_centre" else 0
    return node.file.rpartition("/")[2], side.function.name, line
