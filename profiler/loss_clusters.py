"""From what is lost at each call stack and for each process to the losses of a run."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler.costs import group_sizes
from bsplib.profiler.kinds import (
    BLOCKED,
    COMMUNICATION,
    CORE,
    FIXED,
    GROUPS,
    ONE_OFF,
    ROTATING,
    STEPS,
)
from bsplib.profiler.loss_drafts import Cluster, Draft, LossMeasures
from bsplib.profiler.loss_lines import InsideLoss
from bsplib.profiler.loss_sums import BYTES, COMM, COMP, CORES, SMALL, SUB_GROUPS, SYNC, WAIT
from bsplib.profiler.small_messages import small_messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bsplib.backends.members import Members
    from bsplib.profiler.account import Ints
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.loss_sums import CauseSums, WorstStep
    from bsplib.profiler.run_account import RunAccount
    from bsplib.recording.records import GroupInfo

_MOST_PLACES = 200
"""Call stacks that are looked at for each cause, those that lose most."""
_LEAST_PASSES = 5
"""A place that is passed fewer times cannot have a loss that happens once."""
_SHARE_ALONE = 0.35
"""Share of the loss, beyond an even share of it, from which on one process is always waited for."""
_BEYOND_LATENCY = 4
"""What supersteps take beyond l counts as theirs up to this multiple of it."""
MANY_STEPS = 5
"""A place that is passed fewer times does not have too many supersteps."""
BOUND_SHARE = 0.3
"""A run of whose time in supersteps transfers, even or not, take this share is bound by them."""
_HALF = 0.5
_PARTS = {COMP: "imbalance", SUB_GROUPS: "imbalance", COMM: "transfer_imbalance", WAIT: "blocked"}
"""Causes for which processes wait for one another, and the parts of the account."""


def drafts_of(callgraph: CallGraph, account: RunAccount) -> Iterator[Draft]:
    """Yield the losses of a run, in no order."""
    leaves = [origin.chain[-1] for origin in callgraph.origins]
    number = {leaf: position for position, leaf in enumerate(dict.fromkeys(leaves))}
    leaf_of = np.array([number[leaf] for leaf in leaves], np.int64)
    sums = account.sums
    is_repeated = _is_repeated(callgraph, sums.passed)
    size_of = group_sizes(account.run)
    small = small_messages(account.run, sums)
    for cause, part in _PARTS.items():
        merged: defaultdict[tuple[object, ...], list[Cluster]] = defaultdict(list)
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
                cause, kind, first.habit, ns, part, origins, tuple(clusters), LossMeasures(leaf_of)
            )
            if cause in {COMP, WAIT}:
                draft.inside = InsideLoss(cause, len(account.run.stacks))
            yield draft
    if small:
        shares, origins = tuple(small.shares.tolist()), small.origins
        part, measured = parts.PARTS[parts.LATENCY], LossMeasures(leaf_of)
        yield Draft(SMALL, STEPS, FIXED, sum(shares), part, origins, (), measured, shares)
    yield from _supersteps(account, leaf_of, small.origins if small else ())
    yield from _bytes(callgraph, account, leaf_of)
    if ns := account.whole()["core"]:  # once for the run: it is not the program's
        measured = LossMeasures(leaf_of)
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
) -> Iterator[Cluster]:
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
            yield Cluster(ONE_OFF, (most.pid,), origin, worst.ns, most, pids)
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
) -> Iterator[Cluster]:
    """Yield clusters for the processes that are always waited for, and for the others."""
    most_of = {pid: sums.most(origin, pid, without) for pid in sorted(by_pid) if by_pid[pid]}
    teams: defaultdict[object, list[int]] = defaultdict(list)
    for pid, record in most_of.items():
        its = tuple(n for n, members in inside.get(record.group, ()) if pid in members)
        teams[its or pid].append(pid)

    def cluster(habit: str, named: tuple[int, ...], pids: list[int]) -> Cluster:
        most = max((most_of[pid] for pid in pids), key=lambda each: (each.ns, -each.position))
        ns = sum(by_pid[pid] for pid in pids)
        return Cluster(habit, named, origin, ns, most, tuple(pids))

    size = max(size, len(most_of))  # they may be of several sub-groups
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
        yield Draft(SYNC, STEPS, FIXED, ns, part, origins, (), LossMeasures(leaf_of))


def _bytes(callgraph: CallGraph, account: RunAccount, leaf_of: Ints) -> Iterator[Draft]:
    """Yield the transfers of each cost centre, in a run that is bound by them."""
    of_run, chains = account.sums.by_origin, [origin.chain for origin in callgraph.origins]
    sums = of_run[parts.TRANSFERS] - account.sums.calls[0]
    whole = sums.sum() + of_run[parts.TRANSFER_IMBALANCE].sum()
    if whole < BOUND_SHARE * account.in_supersteps_ns():
        return
    places: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for origin in np.argsort(-sums, kind="stable").tolist():
        if sums[origin]:
            places[chains[origin][-2:]].append(origin)
    for origins in places.values():
        ns, part = int(sums[origins].sum()), parts.PARTS[parts.TRANSFERS]
        measured = LossMeasures(leaf_of)
        yield Draft(BYTES, COMMUNICATION, FIXED, ns, part, tuple(origins), (), measured)
