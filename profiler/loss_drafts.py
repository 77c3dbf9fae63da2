"""A loss of a run, before and after its records have been looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler.costs import by_superstep, group_sizes
from bsplib.profiler.kinds import FAN_IN, FAN_OUT, ONE_OFF, UNEVEN
from bsplib.profiler.loss_lines import InsideLoss
from bsplib.profiler.loss_rows import LossRows
from bsplib.profiler.loss_sums import BYTES, COMM, COMP, CORES, FAR_MORE, SMALL, SUB_GROUPS, SYNC
from bsplib.profiler.mpi_words import WaitsOfMpi
from bsplib.profiler.small_messages import could_be_one, move_nothing
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.account import Account, Ints
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.loss_sums import LossRecord

_HALF = 0.5
_STEPS = frozenset({SYNC, SMALL})
"""Causes that are about the number of supersteps."""


class LossSite(NamedTuple):
    """A call that leads to a loss."""

    function: str
    """Id of the node of the calling function."""
    line: int


@dataclass(frozen=True)
class ClusteredLoss:
    """A loss of a run in nanoseconds, from clusters with one cause, and where it arises."""

    cause: str
    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``."""
    habit: str
    """``fixed``, ``rotating`` or ``one-off``: whether it is always the same process."""
    ns: int
    """What is lost, summed over all processes."""
    part: str
    """The part of the account that it is a part of."""
    chain: tuple[str, ...] = ()
    """Ids of the nodes from ``main`` to the cost centre that loses most."""
    pids: tuple[int, ...] = ()
    """The process, or the processes of the sub-group; empty where no one stands out."""
    sites: tuple[LossSite, ...] = ()
    """The calls of the function that contains the cost centre, the greatest loss first."""
    superstep: int | None = None
    """Number of the superstep that bears most of it, for ``one-off``."""
    group: int = 0
    """Position in ``run.groups`` of the group of that superstep."""
    count: int = 0
    """Number of supersteps."""
    nodes: tuple[str, ...] = ()
    """Ids of the cost centres at which they end; that of ``chain`` first."""
    sharing: int = 0
    """How many processes end these supersteps at the cost centre; 0: most of them."""
    needless: int = 0
    """How many of the supersteps move no bytes, with mpi4py not even empty messages."""
    late: str = ""
    """For what those were late that others waited for, in a program of mpi4py; else empty."""
    shares: tuple[int, ...] = ()
    """What it takes of each part of the account; empty where all is of ``part``."""
    total_bytes: int = 0
    most_bytes: int = 0
    """For transfers: all bytes, and the greatest h of a process in one superstep."""
    without_ns: int | None = None
    """What the run would take if this alone were mended; None for a loss of less than
    ``LEAST_SHARE``."""
    remedies: tuple[tuple[str, int], ...] = ()
    """The same with further remedies, by their names in ``bsplib.profiler.whatif``."""
    inside: InsideLoss | None = field(default=None, repr=False, compare=False)
    """What was executed there; None where the line does not matter."""


class Cluster(NamedTuple):
    """What is lost at one call stack to one process, to one superstep, or to changing ones."""

    habit: str
    pids: tuple[int, ...]
    """The process that is named; empty where none is."""
    origin: int
    ns: int
    most: LossRecord
    """The record that loses most."""
    members: tuple[int, ...] = ()
    """All processes that lose something."""


@dataclass(eq=False)
class Draft:
    """A loss of which the records have not been looked at yet."""

    cause: str
    kind: str
    """Empty where the records decide it."""
    habit: str
    ns: int
    part: str
    origins: tuple[int, ...]
    """Call stacks; the one that loses most first."""
    clusters: tuple[Cluster, ...]
    """Clusters of the time that processes wait for one another; the greatest first."""
    measured: LossMeasures
    shares: tuple[int, ...] = ()
    inside: InsideLoss | None = None
    without_ns: dict[str, int] = field(default_factory=dict)
    """By remedy; see :attr:`ClusteredLoss.without_ns`."""

    @property
    def who(self) -> tuple[object, ...]:
        """The cause, and who is waited for."""
        return self.cause, self.habit, self._pids()

    def join(self, other: Draft) -> None:
        """Take in a loss with the same cause that arises at the same line."""
        self.ns += other.ns
        self.clusters = tuple(sorted((*self.clusters, *other.clusters), key=lambda c: -c.ns))
        self.origins = tuple(cluster.origin for cluster in self.clusters)

    def take_uneven(self, uneven: Draft) -> None:
        """Take in what processes wait for these transfers, which are even."""
        shares = [0] * len(parts.PARTS)
        shares[parts.TRANSFERS], shares[parts.TRANSFER_IMBALANCE] = self.ns, uneven.ns
        if self.shares:
            shares[parts.TRANSFERS] = self.shares[parts.TRANSFERS]
            shares[parts.TRANSFER_IMBALANCE] += self.shares[parts.TRANSFER_IMBALANCE]
        self.ns, self.shares = sum(shares), tuple(shares)

    def look_anew(self) -> None:
        """Forget what was executed there."""
        if self.inside is not None:
            self.inside = self.inside.empty()

    def clustered(self, callgraph: CallGraph) -> ClusteredLoss:
        """Return the loss, after its records have been looked at."""
        measured, once = self.measured, self.habit == ONE_OFF
        chains = [callgraph.origins[origin].chain for origin in self.origins]
        most = self.clusters[0].most if self.clusters else None
        return ClusteredLoss(
            self.cause,
            self.kind or measured.direction(),
            self.habit,
            self.ns,
            self.part,
            chains[0] if chains else (),
            measured.pids if self.cause in {BYTES, SUB_GROUPS} else self._pids(),
            _sites(callgraph, self._of_first_place(callgraph)),
            most.superstep if most and once else None,
            most.group if most else 0,
            measured.count if self.cause != CORES else 0,
            tuple(dict.fromkeys(chain[-1] for chain in chains)),
            measured.sharing() if self.cause == COMP else 0,
            measured.needless if self.cause in _STEPS else 0,
            measured.calls.late() if self.cause == COMP else "",
            self.shares,
            measured.total_bytes if self.cause == BYTES else 0,
            measured.most_bytes if self.cause == BYTES else 0,
            self.without_ns.get(self.cause),
            tuple((name, ns) for name, ns in self.without_ns.items() if name != self.cause),
            self.inside,
        )

    def _of_first_place(self, callgraph: CallGraph) -> tuple[int, ...]:
        """Return the call stacks of the cost centre that loses most."""
        if self.cause in _STEPS:
            return self.origins[:1]
        chain_of = {origin: callgraph.origins[origin].chain[-2:] for origin in self.origins}
        return tuple(each for each in self.origins if chain_of[each] == chain_of[self.origins[0]])

    def _pids(self) -> tuple[int, ...]:
        return self.clusters[0].pids if self.clusters else ()


class LossMeasures:
    """What the records of a loss say of it, added up over windows."""

    def __init__(self, leaf_of: Ints) -> None:
        self._leaf_of = leaf_of
        self.calls = WaitsOfMpi()
        self.count = 0
        self.needless = 0
        self.total_bytes = 0
        self.most_bytes = 0
        self.pids: tuple[int, ...] = ()
        self._at = -1
        self._rows = self._size = self._there = 0
        self._excess = np.zeros(2)

    def add(self, account: Account, draft: Draft, rows: LossRows, callgraph: CallGraph) -> None:
        """Take in the records of a window."""
        inside = np.zeros(len(account.h_max), bool)
        inside[account.step[rows.rows]] = True
        self.count += int(np.count_nonzero(inside))
        if draft.cause == COMP:
            self.calls.add_late(account.run, rows.rows)
            self._add_sharing(account, draft, rows, inside, callgraph)
        elif draft.cause == COMM:
            # Not by @: a library for matrices starts threads, which take longer than the product.
            excess = _excess(account)
            self._excess += [(values[rows.rows] * rows.lost).sum() for values in excess]
        elif draft.cause == SUB_GROUPS:
            self._add_members(account, draft.clusters[0])
        elif draft.cause in _STEPS:
            needless = could_be_one if draft.cause == SMALL else move_nothing
            self.needless += int(np.count_nonzero(inside & needless(account)))
        elif draft.cause == BYTES:
            self._add_bytes(account, rows.rows)

    def _add_sharing(
        self,
        account: Account,
        draft: Draft,
        rows: LossRows,
        inside: NDArray[np.bool_],
        callgraph: CallGraph,
    ) -> None:
        if callgraph.kind_of(draft.origins[0]) == Kind.OBLSYNC:
            return  # sender and receiver end it at different calls anyway
        records = account.run.records[account.halo :]
        here = inside[account.step[account.halo :]]
        leaves = self._leaf_of[callgraph.origin_of(records)[here]]
        self._there += int(np.isin(leaves, self._leaf_of[list(draft.origins)]).sum())
        self._rows += len(rows.rows)
        self._size += int(_sizes(account)[rows.rows].sum())

    def sharing(self) -> int:
        """Return how many processes end the supersteps at the cost centre; 0: most of them."""
        if self._rows == 0:
            return 0
        mean = self._there / max(self.count, 1)
        few = mean <= _HALF * self._size / max(self._rows, 1)
        return max(1, round(mean)) if few else 0

    def direction(self) -> str:
        """Return whether bytes go to one process or from it, far more than to and from others."""
        h_out, h_in = self._excess
        if h_in > FAR_MORE * h_out:
            return FAN_IN
        return FAN_OUT if h_out > FAR_MORE * h_in else UNEVEN

    def _add_members(self, account: Account, cluster: Cluster) -> None:
        """Find the processes of the sub-group that is waited for.

        Nobody waits for a sub-group of all processes: then it is one inside of it.
        """
        at = np.flatnonzero(account.position == cluster.most.position)
        if len(at) == 0:
            return
        outer = account.halo + at[:1]
        records, members = account.run.records, account.run.groups
        self.pids = cluster.pids or (int(records["pid"][outer[0]]),)
        most = len(members[int(records["group"][outer[0]])].members)
        while len(inside := np.flatnonzero(np.isin(account.owner, outer))):
            groups = records["group"][inside]
            lasted = records["end"][inside] - records["start"][inside]
            longest = int(np.bincount(groups, lasted).argmax())
            if len(members[longest].members) < most:
                self.pids = tuple(sorted(members[longest].members))
                return
            outer = inside[groups == longest]

    def _add_bytes(self, account: Account, rows: Ints) -> None:
        h_out, h_in = account.h_out_and_in
        h = np.maximum(h_out, h_in)[rows]
        self.total_bytes += int(h_out[rows].sum())
        most = rows[h.argmax()]
        at = int(account.position[most - account.halo])
        if (h.max(), -at) > (self.most_bytes, -self._at) or self._at < 0:
            self.most_bytes, self._at = int(h.max()), at
            self.pids = (int(account.run.records["pid"][most]),)


def _sizes(account: Account) -> Ints:
    """Return for each record the number of processes of its group."""
    sizes: Ints = group_sizes(account.run)[account.run.records["group"]]
    return sizes


def _excess(account: Account) -> list[NDArray[np.float64]]:
    """Return by how much the bytes out of and into each record exceed the mean of its superstep."""
    by, sizes = by_superstep(account.run), _sizes(account)
    return [
        (values - by.spread(by.sums(values)) / sizes).clip(min=0) for values in account.h_out_and_in
    ]


def _sites(callgraph: CallGraph, origins: tuple[int, ...]) -> tuple[LossSite, ...]:
    """Return the calls of the function that contains the cost centre of some call stacks."""
    sites: dict[LossSite, None] = {}
    for origin in origins:
        chain = callgraph.origins[origin].chain
        if len(chain) > 2:
            sites[LossSite(chain[-3], callgraph.call_lines(origin)[-2])] = None
    return tuple(sites)
