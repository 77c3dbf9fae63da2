"""The ledger of a run: what it costs and loses in seconds, by node, and the greatest losses.

A loss is time that processes spend waiting for others, on average over all processes: the
losses of computation and of bytes of a superstep, and what the other sub-groups wait for
the one that costs most. Of sub-groups that run side by side only the one that costs most
is booked. So the costs and the losses of the leaves add up to those of the run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.booking import Books, keep_books
from bsplib.profiler.costs import waiting_ns
from bsplib.profiler.hosts import ProcessNames
from bsplib.profiler.kinds import COMM, COMP, CORE, FIXED, SUB_GROUPS, SYNC, find_entries, spots_of
from bsplib.profiler.pricing import Priced, price
from bsplib.profiler.rates import Rates, rates_of_run
from bsplib.profiler.verdict import MANY_STEPS, Verdict, judge, template, waiting_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph

__all__ = ["Booked", "Ledger", "Loss", "book", "lost_by_record"]


@dataclass(frozen=True)
class Booked:
    """What is booked for a part of a run, in seconds; what is lost is a part of the cost."""

    comp_s: float = 0.0
    """Computation of the processes with the greatest w."""
    comm_s: float = 0.0
    """g h of the processes with the greatest h."""
    sync_s: float = 0.0
    """l of the supersteps."""
    lost_comp_s: float = 0.0
    """Waiting for the greatest w."""
    lost_comm_s: float = 0.0
    """Waiting for the greatest h."""
    lost_groups_s: float = 0.0
    """Waiting for the sub-group that costs most."""

    @property
    def cost_s(self) -> float:
        """The whole cost."""
        return self.comp_s + self.comm_s + self.sync_s

    @property
    def lost_s(self) -> float:
        """The part of it that is lost."""
        return self.lost_comp_s + self.lost_comm_s + self.lost_groups_s


_PARTS = len(fields(Booked))
_COMP_S, _COMM_S, _SYNC_S, _LOST_COMP_S, _LOST_COMM_S, _LOST_GROUPS_S = range(_PARTS)
_PART_OF = {COMP: _LOST_COMP_S, COMM: _LOST_COMM_S, SUB_GROUPS: _LOST_GROUPS_S, SYNC: _SYNC_S}


@dataclass(frozen=True)
class Loss:
    """A loss at one place of the program."""

    seconds: float
    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``."""
    habit: str
    """``fixed``, ``rotating`` or ``one-off``: whether it is always the same process."""
    chain: tuple[str, ...]
    """Ids of the nodes from ``main`` to the cost centre; empty for the whole run."""
    pids: tuple[int, ...]
    """The process, or the processes of the sub-group, that the others wait for."""
    superstep: int | None
    """Number of the superstep that bears most of it, for ``one-off``."""
    group: int
    """Position in ``run.groups`` of the group of that superstep."""
    count: int
    """Number of supersteps."""
    who: str
    """Their names, with their hosts where there are several; empty for the whole run."""
    text: str = field(repr=False)
    """A sentence, in which ``{lost}``, ``{cost}`` and ``{share}`` stand for the figures."""


@dataclass(frozen=True, repr=False)
class Ledger:
    """Costs and losses of a run at given rates."""

    rates: Rates
    nodes: dict[str, Booked]
    """By node id. A function is the sum of the cost centres below it."""
    edges: dict[tuple[str, str], Booked]
    """By caller and callee: the part of the callee that came through the caller."""
    losses: tuple[Loss, ...]
    """The greatest first."""
    waiting_s: float | None
    """Time for which processes waited for a core, summed over processes and no part of the
    cost; None if it was not measured."""
    callgraph: CallGraph
    _by_origin: NDArray[np.float64]
    """Shape (origins, parts of a Booked)."""

    def __repr__(self) -> str:
        lost, cost = fmt.seconds(self.lost_s), fmt.seconds(self.cost_s)
        return f"<Ledger of {fmt.counted(len(self.nodes), 'node')}: {lost} of {cost} lost>"

    @property
    def whole(self) -> Booked:
        """What is booked for the whole run."""
        return self.nodes[self.callgraph.root]

    @property
    def cost_s(self) -> float:
        """Cost of the run."""
        return self.whole.cost_s

    @property
    def lost_s(self) -> float:
        """Loss of the run, a part of its cost."""
        return self.whole.lost_s

    def onward(self, chain: Sequence[str]) -> dict[str, Booked]:
        """Return what came through a call chain, by the next node below it.

        Args:
            chain: ids of nodes from the root downwards, each called by the one before.
        """
        depth = len(chain)
        below: defaultdict[str, list[int]] = defaultdict(list)
        for number, origin in enumerate(self.callgraph.origins):
            if len(origin.chain) > depth and origin.chain[:depth] == tuple(chain):
                below[origin.chain[depth]].append(number)
        return {node: _booked(self._by_origin[through]) for node, through in below.items()}

    def path(self) -> list[str]:
        """Follow the greatest loss from the root to a cost centre.

        Returns:
            Node ids from the root to a leaf; empty if nothing is lost.
        """
        if self.lost_s == 0:
            return []
        chain = [self.callgraph.root]
        while following := self.onward(chain):
            chain.append(
                max(following, key=lambda node: (following[node].lost_s, following[node].cost_s))
            )
        return chain

    def verdict(self) -> Verdict:
        """Return what is wrong with the balance of the run, in at most five sentences."""
        return judge(self)

    def shades(self) -> dict[str, float]:
        """Return how red each node is: the square root of its share of loss in the whole cost.

        Returns:
            By node id, 0 (white) to 1 (red).
        """
        whole = self.cost_s
        return {
            name: math.sqrt(booked.lost_s / whole) if whole else 0.0
            for name, booked in self.nodes.items()
        }


def book(callgraph: CallGraph, rates: Rates | None = None) -> Ledger:
    """Book the costs and losses of the run of a call graph.

    Args:
        callgraph: the call graph.
        rates: what computation, bytes and supersteps cost; default: :func:`rates_of_run`.
    """
    rates = rates or rates_of_run(callgraph.run)
    books = keep_books(callgraph)
    priced = price(books, rates)
    by_origin = _by_origin(books, priced, rates, len(callgraph.origins))
    through_nodes: defaultdict[str, list[int]] = defaultdict(list)
    through_edges: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, origin in enumerate(callgraph.origins):
        for node in origin.nodes:
            through_nodes[node].append(number)
        for edge in origin.edges:
            through_edges[edge].append(number)
    waiting = waiting_ns(callgraph.run)
    return Ledger(
        rates,
        {node: _booked(by_origin[through_nodes[node]]) for node in callgraph.graph},
        {edge: _booked(by_origin[through_edges[edge]]) for edge in callgraph.graph.edges},
        _losses(callgraph, books, priced, by_origin, rates),
        None if waiting is None else waiting / 1e9,
        callgraph,
        by_origin,
    )


def lost_by_record(callgraph: CallGraph, rates: Rates) -> NDArray[np.float64]:
    """Return what is lost at each record of the run, in seconds.

    A loss is booked for the record of the process that the others waited for; what is lost
    to unequal sub-groups, for the record with the greatest w of the parent's superstep. The
    sums over the records of an origin are those of the ledger.
    """
    books = keep_books(callgraph)
    priced, steps = price(books, rates), books.supersteps
    booked, h = priced.booked[steps.group], steps.h[rates.rule]
    known = books.partitions.record >= 0
    parts = (
        (steps.w.record, rates.ratio / 1e9 * steps.w.lost * booked),
        (h.record, rates.g * h.lost * booked),
        (books.partitions.record[known], priced.lost_s[known]),
    )
    lost = np.zeros(len(callgraph.run.records))
    for record, seconds in parts:
        lost += np.bincount(record, seconds, len(lost))
    return lost


def _by_origin(books: Books, priced: Priced, rates: Rates, origins: int) -> NDArray[np.float64]:
    """Return what is booked for each origin: shape (origins, parts of a Booked)."""
    cells = books.cells
    chosen = priced.booked[cells.group]
    sums = np.zeros((origins, _PARTS))
    columns = (
        rates.ratio * cells.w / 1e9,
        rates.g * cells.h[rates.rule],
        rates.l * cells.steps,
        rates.ratio * cells.w_lost / 1e9,
        rates.g * cells.h_lost[rates.rule],
    )
    for part, values in enumerate(columns):
        sums[:, part] = np.bincount(cells.origin, values * chosen, origins)
    at = books.partitions.origin
    known = at >= 0
    sums[:, -1] = np.bincount(at[known], priced.lost_s[known], origins)
    return sums


def _losses(
    callgraph: CallGraph, books: Books, priced: Priced, by_origin: NDArray[np.float64], rates: Rates
) -> tuple[Loss, ...]:
    """Price the losses, and sort them; supersteps count where l outweighs w and g h."""
    spots, of_origin = spots_of(callgraph)
    by_spot = np.zeros((len(spots), _PARTS))
    np.add.at(by_spot, of_origin, by_origin)
    chosen = books.cells.steps * priced.booked[books.cells.group]
    steps = np.bincount(of_origin[books.cells.origin], chosen, len(spots)).astype(int).tolist()
    names = ProcessNames(callgraph.run)
    losses = []
    for entry in find_entries(callgraph, books, priced):
        parts = by_spot[entry.spot]
        seconds = float(parts[_PART_OF[entry.source]])
        if seconds == 0 or entry.rule not in ("", rates.rule):
            continue
        if entry.source == SYNC and not _too_many(parts, steps[entry.spot]):
            continue
        text = template(entry, callgraph)
        count = steps[entry.spot] if entry.source == SYNC else entry.count
        place = entry.chain, entry.pids, entry.superstep, entry.group, count
        who = names(entry.pids) if entry.pids else ""
        losses.append(Loss(seconds, entry.kind, entry.habit, *place, who, text))
    losses += _waiting(callgraph)
    return tuple(sorted(losses, key=lambda loss: -loss.seconds))


def _too_many(parts: NDArray[np.float64], steps: int) -> bool:
    """Tell whether the supersteps of a place cost more than what is done in them."""
    return bool(steps >= MANY_STEPS and parts[_SYNC_S] > parts[_COMP_S] + parts[_COMM_S])


def _waiting(callgraph: CallGraph) -> list[Loss]:
    """Return the time for which each process waited for a core, on average."""
    run = callgraph.run
    waited_ns = waiting_ns(run)
    if not waited_ns:
        return []
    text = waiting_template(run.nprocs, run.meta.get("cores"))
    return [Loss(waited_ns / 1e9 / run.nprocs, CORE, FIXED, (), (), None, 0, 0, "", text)]


def _booked(parts: NDArray[np.float64]) -> Booked:
    return Booked(*parts.sum(axis=0).tolist())
