"""What a run would take if a part of its time were mended: its supersteps are replayed.

Times cannot be subtracted, since imbalances hide each other: where one process computes longer
than the others and another one is blocked longer, mending one of the two shows the other. The
supersteps are put together anew from their parts instead. After a global sync all
processes of a group go on from one release, so that a superstep takes the greatest of what
its processes take from the release before to their arrival. After an oblivious one a process
goes on from the arrival that released it. What sub-groups save, the superstep of their parent
saves on these processes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bsplib.sync_kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsplib.profiler.account import Account, Ints

    Floats = NDArray[np.float64]


class Replay:
    """The supersteps of a run, to be replayed without a part of their time."""

    def __init__(self, account: Account) -> None:
        self._account = account
        run = account.run
        records, before = run.records, account.before
        first = before < 0
        begun = np.full(len(run.groups), np.iinfo(np.int64).max)
        np.minimum.at(begun, records["group"], records["start"])
        since = np.where(first, begun[records["group"]], records["released"][before])
        self._lasts: Ints = records["arrive"] - since
        """For each record the time from the release before it to its arrival."""
        self._oblivious = np.zeros(len(run.groups), bool)
        self._oblivious[np.unique(records["group"][records["kind"] == Kind.OBLSYNC])] = True
        self._depth = np.zeros(len(run.groups), np.int64)
        for position, group in enumerate(run.groups[1:], start=1):
            self._depth[position] = self._depth[group.parent] + 1

    def without(self, saved_ns: Floats, after_ns: Floats | None = None) -> int:
        """Return how long the run would take if its records were shorter, in nanoseconds.

        Args:
            saved_ns: what each record would take less before its arrival; negative for more.
            after_ns: what it would take less after its release.
        """
        saved, ending = np.array(saved_ns, np.float64), 0.0
        if after_ns is not None:  # it is a part of what the next record lasts
            later = self._account.before >= 0
            saved[later] += after_ns[self._account.before[later]]
            ending = self._saved_at_the_end(after_ns)
        for rows, owners in self._upwards():
            by_group = self._totals(rows, self._lasts.astype(np.float64))
            by_group -= self._totals(rows, self._lasts - saved)
            if owners is None:
                return self._account.elapsed_ns - round(float(by_group[0]) + ending)
            np.add.at(saved, owners[1], by_group[owners[0]])
        return self._account.elapsed_ns

    def _saved_at_the_end(self, after: Floats) -> float:
        """Return what is saved after the last releases of a run, where no record follows."""
        records, step = self._account.run.records, self._account.step
        root = np.flatnonzero(records["group"] == 0)
        if len(root) == 0:
            return 0.0
        last = root[step[root] == step[root].max()]
        tail = (records["end"][last] - records["released"][last]).astype(np.float64)
        return float(tail.max() - (tail - after[last]).max())

    def alone(self, own_ns: Ints) -> int:
        """Return how long the supersteps take if a record takes this, and its sub-groups."""
        own = own_ns.astype(np.float64)
        by_group = np.zeros(1)
        for rows, owners in self._upwards():
            by_group = self._totals(rows, own)
            if owners is not None:
                np.add.at(own, owners[1], by_group[owners[0]])
        return round(float(by_group[0]))

    def _upwards(self) -> Iterator[tuple[Ints, tuple[Ints, Ints] | None]]:
        """Yield the records of the groups of each depth, the deepest ones first.

        With them come the groups of processes that entered one, and the records that they were
        inside of; None for the root.
        """
        account = self._account
        groups = account.run.records["group"]
        depths = self._depth[groups]
        for depth in range(int(self._depth.max()), 0, -1):
            rows = np.flatnonzero(depths == depth)
            entered = rows[(account.before[rows] < 0) & (account.owner[rows] >= 0)]
            yield rows, (groups[entered].astype(np.int64), account.owner[entered])
        yield np.flatnonzero(depths == 0), None

    def _totals(self, rows: Ints, lasts: Floats) -> Floats:
        """Return how long the groups of some records take, where each record lasts this."""
        account = self._account
        groups = account.run.records["group"][rows]
        by_group = np.zeros(len(account.run.groups))
        oblivious = self._oblivious[groups]
        step, count = account.step[rows], int(account.step.max(initial=-1)) + 1
        greatest, group_of = np.full(count, -1.0), np.zeros(count, np.int64)
        np.maximum.at(greatest, step[~oblivious], lasts[rows[~oblivious]].clip(min=0))
        group_of[step] = groups
        known = greatest >= 0
        np.add.at(by_group, group_of[known], greatest[known])
        for group in np.unique(groups[oblivious]).tolist():
            by_group[group] = self._step_by_step(rows[groups == group], lasts)
        return by_group

    def _step_by_step(self, rows: Ints, lasts: Floats) -> float:
        """Return when the last process of a group with oblivious supersteps ends."""
        account = self._account
        order = rows[np.argsort(account.step[rows], kind="stable")]
        bounds = np.append(np.flatnonzero(np.diff(account.step[order], prepend=-1)), len(order))
        released, arrived = np.zeros(account.run.nprocs), np.zeros(len(lasts))
        pids = account.run.records["pid"]
        for begin, end in pairwise(bounds.tolist()):
            mine = order[begin:end]
            arrived[mine] = released[pids[mine]] + lasts[mine].clip(min=0)
            released[pids[mine]] = np.maximum(arrived[mine], arrived[account.behind[mine]])
        return float(released.max(initial=0.0))
