"""The book of a run by the nodes of its call graph: what reports, pictures and tables ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from bsplib.profiler import format as fmt
from bsplib.profiler.book import Book, Time, book_of
from bsplib.profiler.critical import descend
from bsplib.profiler.efficiency import Efficiencies, efficiencies
from bsplib.profiler.loss_records import find, savings_in
from bsplib.profiler.rates import FITTED, NO_SOURCE, Rates, rates_of_run
from bsplib.profiler.times_on_machine import retimed
from bsplib.profiler.verdict import BALANCED_SHARE, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.loss import Loss

_LOSS_S = attrgetter("loss_s")
MOST_OF_FUNCTIONS = 0.7
"""A function is at most so red, so that the cost centre that loses most is the reddest node."""


@dataclass(frozen=True, repr=False)
class GraphBook:
    """The book of a run, at its own rates or as on another Machine, by node.

    The records are read when something is asked for. Ask for the verdict first, where it is wanted:
    the pass that finds what could be saved sums up the times of nodes, too.
    """

    callgraph: CallGraph
    book: Book

    @cached_property
    def nodes(self) -> dict[str, Time]:
        """Times by node id. A function is the sum of the cost centres below it."""
        passing = self.callgraph.passing
        return {node: self.book.time_of(passing[node]) for node in self.callgraph.graph}

    @cached_property
    def edges(self) -> dict[tuple[str, str], Time]:
        """By caller and callee the part of the callee that came through this caller."""
        passing = self.callgraph.passing
        return {call: self.book.time_of(passing[call]) for call in self.callgraph.graph.edges}

    @property
    def rates(self) -> Rates:
        """What a byte and a superstep cost here."""
        return self.book.rates

    @property
    def elapsed_s(self) -> float:
        """Elapsed time of the run; on another Machine what it would be."""
        return self.book.elapsed_ns / 1e9

    @property
    def main(self) -> Time:
        """The time in ``main``, and what of it is lost."""
        return self.nodes[self.callgraph.root]

    def __repr__(self) -> str:
        lost, time = fmt.seconds(self.main.loss_s), fmt.seconds(self.main.time_s)
        return f"<GraphBook of {fmt.counted(len(self.nodes), 'node')}: {lost} of {time} lost>"

    def onward(self, chain: Sequence[str]) -> dict[str, Time]:
        """Return what came through a call chain, by the next node below it.

        Args:
            chain: ids of nodes from the root downwards, each called by the one before.
        """
        through = self.callgraph.through(chain)
        return {node: self.book.time_of(sorted(origins)) for node, origins in through.items()}

    def steps(self, amount: Callable[[Time], float]) -> list[tuple[str, Time]]:
        """Follow the greatest amount from the root to a cost centre, with what came through.

        Args:
            amount: which seconds of a time; of equals the longer time is chosen.
        """
        return descend(
            self.callgraph.root, self.main, self.onward, lambda time: (amount(time), time.ns)
        )

    def path(self) -> list[str]:
        """Return the ids of the nodes with the greatest loss; empty if nothing is lost."""
        return [node for node, _ in self.steps(lambda time: time.loss_ns)]

    def full_of(self, amount: Callable[[Time], float] = _LOSS_S) -> float:
        """Return the seconds that are shown as red: the most of a cost centre.

        They are at least ``BALANCED_SHARE`` of the time in ``main``, so that a run that loses
        little is pale.

        Args:
            amount: which seconds of a time; default: the loss.
        """
        greatest = max((amount(self.nodes[leaf]) for leaf in self.callgraph.leaves()), default=0.0)
        return max(greatest, BALANCED_SHARE * self.main.time_s)

    def shades(self, amount: Callable[[Time], float] = _LOSS_S) -> dict[str, float]:
        """Return how red each node is: the square root of its part of :meth:`full_of`.

        A function is as red as the reddest cost centre below it, at most ``0.7`` of the scale.

        Args:
            amount: which seconds of a time; default: the loss.

        Returns:
            By node id, 0 (white) to 1 (red).
        """
        full_s, leaves = self.full_of(amount) or 1.0, self.callgraph.leaves()
        shades = {leaf: math.sqrt(amount(self.nodes[leaf]) / full_s) for leaf in leaves}
        below = [shades.get(chain[-1], 0.0) for chain in self.callgraph.origins]
        for name, passing in self.callgraph.passing.items():
            if name in self.nodes and name not in shades:
                most = max((below[origin] for origin in passing), default=0.0)
                shades[name] = min(most, MOST_OF_FUNCTIONS)
        return {name: shades[name] for name in self.nodes}

    @cached_property
    def efficiencies(self) -> Efficiencies:
        """The efficiencies of the run."""
        return efficiencies(self.book, savings_in(self.book).alone_ns)

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """What the run loses, then what it could save; the greatest first, with their sentences."""
        return find(self.callgraph, self.book)

    def verdict(self) -> Verdict:
        """Return what the elapsed time was lost for, in at most five sentences and a last one."""
        return judge(self.callgraph, self.book, self.losses)


def book_graph(callgraph: CallGraph, rates: Rates | None = None) -> GraphBook:
    """Return the book of the run of a call graph.

    Args:
        callgraph: the call graph.
        rates: what computation, bytes and supersteps cost; default: :func:`rates_of_run`. Where
            they are those of another Machine, the run is timed anew.
    """
    own = rates_of_run(callgraph.run)
    rates = rates or own
    # Rates that were fitted to the whole run hold for a part of it, too.
    is_own = rates.source in {FITTED, NO_SOURCE} or (
        (rates.g, rates.l, rates.rule, rates.ratio) == (own.g, own.l, own.rule, own.ratio)
    )
    run = callgraph.run if is_own else retimed(callgraph.run, rates)
    return GraphBook(callgraph, book_of(run, rates))
