"""Two runs, node by node: what each cost before and after."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bsplib.profiler.compare.matching import match, owner
from bsplib.profiler.compare.quantities import QUANTITIES, NodeCosts, figures
from bsplib.profiler.compare.verdict import verdict
from bsplib.profiler.efficiency import computation_scaling
from bsplib.profiler.graph_book import book_graph

if TYPE_CHECKING:
    from bsplib.profiler.book import Time
    from bsplib.profiler.callgraph import CallGraph, Node
    from bsplib.profiler.efficiency import ComputationScaling
    from bsplib.profiler.graph_book import GraphBook
    from bsplib.profiler.rates import Rates

STATUSES = ("same", "moved", "new", "vanished")


@dataclass(frozen=True)
class MeasuredNode:
    """A node in one of the two runs."""

    node: Node
    function: Node
    """The function that a cost centre is in; the node itself if it is a function."""
    figures: NodeCosts
    time: Time


@dataclass(frozen=True)
class Compared:
    """A node of the first run, of the second, or of both."""

    before: MeasuredNode | None
    after: MeasuredNode | None

    @property
    def status(self) -> str:
        """One of ``STATUSES``; a function moved where its file or name changed."""
        if self.before is None or self.after is None:
            return "new" if self.before is None else "vanished"
        return "same" if _place(self.before) == _place(self.after) else "moved"

    @property
    def known(self) -> MeasuredNode:
        """The node after, or before where it vanished."""
        known = self.after or self.before
        assert known is not None
        return known

    def values(self, quantity: str) -> tuple[float | None, float | None]:
        """Return a quantity before and after; None where there was no such node."""
        return (
            None if self.before is None else self.before.figures[quantity],
            None if self.after is None else self.after.figures[quantity],
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


def measured(book: GraphBook, name: str) -> MeasuredNode:
    """Return a node of a run with its figures.

    Args:
        book: the book of the run.
        name: id of the node.
    """
    node, time = book.callgraph.graph.nodes[name], book.nodes[name]
    function = owner(book.callgraph, node["node"])
    return MeasuredNode(node["node"], function, figures(node["cost"], time), time)


def compare(
    before: CallGraph,
    after: CallGraph,
    *,
    rates: tuple[Rates | None, Rates | None] = (None, None),
) -> Comparison:
    """Compare two runs, of any numbers of processes and on any Machines.

    Args:
        before: the call graph of the first run.
        after: the call graph of the second run.
        rates: g and l of each, the run's own by default; at others the run is timed anew.

    Returns:
        A pair for each node of either graph.
    """
    first, second = map(book_graph, (before, after), rates)
    return compare_booked(first, second)


def compare_booked(before: GraphBook, after: GraphBook) -> Comparison:
    """Compare two runs that are booked already.

    Args:
        before: the first run.
        after: the second run.
    """
    nodes = tuple(
        Compared(
            None if old is None else measured(before, old),
            None if new is None else measured(after, new),
        )
        for old, new in match(before.callgraph, after.callgraph)
    )
    return Comparison(before, after, nodes)


def _place(measured: MeasuredNode) -> tuple[str, str, int]:
    """Return what a node that did not move keeps: a function may begin at another line."""
    node = measured.node
    line = node.line if node.kind == "cost_centre" else 0
    return node.file.rpartition("/")[2], measured.function.name, line
