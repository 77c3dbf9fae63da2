"""The losses of a run, clustered by where they arise, who is waited for, and why.

What is lost is taken from the account, record by record: what others wait for the record of a
straggler, what a process is blocked, what a transfer takes. It is clustered by the whole call
stack with its call sites, and by the process. At a call stack one superstep may bear most of
it (*one-off*), some processes may (*fixed*), or no process does (*rotating*). Clusters with one
cause, one process and one cost centre in one function are one loss, whoever called that.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler._numbering import ranked
from bsplib.profiler.account import Account
from bsplib.profiler.kinds import (
    BLOCKED,
    COMMUNICATION,
    CORE,
    FAN_IN,
    FAN_OUT,
    FIXED,
    GROUPS,
    ONE_OFF,
    ROTATING,
    STEPS,
    UNEVEN,
)
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from bsplib.profiler.account import Ints
    from bsplib.profiler.booking import Books
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.recording.records import Run

COMP, COMM, SUB_GROUPS, SYNC, WAIT = "comp", "comm", "groups", "sync", "wait"
"""Causes: the greatest w, the greatest h, a sub-group, supersteps; a process that is blocked."""
BYTES, CORES = "bytes", "core"
"""Causes: all bytes of a place, also even ones; processes that share cores."""

_MOST_PLACES = 200
"""Call stacks that are looked at for each cause, those that lose most."""
_REPEATED = 5
"""A place that is passed at least so often can have a loss that happens once."""
_HALF = 0.5
_ALONE = 0.35
"""A process is waited for always if so much of the loss is its, beyond an even share of it."""
MANY_STEPS = 5
"""A place that is passed fewer times does not have too many supersteps."""
BOUND_SHARE = 0.3
"""A run of whose time in supersteps transfers, even or not, take this share is bound by them."""
_FAR_MORE = 1.5


class LossSite(NamedTuple):
    """A call that leads to a loss."""

    function: str
    """Id of the node of the calling function."""
    line: int


@dataclass(frozen=True)
class Finding:
    """A loss of a run, and where it arises."""

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
    places: int = 1
    """At how many cost centres they end."""
    sharing: int = 0
    """How many processes end these supersteps at the cost centre; 0: most of them."""
    needless: int = 0
    """How many of the supersteps move no bytes."""
    total_bytes: int = 0
    most_bytes: int = 0
    """For transfers: all bytes, and the greatest h of a process in one superstep."""
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64), repr=False, compare=False)
    """Positions of the records that are waited for, or in which the time is spent."""


def find(callgraph: CallGraph, account: Account, books: Books) -> list[Finding]:
    """Return the losses of a run, the greatest first.

    Args:
        callgraph: the call graph of the run.
        account: the account of the run, at any rates.
        books: the books of the run.
    """
    if len(account.run.records) == 0:
        return []
    finder = _Finder(callgraph, account, books)
    waits = list(finder.waits())
    uneven = {
        each.chain[-2:]: each.ns for each in waits if (each.cause, each.habit) == (COMM, FIXED)
    }
    found = [*waits, *finder.supersteps(), *finder.bytes(uneven), *finder.cores()]
    return sorted((each for each in found if each.ns > 0), key=lambda each: -each.ns)


class _Cluster(NamedTuple):
    """What is lost at one call stack to one process, to one superstep, or to changing ones."""

    habit: str
    pids: tuple[int, ...]
    origin: int
    rows: Ints
    ns: int
    worst: int
    """Position of the record that loses most."""


class _Finder:
    """Finds the losses of a run."""

    def __init__(self, callgraph: CallGraph, account: Account, books: Books) -> None:
        self._callgraph = callgraph
        self._account = account
        self._run: Run = account.run
        self._books = books
        self._origin = callgraph.origin_of_records()
        self._pid = self._run.records["pid"]
        nprocs = self._run.nprocs
        passed = np.bincount(
            self._origin * nprocs + self._pid, minlength=nprocs * len(callgraph.origins)
        )
        self._passed = passed.reshape(-1, nprocs).max(axis=1)
        """How often each call stack is passed."""
        leaves = [origin.chain[-1] for origin in callgraph.origins]
        passes = dict.fromkeys(leaves, 0)
        for leaf, count in zip(leaves, self._passed.tolist(), strict=True):
            passes[leaf] += count
        self._repeated = [
            count > 1 and passes[leaf] >= _REPEATED
            for leaf, count in zip(leaves, self._passed.tolist(), strict=True)
        ]
        """Whether each call stack is passed again, and its cost centre often, by any stack."""
        size = np.array([group.size for group in self._run.groups])
        self._size: Ints = size[self._run.records["group"]]
        self._lost, self._sums = self._booked()

    # -- what others wait for ---------------------------------------------------------------------

    def waits(self) -> Iterator[Finding]:
        """Yield what processes wait for one another, and what they are blocked."""
        lost = self._lost
        for cause, part in _PARTS.items():
            merged: defaultdict[tuple[object, ...], list[_Cluster]] = defaultdict(list)
            for cluster in self._clusters(lost[cause]):
                chain = self._callgraph.origins[cluster.origin].chain
                once = cluster.worst if cluster.habit == ONE_OFF else None
                merged[cluster.habit, cluster.pids, chain[-2:], once].append(cluster)
            for clusters in merged.values():
                yield self._waited(cause, part, clusters, lost[cause])

    def _booked(self) -> tuple[dict[str, Ints], Ints]:
        """Read the account once.

        Returns:
            By cause what is lost for each record, as others wait for it; and what is booked at
            each origin, of shape (parts, origins).
        """
        account, count = self._account, len(self._run.records)
        lost = {cause: np.zeros(count, np.int64) for cause in _PARTS}
        uneven = np.zeros(int(account.step.max()) + 1, np.int64)
        sums = np.zeros((len(parts.PARTS), len(self._callgraph.origins)), np.int64)
        for rows, booked, waits in account.blocks():
            for total, values in zip(sums, booked, strict=True):
                np.add.at(total, self._origin[rows], values)
            behind = account.behind[rows]
            for cause, why in _WAITS.items():
                np.add.at(lost[cause], behind, waits[why])
            lost[WAIT][rows] += booked[parts.BLOCKED] - waits[parts.WAS_BLOCKED]
            more = booked[parts.TRANSFER_IMBALANCE] - waits[parts.CALLS]
            np.add.at(uneven, account.step[rows], more)
        leaders = self._books.supersteps.h[account.rates.rule].record
        lost[COMM][leaders] += uneven
        return lost, sums

    def _clusters(self, lost: Ints) -> Iterator[_Cluster]:
        """Yield the clusters of what is lost for each record, by call stack."""
        rows = np.flatnonzero(lost)
        by_origin = np.bincount(self._origin[rows], lost[rows])
        order = rows[np.argsort(self._origin[rows], kind="stable")]
        bounds = np.searchsorted(self._origin[order], np.arange(len(by_origin) + 1))
        for origin in np.argsort(-by_origin, kind="stable")[:_MOST_PLACES].tolist():
            mine = order[bounds[origin] : bounds[origin + 1]]
            if len(mine):
                yield from self._at_origin(origin, mine, lost)

    def _at_origin(self, origin: int, rows: Ints, lost: Ints) -> Iterator[_Cluster]:
        which = ranked(self._account.step[rows])[1]
        by_step = np.bincount(which, lost[rows])
        worst = int(by_step.argmax())
        if self._repeated[origin] and by_step[worst] > _HALF * by_step.sum():
            once = rows[which == worst]
            yield self._cluster(ONE_OFF, origin, once, lost, once[lost[once].argmax()])
            rows = rows[which != worst]
        pids = self._pid[rows]
        by_pid = np.bincount(pids, lost[rows], self._run.nprocs)
        size = int(self._size[rows].max(initial=1))
        always = (1 / size + _ALONE * (1 - 1 / size)) * by_pid.sum()
        alone = np.flatnonzero(by_pid >= max(always, 1)).tolist()
        for pid in alone:
            yield self._cluster(FIXED, origin, rows[pids == pid], lost)
        rest = rows[~np.isin(pids, alone)]
        if len(rest):
            yield self._cluster(ROTATING, origin, rest, lost)

    def _cluster(
        self, habit: str, origin: int, rows: Ints, lost: Ints, worst: int | None = None
    ) -> _Cluster:
        at = int(rows[lost[rows].argmax()]) if worst is None else int(worst)
        pids = () if habit == ROTATING else (int(self._pid[at]),)
        return _Cluster(habit, pids, origin, rows, int(lost[rows].sum()), at)

    def _waited(self, cause: str, part: str, clusters: list[_Cluster], lost: Ints) -> Finding:
        """Return the loss of clusters with one cause."""
        clusters = sorted(clusters, key=lambda each: -each.ns)
        first = clusters[0]
        rows = np.concatenate([each.rows for each in clusters])
        once = first.habit == ONE_OFF
        record = self._run.records[first.worst]
        return Finding(
            cause,
            self._kind(cause, first.habit, rows, lost),
            first.habit,
            sum(each.ns for each in clusters),
            part,
            self._callgraph.origins[first.origin].chain,
            self._who(cause, first),
            self._sites(clusters),
            int(record["superstep"]) if once else None,
            int(record["group"]),
            len(self._steps_of(rows)),
            sharing=self._sharing(rows) if cause == COMP else 0,
            rows=rows,
        )

    def _kind(self, cause: str, habit: str, rows: Ints, lost: Ints) -> str:
        if cause == SUB_GROUPS:
            return GROUPS
        if cause == WAIT:
            return BLOCKED
        if cause == COMP:
            return habit
        weights = lost[rows].astype(np.float64)
        h_out, h_in = (values[rows] @ weights for values in self._excess)
        if h_in > _FAR_MORE * h_out:
            return FAN_IN
        return FAN_OUT if h_out > _FAR_MORE * h_in else UNEVEN

    @property
    def _excess(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """By how much the bytes out of and into each record exceed the mean of its superstep."""
        step = self._account.step
        out, into = self._account.h_out_and_in
        means = [np.bincount(step, values)[step] / self._size for values in (out, into)]
        return (out - means[0]).clip(min=0), (into - means[1]).clip(min=0)

    def _who(self, cause: str, cluster: _Cluster) -> tuple[int, ...]:
        """Return the processes that are waited for: of a sub-group all."""
        if cause != SUB_GROUPS:
            return cluster.pids
        inside = np.flatnonzero(self._account.owner == cluster.worst)
        groups = self._run.records["group"][inside]
        lasted = self._run.records["end"][inside] - self._run.records["start"][inside]
        if len(groups) == 0:
            return cluster.pids
        return tuple(self._run.groups[int(np.bincount(groups, lasted).argmax())].members)

    def _sites(self, clusters: list[_Cluster]) -> tuple[LossSite, ...]:
        """Return the calls of the function that contains the cost centre of clusters."""
        sites: dict[LossSite, None] = {}
        for cluster in clusters:
            chain = self._callgraph.origins[cluster.origin].chain
            if len(chain) > 2:
                line = self._callgraph.call_lines(cluster.origin)[-2]
                sites[LossSite(chain[-3], line)] = None
        return tuple(sites)

    def _steps_of(self, rows: Ints) -> Ints:
        """Return the supersteps of some records, each once."""
        inside = np.zeros(len(self._account.h_max), bool)
        inside[self._account.step[rows]] = True
        return np.flatnonzero(inside)

    def _sharing(self, rows: Ints) -> int:
        """Return how many processes end the supersteps of some records where these end."""
        if self._run.records["kind"][rows[0]] == Kind.OBLSYNC:
            return 0  # sender and receiver end it at different calls anyway
        steps = self._steps_of(rows)
        leaves = [origin.chain[-1] for origin in self._callgraph.origins]
        number = {leaf: position for position, leaf in enumerate(dict.fromkeys(leaves))}
        leaf_of = np.array([number[leaf] for leaf in leaves])
        inside = np.zeros(len(self._account.h_max), bool)
        inside[steps] = True
        here = inside[self._account.step]
        there = leaf_of[self._origin[here]] == leaf_of[self._origin[rows[0]]]
        mean = np.count_nonzero(there) / len(steps)
        return max(1, round(mean)) if mean <= _HALF * self._size[rows].mean() else 0

    # -- what all processes spend together --------------------------------------------------------

    def supersteps(self) -> Iterator[Finding]:
        """Yield the l of places with more of it than of all else, as one loss."""
        sums = self._sums
        others = sums[parts.USEFUL] + sums[parts.TRANSFERS]
        many = (sums[parts.LATENCY] > others) & (self._passed >= MANY_STEPS)
        at = np.flatnonzero(many)
        if len(at) == 0:
            return
        at = at[np.argsort(-sums[parts.LATENCY][at], kind="stable")]
        chains = [self._callgraph.origins[origin].chain for origin in at.tolist()]
        rows = np.flatnonzero(many[self._origin])
        steps = self._steps_of(rows)
        yield Finding(
            SYNC,
            STEPS,
            FIXED,
            int(sums[parts.LATENCY][at].sum()),
            parts.PARTS[parts.LATENCY],
            chains[0],
            sites=self._sites([_Cluster(FIXED, (), int(at[0]), rows, 0, int(rows[0]))]),
            count=len(steps),
            places=len({chain[-1] for chain in chains}),
            needless=int(np.count_nonzero(self._are_needless(steps))),
            rows=rows,
        )

    def _are_needless(self, steps: Ints) -> NDArray[np.bool_]:
        """Mark the supersteps that move no bytes, with mpi4py not even empty messages."""
        needless: NDArray[np.bool_] = self._account.h_max[steps] == 0
        if self._run.is_interleaved:
            sent = np.zeros(len(self._account.h_max), bool)
            rows = self._run.traffic["record"][self._run.traffic["messages"] > 0]
            sent[self._account.step[rows]] = True
            needless &= ~sent[steps]
        return needless

    def bytes(self, uneven: Mapping[tuple[str, ...], int]) -> Iterator[Finding]:
        """Yield the transfers of each cost centre, in a run that is bound by them.

        Args:
            uneven: what others wait for the transfers of one process, by cost centre.
        """
        account = self._account
        sums = self._sums[parts.TRANSFERS]
        if (
            sums.sum() + self._sums[parts.TRANSFER_IMBALANCE].sum()
            < BOUND_SHARE * account.in_supersteps_ns()
        ):
            return
        places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for origin in np.argsort(-sums, kind="stable").tolist():
            if sums[origin]:
                places[self._callgraph.origins[origin].chain[-2:]].append(origin)
        h_out, h_in = account.h_out_and_in
        h = np.maximum(h_out, h_in)
        for origins in places.values():
            place = self._callgraph.origins[origins[0]].chain[-2:]
            if uneven.get(place, 0) > _HALF * sums[origins].sum():
                continue  # to even them out is the better remedy
            rows = np.flatnonzero(np.isin(self._origin, origins))
            most = int(rows[h[rows].argmax()])
            clusters = [_Cluster(FIXED, (), origin, rows, 0, most) for origin in origins]
            yield Finding(
                BYTES,
                COMMUNICATION,
                FIXED,
                int(sums[origins].sum()),
                parts.PARTS[parts.TRANSFERS],
                self._callgraph.origins[origins[0]].chain,
                (int(self._pid[most]),),
                self._sites(clusters),
                count=len(self._steps_of(rows)),
                total_bytes=int(h_out[rows].sum()),
                most_bytes=int(h[most]),
                rows=rows,
            )

    def cores(self) -> Iterator[Finding]:
        """Yield what processes wait for a core, once for the run: it is not the program's."""
        ns = self._account.whole()["core"]
        if ns:
            rows = np.arange(len(self._run.records))
            yield Finding(CORES, CORE, FIXED, ns, parts.PARTS[parts.CORE], rows=rows)


_PARTS = {COMP: "imbalance", SUB_GROUPS: "imbalance", COMM: "transfer_imbalance", WAIT: "blocked"}
"""Causes for which processes wait for one another, and the parts of the account."""
_WAITS = {
    COMP: parts.COMP,
    SUB_GROUPS: parts.GROUPS,
    COMM: parts.CALLS,
    WAIT: parts.WAS_BLOCKED,
}
