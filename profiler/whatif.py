"""What a run would take if a part of its time were mended: its supersteps are replayed.

Times cannot be subtracted, since imbalances hide each other: where one process computes longer
than the others and another one is blocked longer, mending one of the two shows the other. The
supersteps are put together anew from their parts instead. After a global sync all
processes of a group go on from one release, so that a superstep takes the greatest of what
its processes take from the release before to their arrival. After an oblivious one a process
goes on from the arrival that released it. What sub-groups save, the superstep of their parent
saves on these processes.

A run is replayed window by window, for several mends at once: each has a row of an array.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._numbering import preceding
from bsplib.profiler.costs import by_superstep, group_columns, leads
from bsplib.profiler.paths import ranks
from bsplib.profiler.survey import survey
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsplib.profiler._arrays import Floats, Ints, Numbers
    from bsplib.profiler.account import Account
    from bsplib.recording.records import Run


class Replay:
    """The supersteps of a run without a part of their time, added window by window."""

    def __init__(self, run: Run, mends: int) -> None:
        """Begin a replay.

        Args:
            run: the run.
            mends: how many ways to mend it are replayed.
        """
        self._depth = group_columns(run).depth
        self._is_oblivious = survey(run).is_oblivious
        # How long it takes as it was recorded, by mend, and with useful computation only; where
        # supersteps are oblivious, when each process was released last.
        self._total = np.zeros(mends + 2)
        self._released = np.zeros((mends + 2, run.nprocs))
        self._begun = -1
        self._after = np.zeros((mends, run.nprocs))
        """What each process saves after its last release."""
        self._ending = np.zeros(mends)

    def add(self, account: Account, saved_ns: Floats, after_ns: Floats) -> None:
        """Replay the supersteps of a window.

        Args:
            account: the account of the window.
            saved_ns: by mend, what each record would take less before its arrival; negative for
                more.
            after_ns: what it would take less after its release.
        """
        records, before, halo = account.run.records, account.before, account.halo
        lasts, saved = self._lasts(account), saved_ns.copy()
        # What is saved after a release is a part of what the next record lasts.
        saved += after_ns.take(before, axis=1) * (before >= halo)
        carried = np.flatnonzero((before >= 0) & (before < halo))
        saved[:, carried] += self._after[:, records["pid"][carried]]
        if len(self._depth) > 1 and not account.run.is_interleaved:
            self._move_into_groups(account, saved)
        own = account.computing.core.astype(np.float64)
        for rows, owners in self._upwards(account):
            # The first row is the run as it was recorded, from which savings are counted; the last
            # one has its useful computation only.
            every = np.concatenate(
                [lasts[None, rows], lasts[rows] - saved[:, rows], own[None, rows]]
            )
            if owners is None:
                self._add_to_root(account, rows, every)
                self._note_ends(account, after_ns)
                continue
            if account.run.is_interleaved:
                every[:-1] += _waits_for_other_groups(account, np.asarray(rows), saved)
            by_group = _totals(account, np.asarray(rows), every)[:, owners[0]]
            gained = by_group[0] - by_group[1:-1]
            if account.run.is_interleaved:  # a process may have been in the group for less time
                gained = np.minimum(gained, records["sub"][owners[1]])
            np.add.at(saved.T, owners[1], gained.T)
            np.add.at(own, owners[1], by_group[-1])

    def _add_to_root(self, account: Account, rows: Ints | slice, lasts: Floats) -> None:
        """Take in what records of the root group last."""
        if self._is_oblivious:
            positions = np.arange(len(account.step))[rows]
            _step_by_step(account, positions, lasts, self._released)
        elif len(self._depth) == 1:
            by = by_superstep(account.run).after(account.halo)
            self._total += [by.greatest(each).clip(min=0).sum() for each in lasts]
        else:
            self._total += _greatest(account.step[rows], lasts).sum(axis=1)

    def _move_into_groups(self, account: Account, saved: Floats) -> None:
        """Let a process enter its sub-groups earlier by what it saves before it enters them.

        It is a part of what the record around the sub-group saves: that by which others enter the
        sub-group earlier, as a part of that by which they are shorter in all. Where none are, it is
        the part of the record that comes before the sub-group. Of what records take longer it is
        the part that others save there.
        """
        records, owner = account.run.records, account.owner
        rank, lead_rank = ranks(account.run)
        busy = (records["arrive"] - records["start"] - records["sub"]).astype(np.float64)
        before = preceding(records["pid"].astype(np.int64))
        row, inside, outer, ns = leads(account.run, owner, before, account.halo)
        left = busy - np.bincount(outer, ns, len(busy))
        _, opening = np.unique(lead_rank[inside], return_inverse=True)
        ahead = _above_mean(ns, opening)
        around = _above_mean(left, rank) + np.bincount(outer, ahead, len(busy))
        by_time = np.minimum(ns / np.maximum(busy[outer], 1), 1.0)
        part = np.where(around[outer] > 0, ahead / np.maximum(around[outer], 1), by_time)
        for mine in saved:
            less = mine[outer].clip(min=0)
            all_less, moved_less = (np.bincount(opening, each) for each in (less, less * part))
            as_others = (moved_less / np.maximum(all_less, 1))[opening]
            of_more = np.where(all_less[opening] > 0, as_others, by_time)
            moved = mine[outer] * np.where(mine[outer] > 0, part, of_more)
            np.add.at(mine, row, moved)
            np.subtract.at(mine, outer, moved)

    def _totals(self) -> Floats:
        """Return when the last process ends."""
        return self._released.max(axis=1) if self._is_oblivious else self._total

    def saved_ns(self) -> Floats:
        """Return by mend how much less the run takes, when all windows have been added."""
        total = self._totals()
        saved: Floats = total[0] - total[1:-1] + self._ending
        return saved

    def alone_ns(self) -> int:
        """Return how long the supersteps take with useful computation only."""
        return round(float(self._totals()[-1]))

    def _lasts(self, account: Account) -> Floats:
        """Return for each record the time from the release before it to its arrival."""
        records, before = account.run.records, account.before
        first = before < 0
        begun = np.full(len(account.run.groups), np.iinfo(np.int64).max)
        start = records["start"][account.halo :]
        np.minimum.at(begun, records["group"][account.halo :], start)
        if self._begun < 0:
            self._begun = int(begun[0])
        begun[0] = self._begun
        since = np.where(first, begun[records["group"]], records["released"][before])
        lasts: Floats = (records["arrive"] - since).astype(np.float64)
        return lasts

    def _note_ends(self, account: Account, after: Floats) -> None:
        """Note what is saved after the last releases, where no record of the root follows yet."""
        records, step = account.run.records, account.step
        followed = np.zeros(len(step), bool)
        followed[account.before[account.before >= 0]] = True
        root = np.flatnonzero(~followed & (records["group"] == 0))
        root = root[root >= account.halo]
        if len(root) == 0:
            return
        self._after[:, records["pid"][root]] = after[:, root]
        last = root[step[root] == step[root].max()]
        tail = (records["end"][last] - records["released"][last]).astype(np.float64)
        self._ending = tail.max() - (tail - after[:, last]).max(axis=1)

    def _upwards(self, account: Account) -> Iterator[tuple[Ints | slice, tuple[Ints, Ints] | None]]:
        """Yield the records of the groups of each depth, the deepest ones first.

        With them come the groups of processes that entered one, and the records that they were
        inside of; None for the root.
        """
        groups = account.run.records["group"]
        if len(self._depth) == 1:
            yield slice(account.halo, len(groups)), None
            return
        depths = self._depth[groups]
        depths[: account.halo] = -1
        for depth in range(int(depths.max()), 0, -1):
            rows = np.flatnonzero(depths == depth)
            entered = rows[(account.before[rows] < 0) & (account.owner[rows] >= 0)]
            yield rows, (groups[entered].astype(np.int64), account.owner[entered])
        yield np.flatnonzero(depths == 0), None


def _above_mean(values: Numbers, key: Ints) -> Floats:
    """Return by how much values exceed the mean of those with the same key; others are 0."""
    _, number, count = np.unique(key, return_inverse=True, return_counts=True)
    found: Floats = values - (np.bincount(number, values) / count)[number]
    return found.clip(min=0)


def _totals(account: Account, rows: Ints, lasts: Floats) -> Floats:
    """Return how long the sub-groups of some records take, where each record lasts this.

    Returns:
        Shape (mends, groups).
    """
    groups = account.run.records["group"][rows]
    by_group = np.zeros((len(lasts), len(account.run.groups)))
    is_oblivious = np.zeros(len(account.run.groups), bool)
    is_oblivious[groups[account.run.records["kind"][rows] == Kind.OBLSYNC]] = True
    oblivious = is_oblivious[groups]
    step = account.step[rows]
    group_of = np.zeros(int(step.max(initial=-1)) + 1, np.int64)
    group_of[step] = groups
    some = np.flatnonzero(~oblivious)
    greatest = _greatest(step[some], lasts[:, some])
    np.add.at(by_group.T, group_of[: greatest.shape[1]], greatest.T)
    for group in np.unique(groups[oblivious]).tolist():
        mine = np.flatnonzero(groups == group)
        released = np.zeros((len(lasts), account.run.nprocs))
        _step_by_step(account, rows[mine], lasts[:, mine], released)
        by_group[:, group] = released.max(axis=1)
    return by_group


def _greatest(step: Ints, lasts: Floats) -> Floats:
    """Return what the slowest record of each superstep takes; 0 for one without records."""
    greatest = np.zeros((len(lasts), int(step.max(initial=-1)) + 1))
    for most, values in zip(greatest, lasts, strict=True):
        np.maximum.at(most, step, values)
    return greatest


def _step_by_step(account: Account, rows: Ints, lasts: Floats, released: Floats) -> None:
    """Let the processes of a group with oblivious supersteps go on, each from its own release.

    A record may have waited for one of an earlier superstep, too, where the trace says so; or for
    one of a sub-group, which is a part of a record of this group. One of
    another group, or of a later superstep, is not waited for here. Where the other one went on
    after the release, to a Wait for example, what it did until then has the same share in the time
    until its arrival as it was recorded.

    Args:
        account: the account of the records.
        rows: the records of the group.
        lasts: shape (mends, rows).
        released: when each process was released last, shape (mends, processes); it is changed.
    """
    by_step = np.argsort(account.step[rows], kind="stable")
    order = rows[by_step]
    pids = account.run.records["pid"][order].astype(np.int64)
    place = np.full(len(account.step), len(order), np.int64)
    place[order] = np.arange(len(order))
    others = _of_same_group(account, order)
    behind, count, nprocs = place[others], len(order), account.run.nprocs
    # A row for each record, with all mends: what a superstep needs is then in one piece, and the
    # loop has few calls of numpy, which take most of its time.
    ahead = np.zeros((count + 1, len(lasts)))
    ahead[:count] = lasts[:, by_step].T.clip(min=0)
    left = (
        ahead[behind]
        * _after(account, order, others, account.run.records["start"][others])[:, None]
    )
    arrived = np.zeros_like(ahead)
    went_on = np.empty((nprocs + count, len(lasts)))
    went_on[:nprocs] = released.T
    before = preceding(pids)
    before = np.where(before < 0, pids, nprocs + before)
    bounds = np.append(np.flatnonzero(np.diff(account.step[order], prepend=-1)), count)
    for begin, end in pairwise(bounds.tolist()):
        mine = went_on.take(before[begin:end], axis=0)
        mine += ahead[begin:end]
        arrived[begin:end] = mine
        theirs = arrived.take(behind[begin:end], axis=0)
        theirs -= left[begin:end]
        np.maximum(mine, theirs, out=went_on[nprocs + begin : nprocs + end])
    last = np.arange(nprocs)
    last[pids] = nprocs + np.arange(count)  # of several the last one stays
    released[:] = went_on[last].T


def _of_same_group(account: Account, rows: Ints) -> Ints:
    """Return what records waited for, in place of records of their sub-groups their own ones."""
    groups, behind = account.run.records["group"], account.behind[rows]
    owner = account.owner[behind]
    inside = (groups[behind] != groups[rows]) & (owner >= 0) & (groups[owner] == groups[rows])
    return np.where(inside, owner, behind)


def _waits_for_other_groups(account: Account, rows: Ints, saved: Floats) -> Floats:
    """Return how long records of sub-groups wait for records of other groups.

    Such a record has an Isend, for example, in the middle of a superstep of all processes. What it
    takes less until then the other one does not wait. What this one takes more, in the record that
    it is inside of, it does while it waits.

    Args:
        account: the account of the records.
        rows: the records of sub-groups.
        saved: by mend, what each record takes less.

    Returns:
        Shape (1 + mends, rows), of which the first is the time as it was recorded.
    """
    records, behind = account.run.records, account.behind[rows]
    waited = (records["released"] - records["arrive"])[rows].astype(np.float64)
    waited[records["group"][behind] == records["group"][rows]] = 0
    waited[records["kind"][rows] != Kind.OBLSYNC] = 0
    begun = records["start"][behind] + records["sub"][behind]
    earlier = saved[:, behind] * (1 - _after(account, rows, behind, begun))
    owner = account.owner[rows]
    whole = np.bincount(owner + 1, waited, len(account.owner) + 1)[owner + 1]
    more = -saved[:, owner].clip(max=0) * (waited / np.maximum(whole, 1)) * (owner >= 0)
    return np.concatenate([waited[None], (waited - earlier - more).clip(min=0)])


def _after(account: Account, rows: Ints, behind: Ints, begun: Ints) -> Floats:
    """Return which part of the record that each waited for comes after the release.

    Args:
        account: the account of the records.
        rows: those that waited.
        behind: those that they waited for.
        begun: when these began.
    """
    records = account.run.records
    arrive, released = records["arrive"][behind], records["released"][rows]
    after = (arrive - released).clip(min=0)
    part: Floats = after / np.maximum(arrive - begun, 1)
    return part.clip(max=1.0)
