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
from bsplib.profiler._numbering import changes, starts
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
        if account.run.is_interleaved:
            _do_while_waiting(account, mine)
        less = mine[outer].clip(min=0)
        all_less, moved_less = (np.bincount(opening, each) for each in (less, less * part))
        as_others = (moved_less / np.maximum(all_less, 1))[opening]
        of_more = np.where(all_less[opening] > 0, as_others, by_time)
        _move(mine, outer, row, mine[outer] * np.where(mine[outer] > 0, part, of_more))
    _move(own, outer, row, own[outer] * by_time)


def _do_while_waiting(account: Account, saved: Floats) -> None:
    """Let what a record takes more be done where it waits in the records inside of it.

    Such a wait, in a Recv for example, is in the middle of a superstep of all processes.
    """
    records = account.run.records
    inside = np.flatnonzero(account.owner >= 0)
    owner, idle = account.owner[inside], (records["released"] - records["arrive"])[inside]
    whole = np.bincount(owner, idle, len(saved))[owner]
    _move(saved, owner, inside, saved[owner].clip(max=0) * (idle / np.maximum(whole, 1)))


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
            without the halo. The first column has that of the run as it was recorded.
        released: when each process was released last, shape (processes, mends); it is changed.
    """
    halo, nprocs, records = account.halo, len(released), account.run.records[account.halo :]
    step = account.step[halo:] - account.step[halo:].min(initial=len(account.step))
    pid, earlier = records["pid"].astype(np.int64), account.earlier[halo:] - halo
    by = BySuperstep(step, pid)
    latest = by.greatest(records["arrive"])
    # Who leaves a sub-group waits for nobody there, and with MPI a root may not wait for others.
    oblivious = by.greatest(records["kind"] == Kind.OBLSYNC) | (
        by.least(records["released"]) < latest
    )
    late = (records["released"] - by.spread(latest)) * ~oblivious[step]
    # Supersteps that follow their head at known times need no step of their own.
    follows = _follows(by, earlier, oblivious | (by.greatest(late) > 0))
    head = np.maximum.accumulate(np.where(follows, 0, np.arange(len(follows))))
    later = _after_heads(step, lasts, follows, head)

    turn = 2 * ranks(account.run)[0][halo:] + oblivious[step]
    if account.is_blamed is not None:
        turn = _by_time(by, turn, np.where(oblivious[step], records["released"], by.spread(latest)))
    # The order in which all other records are gone through; one that follows has the place of its
    # head there.
    order = np.lexsort((step, turn))
    order = order[~follows[step[order]]]
    place = np.empty(len(step), np.int64)
    place[order] = np.arange(len(order))
    of_head = np.zeros(len(follows), np.int64)
    of_head[step[order]] = place[order]
    place = np.where(follows[step], of_head[head[step]], place)

    # Where each record comes from: the row of ``went_on``, and how long after that it was released.
    before, is_new = earlier.clip(min=0), earlier < 0
    source = np.where(is_new, pid, nprocs + place[before])
    behind = later[step[before]] * ~is_new[:, None]
    waiting, others = _waits(account, order, place, oblivious[step])
    if account.is_blamed is not None:
        # What waited for a record whose release is not known yet waits as long as it did.
        is_known = is_new[others] | (turn[order[place[before[others]]]] < turn[waiting])
        others = np.where(is_known, others, waiting)
        arrive = np.maximum(records["arrive"][waiting], records["arrive"][others])
        alone = (records["released"][waiting] - arrive).clip(min=0)
        late[waiting] = np.where(oblivious[step[waiting]], alone, late[waiting])
    until = _share_until(account, waiting, others, lasts[:, 0])
    waits = _Waits(
        np.searchsorted(place[waiting], np.arange(len(order) + 1)),
        source[others],
        behind[others] + lasts[others] * until[:, None],
    )
    went_on = np.concatenate([released, behind[order] + lasts[order]])
    _step_by_step(went_on, source[order], turn[order], step[order], waits, late[order])
    last = np.full(nprocs, -1)
    last[pid] = np.arange(len(pid))  # of several the last one stays
    some = np.flatnonzero(last >= 0)
    released[some] = went_on[nprocs + place[last[some]]] + later[step[last[some]]]


def _by_time(by: BySuperstep, turn: Ints, moment: Ints) -> Ints:
    """Return turns by time: of each superstep one, and of an oblivious one for each record.

    Args:
        by: sums up records by superstep.
        turn: of each record by its rank; odd where its superstep is oblivious.
        moment: when its superstep, or it alone, was over.
    """
    order = np.lexsort((by.of_record, turn, moment))
    is_next = changes(by.of_record[order]) | (turn[order] % 2 == 1)
    found = np.empty_like(turn)
    found[order] = 2 * np.cumsum(is_next) + turn[order] % 2
    return found


def _step_by_step(
    went_on: Floats, source: Ints, turn: Ints, step: Ints, waits: _Waits, late: Ints
) -> None:
    """Find when records were released, those of the same turn at once.

    A row has all mends: what a superstep needs is then in one piece, and the loop has few calls of
    numpy, which take most of its time.

    Args:
        went_on: when each process was released last, then what each record takes from the release
            before, in whose place the time of its own release is put.
        source: the row of ``went_on`` with the release before.
        turn: of each record; odd where its superstep is oblivious.
        step: the superstep of each record.
        waits: of records of oblivious supersteps.
        late: how much later than all for whom it waits each record is released; so long it
            waited for MPI itself.
    """
    count, nprocs, is_late = len(step), len(went_on) - len(step), late.any()
    first = np.append(starts(step), count)
    bounds = np.append(starts(turn), count)
    pieces = np.searchsorted(first, bounds).tolist()
    for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
        here = went_on[nprocs + begin : nprocs + end]
        here += went_on.take(source[begin:end], axis=0)
        low, high = pieces[number : number + 2]
        if turn[begin] % 2:
            edges = slice(waits.first[begin], waits.first[end])
            theirs = went_on.take(waits.source[edges], axis=0)
            theirs += waits.ahead[edges]
            latest = np.maximum.reduceat(theirs, waits.first[begin:end] - edges.start)
            np.maximum(here, latest, out=here)
        elif high - low == 1:
            here[:] = here.max(axis=0)
        else:
            latest = np.maximum.reduceat(here, first[low:high] - begin)
            here[:] = latest.repeat(np.diff(first[low : high + 1]), axis=0)
        if is_late:
            here += late[begin:end, None]


def _follows(by: BySuperstep, earlier: Ints, alone: Bools) -> Bools:
    """Mark supersteps of a group to which all come from the release of the one before them.

    Args:
        by: sums up records by superstep.
        earlier: for each record the one before it of its process; negative in another window.
        alone: marks supersteps from which processes go on at different times.
    """
    before = np.where(earlier < 0, -1, by.of_record[earlier.clip(min=0)])
    one = by.least(before)
    found: Bools = (one == by.greatest(before)) & (one >= 0) & (one == np.arange(len(one)) - 1)
    found &= ~alone & ~alone[one]
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
    """When those come for whom records wait, each for one or more, in the order of these."""

    first: Ints
    """For each record that waits the first row of those below, and their number at the end."""
    source: Ints
    """The row of ``went_on`` with the release from which the other one comes."""
    ahead: Floats
    """What it takes from there."""


def _waits(account: Account, order: Ints, place: Ints, is_oblivious: Bools) -> tuple[Ints, Ints]:
    """Return which records wait for which ones, and after an oblivious superstep for all senders.

    Args:
        account: the account of the window.
        order: the records that are gone through, counted without the halo, as all others.
        place: of each record in ``order``.
        is_oblivious: marks records of oblivious supersteps.
    """
    run, halo = account.run, account.halo
    waiting, others = order, account.behind[order + halo] - halo
    if account.is_blamed is not None:  # the trace itself says who waited for whom
        return waiting, others
    out = np.flatnonzero(is_out(run.traffic["direction"]))
    to, sender = partner_records(run)[out] - halo, run.traffic["record"][out] - halo
    some = np.flatnonzero((to >= 0) & (sender >= 0))
    some = some[is_oblivious[to[some]]]
    waiting, others = np.append(waiting, to[some]), np.append(others, sender[some])
    by_place = np.argsort(place[waiting], kind="stable")
    return waiting[by_place], others[by_place]


def _share_until(account: Account, waiting: Ints, others: Ints, lasts: Floats) -> Floats:
    """Return which part of what others last comes before the release of the records that waited.

    Where the other one went on after the release, to a Wait for example, what it did until then has
    the same share in the time until its arrival as it was recorded.

    Args:
        account: the account of the window.
        waiting: records, counted without the halo.
        others: those that they waited for.
        lasts: what each record took.
    """
    arrive, released = (account.run.records[name] for name in ("arrive", "released"))
    after = (arrive[others + account.halo] - released[waiting + account.halo]).clip(min=0)
    share: Floats = 1 - (after / np.maximum(lasts[others], 1)).clip(max=1.0)
    return share
