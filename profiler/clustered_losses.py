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
from bsplib.profiler.costs import by_superstep, group_sizes
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
from bsplib.profiler.loss_lines import InsideLoss, LookedAt, records_of_samples
from bsplib.profiler.loss_sums import (
    BYTES,
    COMM,
    COMP,
    CORES,
    FAR_MORE,
    SMALL,
    SUB_GROUPS,
    SYNC,
    WAIT,
    WAITS,
    lost_by_cause,
)
from bsplib.profiler.mpi_words import WaitsOfMpi
from bsplib.profiler.small_messages import could_be_one, move_nothing, small_messages
from bsplib.profiler.whatif import REMEDIES, MendedRows, Replay, saved
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler.account import Account, Ints
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.loss_sums import CauseSums, LossRecord, WorstStep
    from bsplib.profiler.run_account import RunAccount

_MOST_PLACES = 200
"""Call stacks that are looked at for each cause, those that lose most."""
_LEAST_PASSES = 5
"""A place that is passed fewer times cannot have a loss that happens once."""
_HALF = 0.5
_SHARE_ALONE = 0.35
"""Share of the loss, beyond an even share of it, from which on one process is always waited for."""
_BEYOND_LATENCY = 4
"""What supersteps take beyond l counts as theirs up to this multiple of it."""
MANY_STEPS = 5
"""A place that is passed fewer times does not have too many supersteps."""
BOUND_SHARE = 0.3
"""A run of whose time in supersteps transfers, even or not, take this share is bound by them."""
LEAST_SHARE = 0.05
"""A loss that is a smaller share of the time in supersteps on a core has no sentence."""


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
    places: int = 1
    """At how many cost centres they end."""
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


class ClusteredLosses(NamedTuple):
    """The losses of a run, and what it would take at best."""

    losses: tuple[ClusteredLoss, ...]
    """The greatest first."""
    alone_ns: int
    """How long the supersteps would take with their useful computation only."""


def find(callgraph: CallGraph, account: RunAccount) -> ClusteredLosses:
    """Find the losses of a run, in a pass over what its windows lose.

    Args:
        callgraph: the call graph of the run.
        account: the account of the run, at any rates.
    """
    drafts = [draft for draft in _drafts(callgraph, account) if draft.ns > 0]
    drafts.sort(key=lambda draft: -draft.ns)
    least = LEAST_SHARE * account.in_supersteps_ns()
    worth = [draft for draft in drafts if draft.ns >= least]
    rows_of = _RowsOfDrafts(callgraph, account, drafts)
    mends = [(draft, each) for draft in worth for each in REMEDIES.get(draft.cause, (draft.cause,))]
    replay, record = Replay(account.run, len(mends)), records_of_samples(callgraph.run)
    for each in account.accounts():
        replay.add_alone(each, each.computing.core)
        before = np.zeros((len(mends), len(each.step)))
        after = np.zeros_like(before)
        looked_at = LookedAt(each, callgraph.run.samples, record)
        for draft, rows in rows_of.of(each):
            draft.measured.add(each, draft, rows, callgraph)
            if draft.inside is not None:
                draft.inside.add(looked_at, rows.rows)
            for number, (mended, remedy) in enumerate(mends):
                if mended is draft:
                    before[number], after[number] = saved(remedy, MendedRows(each, rows.rows))
        if mends:
            replay.add(each, before, after)
    for (draft, remedy), saved_ns in zip(mends, replay.saved_ns().tolist(), strict=True):
        draft.without_ns[remedy] = account.elapsed_ns - round(saved_ns)
    return ClusteredLosses(tuple(draft.clustered(callgraph) for draft in drafts), replay.alone_ns())


class _Cluster(NamedTuple):
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
class _Draft:
    """A loss of which the records have not been looked at yet."""

    cause: str
    kind: str
    """Empty where the records decide it."""
    habit: str
    ns: int
    part: str
    origins: tuple[int, ...]
    """Call stacks; the one that loses most first."""
    clusters: tuple[_Cluster, ...]
    """Clusters of the time that processes wait for one another; the greatest first."""
    measured: _Measured
    shares: tuple[int, ...] = ()
    inside: InsideLoss | None = None
    without_ns: dict[str, int] = field(default_factory=dict)
    """By remedy; see :attr:`ClusteredLoss.without_ns`."""

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
            _sites(callgraph, self.origins[:1] if self.cause in _STEPS else self.origins),
            most.superstep if most and once else None,
            most.group if most else 0,
            measured.count if self.cause != CORES else 0,
            len({chain[-1] for chain in chains}) if self.cause in _STEPS else 1,
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

    def _pids(self) -> tuple[int, ...]:
        return self.clusters[0].pids if self.clusters else ()


class _Measured:
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

    def add(self, account: Account, draft: _Draft, rows: LossRows, callgraph: CallGraph) -> None:
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
        draft: _Draft,
        rows: LossRows,
        inside: NDArray[np.bool_],
        callgraph: CallGraph,
    ) -> None:
        if callgraph.kind_of(draft.origins[0]) == Kind.OBLSYNC:
            return  # sender and receiver end it at different calls anyway
        records = account.run.records[account.halo :]
        here = inside[account.step[account.halo :]]
        leaves = self._leaf_of[callgraph.origin_of(records)[here]]
        self._there += int(np.count_nonzero(leaves == self._leaf_of[draft.origins[0]]))
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

    def _add_members(self, account: Account, cluster: _Cluster) -> None:
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


# -- from sums to drafts --------------------------------------------------------------------------


def _drafts(callgraph: CallGraph, account: RunAccount) -> Iterator[_Draft]:
    """Yield the losses of a run, in no order."""
    leaves = [origin.chain[-1] for origin in callgraph.origins]
    number = {leaf: position for position, leaf in enumerate(dict.fromkeys(leaves))}
    leaf_of = np.array([number[leaf] for leaf in leaves], np.int64)
    sums = account.sums
    is_repeated = _is_repeated(callgraph, sums.passed)
    size_of = group_sizes(account.run)
    small, waits = small_messages(account.run, sums), list[_Draft]()
    for cause, part in _PARTS.items():
        merged: defaultdict[tuple[object, ...], list[_Cluster]] = defaultdict(list)
        for cluster in _clusters(sums.lost[cause], is_repeated, size_of):
            if small and cluster.origin in small.in_step:
                continue
            chain = callgraph.origins[cluster.origin].chain
            once = cluster.most.position if cluster.habit == ONE_OFF else None
            merged[cluster.habit, cluster.pids, chain[-2:], once].append(cluster)
        for clusters in merged.values():
            clusters.sort(key=lambda each: -each.ns)
            first = clusters[0]
            kind = {COMP: first.habit, SUB_GROUPS: GROUPS, WAIT: BLOCKED}.get(cause, "")
            origins = tuple(each.origin for each in clusters)
            ns = sum(each.ns for each in clusters)
            draft = _Draft(
                cause, kind, first.habit, ns, part, origins, tuple(clusters), _Measured(leaf_of)
            )
            if cause in {COMP, WAIT}:
                draft.inside = InsideLoss(cause, len(account.run.stacks))
            waits.append(draft)
    yield from waits
    if small:
        shares, origins = tuple(small.shares.tolist()), small.origins
        part, measured = parts.PARTS[parts.LATENCY], _Measured(leaf_of)
        yield _Draft(SMALL, STEPS, FIXED, sum(shares), part, origins, (), measured, shares)
    yield from _supersteps(account, leaf_of, small.origins if small else ())
    yield from _bytes(callgraph, account, leaf_of, waits)
    if ns := account.whole()["core"]:  # once for the run: it is not the program's
        measured = _Measured(leaf_of)
        yield _Draft(CORES, CORE, FIXED, ns, parts.PARTS[parts.CORE], (), (), measured)


def _is_repeated(callgraph: CallGraph, passed: Ints) -> list[bool]:
    """Tell of each call stack whether it is passed again, and its cost centre often, by any."""
    often = passed.max(axis=1, initial=0).tolist()
    leaves = [origin.chain[-1] for origin in callgraph.origins]
    passes = dict.fromkeys(leaves, 0)
    for leaf, count in zip(leaves, often, strict=True):
        passes[leaf] += count
    return [
        count > 1 and passes[leaf] >= _LEAST_PASSES
        for leaf, count in zip(leaves, often, strict=True)
    ]


def _clusters(sums: CauseSums, is_repeated: list[bool], size_of: Ints) -> Iterator[_Cluster]:
    """Yield the clusters of what is lost for a cause, by call stack."""
    by_origin = sorted(sums.by_origin().items(), key=lambda each: (-sum(each[1].values()), each[0]))
    for origin, by_pid in by_origin[:_MOST_PLACES]:
        worst = sums.worst[origin]
        if is_repeated[origin] and worst.ns > _HALF * sum(by_pid.values()):
            most = max(worst.records, key=lambda record: (record.ns, -record.position))
            pids = tuple(record.pid for record in worst.records)
            yield _Cluster(ONE_OFF, (most.pid,), origin, worst.ns, most, pids)
            left = by_pid.copy()
            for record in worst.records:
                left[record.pid] -= record.ns
            size = sums.size(origin, worst, size_of)
            yield from _habits(origin, left, size, sums, worst)
        else:
            yield from _habits(origin, by_pid, sums.size(origin, None, size_of), sums, None)


def _habits(
    origin: int, by_pid: dict[int, int], size: int, sums: CauseSums, without: WorstStep | None
) -> Iterator[_Cluster]:
    """Yield clusters for the processes that are always waited for, and for the others."""
    lost = {pid: ns for pid, ns in by_pid.items() if ns}
    always = (1 / size + _SHARE_ALONE * (1 - 1 / size)) * sum(lost.values())
    alone = [pid for pid in sorted(lost) if lost[pid] >= max(always, 1)]
    for pid in alone:
        most = sums.most(origin, pid, without)
        yield _Cluster(FIXED, (pid,), origin, lost[pid], most, (pid,))
    rest = tuple(pid for pid in sorted(lost) if pid not in alone)
    if rest:
        each = [sums.most(origin, pid, without) for pid in rest]
        most = max(each, key=lambda record: (record.ns, -record.position))
        yield _Cluster(ROTATING, (), origin, sum(lost[pid] for pid in rest), most, rest)


def _supersteps(account: RunAccount, leaf_of: Ints, without: tuple[int, ...]) -> Iterator[_Draft]:
    """Yield the l of places whose supersteps take longer than all else there, as one loss.

    l is a usual time. What supersteps take beyond it is not explained, in calls, or taken to record
    them, but they take it: up to a few times l, since more has other reasons.
    """
    sums, calls = account.sums.by_origin, account.sums.calls[0]
    beyond = sums[parts.UNEXPLAINED] + sums[parts.RECORDING] + calls
    beyond = np.minimum(beyond, _BEYOND_LATENCY * sums[parts.LATENCY])
    others = sums[parts.USEFUL] + sums[parts.TRANSFERS] - calls - beyond
    often = account.sums.passed.max(axis=1, initial=0) >= MANY_STEPS
    often[list(without)] = False
    at = np.flatnonzero((sums[parts.LATENCY] > others) & often)
    if len(at):
        at = at[np.argsort(-sums[parts.LATENCY][at], kind="stable")]
        ns, part = int(sums[parts.LATENCY][at].sum()), parts.PARTS[parts.LATENCY]
        origins = tuple(at.tolist())
        yield _Draft(SYNC, STEPS, FIXED, ns, part, origins, (), _Measured(leaf_of))


def _bytes(
    callgraph: CallGraph, account: RunAccount, leaf_of: Ints, waits: list[_Draft]
) -> Iterator[_Draft]:
    """Yield the transfers of each cost centre, in a run that is bound by them."""
    of_run, chains = account.sums.by_origin, [origin.chain for origin in callgraph.origins]
    sums = of_run[parts.TRANSFERS] - account.sums.calls[0]
    whole = sums.sum() + of_run[parts.TRANSFER_IMBALANCE].sum()
    if whole < BOUND_SHARE * account.in_supersteps_ns():
        return
    uneven = {
        chains[each.origins[0]][-2:]: each.ns
        for each in waits
        if (each.cause, each.habit) == (COMM, FIXED)
    }
    places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for origin in np.argsort(-sums, kind="stable").tolist():
        if sums[origin]:
            places[chains[origin][-2:]].append(origin)
    for place, origins in places.items():
        ns = int(sums[origins].sum())
        if uneven.get(place, 0) <= _HALF * ns:  # otherwise to even them out is the better remedy
            part, measured = parts.PARTS[parts.TRANSFERS], _Measured(leaf_of)
            yield _Draft(BYTES, COMMUNICATION, FIXED, ns, part, tuple(origins), (), measured)


# -- which records of a window belong to which draft ----------------------------------------------


class LossRows(NamedTuple):
    """The records of a window that belong to a loss."""

    rows: Ints
    """Positions in the window."""
    lost: Ints
    """What is lost for each of them, where processes wait for one another; otherwise empty."""


class _RowsOfDrafts:
    """Finds the records of each loss in a window."""

    def __init__(self, callgraph: CallGraph, account: RunAccount, drafts: list[_Draft]) -> None:
        self._callgraph = callgraph
        self._nprocs = account.run.nprocs
        self._drafts = drafts
        self._labels = {cause: self._labelled(cause) for cause in WAITS}
        """For each cause the keys of call stack and process, ascending, and numbers of drafts."""

    def _labelled(self, cause: str) -> tuple[Ints, Ints]:
        labels: dict[int, int] = {}
        for number, draft in enumerate(self._drafts):
            if draft.cause == cause and draft.habit != ONE_OFF:
                for cluster in draft.clusters:
                    of_cluster = (cluster.origin * self._nprocs + pid for pid in cluster.members)
                    labels.update(dict.fromkeys(of_cluster, number))
        keys = sorted(labels)
        return np.array(keys, np.int64), np.array([labels[key] for key in keys], np.int64)

    def of(self, account: Account) -> Iterator[tuple[_Draft, LossRows]]:
        """Yield each draft that has records in a window."""
        records = account.run.records[account.halo :]
        origin = self._callgraph.origin_of(records)
        for cause, lost in lost_by_cause(account).items():
            rows = np.flatnonzero(lost)
            if len(rows):
                label = self._label(cause, records, rows, origin[rows])
                for number in np.flatnonzero(np.bincount(label + 1)[1:]).tolist():
                    mine = rows[label == number]
                    yield self._drafts[number], LossRows(mine + account.halo, lost[mine])
        for draft in self._drafts:
            if draft.cause in {*_STEPS, BYTES, CORES}:
                mine = np.arange(len(origin))
                if draft.cause != CORES:
                    mine = np.flatnonzero(np.isin(origin, draft.origins))
                if len(mine):
                    yield draft, LossRows(mine + account.halo, np.zeros(0, np.int64))

    def _label(self, cause: str, records: NDArray[np.void], rows: Ints, origin: Ints) -> Ints:
        """Return for each record that loses something the number of its draft, or -1."""
        keys, labels = self._labels[cause]
        label = np.full(len(origin), -1, np.int64)
        if len(keys):
            wanted = origin * self._nprocs + records["pid"][rows]
            at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
            label = np.where(keys[at] == wanted, labels[at], -1)
        for number, draft in enumerate(self._drafts):
            if draft.cause == cause and draft.habit == ONE_OFF:
                for cluster in draft.clusters:
                    at_step = records["superstep"][rows] == cluster.most.superstep
                    at_step &= records["group"][rows] == cluster.most.group
                    label[at_step & (origin == cluster.origin)] = number
        return label


_STEPS = frozenset({SYNC, SMALL})
"""Causes that are about the number of supersteps."""
_PARTS = {COMP: "imbalance", SUB_GROUPS: "imbalance", COMM: "transfer_imbalance", WAIT: "blocked"}
"""Causes for which processes wait for one another, and the parts of the account."""
