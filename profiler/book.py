"""The book of a run: the one account of its elapsed time, with a root of all that is idle.

Every nanosecond of every process is booked once, under one of ``PARTS``, with the process that
**spent** it and a **root**: a cost centre with its whole call stack (an *origin*, a position in
``CallGraph.origins``), a process and a cause. The root of what a process did itself is itself. The
root of idle time is what was longer on the path of the process that was waited for
(:mod:`bsplib.profiler.paths`); that of transfers for which another process moves more bytes is the
process with the greatest h. What is not in ``main`` has no root: start and end, and waiting for a
process that began ``main`` later.

What readers ask for:

- who spent it (bars of a process, account): :meth:`Book.by_process`, :meth:`Book.whole`; in time
  or by record (timeline): :meth:`Book.by_window` with :attr:`BookedWindow.spent`, and
  :attr:`Book.outside` for what is in no record.
- nodes and edges: :meth:`Book.time_of` for the origins that pass through one, or all at once
  :meth:`Book.of_graph`. The time of a node is the mean over the processes of all that is rooted
  there, its loss the part of it in ``LOST``. Leaves add up to functions, functions to ``main``,
  and ``main`` with :attr:`Book.before` to the elapsed time less start and end.
- losses, for clusters: :attr:`RootSums.losses` by origin, process and cause, with how many records
  they have and which bears most; :attr:`RootSums.worst` the superstep that bears most, by origin
  and cause; and each record, window by window: :attr:`BookedWindow.lost`.
- what a record waited for: :meth:`BookedWindow.roots_of` its :attr:`BookedWindow.shares`.
- ranges of supersteps: ``Book(run, rates, first, last)``. Paths begin with the run; roots before
  the range are in :attr:`Book.before`.

Nanoseconds are whole numbers and summed over the processes of the run. All sums are exact.

Source: cost of a superstep, ``w + g h + l`` (Jarvis et al. 2002, section 2.1).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.errors import TraceError
from bsplib.profiler import paths
from bsplib.profiler._numbering import rank_in_place, starts
from bsplib.profiler.account import (
    BLOCKED,
    CORE,
    ENDS,
    IMBALANCE,
    LATENCY,
    PARTS,
    RECORDING,
    TRANSFER_IMBALANCE,
    UNEXPLAINED,
    Account,
)
from bsplib.profiler.costs import by_superstep
from bsplib.profiler.paths import IdleShares, Paths, Tail
from bsplib.profiler.survey import span_of, survey
from bsplib.profiler.window import windows
from bsplib.recording.records import MAX_NUMBER
from bsplib.recording.tables import ahead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run

    Ints = NDArray[np.int64]

LOST = (IMBALANCE, TRANSFER_IMBALANCE, BLOCKED, CORE)
"""The parts of the account that are loss."""

CAUSES = (
    *("comp", "calls", "transfers", "bytes", "blocked", "core"),
    *("latency", "recording", "unexplained", "start"),
)
"""Why time has its root where it has. The first six are causes of a loss: the process computed
longer, was longer in calls of primitives, its transfers took longer after the release, it moves
more bytes than others, it was blocked, or had no core. Of ``blocked`` and ``core`` its own time is
a part. The others: it had more l, its recorder took time, it is not known, it began ``main``
later."""
(
    COMP,
    CALLS,
    TRANSFERS,
    BYTES,
    WAS_BLOCKED,
    NO_CORE,
    MORE_L,
    RECORDER,
    UNKNOWN,
    START,
) = range(len(CAUSES))
PART_OF = (
    *(IMBALANCE, TRANSFER_IMBALANCE, TRANSFER_IMBALANCE, TRANSFER_IMBALANCE, BLOCKED, CORE),
    *(LATENCY, RECORDING, UNEXPLAINED, ENDS),
)
"""Under which part of the account idle time of each cause is."""
_LOSSES = 6
"""The first causes, which are losses."""
_CAUSE_OF = {
    paths.COMP: COMP,
    paths.CALLS: CALLS,
    paths.BLOCKED: WAS_BLOCKED,
    paths.CORE: NO_CORE,
    paths.RECORDING: RECORDER,
    paths.GAP: UNKNOWN,
    paths.TRANSFERS: TRANSFERS,
    paths.LATENCY: MORE_L,
    paths.BLOCKED_AFTER: WAS_BLOCKED,
    paths.CORE_AFTER: NO_CORE,
    paths.REST: UNKNOWN,
    paths.START: START,
}
"""The cause for each strand of a path."""
BEFORE, NOWHERE = -2, -1
"""The origins of what is rooted before a range of supersteps, and of start and end."""


class RootRows(NamedTuple):
    """Roots in a window, as columns: one row for each record that is one, and each cause."""

    position: Ints
    """Position of the record in the whole run; it may be before the window. -1: of several."""
    origin: Ints
    """Position in ``CallGraph.origins``, or ``BEFORE``, or ``NOWHERE``."""
    pid: Ints
    cause: Ints
    """Position in ``CAUSES``."""
    rank: Ints
    """Equal for records of one superstep, also in sub-groups that one partition opened."""
    ns: Ints


class BookedWindow:
    """What is booked for the records of a window of a run."""

    def __init__(self, window: RunWindow, account: Account, ways: Paths, origin: Ints) -> None:
        self.window = window
        self.account = account
        self._ways = ways
        self._origin = origin

    @cached_property
    def shares(self) -> IdleShares:
        """The idle time of each record, with the nodes of paths that are its roots."""
        return self._ways.shares()

    def roots_of(self, share: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return position, origin, process and cause of the roots of some ``shares``."""
        nodes, node, strand = self._ways.nodes, self.shares.node[share], self.shares.strand[share]
        side = _SIDE[strand]
        origin = np.where(strand == paths.START, NOWHERE, nodes.origin[side, node])
        return nodes.position[side, node], origin, nodes.pid[node], _CAUSE[strand]

    @cached_property
    def spent(self) -> Ints:
        """Nanoseconds of each record of the window by part of the account, idle time included.

        Shape (parts, records), without those of the halo.
        """
        own = self._own.copy()
        count = own.shape[1]
        part = np.array(PART_OF)[_CAUSE[self.shares.strand]]
        place = part * count + self.shares.row
        own += _counted(place, self.shares.ns, own.size).reshape(own.shape)
        return own

    @cached_property
    def _own(self) -> Ints:
        """What the records took beside their idle time."""
        return self.account.own(slice(self.account.halo, None))

    @cached_property
    def lost(self) -> RootRows:
        """All roots of idle time and of uneven bytes, and what was blocked or without a core."""
        nodes, first, own = self._ways.nodes, self._ways.first, self._own
        fresh = slice(first, first + own.shape[1])
        count = len(nodes.pid)
        found = []
        for strand, cause in _CAUSE_OF.items():
            of_strand = self.shares.strand == strand
            ns = _counted(self.shares.node[of_strand], self.shares.ns[of_strand], count)
            if strand == paths.BLOCKED:
                ns[fresh] += own[BLOCKED]
            elif strand == paths.CORE:
                ns[fresh] += own[CORE]
            found.append((int(_SIDE[strand]), cause, ns))
        found.append((0, BYTES, self._uneven(count)))
        rows = []
        for side, cause, ns in found:
            node = np.flatnonzero(ns)
            rows.append(
                RootRows(
                    nodes.position[side, node],
                    nodes.origin[side, node] if cause != START else np.full(len(node), NOWHERE),
                    nodes.pid[node],
                    np.full(len(node), cause),
                    nodes.rank[node],
                    ns[node],
                )
            )
        return RootRows(*(np.concatenate(each) for each in zip(*rows, strict=True)))

    def _uneven(self, count: int) -> Ints:
        """Return by node what others take longer since it has the greatest h."""
        uneven, account = self._own[TRANSFER_IMBALANCE], self.account
        rows = np.flatnonzero(uneven)
        if len(rows) == 0:
            return np.zeros(count, np.int64)
        leader = by_superstep(account.run).leader(account.h)[account.step[account.halo + rows]]
        return _counted(self._ways.first + leader - account.halo, uneven[rows], count)

    def kept(self) -> tuple[Ints, Ints, Ints]:
        """Return origin, process and parts of what each record took that is its own root."""
        own = self._own.copy()
        own[[TRANSFER_IMBALANCE, BLOCKED, CORE]] = 0  # these are in ``lost``
        records = self.account.run.records[self.account.halo :]
        return self._origin[self.account.halo :], records["pid"].astype(np.int64), own


_CAUSE = np.array([_CAUSE_OF[strand] for strand in range(paths.STRANDS)])
_SIDE = np.array([paths.TRANSFERS <= strand < paths.START for strand in range(paths.STRANDS)], int)


def _counted(place: Ints, ns: Ints, count: int) -> Ints:
    """Add up whole numbers by place."""
    sums: Ints = np.bincount(place, ns, count).astype(np.int64)  # exact below 2**53
    return sums


@dataclass(frozen=True)
class Time:
    """What is rooted at a part of a run, in nanoseconds summed over its processes."""

    parts: tuple[int, ...]
    """By part of the account."""
    nprocs: int

    @property
    def ns(self) -> int:
        """All of it."""
        return sum(self.parts)

    @property
    def loss_ns(self) -> int:
        """The part of it that is lost."""
        return sum(self.parts[part] for part in LOST)

    @property
    def time_s(self) -> float:
        """All of it in seconds, on average over the processes."""
        return self.ns / self.nprocs / 1e9

    @property
    def loss_s(self) -> float:
        """What is lost in seconds, on average over the processes."""
        return self.loss_ns / self.nprocs / 1e9


class Loss(NamedTuple):
    """What is lost at a root."""

    origin: int
    pid: int
    cause: int
    ns: int
    """Summed over the processes that lose it."""
    records: int
    """Number of records that lose something."""
    worst_ns: int
    """Of the record that loses most."""
    worst: int
    """Its position in the run."""


class WorstSuperstep(NamedTuple):
    """The superstep that loses most at an origin, for one cause."""

    ns: int
    records: tuple[tuple[int, int, int], ...]
    """Position, process and nanoseconds of each of its records."""


class RootSums:
    """All that is booked in a run, summed up by root."""

    def __init__(self, nprocs: int, origins: int) -> None:
        self._nprocs = nprocs
        self._origins = origins
        self.by_process: Ints = np.zeros((len(PARTS), nprocs), np.int64)
        """Nanoseconds by the process that spent them, without those in no record."""
        self.covered: Ints = np.zeros(nprocs, np.int64)
        """How much of the time of each process is in its records, and between them."""
        self.begin_ns, self.end_ns = MAX_NUMBER, 0
        """When the records begin and end, with what the recorder took before the first."""
        self._keys: Ints = np.zeros(0, np.int64)
        self._parts: Ints = np.zeros((len(PARTS), 0), np.int64)
        self._lost_keys: Ints = np.zeros(0, np.int64)
        self._lost: Ints = np.zeros((4, 0), np.int64)
        """Sum, number, greatest and its position."""
        self.worst: dict[tuple[int, int], WorstSuperstep] = {}
        """By origin and cause."""

    def add(self, booked: BookedWindow) -> None:
        """Take in a window."""
        records = booked.account.run.records[booked.account.halo :]
        pid = records["pid"].astype(np.int64)
        for part, ns in enumerate(booked.spent):
            if ns.any():
                self.by_process[part] += _counted(pid, ns, self._nprocs)
        self.covered += booked.account.covered()
        begin = records["start"] - booked.account.gap[booked.account.halo :]
        self.begin_ns = int(begin.min(initial=self.begin_ns))
        self.end_ns = int(records["end"].max(initial=self.end_ns))
        lost = booked.lost
        self._add_parts(*booked.kept())
        parts = np.zeros((len(PARTS), len(lost.ns)), np.int64)
        parts[np.array(PART_OF)[lost.cause], np.arange(len(lost.ns))] = lost.ns
        self._add_parts(lost.origin, lost.pid, parts)
        self._add_lost(lost)

    def _add_parts(self, origin: Ints, pid: Ints, parts: Ints) -> None:
        number = (origin - BEFORE) * self._nprocs + pid
        found = rank_in_place(number)
        sums = np.stack([_counted(number, ns, len(found)) for ns in parts])
        self._keys, self._parts = _summed(
            np.append(self._keys, found), np.append(self._parts, sums, axis=1)
        )

    def _add_lost(self, lost: RootRows) -> None:
        rows = np.flatnonzero((lost.cause < _LOSSES) & (lost.origin >= 0))
        lost = RootRows(*(column[rows] for column in lost))
        if len(rows) == 0:
            return
        number = (lost.origin * self._nprocs + lost.pid) * len(CAUSES) + lost.cause
        keys = np.append(self._lost_keys, number)
        table = np.append(
            self._lost, np.stack([lost.ns, np.ones_like(lost.ns), lost.ns, lost.position]), axis=1
        )
        order = np.lexsort((-table[2], keys))
        begins = starts(keys[order])
        sums = np.add.reduceat(table[:2, order], begins, axis=1)
        self._lost_keys = keys[order[begins]]
        self._lost = np.append(sums, table[2:, order[begins]], axis=0)
        self._add_worst(lost)

    def _add_worst(self, lost: RootRows) -> None:
        """Find the superstep that loses most at each origin, for each cause."""
        step = lost.rank - lost.rank.min()
        steps = len(rank_in_place(step))
        place = (lost.origin * len(CAUSES) + lost.cause) * steps + step
        number = place.copy()
        found = rank_in_place(number)
        ns = _counted(number, lost.ns, len(found))
        at = found // steps
        order = np.lexsort((-ns, at))
        for first in order[starts(at[order])].tolist():
            origin, cause = divmod(int(at[first]), len(CAUSES))
            known = self.worst.get((origin, cause))
            if known is None or ns[first] > known.ns:
                rows = np.flatnonzero(number == first)
                columns = (lost.position[rows], lost.pid[rows], lost.ns[rows])
                records = tuple(zip(*(column.tolist() for column in columns), strict=True))
                self.worst[origin, cause] = WorstSuperstep(int(ns[first]), records)

    @property
    def losses(self) -> Iterator[Loss]:
        """What is lost by origin, process and cause."""
        for key, row in zip(self._lost_keys.tolist(), self._lost.T.tolist(), strict=True):
            place, cause = divmod(key, len(CAUSES))
            origin, pid = divmod(place, self._nprocs)
            ns, records, worst_ns, worst = row
            yield Loss(origin, pid, cause, ns, records, worst_ns, worst)

    @cached_property
    def by_origin(self) -> Ints:
        """What is rooted at each origin: shape (parts, origins)."""
        return self._by_origin[:, -BEFORE:]

    @property
    def before(self) -> tuple[int, ...]:
        """What is rooted before the range of supersteps, by part."""
        return tuple(self._by_origin[:, 0].tolist())

    @cached_property
    def _by_origin(self) -> Ints:
        origin = self._keys // self._nprocs
        return np.stack([_counted(origin, ns, self._origins - BEFORE) for ns in self._parts])

    def by_root_process(self, origins: Iterable[int]) -> Ints:
        """Return what is rooted at some origins, by the process that is the root.

        Shape (parts, processes).
        """
        chosen = np.zeros(self._origins - BEFORE, bool)
        chosen[np.array(list(origins), np.int64) - BEFORE] = True
        origin, pid = np.divmod(self._keys, self._nprocs)
        here = chosen[origin]
        return np.stack([_counted(pid[here], ns[here], self._nprocs) for ns in self._parts])


def _summed(keys: Ints, sums: Ints) -> tuple[Ints, Ints]:
    """Add up columns with the same key."""
    order = np.argsort(keys, kind="stable")
    begins = starts(keys[order])
    if len(begins) == 0:
        return keys, sums
    return keys[order[begins]], np.add.reduceat(sums[:, order], begins, axis=1)


class GraphTimes(NamedTuple):
    """The times of the nodes and edges of a call graph."""

    nodes: dict[str, Time]
    """By id."""
    edges: dict[tuple[str, str], Time]
    """By caller and callee: the part of the callee that came through this caller."""


class Book:
    """The book of a run, or of a range of supersteps of its root group.

    Args:
        run: the run.
        rates: what a byte and a superstep cost. At other rates the sum is the same, and
            transfers, latency and what is not explained are divided differently.
        first: number of the first superstep.
        last: number of the last one; default: that of the run.

    Raises:
        TraceError: the records of a process take more time than the run, or overlap.
    """

    def __init__(self, run: Run, rates: Rates, first: int = 0, last: int | None = None) -> None:
        self.run = run
        self.rates = rates
        self.first = first
        self.last = last

    def by_window(self) -> Iterator[BookedWindow]:
        """Yield what is booked for one window after another."""
        sums, tail = survey(self.run).sums, Tail.of_nothing(self.run.nprocs)
        if self.first > 0:
            for _, account in self._accounts(0, self.first - 1):
                tail = Paths(account, sums.origin_of(account.run.records), tail).tail()
            tail = tail.outside(BEFORE)
        is_border = self.first > 0
        for window, account in self._accounts(self.first, self.last):
            origin = sums.origin_of(account.run.records)
            if is_border:
                origin[: account.halo] = BEFORE
            ways = Paths(account, origin, tail)
            yield BookedWindow(window, account, ways, origin)
            tail, is_border = ways.tail(), False

    def _accounts(self, first: int, last: int | None) -> Iterator[tuple[RunWindow, Account]]:
        return ahead(
            (window, Account(window.run, self.rates, window.halo, window.position))
            for window in windows(self.run, first, last)
        )

    @cached_property
    def sums(self) -> RootSums:
        """All that is booked, by process and by root."""
        sums = RootSums(self.run.nprocs, len(survey(self.run).sums.origins))
        for booked in self.by_window():
            sums.add(booked)
        return sums

    @property
    def span_ns(self) -> tuple[int, int]:
        """When the run, or the range of supersteps, began and ended."""
        if self.first == 0 and self.last is None:
            return span_of(self.run)
        return self.sums.begin_ns, max(self.sums.begin_ns, self.sums.end_ns)

    @property
    def elapsed_ns(self) -> int:
        """Elapsed time of the run, or of the range of supersteps."""
        begin, end = self.span_ns
        return end - begin

    @cached_property
    def outside(self) -> Ints:
        """The time of each process in no record: start and end.

        Raises:
            TraceError: this is more than the run takes.
        """
        outside: Ints = self.elapsed_ns - self.sums.covered
        if (outside < 0).any():
            pid = int(outside.argmin())
            raise TraceError(
                f"the records of process {pid} take {self.sums.covered[pid]} ns, and the run only "
                f"{self.elapsed_ns} ns: they overlap, so the trace is damaged"
            )
        return outside

    def by_process(self) -> Ints:
        """Return what each process spent its time for: shape (parts, processes)."""
        spent = self.sums.by_process.copy()
        spent[ENDS] += self.outside
        return spent

    def whole(self) -> dict[str, int]:
        """Return the account of the run, summed over the processes, by name of the part."""
        return dict(zip(PARTS, self.by_process().sum(axis=1).tolist(), strict=True))

    @property
    def before(self) -> Time:
        """What is spent in the range of supersteps, and rooted before it."""
        return Time(self.sums.before, self.run.nprocs)

    def time_of(self, origins: Iterable[int]) -> Time:
        """Return what is rooted at some origins."""
        parts = self.sums.by_origin[:, list(origins)].sum(axis=1)
        return Time(tuple(parts.tolist()), self.run.nprocs)

    def of_graph(self, callgraph: CallGraph) -> GraphTimes:
        """Return the times of the nodes and edges of the call graph of the run."""
        nodes: defaultdict[str, list[int]] = defaultdict(list)
        edges: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for number, origin in enumerate(callgraph.origins):
            for node in origin.nodes:
                nodes[node].append(number)
            for edge in origin.edges:
                edges[edge].append(number)
        return GraphTimes(
            {node: self.time_of(nodes[node]) for node in callgraph.graph},
            {edge: self.time_of(edges[edge]) for edge in callgraph.graph.edges},
        )
