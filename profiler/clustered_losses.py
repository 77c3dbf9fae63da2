"""The losses of a run, clustered by where they arise, who is waited for, and why.

What is lost is taken from the account, record by record: what others wait for the record of a
straggler, what a process is blocked, what a transfer takes. It is clustered by the whole call
stack with its call sites, and by the process. At a call stack one superstep may bear most of
it (*one-off*), some processes may (*fixed*), or no process does (*rotating*). Clusters with one
cause, one process and one cost centre in one function are one loss, whoever called that. So are
those that samples book to one line, wherever the supersteps end.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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
from bsplib.profiler.loss_lines import InsideLoss, LookedAt, LossLines, records_of_samples
from bsplib.profiler.loss_rows import LossRows, RowsOfDrafts
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
)
from bsplib.profiler.mpi_words import WaitsOfMpi
from bsplib.profiler.small_messages import could_be_one, move_nothing, small_messages
from bsplib.profiler.whatif import REMEDIES, MendedRows, Replay, saved
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from bsplib.backends.members import Members
    from bsplib.profiler.account import Account, Ints
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.lines import LinePlace
    from bsplib.profiler.loss_lines import CalledLine
    from bsplib.profiler.loss_sums import CauseSums, LossRecord, WorstStep
    from bsplib.profiler.run_account import RunAccount
    from bsplib.recording.records import GroupInfo

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
LEAST_SAVED = 0.01
"""Transfers differ by chance if to even them saves a smaller share of the time in supersteps."""
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
    least = LEAST_SHARE * account.in_supersteps_ns()
    drafts = [draft for draft in _drafts(callgraph, account) if draft.ns > 0]
    if callgraph.run.samples is not None:
        drafts = _joined_by_line(callgraph, account, drafts, least)
    drafts.sort(key=lambda draft: -draft.ns)
    worth = [draft for draft in drafts if draft.ns >= least or draft.cause == BYTES]
    rows_of = RowsOfDrafts(callgraph, account.run.nprocs, drafts)
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
    enough = LEAST_SAVED * account.in_supersteps_ns() / account.run.nprocs
    drafts = _of_transfers(callgraph, account.elapsed_ns, drafts, enough)
    drafts.sort(key=lambda draft: -draft.ns)
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
    clusters: tuple[_Cluster, ...]
    """Clusters of the time that processes wait for one another; the greatest first."""
    measured: _Measured
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


# -- drafts of one line ---------------------------------------------------------------------------


def _joined_by_line(
    callgraph: CallGraph, account: RunAccount, drafts: list[Draft], least: float
) -> list[Draft]:
    """Join drafts of one cause and process whose samples are most at one line with one caller.

    What is less than ``least``, too little for a sentence, is joined whoever calls the line.
    """
    joinable = [draft for draft in drafts if draft.inside is not None and draft.habit != ONE_OFF]
    if len({draft.who for draft in joinable}) == len(joinable):
        return drafts
    rows_of = RowsOfDrafts(callgraph, account.run.nprocs, drafts)
    record = records_of_samples(callgraph.run)
    for each in account.accounts():
        looked_at = LookedAt(each, callgraph.run.samples, record)
        for draft, rows in rows_of.of(each):
            if draft.inside is not None:
                draft.inside.add(looked_at, rows.rows)
    lines = LossLines(callgraph.run)
    line_of = {draft: lines.line(draft.inside) for draft in joinable if draft.inside is not None}
    for draft in drafts:
        draft.look_anew()
    joined = _joined(drafts, line_of.get)
    return _joined(joined, lambda draft: _place(line_of.get(draft)) if draft.ns < least else None)


def _place(line: CalledLine | None) -> LinePlace | None:
    return None if line is None else line.place


def _joined(drafts: list[Draft], key_of: Callable[[Draft], object]) -> list[Draft]:
    """Join drafts of one cause and process that have the same key, but None, into the first."""
    first: dict[object, Draft] = {}
    for draft in sorted(drafts, key=lambda draft: -draft.ns):
        key = key_of(draft)
        whole = first.setdefault((draft.who, key) if key is not None else draft, draft)
        if whole is not draft:
            whole.join(draft)
    return list(first.values())


# -- from sums to drafts --------------------------------------------------------------------------


def _drafts(callgraph: CallGraph, account: RunAccount) -> Iterator[Draft]:
    """Yield the losses of a run, in no order."""
    leaves = [origin.chain[-1] for origin in callgraph.origins]
    number = {leaf: position for position, leaf in enumerate(dict.fromkeys(leaves))}
    leaf_of = np.array([number[leaf] for leaf in leaves], np.int64)
    sums = account.sums
    is_repeated = _is_repeated(callgraph, sums.passed)
    size_of = group_sizes(account.run)
    small = small_messages(account.run, sums)
    for cause, part in _PARTS.items():
        merged: defaultdict[tuple[object, ...], list[_Cluster]] = defaultdict(list)
        inside = _by_parent(account.run.groups) if cause == SUB_GROUPS else {}
        for cluster in _clusters(sums.lost[cause], is_repeated, size_of, inside):
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
            draft = Draft(
                cause, kind, first.habit, ns, part, origins, tuple(clusters), _Measured(leaf_of)
            )
            if cause in {COMP, WAIT}:
                draft.inside = InsideLoss(cause, len(account.run.stacks))
            yield draft
    if small:
        shares, origins = tuple(small.shares.tolist()), small.origins
        part, measured = parts.PARTS[parts.LATENCY], _Measured(leaf_of)
        yield Draft(SMALL, STEPS, FIXED, sum(shares), part, origins, (), measured, shares)
    yield from _supersteps(account, leaf_of, small.origins if small else ())
    yield from _bytes(callgraph, account, leaf_of)
    if ns := account.whole()["core"]:  # once for the run: it is not the program's
        measured = _Measured(leaf_of)
        yield Draft(CORES, CORE, FIXED, ns, parts.PARTS[parts.CORE], (), (), measured)


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


def _clusters(
    sums: CauseSums, is_repeated: list[bool], size_of: Ints, inside: SubGroups
) -> Iterator[_Cluster]:
    """Yield the clusters of what is lost for a cause, by call stack.

    Args:
        sums: of the cause.
        is_repeated: of each call stack.
        size_of: number of processes of each group.
        inside: the sub-groups, if processes of the same one count as one; otherwise empty.
    """
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
            yield from _habits(origin, left, size, sums, worst, inside)
        else:
            size = sums.size(origin, None, size_of)
            yield from _habits(origin, by_pid, size, sums, None, inside)


def _habits(
    origin: int,
    by_pid: dict[int, int],
    size: int,
    sums: CauseSums,
    without: WorstStep | None,
    inside: SubGroups,
) -> Iterator[_Cluster]:
    """Yield clusters for the processes that are always waited for, and for the others."""
    most_of = {pid: sums.most(origin, pid, without) for pid in sorted(by_pid) if by_pid[pid]}
    teams: defaultdict[object, list[int]] = defaultdict(list)
    for pid, record in most_of.items():
        its = tuple(n for n, members in inside.get(record.group, ()) if pid in members)
        teams[its or pid].append(pid)

    def cluster(habit: str, named: tuple[int, ...], pids: list[int]) -> _Cluster:
        most = max((most_of[pid] for pid in pids), key=lambda each: (each.ns, -each.position))
        ns = sum(by_pid[pid] for pid in pids)
        return _Cluster(habit, named, origin, ns, most, tuple(pids))

    always = (1 / size + _SHARE_ALONE * (1 - 1 / size)) * sum(by_pid[pid] for pid in most_of)
    rest = []
    for pids in teams.values():
        if sum(by_pid[pid] for pid in pids) >= max(always, 1):
            yield cluster(FIXED, (pids[0],), pids)
        else:
            rest += pids
    if rest:
        yield cluster(ROTATING, (), sorted(rest))


SubGroups: TypeAlias = "dict[int, list[tuple[int, Members]]]"
"""By the position of their parent, the position and the processes of each sub-group."""


def _by_parent(groups: Sequence[GroupInfo]) -> SubGroups:
    found: SubGroups = {}
    for number, group in enumerate(groups):
        found.setdefault(group.parent, []).append((number, group.members))
    return found


def _supersteps(account: RunAccount, leaf_of: Ints, without: tuple[int, ...]) -> Iterator[Draft]:
    """Yield the l of places whose supersteps take longer than all else there, as one loss.

    l is a usual time. What supersteps take beyond it is not explained, or it is taken to record
    them, but they take it: up to a few times l, since more has other reasons.
    """
    sums = account.sums.by_origin
    beyond = sums[parts.UNEXPLAINED] + sums[parts.RECORDING]
    beyond = np.minimum(beyond, _BEYOND_LATENCY * sums[parts.LATENCY])
    others = sums[parts.USEFUL] + sums[parts.TRANSFERS] - beyond
    often = account.sums.passed.max(axis=1, initial=0) >= MANY_STEPS
    often[list(without)] = False
    at = np.flatnonzero((sums[parts.LATENCY] > others) & often)
    if len(at):
        at = at[np.argsort(-sums[parts.LATENCY][at], kind="stable")]
        ns, part = int(sums[parts.LATENCY][at].sum()), parts.PARTS[parts.LATENCY]
        origins = tuple(at.tolist())
        yield Draft(SYNC, STEPS, FIXED, ns, part, origins, (), _Measured(leaf_of))


def _bytes(callgraph: CallGraph, account: RunAccount, leaf_of: Ints) -> Iterator[Draft]:
    """Yield the transfers of each cost centre, in a run that is bound by them."""
    of_run, chains = account.sums.by_origin, [origin.chain for origin in callgraph.origins]
    sums = of_run[parts.TRANSFERS]
    whole = sums.sum() + of_run[parts.TRANSFER_IMBALANCE].sum()
    if whole < BOUND_SHARE * account.in_supersteps_ns():
        return
    places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for origin in np.argsort(-sums, kind="stable").tolist():
        if sums[origin]:
            places[chains[origin][-2:]].append(origin)
    for origins in places.values():
        ns, part = int(sums[origins].sum()), parts.PARTS[parts.TRANSFERS]
        measured = _Measured(leaf_of)
        yield Draft(BYTES, COMMUNICATION, FIXED, ns, part, tuple(origins), (), measured)


def _of_transfers(
    callgraph: CallGraph, elapsed_ns: int, drafts: list[Draft], least_ns: float
) -> list[Draft]:
    """Decide between the transfers of a cost centre and waiting for those of some process.

    Where to even out the bytes saves less than ``least_ns``, all of it is the cost of the bytes.
    Where it is most of what they cost, to even them out is the better remedy.
    """
    places = {
        callgraph.origins[draft.origins[0]].chain[-2:]: draft
        for draft in drafts
        if draft.cause == BYTES
    }
    left_out = set()
    for draft in drafts:
        whole = (
            places.get(callgraph.origins[draft.origins[0]].chain[-2:]) if draft.origins else None
        )
        if whole is None or draft.cause != COMM:
            continue
        if elapsed_ns - draft.without_ns.get(COMM, elapsed_ns) < least_ns:
            whole.take_uneven(draft)
            left_out.add(draft)
        elif draft.habit == FIXED and draft.ns > _HALF * whole.ns:
            left_out.add(whole)
    return [draft for draft in drafts if draft not in left_out]


_STEPS = frozenset({SYNC, SMALL})
"""Causes that are about the number of supersteps."""
_PARTS = {COMP: "imbalance", SUB_GROUPS: "imbalance", COMM: "transfer_imbalance", WAIT: "blocked"}
"""Causes for which processes wait for one another, and the parts of the account."""
