"""What a run would take if a part of its time were mended: its supersteps are replayed.

Times cannot be subtracted, since imbalances hide each other: where one process computes longer
than the others and another one is blocked longer, mending one of the two shows the other. The
processes go on anew instead, each from its last release, in whatever group that was. After a
superstep of a whole group all of them go on when the last one has come; after an oblivious one a
process goes on when all have come that sent it something.

A run is replayed window by window, for several mends at once. A superstep to which all processes
come from one release takes the greatest of what each of them takes; so only where they come from
different ones do supersteps have to be gone through one after the other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.directions import is_out
from bsplib.profiler._by_step import BySuperstep
from bsplib.profiler._numbering import starts
from bsplib.profiler.costs import by_superstep, leads, partner_records
from bsplib.profiler.paths import ranks
from bsplib.profiler.survey import survey
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from bsplib.profiler._arrays import Bools, Floats, Ints, Numbers
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
        # Of the run as it was recorded, by mend, and of one with useful computation only.
        self._released = np.zeros((run.nprocs, mends + 2))
        """When each process was released last."""
        self._is_one_group = len(run.groups) == 1 and not survey(run).is_oblivious
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
        records, halo, earlier = account.run.records, account.halo, account.earlier
        if self._begun < 0:
            self._begun = int(records["start"].min(initial=0))
        since = np.where(earlier < 0, self._begun, records["released"][earlier])
        # What is saved after a release is a part of what the next record lasts.
        saved = saved_ns.copy()
        saved += after_ns.take(earlier, axis=1) * (earlier >= halo)
        carried = np.flatnonzero((earlier >= 0) & (earlier < halo))
        saved[:, carried] += self._after[:, records["pid"][carried]]
        own = account.computing.core.astype(np.float64)
        if len(account.run.groups) > 1:
            _move_into_groups(account, saved, own)
        every = np.empty((len(saved) + 2, len(records) - halo))
        every[0], every[-1] = (records["arrive"] - since)[halo:], own[halo:]
        np.subtract(every[0], saved[:, halo:], out=every[1:-1])
        np.maximum(every, 0, out=every)
        if self._is_one_group:
            by = by_superstep(account.run).after(halo)
            self._released += [by.greatest(each).sum() for each in every]
        else:
            _go_on(account, every.T, self._released)
        self._note_ends(account, after_ns)

    def saved_ns(self) -> Floats:
        """Return by mend how much less the run takes, when all windows have been added."""
        total = self._released.max(axis=0)
        saved: Floats = total[0] - total[1:-1] + self._ending
        return saved

    def alone_ns(self) -> int:
        """Return how long the supersteps take with useful computation only."""
        return round(float(self._released[:, -1].max()))

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


def _move_into_groups(account: Account, saved: Floats, own: Floats) -> None:
    """Let a process enter its sub-groups earlier by what it saves before it enters them.

    It is a part of what the record around the sub-group saves: that by which others enter the
    sub-group earlier, as a part of that by which they are shorter in all. Where none are, it is
    the part of the record that comes before the sub-group. Of what records take longer it is
    the part that others save there.

    Args:
        account: the account of a window.
        saved: by mend, what each record saves; it is changed.
        own: what each record computes; it is changed.
    """
    records, owner = account.run.records, account.owner
    rank, lead_rank = ranks(account.run)
    busy = (records["arrive"] - records["start"] - records["sub"]).astype(np.float64)
    row, inside, outer, ns = leads(account.run, owner, account.earlier, account.halo)
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
        _move(mine, outer, row, mine[outer] * np.where(mine[outer] > 0, part, of_more))
    _move(own, outer, row, own[outer] * by_time)


def _move(values: Floats, source: Ints, to: Ints, moved: Floats) -> None:
    """Take amounts from some values, and add them to others."""
    np.add.at(values, to, moved)
    np.subtract.at(values, source, moved)


def _above_mean(values: Numbers, key: Ints) -> Floats:
    """Return by how much values exceed the mean of those with the same key; others are 0."""
    _, number, count = np.unique(key, return_inverse=True, return_counts=True)
    found: Floats = values - (np.bincount(number, values) / count)[number]
    return found.clip(min=0)


def _go_on(account: Account, lasts: Floats, released: Floats) -> None:
    """Let the processes go on through the supersteps of a window, each from its last release.

    Args:
        account: the account of the window.
        lasts: what each record takes from the release before to its arrival, shape (rows, mends),
            without the halo.
        released: when each process was released last, shape (processes, mends); it is changed.
    """
    halo, nprocs, records = account.halo, len(released), account.run.records
    step = account.step[halo:] - account.step[halo:].min(initial=len(account.step))
    pid, earlier = records["pid"][halo:].astype(np.int64), account.earlier[halo:] - halo
    kind, group = records["kind"][halo:], records["group"][halo:]
    oblivious = np.zeros(int(step.max(initial=-1)) + 1, bool)
    # Who leaves a sub-group waits for nobody there.
    oblivious[step[(kind == Kind.OBLSYNC) | ((kind == Kind.END) & (group > 0))]] = True
    follows = _follows(BySuperstep(step, pid), earlier, account.behind[halo:] - halo, oblivious)
    head = np.maximum.accumulate(np.where(follows, 0, np.arange(len(follows))))
    later = _after_heads(step, lasts, follows, head)

    rank = ranks(account.run)[0][halo:]
    order = np.lexsort((step, oblivious[step], rank))
    order = order[~follows[step[order]]]
    place = np.empty(len(step), np.int64)
    place[order] = np.arange(len(order))
    of_head = np.zeros(len(follows), np.int64)
    of_head[step[order]] = place[order]
    place = np.where(follows[step], of_head[head[step]], place)

    before, is_new = earlier[order].clip(min=0), earlier[order] < 0
    source = np.where(is_new, pid[order], nprocs + place[before])
    ahead = lasts[order] + later[step[before]] * ~is_new[:, None]
    went_on = np.concatenate([released, ahead])
    waits = _waits(account, order, place, lasts, oblivious[step])
    _step_by_step(went_on, source, step[order], rank[order], oblivious, waits)
    last = np.full(nprocs, -1)
    last[pid] = np.arange(len(pid))  # of several the last one stays
    some = np.flatnonzero(last >= 0)
    released[some] = went_on[nprocs + place[last[some]]] + later[step[last[some]]]


def _step_by_step(
    went_on: Floats, source: Ints, step: Ints, rank: Ints, oblivious: Bools, waits: _Waits
) -> None:
    """Find when records were released, those of the same rank at once.

    A row has all mends: what a superstep needs is then in one piece, and the loop has few calls of
    numpy, which take most of its time.

    Args:
        went_on: when each process was released last, then what each record takes from the release
            before, in whose place the time of its own release is put.
        source: the row of ``went_on`` with the release before.
        step: the superstep of each record, and so on.
        rank: of the superstep.
        oblivious: marks the supersteps that are oblivious.
        waits: of records of oblivious supersteps.
    """
    count, nprocs = len(step), len(went_on) - len(step)
    arrived = np.zeros((count, went_on.shape[1]))
    first = np.append(starts(step), count)
    bounds = np.append(starts(2 * rank + oblivious[step]), count)
    pieces = np.searchsorted(first, bounds).tolist()
    for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
        here, mine = went_on[nprocs + begin : nprocs + end], arrived[begin:end]
        np.add(here, went_on.take(source[begin:end], axis=0), out=mine)
        low, high = pieces[number : number + 2]
        if oblivious[step[begin]]:
            edges = slice(waits.first[begin], waits.first[end])
            theirs = arrived.take(waits.others[edges], axis=0)
            theirs -= waits.left[edges]
            latest = np.maximum.reduceat(theirs, waits.first[begin:end] - edges.start)
            np.maximum(mine, latest, out=here)
        elif high - low == 1:
            here[:] = mine.max(axis=0)
        else:
            latest = np.maximum.reduceat(mine, first[low:high] - begin)
            here[:] = latest.repeat(np.diff(first[low : high + 1]), axis=0)


def _follows(by: BySuperstep, earlier: Ints, behind: Ints, oblivious: Bools) -> Bools:
    """Mark supersteps of a group to which all come from the release of the one before them.

    Args:
        by: sums up records by superstep.
        earlier: for each record the one before it of its process; negative in another window.
        behind: for each record the one that it waited for.
        oblivious: marks the oblivious supersteps.
    """
    before = np.where(earlier < 0, -1, by.of_record[earlier.clip(min=0)])
    one = by.least(before)
    found: Bools = (one == by.greatest(before)) & (one >= 0) & (one == np.arange(len(one)) - 1)
    found &= ~oblivious & ~oblivious[one]
    outside = behind[by.of_record[behind] != by.of_record]
    found[by.of_record[outside]] = False  # of these each arrival matters
    return found


def _after_heads(step: Ints, lasts: Floats, follows: Bools, head: Ints) -> Floats:
    """Return how long after its head the processes of each superstep are released.

    Args:
        step: the superstep of each record.
        lasts: what each record takes, shape (records, mends).
        follows: marks supersteps to which all come from the release of the one before.
        head: for each superstep the one at which such a row of them begins.
    """
    most = np.zeros((len(follows), lasts.shape[1]))
    if follows.any():
        order = np.argsort(step, kind="stable")
        most[:] = np.maximum.reduceat(lasts[order], starts(step[order]))
    until = np.cumsum(most * follows[:, None], axis=0)
    later: Floats = until - until[head]
    return later


class _Waits(NamedTuple):
    """For which records others wait; in the order of those that wait, each of which has one."""

    first: Ints
    """For each record that waits the first one of those below, and their number at the end."""
    others: Ints
    left: Floats
    """What each of these does after the release."""


def _waits(
    account: Account, order: Ints, place: Ints, lasts: Floats, is_oblivious: Bools
) -> _Waits:
    """Return which records wait for which ones, and after an oblivious superstep for all senders.

    Args:
        account: the account of the window.
        order: the records that are gone through, counted without the halo, as all others.
        place: of each record in ``order``.
        lasts: what each record takes.
        is_oblivious: marks records of oblivious supersteps.
    """
    run, halo = account.run, account.halo
    waiting, others = order, account.behind[order + halo] - halo
    if account.is_blamed is None:  # otherwise the trace itself says who waited for whom
        out = np.flatnonzero(is_out(run.traffic["direction"]))
        to, sender = partner_records(run)[out] - halo, run.traffic["record"][out] - halo
        some = np.flatnonzero((to >= 0) & (sender >= 0))
        some = some[is_oblivious[to[some]]]
        waiting, others = np.append(waiting, to[some]), np.append(others, sender[some])
        by_place = np.argsort(place[waiting], kind="stable")
        waiting, others = waiting[by_place], others[by_place]
    left = lasts[others] * _share_after(account, waiting, others)[:, None]
    first = np.searchsorted(place[waiting], np.arange(len(order) + 1))
    return _Waits(first, place[others], left)


def _share_after(account: Account, waiting: Ints, others: Ints) -> Floats:
    """Return which part of what others last comes after the release of the records that waited.

    Where the other one went on after the release, to a Wait for example, what it did until then has
    the same share in the time until its arrival as it was recorded.

    Args:
        account: the account of the window.
        waiting: records, counted without the halo.
        others: those that they waited for.
    """
    records, halo = account.run.records, account.halo
    begun = np.maximum(
        records["start"][others + halo], records["released"][account.earlier[others + halo]]
    )
    arrive, released = records["arrive"][others + halo], records["released"][waiting + halo]
    part: Floats = (arrive - released).clip(min=0) / np.maximum(arrive - begun, 1)
    return part.clip(max=1.0)
