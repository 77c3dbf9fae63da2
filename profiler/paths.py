"""The paths that led processes to where they are, and to what of them idle time is due.

The **path** of a process at a moment is a row of nodes. Between the release of one superstep and
its arrival at the next one a process adds a node: what its transfers took after the release, and
what it did then, in nanoseconds by *strand*. When it has waited for another process, it goes on
from the path of that one, not from its own. So paths are a forest: a node has one *parent*, and
two paths have all nodes in common that are older than the moment when one began to follow the
other.

When process i has waited for process j, the idle time goes, in proportion, to what the path of j
has more than that of i in the same superstep and strand, and there to the cost centre and the
process of the node. Supersteps of sub-groups that one partition opened are the same in this; they
are told apart by their *rank*, which falls along a path backwards. Both paths are followed
backwards together until they meet, for all records of a window of the run at once.

What a later window may need of earlier ones is the *tail*: the paths of all processes back to where
they meet.

Source: root causes of wait states (Böhme, Geimer, Wolf et al. 2010), carried on through indirect
waits by the paths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler._numbering import preceding
from bsplib.profiler.account import taken
from bsplib.profiler.costs import group_columns, leads, once
from bsplib.recording.records import MAX_NUMBER
from bsplib.recording.tables import constant
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.profiler._arrays import Floats, Ints, Numbers
    from bsplib.profiler.account import Account
    from bsplib.recording.records import Run


COMP, CALLS, BLOCKED, CORE, RECORDING, GAP = range(6)
"""The strands of a node before the arrival: what the process computed, its calls of primitives,
blocked, without a core, the recorder, and what is not known."""
TRANSFERS, LATENCY, BLOCKED_AFTER, CORE_AFTER, REST, START = range(6, 12)
"""Those after the release before it: its transfers, l, blocked, without a core, and what is not
known; then how much later it began ``main``."""
STRANDS = START + 1
_BUSY = range(COMP, RECORDING)
SIDE: Ints = np.array([TRANSFERS <= strand < START for strand in range(STRANDS)], np.int64)
"""For each strand 0 before the arrival, and 1 after the release before it."""
_WORK = 64
"""A window is done when its records have been followed back by this many nodes on average. What is
left of the idle time goes where the rest of it went. Only where processes wait in turn for others
that never wait are paths longer, and the last supersteps there are like the ones before."""
_LATE = 10
"""Processes that arrive in the last tenth of a wait share it."""
_MOST_KEPT = 2**11
"""Nodes of the tail, before its older ones are summed up by cost centre."""
_NOWHERE = -2 * MAX_NUMBER
"""The rank of node 0, at which all paths begin: less than those of older nodes summed up."""


class Nodes(NamedTuple):
    """Nodes of paths, one after the other; node 0 is the beginning of all paths."""

    pid: Ints
    rank: Ints
    parent: Ints
    origin: Ints
    """Shape (nodes, 2): call stack of the strands before the arrival, and of those after the
    release before it."""
    position: Ints
    """Likewise the position of the record in the whole run; -1 where several are summed up."""
    strands: list[Numbers]
    """Nanoseconds of the nodes by strand."""
    cut: Floats
    """Shape (nodes, 2): how much of the parent is part of the path, of what was before its arrival
    and after the release; less than 1 where a record waited for one that arrived after it."""

    def at(self, chosen: Ints) -> Nodes:
        """Return some of the nodes, with the parents that they had."""
        columns = {name: getattr(self, name)[chosen] for name in _COLUMNS}
        return Nodes(strands=[ns[chosen] for ns in self.strands], **columns)


_COLUMNS = tuple(name for name in Nodes._fields if name != "strands")


def _joined(parts: list[Nodes]) -> Nodes:
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
    nothing = constant(0.0, len(columns["pid"]), np.float64)
    strands: list[Numbers] = []
    for each in zip(*(part.strands for part in parts), strict=True):
        some = any(ns.any() for ns in each)  # many runs have half of the strands only
        strands.append(np.concatenate(each, dtype=np.float64) if some else nothing)
    return Nodes(strands=strands, **columns)


@dataclass(frozen=True)
class Tail:
    """What a window needs of those before it."""

    nodes: Nodes
    tip: Ints
    """By process the node from which its path goes on."""
    cut: Floats
    """Shape (processes, 2): how much of that node is part of the path."""

    @classmethod
    def of_nothing(cls, nprocs: int) -> Tail:
        """Return the tail before the first window."""
        zero, both = np.zeros(1, np.int64), np.full((1, 2), -1, np.int64)
        rank = np.full(1, _NOWHERE)
        nodes = Nodes(zero, rank, zero, both, both, [np.zeros(1)] * STRANDS, np.ones((1, 2)))
        return cls(nodes, np.zeros(nprocs, np.int64), np.ones((nprocs, 2)))

    def outside(self, origin: int) -> Tail:
        """Return the tail with all that it has at another origin."""
        origins = np.full_like(self.nodes.origin, origin)
        return replace(self, nodes=self.nodes._replace(origin=origins))


class IdleShares(NamedTuple):
    """Idle time with its roots, as columns of equal lengths; the sum is the idle time recorded.

    No share is 0: every root bears a nanosecond or more.
    """

    row: Ints
    """The record that was idle, counted without the halo."""
    node: Ints
    """The node that is the root."""
    strand: Ints
    """Of the node; where nothing explains the idle time GAP of the node of the record itself."""
    ns: Ints


class Paths:
    """The paths of the processes in a window of a run.

    Args:
        account: the account of the window.
        origin: the call stack of each record, with those of the halo.
        tail: what :meth:`tail` of the window before has returned.
    """

    def __init__(self, account: Account, origin: Ints, tail: Tail) -> None:
        run, halo = account.run, account.halo
        records, self._account = run.records, account
        self._halo, self._count = halo, len(records)
        self.first = len(tail.nodes.pid)
        """The node of the first record after the halo, and those of the others follow."""
        self._first = self.first - halo
        self._before = before = account.earlier
        self._pid = records["pid"].astype(np.int64)
        old = before[halo:]
        after = [
            np.where(old < 0, 0, ns.take(old)) if ns.any() else ns[halo:] for ns in _after(account)
        ]
        strands: list[Numbers] = [*_own(account), *after, self._started_later()]
        target, cut = self._targets()
        self._target, self._cut = target, cut
        pid, new = self._pid[halo:], np.flatnonzero(old < halo)
        parent, cuts = target.take(old), cut.take(old, axis=0)
        parent[new], cuts[new] = tail.tip[pid[new]], tail.cut[pid[new]]
        position = np.append(account.window.before, account.position)
        rank, lead_rank = ranks(run, int(tail.nodes.rank.max()) + 1)
        fresh = Nodes(
            pid,
            rank[halo:],
            parent,
            np.stack([origin[halo:], origin.take(old)], axis=1),
            np.stack([position[halo:], position.take(old)], axis=1),
            strands,
            cuts,
        )
        parts = [tail.nodes, fresh]
        if len(run.groups) > 1:
            parts.append(self._leads(fresh, lead_rank, origin, position))
        self.nodes = _joined(parts)
        self._tail = tail

    def _started_later(self) -> Ints:
        """Return for the first record of each process how much later than others it began."""
        halo, records = self._halo, self._account.run.records
        later = np.zeros(self._count - halo, np.int64)
        around = first = np.flatnonzero(self._before < 0)
        if not halo and len(first):
            while (inside := self._account.owner[around] >= 0).any():
                around = np.where(inside, self._account.owner[around], around)
            later[first] = records["start"][around] - records["start"][around].min()
        return later

    def _targets(self) -> tuple[Ints, Floats]:
        """Return for each record the node from which its process goes on, and its cut."""
        account, records = self._account, self._account.run.records
        target = self._first + account.behind
        cut = np.ones((self._count, 2))
        blamed = account.is_blamed
        if blamed is None or not blamed.any():
            return target, cut
        # The other process was, at the release, in the node with the last begin before it.
        begin = np.where(self._before < 0, records["start"], records["released"][self._before])
        waiting = np.flatnonzero(blamed & (records["released"] > records["arrive"]))
        order = np.lexsort((begin, self._pid))
        order = order[order >= self._halo]
        least = int(begin.min())
        span = int(max(begin.max(), records["released"].max())) - least + 1
        time, pid = records["released"][waiting], self._pid[account.behind[waiting]]
        keys = self._pid[order] * span + (begin[order] - least)
        at = np.searchsorted(keys, pid * span + (time - least)) - 1
        found = order[at.clip(min=0)]
        sound = (at >= 0) & (self._pid[found] == pid)
        waiting, time, found = waiting[sound], time[sound], found[sound]
        target[waiting] = self._first + found
        old = self._before[found]
        left = np.where(old < 0, 0, records["end"][old] - records["released"][old])
        # What came after the release counts first, then what came before the arrival.
        since = time - begin[found]
        lasted = records["arrive"][found] - begin[found]
        cut[waiting, 1] = np.minimum(since / np.maximum(left, 1), 1.0)
        cut[waiting, 0] = ((since - left) / np.maximum(lasted - left, 1)).clip(0.0, 1.0)
        return target, cut

    def _leads(self, fresh: Nodes, rank: Ints, origin: Ints, position: Ints) -> Nodes:
        """Return nodes for what processes computed before they opened a sub-group.

        They stand before the first record of the sub-group, and belong to the record around it,
        from whose node they are taken; ``fresh.parent`` is changed.
        """
        account, halo, strands = self._account, self._halo, fresh.strands
        row, at, around, ns = leads(account.run, account.owner, self._before, halo)
        busy = np.sum([strands[strand] for strand in _BUSY], axis=0)
        share = np.minimum(ns / np.maximum(busy[around - halo], 1), 1.0)
        taken_away = np.bincount(around - halo, share, len(busy)).clip(max=1.0)
        taken_out = [np.zeros(len(at))] * STRANDS
        for strand in _BUSY:
            taken_out[strand] = strands[strand][around - halo] * share
            strands[strand] = strands[strand] * (1 - taken_away)
        parent, cut = np.zeros(len(at), np.int64), np.ones((len(at), 2))
        both, shift = np.stack([around, around], axis=1), len(fresh.pid)
        for lead, inner in enumerate(preceding(row).tolist()):
            is_first = inner < 0
            mine, cuts = (fresh.parent, fresh.cut) if is_first else (parent, cut)
            place = row[lead] - halo if is_first else inner
            parent[lead], cut[lead] = mine[place], cuts[place]
            mine[place], cuts[place] = self._first + halo + shift + lead, 1.0
        return Nodes(self._pid[at], rank[at], parent, origin[both], position[both], taken_out, cut)

    def shares(self) -> IdleShares:
        """Return the idle time of the records of the window with its roots."""
        row, node, cut, ns = self._waits()
        entry, root, strand, weight = self._walk(self._first + row, node, cut)
        total = np.bincount(entry, weight, len(row))
        # Each share is rounded down, and the greatest one gets what is left: so the sum of all
        # is the idle time that was recorded, to the nanosecond.
        mine = np.floor(ns[entry] * (weight / total[entry])).astype(np.int64)
        left = ns - np.bincount(entry, mine, len(row)).astype(np.int64)
        greatest = np.zeros(len(row))
        np.maximum.at(greatest, entry, weight)
        best, most = np.full(len(row), -1), np.flatnonzero(weight == greatest[entry])
        best[entry[most]] = most
        sound = best >= 0
        np.add.at(mine, best[sound], left[sound])
        none = np.flatnonzero(~sound & (ns > 0))
        some = np.flatnonzero(mine)  # a root bears a nanosecond or more
        shares = IdleShares(
            np.append(row[entry[some]], row[none]) - self._halo,
            np.append(root[some], self._first + row[none]),
            np.append(strand[some], np.full(len(none), GAP)),
            np.append(mine[some], ns[none]),
        )
        return shares if len(self._account.run.groups) == 1 else self._of_whole_groups(shares)

    def _of_whole_groups(self, shares: IdleShares) -> IdleShares:
        """Divide what others wait for a sub-group among all that took as long in its superstep."""
        account, halo = self._account, self._halo
        kind, group = (account.run.records[name][halo:] for name in ("kind", "group"))
        root, step, first = shares.node - self.first, account.step[halo:], self.first
        is_of_group = (root >= 0) & (root < len(group)) & (shares.strand < RECORDING)
        at = np.where(is_of_group, root, 0)
        is_of_group &= (kind[at] == Kind.SYNC) & (group[at] != group[shares.row])
        parts = [IdleShares(*(each[~is_of_group] for each in shares))]
        for strand in _BUSY:
            chosen = np.flatnonzero(is_of_group & (shares.strand == strand))
            took = np.round(self.nodes.strands[strand][first : first + len(step)]).astype(np.int64)
            mine = took[root[chosen]]
            entry, record, ns = _divided(
                step, took, step[root[chosen]], mine - mine // _LATE, shares.ns[chosen]
            )
            some = np.flatnonzero(ns)
            row, node = shares.row[chosen][entry[some]], first + record[some]
            parts.append(IdleShares(row, node, np.full(len(row), strand), ns[some]))
        return IdleShares(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _waits(self) -> tuple[Ints, Ints, Floats, Ints]:
        """Return the records that were idle, each with the nodes it waited for, and how long.

        Those that arrived in the last tenth of a wait of a whole group share it.
        """
        account, records, halo = self._account, self._account.run.records, self._halo
        idle = records["released"] - records["arrive"]
        row = halo + np.flatnonzero(idle[halo:])
        if account.run.nprocs == 2 or len(row) == 0:  # the other one
            return row, self._target[row], self._cut[row], idle[row]
        kind = records["kind"][row]
        together = (kind == Kind.SYNC) | ((kind == Kind.END) & (records["group"][row] == 0))
        if account.is_blamed is not None:
            together &= ~account.is_blamed[row]
        together &= idle[row] > 0
        alone, some = row[~together], row[together]
        since = records["released"][some] - idle[some] // _LATE
        entry, late, ns = _divided(
            account.step[halo:], records["arrive"][halo:], account.step[some], since, idle[some]
        )
        late += halo
        several = np.bincount(entry, minlength=len(some))[entry] > 1
        node = np.where(several, self._first + late, self._target[some[entry]])
        rows = np.append(some[entry], alone)
        return (
            rows,
            np.append(node, self._target[alone]),
            self._cut[rows],
            np.append(ns, idle[alone]),
        )

    def _walk(self, x: Ints, y: Ints, cut: Floats) -> tuple[Ints, Ints, Ints, Floats]:
        """Follow pairs of paths back until they meet; return what those of ``y`` have more.

        Returns:
            The number of the pair, the node, the strand, and how many nanoseconds.
        """
        nodes, entry = self.nodes, np.arange(len(x))
        rows = [strand for strand, ns in enumerate(nodes.strands) if ns.any()]
        is_cut = bool((nodes.cut != 1).any())
        cut_x = np.ones_like(cut)
        cut_y, work = cut, _WORK * self._count + 2**20
        nothing = np.zeros(0, np.int64)
        found: list[tuple[Ints, Ints, Ints, Floats]] = [(nothing, nothing, nothing, np.zeros(0))]
        while len(entry) and work > 0:
            work -= len(entry)
            rank_x, rank_y = nodes.rank[x], nodes.rank[y]
            same = rank_x == rank_y
            both = bool(same.all())
            for strand in rows:
                theirs, mine = nodes.strands[strand][y], nodes.strands[strand][x]
                if is_cut:
                    side = SIDE[strand]
                    theirs, mine = theirs * cut_y[:, side], mine * cut_x[:, side]
                more = theirs - (mine if both else mine * same)
                some = np.flatnonzero(more > 0 if both else (more > 0) & (rank_y >= rank_x))
                if len(some):
                    found.append((entry[some], y[some], np.full(len(some), strand), more[some]))
            if both:
                next_x, next_y = nodes.parent[x], nodes.parent[y]
            else:
                next_x = np.where(rank_x >= rank_y, nodes.parent[x], x)
                next_y = np.where(rank_y >= rank_x, nodes.parent[y], y)
            on = (next_x != next_y) & (next_y != 0)
            if is_cut:
                cut_x = np.where((next_x == x)[:, None], cut_x, nodes.cut[x])
                cut_y = np.where((next_y == y)[:, None], cut_y, nodes.cut[y])
                on |= (cut_x != cut_y).any(axis=1) & (next_x != 0)
                cut_x, cut_y = cut_x[on], cut_y[on]
            entry, x, y = entry[on], next_x[on], next_y[on]
        entries, roots, strands, weights = map(np.concatenate, zip(*found, strict=True))
        return entries, roots, strands, weights

    def tail(self) -> Tail:
        """Return the paths of all processes, back to where they meet, for the next window."""
        last = np.ones(self._count, bool)
        last[self._before[self._before >= 0]] = False
        rows = self._halo + np.flatnonzero(last[self._halo :])
        tip, cut = self._tail.tip.copy(), self._tail.cut.copy()
        tip[self._pid[rows]] = self._target[rows]
        cut[self._pid[rows]] = self._cut[rows]
        return _tail(self.nodes, tip, cut)


def _divided(
    step: Ints, values: Ints, of_step: Ints, least: Ints, ns: Ints
) -> tuple[Ints, Ints, Ints]:
    """Divide times equally among the records of supersteps with a value that is great enough.

    That with the greatest value always has a part.

    Args:
        step: the superstep of each record.
        values: of the records.
        of_step: the superstep of each time.
        least: the least value for each of them.
        ns: the times.

    Returns:
        The number of the time, the record and its part, as columns.
    """
    order = np.lexsort((values, step))
    smallest = int(values.min(initial=0))
    span = int(values.max(initial=0)) - smallest + 1
    low = np.searchsorted(
        step[order] * span + (values[order] - smallest), of_step * span + (least - smallest)
    )
    high = np.searchsorted(step[order], of_step, side="right")
    low = np.minimum(low, high - 1)
    count = high - low
    entry = np.repeat(np.arange(len(count)), count)
    number = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
    part, left = np.divmod(ns, count)
    return entry, order[low[entry] + number], part[entry] + (number == 0) * left[entry]


def _backwards(nodes: Nodes, tip: Ints) -> Iterator[tuple[int, int, bool]]:
    """Follow some paths backwards together, until they meet.

    Yields:
        The next node, that of the highest rank, its parent, and whether another path is there.
    """
    heads = set(tip.tolist())
    heap = [(-int(nodes.rank[node]), node) for node in heads]
    heapify(heap)
    while len(heads) > 1:
        _, node = heappop(heap)
        heads.remove(node)
        parent = int(nodes.parent[node])
        is_met = parent in heads
        if not is_met:
            heads.add(parent)
            heappush(heap, (-int(nodes.rank[parent]), parent))
        yield node, parent, is_met


def _tail(nodes: Nodes, tip: Ints, cut: Floats) -> Tail:
    """Keep what some paths have not in common; sum up what is old."""
    backwards = _backwards(nodes, tip)
    newest = list(islice(backwards, _MOST_KEPT))
    kept = [node for node, *_ in newest]
    ends = np.array(sorted({*tip.tolist(), *(parent for _, parent, _ in newest)} - {*kept}))
    place = np.zeros(len(nodes.pid), np.int64)
    parts = [nodes.at(np.zeros(1, np.int64))]
    if len(ends) == 1:  # they have met; of this node only what is cut off can matter
        kept.append(int(ends[0]))
    else:
        older, place[ends] = _summed_up(nodes, backwards, ends)
        parts.append(older)
    chosen = np.array([node for node in kept if node], np.int64)
    place[chosen] = sum(len(part.pid) for part in parts) + np.arange(len(chosen))
    parts.append(nodes.at(chosen))
    joined = _joined(parts)
    fresh = slice(len(joined.pid) - len(chosen), None)
    joined.parent[fresh] = place[joined.parent[fresh]]
    return Tail(joined, place[tip], cut)


def _summed_up(
    nodes: Nodes, backwards: Iterator[tuple[int, int, bool]], ends: Ints
) -> tuple[Nodes, Ints]:
    """Sum up paths by cost centre and process, from where they are to where they meet.

    Returns:
        The nodes, and for each of ``ends``, at which the paths are, the one that stands for it.
    """
    piece_of = {node: number for number, node in enumerate(ends.tolist())}
    first = dict(piece_of)
    sums: list[dict[tuple[int, ...], Floats]] = [{} for _ in piece_of]
    onward, nothing, every = [-1] * len(sums), np.zeros(STRANDS), np.stack(nodes.strands, axis=1)
    for node, parent, is_met in backwards:
        piece = piece_of.pop(node)
        if node:
            key = (*nodes.origin[node].tolist(), int(nodes.pid[node]))
            known = sums[piece].get(key, nothing)
            sums[piece][key] = known + every[node]
        if is_met:
            onward[piece] = onward[piece_of[parent]] = len(sums)
            piece_of[parent] = len(sums)
            sums.append({})
            onward.append(-1)
        else:
            piece_of[parent] = piece
    columns: list[tuple[int, int, int, int, int]] = []
    strands: list[Floats] = []
    newest = [0] * len(sums)
    for piece in reversed(range(len(sums))):  # what is older comes first
        newest[piece] = newest[onward[piece]] if onward[piece] >= 0 else 0
        for key in sorted(sums[piece]):
            own, after, pid = key
            columns.append((pid, own - MAX_NUMBER, newest[piece], own, after))
            strands.append(sums[piece][key])
            newest[piece] = len(columns)
    pids, ranks, parents, *origins = np.array(columns, np.int64).reshape(-1, 5).T
    none, whole = np.full((len(columns), 2), -1), np.ones((len(columns), 2))
    table = list(np.array(strands).reshape(-1, STRANDS).T)
    found = Nodes(pids, ranks, parents, np.stack(origins, axis=1), none, table, whole)
    return found, np.array([newest[first[node]] for node in ends.tolist()])


def _own(account: Account) -> tuple[Ints, ...]:
    """Return the strands of each record before its arrival."""
    records, computing, calls = account.run.records, account.computing, account.calls
    every = (
        computing.core,
        records["comm_calls"] - calls.ready - calls.blocked,
        computing.blocked + calls.blocked,
        computing.waited + calls.ready,
        *account.between,
    )
    return tuple(each[account.halo :] for each in every)


def _after(account: Account) -> tuple[Ints, ...]:
    """Return the strands of each record after its release, with those of the halo."""
    records, calls, parts = account.run.records, account.calls, account.communication
    rest = records["end"] - records["released"]
    core, rest = taken(rest, (parts.core - calls.ready).clip(min=0))
    blocked, rest = taken(rest, (parts.blocked - calls.blocked).clip(min=0))
    latency, rest = taken(rest, parts.latency)
    unknown, transfers = taken(rest, parts.rest)
    return transfers, latency, blocked, core, unknown


def ranks(run: Run, least: int = 0) -> tuple[Ints, Ints]:
    """Return the rank of the superstep of each record, and of what leads to it.

    Supersteps of sub-groups that one partition opened have the same rank. All are in the order of
    time, and greater than those of the windows before.
    """
    records = run.records
    if len(run.groups) == 1:
        return records["superstep"], records["superstep"]
    rank, lead_rank = once(run, "ranks", lambda: _ranks(run)) + max(least, 0)
    return rank, lead_rank


def _ranks(run: Run) -> Ints:
    records = run.records
    places = once(run, "places of groups", lambda: _places(run))
    group, rows = records["group"], np.arange(len(records))
    keys = np.zeros((len(records), places.shape[1] + 2), np.int64)
    keys[:, :-2] = places[group]
    at = 2 * group_columns(run).depth[group]
    keys[rows, at], keys[rows, at + 1] = 2 * records["superstep"] + 1, MAX_NUMBER
    leads = keys.copy()
    leads[rows, at] -= 1
    _, rank = np.unique(np.concatenate([keys, leads]), axis=0, return_inverse=True)
    return rank.reshape(2, -1)


def _places(run: Run) -> Ints:
    """Return for each group in which supersteps and partitions of those around it it was opened."""
    found: list[tuple[int, ...]] = [()]
    for group in run.groups[1:]:  # each is after its parent
        ordinal = 0 if run.is_interleaved else group.ordinal  # their supersteps count together
        found.append((*found[group.parent], 2 * group.superstep + 1, ordinal))
    places = np.zeros((len(found), max(map(len, found))), np.int64)
    for number, place in enumerate(found):
        places[number, : len(place)] = place
    return places
