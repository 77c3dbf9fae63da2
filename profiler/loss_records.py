"""One pass over the records of a run, in which its losses are looked at and mended.

Of each loss this tells in how many supersteps it is, how it changes, where in them it arises, and
what the run would take if it were mended.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler import kinds, mends
from bsplib.profiler._numbering import changes
from bsplib.profiler.account import PARTS
from bsplib.profiler.costs import by_superstep, communication_ns, without_core_ns
from bsplib.profiler.kinds import LEAST_TOLD, MOST
from bsplib.profiler.lines import LinePlace
from bsplib.profiler.loss import (
    FEW,
    Loss,
    drafts_of,
    grouped,
    joined,
    least_ns,
    on_core_ns,
    results_of,
    savings_of,
    set_place,
    transfers_of,
)
from bsplib.profiler.loss_lines import (
    LEAST_SAMPLES,
    InsideLoss,
    LossWindow,
    line_of,
)
from bsplib.profiler.mends import LossRows
from bsplib.profiler.mpi_words import end_with_messages, late_of, waits_for
from bsplib.profiler.survey import FEW_BYTES, survey
from bsplib.profiler.system_time import faults_behind
from bsplib.profiler.verdict import tell
from bsplib.profiler.whatif import Replay
from bsplib.recording.chunk_ranges import RecordsOfSamples
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from bsplib.profiler._arrays import Bools, Floats, Ints
    from bsplib.profiler.account import Account
    from bsplib.profiler.book import Book, BookedWindow
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.recording.records import Run


_COMP, _COMM, _WAIT = (
    PARTS[part] for part in (parts.IMBALANCE, parts.TRANSFER_IMBALANCE, parts.BLOCKED)
)
_WAYS = {
    _COMP: (mends.EVENLY, mends.AS_OTHERS),
    _COMM: (mends.EVEN_TRANSFERS, mends.BYTES_AS_OTHERS, mends.STAGES),
    _WAIT: (mends.WITHOUT, mends.BLOCKED_AS_OTHERS),
    kinds.CORE: (mends.OWN_CORES,),
    kinds.STEPS: (mends.ONE_OF_EACH_ROW, mends.HALF_STEPS),
    kinds.MESSAGES: (mends.HALF_MESSAGES,),
    kinds.SYSTEM: (mends.WITHOUT_SYSTEM,),
    kinds.PICKLING: (mends.WITHOUT_PICKLES,),
    kinds.COMMUNICATION: (mends.HALF_BYTES, mends.EVEN_BYTES, mends.STAGES),
}
"""How a loss can be mended, by its kind, or by its part of the account; the usual way first."""
_MOST_LOOKED_AT = 32
"""Losses that are looked at, the greatest of them: each takes memory for the records of a window.
"""
_HIDDEN = 1.5
"""Losses at a place hide each other if to mend all saves this multiple of what each alone does.
Where each process takes a step longer than the one before, it is 2 for the two slowest."""
_MARKED = 0.1
"""A superstep in which it took less longer than this share of the longest time does not count."""


def sum_up(book: Book, *takers: Callable[[BookedWindow], None]) -> LossRecords:
    """Sum up all that is booked, and what could be saved; give each window to some functions."""
    book.savings = LossRecords(book, savings_of(book.run))
    book.hand_out(book.savings.add, *takers)
    return book.savings


def savings_in(book: Book) -> LossRecords:
    """Return what could be saved in a run; its book is summed up in the same pass, if need be."""
    return book.savings or sum_up(book)


def find(callgraph: CallGraph, book: Book) -> tuple[Loss, ...]:
    """Find the losses of a run, in another pass over its records if some are worth a look.

    Args:
        callgraph: the call graph of the run.
        book: its book, at any rates.

    Returns:
        What is lost, then what could be saved; the greatest first.
    """
    of_all = savings_in(book)
    drafts, inside = drafts_of(callgraph, book), on_core_ns(book)
    least = least_ns(book)
    # Several with less time at one line may have a sentence together.
    of_part = Counter[str | None]()
    for each in drafts:
        of_part[each.part] += each.ns
    worth = [
        each for each in drafts if of_part[each.part] >= least and each.ns >= LEAST_TOLD * inside
    ][:_MOST_LOOKED_AT]
    together = _together(callgraph, worth)
    transfers = transfers_of(callgraph, book, of_all.moved_ns)
    if worth or transfers:
        records = LossRecords(book, [*worth, *together, *transfers], callgraph)
        for account in book.accounts():
            records.add_account(account)
        records.finish(callgraph)
    of_all.finish(callgraph)
    found = [replace(each, mended_ns=dict(each.mended_ns)) for each in of_all.losses]
    savings = [*found, *transfers]  # those of the book are told anew for another call graph
    for whole, alone in together.items():
        if _saved_as_others(whole) > _HIDDEN * sum(map(_saved_as_others, alone)):
            worth = [whole, *(each for each in worth if each not in alone)]
    if book.run.samples is not None:
        worth = _joined(callgraph, worth)
    rest = [each for each in drafts if not each.mended_ns]
    told = [each for each in [*savings, *results_of(callgraph, book)] if each.ns >= max(least, 1)]
    for loss in told:
        if loss.kind == kinds.SYSTEM:
            loss.faults = faults_behind(callgraph, loss.nodes, loss.ns)
    for loss in (*worth, *rest, *told):
        loss.elapsed_s = book.elapsed_ns / 1e9
        tell(callgraph, book, loss)
    lost = sorted((*worth, *rest), key=lambda loss: -loss.ns)
    told.sort(key=lambda loss: -loss.gain_s)
    return (*lost, *told)


def _saved_as_others(loss: Loss) -> float:
    return sum(ns for how, ns in loss.mended_ns.items() if how in mends.LIKE_OTHERS)


def _together(callgraph: CallGraph, losses: list[Loss]) -> dict[Loss, list[Loss]]:
    """Return losses of several processes at one place that may hide each other, as one."""
    fixed = [loss for loss in losses if loss.habit == kinds.FIXED and loss.pids]
    places = grouped(fixed, lambda loss: (loss.part, loss.chain[-2:]))
    return {joined(callgraph, alone): alone for alone in places if len(alone) > 1}


def _joined(callgraph: CallGraph, losses: list[Loss]) -> list[Loss]:
    """Join losses of one kind and process that arise at the same line into the greatest.

    What is saved adds up, since their supersteps are not the same.
    """

    def key(loss: Loss) -> Hashable:
        is_sampled = isinstance(loss.line, LinePlace) and loss.habit != kinds.ONE_OFF
        return (loss.kind, loss.pids, loss.line) if is_sampled else loss

    return [
        joined(callgraph, alike) if len(alike) > 1 else alike[0] for alike in grouped(losses, key)
    ]


class LossRecords:
    """What the records of a run say of some losses, added up window by window.

    Args:
        book: the book of the run.
        losses: the losses, to which :meth:`finish` adds it.
        callgraph: the call graph of the run, for losses that have a place.
    """

    def __init__(self, book: Book, losses: list[Loss], callgraph: CallGraph | None = None) -> None:
        self.losses = losses
        self._sums = survey(book.run).sums
        leaves = [chain[-1] for chain in callgraph.origins] if callgraph else []
        self._observed = [
            _Observed(loss, book.run, np.isin(leaves, loss.nodes), len(self._sums.origins))
            for loss in losses
        ]
        self._mends = [(each, how) for each in self._observed for how in each.ways]
        self._samples = book.whole_run.samples
        self._record = RecordsOfSamples.of(book.whole_run).position
        self._replay = Replay(book.whole_run, len(self._mends))
        self.moved_ns = np.zeros(len(self._sums.origins))
        """For how long the booked windows moved bytes, by call stack."""

    def add(self, booked: BookedWindow) -> None:
        """Take in the records of a window that is booked, and what they would take alone."""
        account, fresh = booked.account, slice(booked.account.halo, None)
        moved, origin = mends.moved_ns(account)[fresh], booked.origin[fresh]
        self.moved_ns += np.bincount(origin, moved, len(self.moved_ns))
        self._add(account, origin)

    @property
    def alone_ns(self) -> int:
        """How long the supersteps of the booked windows take with useful computation only."""
        return self._replay.alone_ns()

    def add_account(self, account: Account) -> None:
        """Take in the records of a window."""
        self._add(account, self._sums.origin_of(account.run.records[account.halo :]))

    def _add(self, account: Account, origin: Ints) -> None:
        window = LossWindow(account, origin, self._samples, self._record)
        before = np.zeros((len(self._mends), len(account.step)))
        after = np.zeros_like(before)
        for observed in self._observed:
            loss = observed.rows(window)
            if loss is None:
                continue
            observed.add(window, loss)
            for number, (mended, how) in enumerate(self._mends):
                if mended is observed:
                    before[number], after[number] = mends.MENDS[how](loss)
        self._replay.add(account, before, after)

    def finish(self, callgraph: CallGraph) -> None:
        """Note in the losses what was found."""
        for observed in self._observed:
            observed.finish(callgraph)
        for (observed, how), ns in zip(self._mends, self._replay.saved_ns().tolist(), strict=True):
            if how != mends.AS_OTHERS or observed.could_be_as_others:
                observed.loss.mended_ns[how] = ns


class _Observed:
    """A loss, with what its records say of it."""

    def __init__(self, loss: Loss, run: Run, leaves: Bools, origins: int) -> None:
        """Begin with nothing.

        Args:
            loss: what is looked at.
            run: the run.
            leaves: marks the origins that end at a cost centre of a loss that has a place.
            origins: how many there are.
        """
        self.loss, self._leaves = loss, leaves
        self.ways = _WAYS[loss.kind if loss.kind in _WAYS else str(loss.part)]
        self._nprocs = run.nprocs
        wanted = [
            place if loss.habit == kinds.ONE_OFF else origin * run.nprocs + place
            for origin, place in loss.members
        ]
        self._wanted = np.array(sorted(wanted), np.int64)
        self._longer: list[Floats] = []
        """By window how much longer it took in each superstep, where it did."""
        self._alone = np.zeros(2)
        """How much longer it took where the others had nothing to do, and everywhere."""
        self._core = np.zeros(run.nprocs)
        """What each process computed in these supersteps."""
        self._there = 0
        self._bytes = np.zeros(2)
        self._saved, self._count = np.zeros((2, origins))
        """What could be saved, and in how many records, by call stack."""
        self._waits = np.zeros(3, np.int64)
        """See :func:`waits_for`."""
        self._greatest = -1
        what = loss.kind if loss.kind in {kinds.SYSTEM, kinds.PICKLING} else str(loss.part)
        is_sampled = what in LEAST_SAMPLES and not (what == kinds.PICKLING and run.is_interleaved)
        self._inside = InsideLoss(len(run.stacks), what) if is_sampled else None
        """What was executed where it took longer than elsewhere."""

    def rows(self, window: LossWindow) -> LossRows | None:
        """Return the records of the loss in a window; None if there are none."""
        found = _RECORDS.get(self.loss.kind, self._of_members)(window)
        return LossRows(window, found, self.loss) if len(found) else None

    def _of_members(self, window: LossWindow) -> Ints:
        loss, account = self.loss, window.account
        if loss.kind == kinds.COMMUNICATION:
            return np.flatnonzero(np.isin(window.origin, loss.origins))
        if loss.habit == kinds.ONE_OFF:
            return account.halo + np.flatnonzero(np.isin(account.position, self._wanted))
        keys = window.origin * self._nprocs + window.pid
        return np.flatnonzero(np.isin(keys, self._wanted) & (window.origin >= 0))

    def add(self, window: LossWindow, loss: LossRows) -> None:
        """Take in its records in a window."""
        if self.loss.kind == kinds.CORE:
            return
        self.loss.passes += int(np.count_nonzero(loss.steps_inside))
        if not self.loss.is_lost:
            self._add_saving(window, loss)
            return
        longer = loss.longer
        by_step = np.zeros(window.steps)
        np.maximum.at(by_step, window.step[loss.rows], longer[loss.rows])
        self._longer.append(by_step[by_step > 0])
        rows = loss.rows[longer[loss.rows] > 0]
        rows = rows if len(rows) else loss.rows
        if self._inside is not None:
            self._inside.add(window, rows)
        self._add_once(window, rows, longer)
        if self.loss.part == _COMM:
            excess = mends.excess_bytes(window.account)
            self._bytes += [(values[rows] * longer[rows]).sum() for values in excess]
        if self.loss.part == _COMP:
            mine, core = longer[loss.rows], loss.core[loss.rows]
            self._alone += mine[mine >= (1 - LEAST_TOLD) * core].sum(), mine.sum()
            inside = np.flatnonzero(loss.inside)
            pid = window.pid[inside]
            self._core += np.bincount(pid, loss.core[inside], self._nprocs)
            self._there += int(self._leaves[window.origin[inside]].sum())
            self._waits += waits_for(window.account.run, rows)

    def _add_once(self, window: LossWindow, rows: Ints, longer: Floats) -> None:
        """Note which superstep bears most of it."""
        if self.loss.habit == kinds.ONE_OFF and longer[rows].max() > self._greatest:
            most = rows[longer[rows].argmax()]
            self._greatest = int(longer[most])
            self.loss.superstep = int(window.records["superstep"][most])
            self.loss.group = int(window.records["group"][most])

    def _add_saving(self, window: LossWindow, loss: LossRows) -> None:
        rows = loss.rows
        if self.loss.kind == kinds.MESSAGES:
            saved = _message_ns(window.account)[rows] / 2
        elif self.loss.kind != kinds.COMMUNICATION:  # all that mending takes away
            saved = np.asarray(sum(mends.MENDS[self.ways[0]](loss)))[rows]
            if self.loss.kind == kinds.PICKLING:
                self.loss.total_bytes += int(window.records["pickled_bytes"][rows].sum())
            if self._inside is not None:
                self._inside.add(window, rows)
        else:
            saved = mends.moved_ns(window.account)[rows] / 2
            h_out, _ = window.account.h_out_and_in
            self.loss.total_bytes += int(h_out[rows].sum())
            h = window.account.h[rows]
            if (most := int(h.max())) > self.loss.most_bytes:
                self.loss.most_bytes = most
                self.loss.pids = (int(window.pid[rows[h.argmax()]]),)
        self._saved += np.bincount(window.origin[rows], np.round(saved), len(self._saved))
        self._count += np.bincount(window.origin[rows], minlength=len(self._count))

    def finish(self, callgraph: CallGraph) -> None:
        """Note in the loss what was found."""
        loss = self.loss
        if not loss.is_lost:
            self._finish_saving(callgraph)
            return
        longer = np.concatenate([np.zeros(0), *self._longer])
        longer = longer[longer >= _MARKED * longer.max(initial=0)]
        loss.count = len(longer)
        if loss.habit != kinds.ONE_OFF:
            loss.change_s = _change_s(longer)
        if self._inside is not None:
            loss.line = line_of(callgraph.run, self._inside)
        if loss.part == _COMM:
            h_out, h_in = self._bytes
            if MOST * max(h_out, h_in) > min(h_out, h_in):
                loss.kind = kinds.FAN_IN if h_in > h_out else kinds.FAN_OUT
        if loss.part == _COMP:
            loss.late = late_of(self._waits)
            if loss.habit == kinds.FIXED:
                self._finish_others(callgraph)

    @property
    def could_be_as_others(self) -> bool:
        """Whether it could be as short as on the others, when all windows have been added.

        To have nothing to do, as few others, is no remedy, nor is it where all work in turn.
        """
        if nothing := self.loss.nothing_pids:
            return len(self.loss.pids) <= len(nothing)
        named = np.isin(np.arange(self._nprocs), self.loss.pids)
        mine, theirs = (self._core[each] if each.any() else self._core for each in (named, ~named))
        alone, everywhere = self._alone
        is_more = MOST * np.median(mine) > np.median(theirs)
        return bool(alone <= MOST * everywhere or is_more)

    def _finish_saving(self, callgraph: CallGraph) -> None:
        loss = self.loss
        if loss.kind == kinds.MESSAGES:
            self._saved[self._count < FEW * self._nprocs] = 0
        if self._inside is not None:
            line = line_of(callgraph.run, self._inside)
            loss.line = line if isinstance(line, LinePlace) else None
            if loss.kind == kinds.SYSTEM and self._inside.samples < FEW:
                self._saved[:] = 0
        loss.count, loss.ns = loss.passes, int(self._saved.sum())
        if loss.ns:
            most = np.argsort(-self._saved, kind="stable")
            set_place(loss, callgraph, most[: np.count_nonzero(self._saved)].tolist())

    def _finish_others(self, callgraph: CallGraph) -> None:
        """Note which processes have nothing to do, or end their supersteps elsewhere."""
        loss = self.loss
        others = [pid for pid in range(self._nprocs) if pid not in loss.pids]
        mine = self._core[list(loss.pids)].mean()
        if others and self._core[others].max() <= LEAST_TOLD * mine:
            loss.nothing_pids = tuple(others)
        elif callgraph.kind_of(loss.origins[0]) != Kind.OBLSYNC:
            # sender and receiver end that one at different calls anyway
            mean = self._there / max(loss.passes, 1)
            loss.sharing = max(1, round(mean)) if mean <= MOST * self._nprocs else 0


def _change_s(longer: Floats) -> tuple[float, float] | None:
    """Return how much longer it took first and last, if it grew or shrank all the time."""
    if len(longer) < 2 * _QUARTERS:
        return None
    means = [quarter.mean() for quarter in np.array_split(longer, _QUARTERS)]
    few = max(1, len(longer) // _ENDS)
    first, last = float(longer[:few].mean()), float(longer[-few:].mean())
    grows = means == sorted(means) and MOST * last >= first
    shrinks = means == sorted(means, reverse=True) and MOST * first >= last
    return (first / 1e9, last / 1e9) if grows or shrinks else None


_QUARTERS, _ENDS = 4, 20
"""Into how many stretches supersteps are divided to see how a loss changes, and which part of them
is the first and the last that is told."""


# -- what could be saved ---------------------------------------------------------------------------


def _could_be_one(account: Account) -> Ints:
    """Return the records of supersteps in a row with next to nothing between them.

    In them no process computes for longer than l, and none is in a sub-group. The first superstep
    of a row is not among them.
    """
    run, records, step = account.run, account.run.records, account.step
    latency = account.rates.l * 1e9
    if latency <= 0:
        return np.zeros(0, np.int64)
    count = len(account.h_max)
    busy = np.zeros(count, bool)
    busy[by_superstep(run).greatest(account.computing.core) > latency] = True
    kinds = (Kind.SYNC,) if run.is_interleaved else (Kind.SYNC, Kind.OBLSYNC)
    busy[step[(records["sub"] > 0) | ~np.isin(records["kind"], kinds)]] = True
    group, number = np.zeros((2, count), np.int64)
    group[step], number[step] = records["group"], records["superstep"]
    order = np.lexsort((number, group))
    follows = ~changes(group[order]) & (np.diff(number[order], prepend=-2) == 1) & ~busy[order]
    row = np.cumsum(~follows)
    long = np.bincount(row)[row] >= FEW  # two or three may need each other
    chosen = np.zeros(count, bool)
    chosen[order[follows & long]] = True
    found: Ints = account.halo + np.flatnonzero(chosen[step[account.halo :]])
    return found


def _message_ns(account: Account) -> Ints:
    """Return what the message at the end of each record costs, beside its work.

    A message of a few bytes costs what a call costs, on both sides: some microseconds in Python
    before and after MPI, the latency, and the time for which the two sides wait for each
    other, since calls never take equally long.
    """
    records, core = account.run.records, account.computing.core
    idle = records["released"] - records["arrive"]
    moved = communication_ns(records) - without_core_ns(records)[0]
    cost: Ints = moved + idle * (idle <= mends.CALL_NS) + core * (core <= mends.CALL_NS)
    return cost


def _small_messages(account: Account) -> Ints:
    """Return the records that end with a small message, which takes longer than their work."""
    records, core = account.run.records, account.computing.core
    small = account.h_out_and_in[0] <= FEW_BYTES
    small &= (records["kind"] == Kind.OBLSYNC) & end_with_messages(account.run, records)
    small &= core * (core > mends.CALL_NS) <= _message_ns(account)
    small[: account.halo] = False
    found: Ints = np.flatnonzero(small)
    return found


_RECORDS: dict[str, Callable[[LossWindow], Ints]] = {
    kinds.STEPS: lambda window: _could_be_one(window.account),
    kinds.MESSAGES: lambda window: _small_messages(window.account),
    kinds.SYSTEM: lambda window: np.flatnonzero(window.system),
    kinds.PICKLING: lambda window: np.flatnonzero(
        window.records["pickling"] * (window.origin >= 0)
    ),
    kinds.CORE: lambda window: np.arange(window.account.halo, len(window.pid)),
}
"""The records of a window for the kinds that may be anywhere."""
