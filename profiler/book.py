"""The book of a run: the one account of its elapsed time, with a root of all that is idle.

Every nanosecond of every process is booked once, under one of ``PARTS``, with the process that
**spent** it and a **root**: a cost centre with its whole call stack (an *origin*, a position in
``CallGraph.origins``) and a process. The root of what a process did itself is itself. The
root of idle time is what was longer on the path of the process that was waited for
(:mod:`bsplib.profiler.paths`); that of transfers for which another process moves more bytes is the
process with the greatest h. What is not in ``main`` has no root: start and end, and waiting for a
process that began ``main`` later.

What readers ask for:

- the book: :func:`book_of`. Nothing is read before it is asked for; what needs the records in the
  same pass, as what could be saved and the timeline do, is given to :meth:`Book.hand_out` first.
- who spent it (bars of a process, account): :meth:`Book.by_process`, :meth:`Book.whole`; in time
  or by record (timeline): :attr:`BookedWindow.own` and :attr:`BookedWindow.idle`, and
  :attr:`Book.outside` for what is in no record.
- nodes and edges: :meth:`Book.time_of` for the origins that pass through one, or all at once
  in a :class:`bsplib.profiler.graph_book.GraphBook`. The time of a node is the mean over the
  processes of all that is rooted there, its loss the part of it in ``LOST``. Leaves add up to
  functions, functions to ``main``, and ``main`` with :attr:`Book.before` to the elapsed time less
  start and end.
- losses, for clusters: :attr:`RootSums.losses` by part of the account, origin and process;
  :attr:`RootSums.worst` the superstep that bears most, by origin and part; and window by window:
  :attr:`BookedWindow.lost`.
- what a record waited for: :meth:`BookedWindow.roots_of` its :attr:`BookedWindow.shares`.
- ranges of supersteps: the book of a run that is ``part_of`` another one
  (:func:`bsplib.profiler.window.restricted`). Paths begin with the whole run; roots before
  the range are in :attr:`Book.before`.

Nanoseconds are whole numbers and summed over the processes of the run. All sums are exact.

Source: cost of a superstep, ``w + g h + l`` (Jarvis et al. 2002, section 2.1).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.errors import TraceError
from bsplib.profiler import account as parts
from bsplib.profiler import paths
from bsplib.profiler._numbering import SumsByKey, rank_in_place
from bsplib.profiler.account import PARTS, Account
from bsplib.profiler.costs import by_superstep
from bsplib.profiler.paths import IdleShares, Paths, Tail
from bsplib.profiler.survey import root_count, span_of, survey
from bsplib.profiler.window import windows
from bsplib.recording.records import MAX_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bsplib.profiler._arrays import Bools, Ints, Numbers
    from bsplib.profiler.loss_records import LossRecords
    from bsplib.profiler.rates import Rates
    from bsplib.profiler.window import RunWindow
    from bsplib.recording.records import Run


LOST = (parts.IMBALANCE, parts.TRANSFER_IMBALANCE, parts.BLOCKED, parts.CORE)
"""The parts of the account that are loss."""
IS_LOST = np.isin(np.arange(len(PARTS)), LOST)
"""The same as a mark for each part."""

_BEFORE_ARRIVAL = (parts.IMBALANCE, parts.TRANSFER_IMBALANCE, parts.BLOCKED, parts.CORE)
_AFTER_RELEASE = (parts.TRANSFER_IMBALANCE, parts.LATENCY, parts.BLOCKED, parts.CORE)
_UNKNOWN = parts.RECORDING, parts.UNEXPLAINED
_PART = np.array((*_BEFORE_ARRIVAL, *_UNKNOWN, *_AFTER_RELEASE, parts.UNEXPLAINED, parts.ENDS))
"""Under which part of the account idle time is that is due to each strand of a path."""
BEFORE, NOWHERE = -2, -1
"""The origins of what is rooted before a range of supersteps, and of start and end."""


class RootRows(NamedTuple):
    """Roots in a window, as columns; several rows may have the same root."""

    position: Ints
    """Position of the record in the whole run; it may be before the window. -1: of several."""
    origin: Ints
    """Position in ``CallGraph.origins``, or ``BEFORE``, or ``NOWHERE``."""
    pid: Ints
    part: Ints
    """Of the account; all of what is blocked, or without a core, is lost, and of the other parts in
    ``LOST`` what others wait for, or take longer for."""
    rank: Ints
    """Equal for records of one superstep, also in sub-groups that one partition opened; what came
    after a release has one of its own, between those of two supersteps."""
    ns: Ints

    def at(self, chosen: Numbers) -> RootRows:
        """Return some of the rows, by truth values or positions."""
        return RootRows(*(each[chosen] for each in self))

    def by_root(self) -> RootRows:
        """Return the same with one row for each root that is a known record."""
        unknown = -1 - np.arange(len(self.ns))
        keys = np.where(self.position < 0, unknown, self.position * len(PARTS) + self.part)
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        return self.at(first)._replace(ns=_counted(number, self.ns, 0))

    @property
    def is_lost(self) -> Bools:
        """Marks what is lost somewhere in the run, or the range of supersteps."""
        found: Bools = IS_LOST[self.part] & (self.origin >= 0)
        return found


class BookedWindow:
    """What is booked for the records of a window of a run."""

    def __init__(self, account: Account, ways: Paths, origin: Ints) -> None:
        self.account = account
        self._ways = ways
        self.origin = origin
        """The origin of each record, with those of the halo."""
        self.tail = ways.tail()
        """What the next window needs of the paths."""

    @cached_property
    def shares(self) -> IdleShares:
        """The idle time of each record, with the nodes of paths that are its roots."""
        return self._ways.shares()

    def roots_of(self, share: Ints | slice) -> tuple[Ints, Ints, Ints, Ints]:
        """Return position, origin and process of the roots of some ``shares``, and the part."""
        nodes, node, strand = self._ways.nodes, self.shares.node[share], self.shares.strand[share]
        side = paths.SIDE[strand]
        origin = np.where(strand == paths.START, NOWHERE, nodes.origin[node, side])
        return nodes.position[node, side], origin, nodes.pid[node], _PART[strand]

    @property
    def open_from(self) -> int:
        """The lowest rank of supersteps that may be roots in later windows."""
        ranks = self.tail.nodes.rank
        return 2 * int(ranks[ranks >= 0].min(initial=MAX_NUMBER)) - 1

    @property
    def spent(self) -> Ints:
        """What each record took by part of the account: shape (parts, records)."""
        return self.own + self.idle

    @cached_property
    def own(self) -> Ints:
        """What each record took beside its idle time: shape (parts, records)."""
        return self.account.own(slice(self.account.halo, None))

    @cached_property
    def idle(self) -> Ints:
        """The idle time of each record by part of the account: shape (parts, records)."""
        shape = self.own.shape
        place = _PART[self.shares.strand] * shape[1] + self.shares.row
        return _counted(place, self.shares.ns, self.own.size).reshape(shape)

    @cached_property
    def pid(self) -> Ints:
        """The process of each record."""
        pid: Ints = self.account.run.records["pid"][self.account.halo :].astype(np.int64)
        return pid

    def idle_by_process(self) -> Ints:
        """Return the idle time of each process: shape (parts, processes)."""
        nprocs = self.account.run.nprocs
        place = _PART[self.shares.strand] * nprocs + self.pid[self.shares.row]
        return _counted(place, self.shares.ns, len(PARTS) * nprocs).reshape(len(PARTS), nprocs)

    @cached_property
    def lost(self) -> RootRows:
        """All roots of idle time and of uneven bytes, and what was blocked or without a core."""
        ways, shares = self._ways, self.shares
        rank = 2 * ways.nodes.rank[shares.node] - paths.SIDE[shares.strand]
        idle = RootRows(*self.roots_of(slice(None)), rank, shares.ns)
        every = (
            idle,
            self._rooted_here(parts.BLOCKED, np.flatnonzero(self.own[parts.BLOCKED])),
            self._rooted_here(parts.CORE, np.flatnonzero(self.own[parts.CORE])),
            self._rooted_here(parts.TRANSFER_IMBALANCE, *self.uneven),
        )
        return RootRows(*(np.concatenate(each) for each in zip(*every, strict=True)))

    @cached_property
    def uneven(self) -> tuple[Ints, Ints]:
        """The records that took longer since others have a greater h, and those with the greatest.

        Both are counted without the halo.
        """
        account, rows = self.account, np.flatnonzero(self.own[parts.TRANSFER_IMBALANCE])
        if not len(rows):
            return rows, rows
        leader = by_superstep(account.run).leader(account.h) - account.halo
        return rows, leader[account.step[account.halo + rows]]

    def _rooted_here(self, part: int, rows: Ints, root: Ints | None = None) -> RootRows:
        """Return what some records took themselves, which is rooted there or at others."""
        account, root = self.account, rows if root is None else root
        return RootRows(
            account.position[root],
            self.origin[account.halo + root],
            self.pid[root],
            np.full(len(rows), part),
            2 * self._ways.nodes.rank[self._ways.first + root],
            self.own[part, rows],
        )


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
    def sizes(self) -> tuple[int, int]:
        """By what nodes are ordered: by loss, and of equal losses by time."""
        return self.loss_ns, self.ns

    @property
    def time_s(self) -> float:
        """All of it in seconds, on average over the processes."""
        return self.ns / self.nprocs / 1e9

    def part_s(self, part: int) -> float:
        """A part of the account in seconds, on average over the processes."""
        return self.parts[part] / self.nprocs / 1e9

    @property
    def loss_s(self) -> float:
        """What is lost in seconds, on average over the processes."""
        return self.loss_ns / self.nprocs / 1e9


Worst = tuple[int, int, tuple[tuple[int, int, int], ...]]
"""The superstep that loses most at an origin, under one part of the account: nanoseconds, its rank,
and position, process and nanoseconds of each of its records. Of equals the first one counts."""


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
        self._roots = SumsByKey(len(PARTS))
        """All roots, by origin and process."""
        self.worst: dict[tuple[int, int], Worst] = {}
        """By origin and part of the account."""
        self._open = RootRows(*np.zeros((len(RootRows._fields), 0), np.int64))
        """What was lost at supersteps at which later windows may lose more."""

    def add(self, booked: BookedWindow) -> None:
        """Take in a window."""
        account = booked.account
        records = account.run.records[account.halo :]
        own = SumsByKey(len(PARTS))
        own.add((booked.origin[account.halo :] - BEFORE) * self._nprocs + booked.pid, booked.own)
        np.add.at(self.by_process.T, own.keys % self._nprocs, own.sums.T)
        self.by_process += booked.idle_by_process()
        own.sums[[parts.TRANSFER_IMBALANCE, parts.BLOCKED, parts.CORE]] = 0  # these are in ``lost``
        self._roots.add(own.keys, own.sums)
        self.covered += account.covered()
        self.begin_ns = int(
            (records["start"] - account.gap[account.halo :]).min(initial=self.begin_ns)
        )
        self.end_ns = int(records["end"].max(initial=self.end_ns))
        lost = booked.lost
        by_part = SumsByKey(1)
        place = (lost.origin - BEFORE) * self._nprocs + lost.pid
        by_part.add(place * len(PARTS) + lost.part, lost.ns[None])
        place, part = np.divmod(by_part.keys, len(PARTS))
        sums = np.zeros((len(PARTS), len(part)), np.int64)
        sums[part, np.arange(len(part))] = by_part.sums[0]
        self._roots.add(place, sums)
        self._add_worst(lost, booked.open_from)

    def _add_worst(self, lost: RootRows, open_from: int) -> None:
        """Find the superstep that loses most at each origin, under each part of the account.

        Args:
            lost: the roots in a window.
            open_from: the lowest rank of supersteps at which later windows may lose something, too.
        """
        lost = RootRows(
            *(np.append(*each) for each in zip(self._open, lost.at(lost.is_lost), strict=True))
        )
        place = lost.origin * len(PARTS) + lost.part
        least = int(lost.rank.min(initial=0))
        for number in np.flatnonzero(np.bincount(place)).tolist():
            mine = np.flatnonzero(place == number)
            step = lost.rank[mine] - least
            ranks = rank_in_place(step)
            by_step = _counted(step, lost.ns[mine], 0)
            first = int(by_step.argmax())
            where, rank = divmod(number, len(PARTS)), int(ranks[first]) + least
            most_ns, most_rank, *_ = self.worst.get(where, (0, 0))
            if (by_step[first], -rank) > (most_ns, -most_rank):
                roots = Counter[tuple[int, int]]()
                for row in mine[step == first].tolist():
                    roots[int(lost.position[row]), int(lost.pid[row])] += int(lost.ns[row])
                records = tuple((*root, ns) for root, ns in roots.items())
                self.worst[where] = int(by_step[first]), rank, records
        self._open = lost.at(lost.rank >= open_from).by_root()

    @cached_property
    def losses(self) -> dict[tuple[int, int], dict[int, int]]:
        """What is lost by part of the account and origin, and there by the process at the root."""
        found: dict[tuple[int, int], dict[int, int]] = {}
        for part in LOST:
            at = np.flatnonzero(self._roots.sums[part])
            keys, sums = self._roots.keys[at], self._roots.sums[part, at]
            for key, ns in zip(keys.tolist(), sums.tolist(), strict=True):
                origin, pid = divmod(key, self._nprocs)
                if origin >= -BEFORE:
                    found.setdefault((part, origin + BEFORE), {})[pid] = ns
        return found

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
        sums = np.zeros((len(PARTS), self._origins - BEFORE), np.int64)
        np.add.at(sums.T, self._roots.keys // self._nprocs, self._roots.sums.T)
        return sums

    def by_root_process(self, origins: Iterable[int]) -> Ints:
        """Return what is rooted at some origins, by the process that is the root.

        Shape (parts, processes).
        """
        origin, pid = np.divmod(self._roots.keys, self._nprocs)
        here = np.flatnonzero(np.isin(origin + BEFORE, list(origins)))
        sums = np.zeros((len(PARTS), self._nprocs), np.int64)
        np.add.at(sums.T, pid[here], self._roots.sums[:, here].T)
        return sums


class Book:
    """The book of a run, or of a range of supersteps of its root group.

    Args:
        run: the run, or a part of one.
        rates: what a byte and a superstep cost. At other rates the sum is the same, and
            transfers, latency and what is not explained are divided differently.

    Raises:
        TraceError: the records of a process take more time than the run, or overlap.
    """

    def __init__(self, run: Run, rates: Rates) -> None:
        self.run = run
        self.rates = rates
        self.whole_run, self._first = run, 0
        self._last: int | None = None
        if run.part_of is not None:
            self.whole_run, self._first, self._last = run.part_of
        self._tails: dict[int, Tail] = {}
        """The paths that lead to some windows, by the first superstep of the window."""
        self.savings: LossRecords | None = None
        """What could be saved, as :func:`bsplib.profiler.loss_records.sum_up` has found it."""

    def by_window(self, first: int = 0, last: int | None = None) -> Iterator[BookedWindow]:
        """Yield what is booked for one window after another.

        Args:
            first: the first superstep that is wanted; windows before it may come, too. Only in the
                book of a whole run they are left out where the paths until there are known.
            last: the last superstep; default: that of the run, or of the range.
        """
        sums, tail = survey(self.run).sums, Tail.of_nothing(self.run.nprocs)
        begin = self._first
        is_border = begin > 0
        if is_border:
            for account in self._accounts(0, begin - 1):
                tail = Paths(account, np.full(len(account.run.records), BEFORE), tail).tail()
            tail = tail.outside(BEFORE)
        else:
            begin = max((each for each in self._tails if each <= first), default=begin)
            tail = self._tails.get(begin, tail)
        for account in self._accounts(begin, self._last if last is None else last):
            if self._first == 0:
                self._keep_tail(account.window, tail)
            records, halo = account.run.records, account.halo if is_border else 0
            origin = np.append(np.full(halo, BEFORE), sums.origin_of(records[halo:]))
            ways = Paths(account, origin, tail)
            booked = BookedWindow(account, ways, origin)
            yield booked
            tail, is_border = booked.tail, False
            del account, records, ways, booked  # before the next one is made

    def _keep_tail(self, window: RunWindow, tail: Tail) -> None:
        """Keep the paths until one of several windows, from which the run can be booked on."""
        superstep = int(window.root_supersteps().min())
        # Elsewhere the halo is another one where the windows are read from here on.
        fits = window.halo_steps == 1 and superstep - 1 in window.run.records["superstep"][:1]
        apart = root_count(self.run) / _MOST_TAILS
        if fits and superstep >= max(self._tails, default=0) + apart:
            self._tails[superstep] = tail

    def accounts(self) -> Iterator[Account]:
        """Yield the account of one window after another, without what is booked."""
        return self._accounts(self._first, self._last)

    def _accounts(self, first: int, last: int | None) -> Iterator[Account]:
        every = windows(self.whole_run, first, last)
        return (Account(window, self.rates) for window in every)

    @cached_property
    def sums(self) -> RootSums:
        """All that is booked, by process and by root."""
        self.hand_out()
        return self.sums

    def hand_out(self, *takers: Callable[[BookedWindow], None]) -> None:
        """Sum up all that is booked, and give each window to some functions in the same pass."""
        sums = RootSums(self.run.nprocs, len(survey(self.run).sums.origins))
        for booked in self.by_window():
            for taker in (sums.add, *takers):
                taker(booked)
            del booked
        self.sums = sums

    @property
    def span_ns(self) -> tuple[int, int]:
        """When the run, or the range of supersteps, began and ended."""
        if self.run.part_of is None:
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
        spent[parts.ENDS] += self.outside
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


def book_of(run: Run, rates: Rates) -> Book:
    """Return the book of a run, or of a part of one; that at the last rates is kept with it."""
    known = run.derived.get(_BOOK)
    if known is None or known.rates != rates:
        run.derived[_BOOK] = known = Book(run, rates)
    book: Book = known
    return book


_BOOK = "book"
_MOST_TAILS = 32
"""A tail has up to some megabytes. In a run of 10^7 records some ten windows lie between two."""
