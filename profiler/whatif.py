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

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler._by_step import is_table
from bsplib.profiler.costs import (
    by_superstep,
    communication_ns,
    group_columns,
    group_sizes,
    without_core_ns,
)
from bsplib.profiler.loss_sums import BYTES, COMM, COMP, CORES, SMALL, SUB_GROUPS, SYNC, WAIT
from bsplib.profiler.small_messages import CALL_NS, could_be_one
from bsplib.profiler.survey import survey
from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler._by_step import BySuperstep
    from bsplib.profiler.account import Account, Ints
    from bsplib.recording.records import Run

    Floats = NDArray[np.float64]
    from collections.abc import Callable

    from numpy.typing import NDArray

    Saved = tuple[Floats, Floats]
    """What each record takes less before its arrival, and after its release."""


class Replay:
    """The supersteps of a run without a part of their time, added window by window."""

    def __init__(self, run: Run, mends: int) -> None:
        """Begin a replay.

        Args:
            run: the run.
            mends: how many ways to mend it are replayed.
        """
        self._depth = group_columns(run).depth
        is_oblivious = survey(run).facts.is_oblivious
        self._root, self._alone = (
            _RootClock(rows, run.nprocs, is_oblivious) for rows in (mends + 1, 1)
        )
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
        if is_table(by := by_superstep(account.run), halo):
            by.add_from_preceding(saved, after_ns, self._after)
        else:
            later = np.flatnonzero(before >= halo)
            saved[:, later] += after_ns[:, before[later]]
            carried = np.flatnonzero((before >= 0) & (before < halo))
            saved[:, carried] += self._after[:, records["pid"][carried]]
        for rows, owners in self._upwards(account):
            every = np.concatenate([lasts[None, rows], lasts[rows] - saved[:, rows]])
            if owners is None:
                self._root.add(account, rows, every)
                self._note_ends(account, after_ns)
                continue
            if account.run.is_interleaved:
                every += _waits_for_other_groups(account, np.asarray(rows), saved)
            by_group = _totals(account, np.asarray(rows), every)
            gained = (by_group[0] - by_group[1:])[:, owners[0]]
            if account.run.is_interleaved:  # a process may have been in the group for less time
                gained = np.minimum(gained, records["sub"][owners[1]])
            np.add.at(saved.T, owners[1], gained.T)

    def saved_ns(self) -> Floats:
        """Return by mend how much less the run takes, when all windows have been added."""
        total = self._root.total()
        saved: Floats = total[0] - total[1:] + self._ending
        return saved

    def add_alone(self, account: Account, own_ns: Ints) -> None:
        """Take in what records take alone, and their sub-groups; see :meth:`alone_ns`."""
        own = own_ns.astype(np.float64)[None]
        for rows, owners in self._upwards(account):
            if owners is None:
                self._alone.add(account, rows, own[:, rows])
                continue
            by_group = _totals(account, np.asarray(rows), own[:, rows])
            np.add.at(own.T, owners[1], by_group[:, owners[0]].T)

    def alone_ns(self) -> int:
        """Return how long the supersteps take if each record takes this, and its sub-groups."""
        return round(float(self._alone.total()[0]))

    def _lasts(self, account: Account) -> Floats:
        """Return for each record the time from the release before it to its arrival."""
        records, before = account.run.records, account.before
        first = before < 0
        begun = np.full(len(account.run.groups), np.iinfo(np.int64).max)
        start = records["start"][account.halo :]
        if len(begun) == 1:
            begun[0] = start.min(initial=begun[0])
        else:
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


class _RootClock:
    """How long the supersteps of the root group take, for several mends at once."""

    def __init__(self, mends: int, nprocs: int, is_oblivious: bool) -> None:
        self._total = np.zeros(mends)
        self._released = np.zeros((mends, nprocs))
        self._is_oblivious = is_oblivious

    def add(self, account: Account, rows: Ints | slice, lasts: Floats) -> None:
        """Take in what records of the root last in each mend."""
        if self._is_oblivious:
            positions = np.arange(len(account.step))[rows]
            _step_by_step(account, positions, lasts, self._released)
        elif is_table(by := by_superstep(account.run), account.halo):
            fresh = by.fresh()
            self._total += [fresh.greatest(each).clip(min=0).sum() for each in lasts]
        else:
            self._total += _greatest(account.step[rows], lasts).sum(axis=1)

    def total(self) -> Floats:
        """Return when the last process ends."""
        if self._is_oblivious:
            latest: Floats = self._released.max(axis=1, initial=0.0)
            return latest
        return self._total


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
    pids = account.run.records["pid"][order]
    place = np.full(len(account.step), len(order), np.int64)
    place[order] = np.arange(len(order))
    others = _of_same_group(account, order)
    behind, lasts = place[others], lasts[:, by_step].clip(min=0)
    left = np.append(lasts, np.zeros((len(lasts), 1)), axis=1)[:, behind]
    left *= _after(account, order, others, account.run.records["start"][others])
    arrived = np.zeros((len(lasts), len(order) + 1))
    bounds = np.append(np.flatnonzero(np.diff(account.step[order], prepend=-1)), len(order))
    for begin, end in pairwise(bounds.tolist()):
        mine = pids[begin:end]
        arrived[:, begin:end] = released[:, mine] + lasts[:, begin:end]
        released[:, mine] = np.maximum(
            arrived[:, begin:end], arrived[:, behind[begin:end]] - left[:, begin:end]
        )


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


# -- what the records of a run would take less if one of its losses were mended -------------------


HALF = 0.5
"""Part of the bytes, or of supersteps that move some, that a mended program still has."""


EVEN, STAGES = "even", "stages"
"""Further remedies of transfers: each process moves as many bytes, or they go in two stages."""
REMEDIES = {BYTES: (BYTES, EVEN, STAGES), COMM: (COMM, STAGES)}
"""For each cause with several remedies, those that are replayed; the first is the usual one."""


class MendedRows:
    """The records of a window, some of which belong to a loss."""

    def __init__(self, account: Account, rows: Ints) -> None:
        self.account = account
        self.records = account.run.records
        self.rows = rows

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Marks the records of all processes in the supersteps of these rows."""
        steps = np.zeros(len(self.account.h_max), bool)
        steps[self.account.step[self.rows]] = True
        return steps[self.account.step]

    def above_mean(self, values: Floats, shares: Ints | None = None) -> Floats:
        """Return by how much values exceed the mean of their superstep, in those inside.

        Args:
            values: one for each record.
            shares: of what to take the mean; default: of the values.
        """
        size = group_sizes(self.account.run)[self.records["group"]]
        by = by_superstep(self.account.run)
        means = by.spread(by.sums(values if shares is None else shares)) / size
        return np.where(self.inside, values - means, 0.0)

    def only(self, values: NDArray[np.integer | np.floating]) -> Floats:
        """Return values at these rows, and 0 at all others."""
        kept = np.zeros(len(values))
        kept[self.rows] = values[self.rows]
        return kept

    def nothing(self) -> Floats:
        """Return 0 for each record."""
        return np.zeros(len(self.records))

    def after(self, saved_ns: Floats) -> Saved:
        """Take from what follows the release first, and then from the calls."""
        tail = (self.records["end"] - self.records["released"]).astype(np.float64)
        after = np.minimum(saved_ns, tail)
        return np.minimum(saved_ns - after, self.records["comm_calls"]), after


def saved(remedy: str, mended: MendedRows) -> Saved:
    """Return what the records of a window would take less without a loss, in nanoseconds.

    Args:
        remedy: a cause, or one of ``REMEDIES``.
        mended: the records.
    """
    return _MENDED[remedy](mended)


def _computation(mended: MendedRows) -> Saved:
    core = mended.account.computing.core.astype(np.float64)
    return mended.above_mean(core), mended.nothing()


def _sub_groups(mended: MendedRows) -> Saved:
    return mended.above_mean(mended.records["sub"].astype(np.float64)), mended.nothing()


def _transfers(mended: MendedRows) -> Saved:
    """Even out the bytes: each process takes what they take on average.

    With mpi4py that is what they took, where this is more: in a Gather the root alone takes long,
    and no price of a byte holds for both sides.
    """
    account = mended.account
    own, _, uneven, latency, *_ = account.communication
    priced = own + uneven
    if account.run.is_interleaved:
        took = communication_ns(mended.records) - without_core_ns(mended.records)[1] - latency
        priced, own = np.maximum(priced, took), np.maximum(own, took)
    return mended.after(mended.above_mean(priced.astype(np.float64), own))


def _half_the_bytes(mended: MendedRows) -> Saved:
    own, _, uneven, *_ = mended.account.communication
    return mended.after(mended.only(HALF * (own + uneven)))


def _two_stages(mended: MendedRows) -> Saved:
    """Let a process that alone sends, or receives, n bytes for each other one do so in two stages.

    It scatters parts of n / p bytes, which all processes exchange then; or these combine parts, and
    it gathers the results. That costs g n (p - 1) / p in each stage and another l, instead
    of g n (p - 1). Where h counts bytes in and out, the exchange costs twice as much.
    """
    account, records = mended.account, mended.records
    size = group_sizes(account.run)[records["group"]]
    h_out, h_in = account.h_out_and_in
    if account.run.is_interleaved or int(size.max(initial=0)) < _LEAST_FOR_STAGES:
        return mended.nothing(), mended.nothing()
    by = by_superstep(account.run)
    alone = _from_one(by, size, h_out, h_in) | _from_one(by, size, h_in, h_out)
    if not alone.any():
        return mended.nothing(), mended.nothing()
    own, _, uneven, *_ = account.communication
    stages = 2 if account.rates.rule == "max" else 3
    h = stages * account.h_max[account.step] / size
    less = own + uneven - 1e9 * (account.rates.g * h + account.rates.l)
    return mended.after(np.where(mended.inside & alone, less, 0.0).clip(min=0.0))


_LEAST_FOR_STAGES = 3
"""Between two processes there is nothing that another one could pass on."""


def _from_one(by: BySuperstep, size: Ints, giving: Floats, taking: Floats) -> NDArray[np.bool_]:
    """Mark the records of supersteps in which one of three or more gives all others as much."""
    givers, takers = (by.sums(values > 0) for values in (giving, taking))
    alone = by.spread(givers) == 1
    alike = by.spread(by.sums(taking)) == by.spread(by.greatest(taking)) * (size - 1)
    found: NDArray[np.bool_] = alone & (by.spread(takers) == size - 1) & alike
    return found & (size >= _LEAST_FOR_STAGES)


def _fewer_supersteps(mended: MendedRows) -> Saved:
    """Leave out supersteps that move nothing; of the others half."""
    account = mended.account
    still = account.h_max[account.step] > 0
    latency = account.communication.latency * np.where(still, HALF, 1.0)
    return mended.after(mended.only(latency))


def _fewer_messages(mended: MendedRows) -> Saved:
    """Leave out those that could be one with others; of the rest half, with what a call costs."""
    account, records = mended.account, mended.records
    part = np.where(could_be_one(account)[account.step], 1.0, HALF)
    moved = (communication_ns(records) - without_core_ns(records)[0]) * part
    before, after = mended.after(mended.only(moved))
    return before + mended.only(np.minimum(account.computing.core, CALL_NS) * part), after


def _blocked(mended: MendedRows) -> Saved:
    account = mended.account
    return mended.only(account.computing.blocked + account.calls.blocked), mended.nothing()


def _cores(mended: MendedRows) -> Saved:
    waited = mended.account.computing.waited.astype(np.float64)
    return waited, mended.account.communication.core.astype(np.float64)


_MENDED: dict[str, Callable[[MendedRows], Saved]] = {
    COMP: _computation,
    SUB_GROUPS: _sub_groups,
    COMM: _transfers,
    WAIT: _blocked,
    SYNC: _fewer_supersteps,
    SMALL: _fewer_messages,
    BYTES: _half_the_bytes,
    EVEN: _transfers,
    STAGES: _two_stages,
    CORES: _cores,
}
