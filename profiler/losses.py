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
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.booking import Books, Priced, price
from bsplib.profiler.clustered_losses import ClusteredLosses, find
from bsplib.profiler.efficiency import Efficiencies, efficiencies
from bsplib.profiler.hosts import ProcessNames
from bsplib.profiler.loss_drafts import ClusteredLoss
from bsplib.profiler.loss_lines import LossLines
from bsplib.profiler.rates import FITTED, NO_SOURCE, Rates, rates_of_run
from bsplib.profiler.run_account import account_of
from bsplib.profiler.survey import waiting_ns
from bsplib.profiler.times_on_machine import retimed
from bsplib.profiler.verdict import Verdict, judge, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.run_account import RunAccount

__all__ = ["Booked", "DescribedLoss", "Ledger", "book", "lost_by_record"]


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


@dataclass(frozen=True)
class DescribedLoss:
    """A loss at one place of the program, in seconds and with its sentence."""

    seconds: float
    """Seconds of the elapsed time that are lost, on average over the processes."""
    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``."""
    habit: str
    """``fixed``, ``rotating`` or ``one-off``: whether it is always the same process."""
    part: str
    """The part of the account that it is a part of."""
    chain: tuple[str, ...]
    """Ids of the nodes from ``main`` to the cost centre; empty for the whole run."""
    callers: tuple[str, ...]
    """Ids of the functions that called the one with the cost centre."""
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
    """A sentence."""


@dataclass(frozen=True, repr=False)
class Ledger:
    """Costs and losses of a run at given rates."""

    rates: Rates
    nodes: dict[str, Booked]
    """By node id. A function is the sum of the cost centres below it."""
    edges: dict[tuple[str, str], Booked]
    """Key: caller and callee. Value: the part of the callee that came through this caller."""
    waiting_s: float | None
    """Time for which processes waited for a core, summed over processes and no part of the
    cost; None if it was not measured."""
    callgraph: CallGraph
    _by_origin: NDArray[np.float64]
    """Shape (origins, parts of a Booked)."""
    _measured: bool
    """Whether these are the rates of the run itself, so that its times hold."""

    @cached_property
    def account(self) -> RunAccount:
        """What the elapsed time of the run was used for; at other rates what it would be."""
        run = self.callgraph.run
        return account_of(run if self._measured else retimed(run, self.rates), self.rates)

    @property
    def clustered_losses(self) -> tuple[ClusteredLoss, ...]:
        """The losses in nanoseconds, the greatest first."""
        return self._clustered_losses.losses

    @cached_property
    def _clustered_losses(self) -> ClusteredLosses:
        return find(self.callgraph, self.account)

    @cached_property
    def efficiencies(self) -> Efficiencies:
        """The efficiencies of the run."""
        return efficiencies(self.account, self._clustered_losses.alone_ns)

    @cached_property
    def loss_lines(self) -> LossLines:
        """Where inside their supersteps the losses arise."""
        return LossLines(self.callgraph.run)

    @property
    def elapsed_s(self) -> float:
        """Elapsed time of the run; at other rates what it would be."""
        return self.account.elapsed_ns / 1e9

    @cached_property
    def losses(self) -> tuple[DescribedLoss, ...]:
        """The losses of the run, the greatest first, each with its sentence."""
        return tuple(_loss(self, clustered) for clustered in self.clustered_losses)

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
        """Return what the elapsed time was lost for, in at most five sentences and a last one."""
        return self._verdict

    @cached_property
    def _verdict(self) -> Verdict:
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
    own = rates_of_run(callgraph.run)
    rates = rates or own
    books = callgraph.books
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
        None if waiting is None else waiting / 1e9,
        callgraph,
        by_origin,
        # Rates that were fitted to the whole run hold for a part of it, too.
        rates.source in {FITTED, NO_SOURCE}
        or (rates.g, rates.l, rates.rule, rates.ratio) == (own.g, own.l, own.rule, own.ratio),
    )


def lost_by_record(callgraph: CallGraph, rates: Rates) -> NDArray[np.float64]:
    """Return what is lost at each record of the run, in seconds.

    A loss is booked for the record of the process that the others waited for; what is lost
    to unequal sub-groups, for the record with the greatest w of the parent's superstep. The
    sums over the records of an origin are those of the ledger.
    """
    books = callgraph.books
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


def _loss(ledger: Ledger, clustered: ClusteredLoss) -> DescribedLoss:
    """Return a clustered loss with its seconds and its sentence."""
    names = ProcessNames(ledger.callgraph.run)
    told = sentence(ledger, clustered)
    return DescribedLoss(
        told.seconds,
        clustered.kind,
        clustered.habit,
        clustered.part,
        clustered.chain,
        tuple(dict.fromkeys(site.function for site in clustered.sites)),
        clustered.pids,
        clustered.superstep,
        clustered.group,
        clustered.count,
        names(clustered.pids) if clustered.pids else "",
        told.text,
    )


def _booked(parts: NDArray[np.float64]) -> Booked:
    return Booked(*parts.sum(axis=0).tolist())
