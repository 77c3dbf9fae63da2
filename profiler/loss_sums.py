"""What the windows of a run lose, summed up so that losses can be clustered.

A loss is booked for the record that is waited for, or in which a process is blocked. By cause,
these are the sums for each call stack and process, with the records that lose most, and for each
call stack the superstep that loses most.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import account as parts
from bsplib.profiler._numbering import rank_in_place, stable_order, starts
from bsplib.profiler._sums import summed
from bsplib.profiler.costs import by_superstep, group_columns, group_sizes

if TYPE_CHECKING:
    from bsplib.profiler._sums import RunSums
    from bsplib.profiler.account import Account, Ints
    from bsplib.recording.records import Run
    from bsplib.sync_kinds import Kind

FAR_MORE = 1.5
"""Bytes that are this multiple of those of another process, or direction, are far more."""
_HALF = 0.5

COMP, COMM, SUB_GROUPS, WAIT = "comp", "comm", "groups", "wait"
"""Causes: the greatest w, the greatest h, a sub-group; a process that is blocked."""
SYNC, SMALL, BYTES, CORES = "sync", "small", "bytes", "core"
"""Causes: supersteps; small messages; all bytes of a place, also even ones; processes that share
cores."""

WAITS = {
    COMP: parts.COMP,
    SUB_GROUPS: parts.GROUPS,
    COMM: parts.CALLS,
    WAIT: parts.WAS_BLOCKED,
}
"""Causes for which processes wait for one another, and what they wait for."""


def lost_by_cause(account: Account) -> dict[str, Ints]:
    """Return by cause what is lost for each record of a window, as others wait for it."""
    halo, step = account.halo, account.step[account.halo :]
    behind, waits = account.behind[halo:] - halo, account.waits[:, halo:]
    lost = {cause: np.zeros(len(step), np.int64) for cause in WAITS}
    leaders = _leaders(account) if account.h_max.any() else None
    for cause, why in WAITS.items():
        if not waits[why].any():  # to look for single ones takes several times as long
            continue
        waited = np.flatnonzero(waits[why])
        late = behind[waited]
        if cause == COMM and leaders is not None:
            late = _moving_most(account, late + halo, leaders) - halo
        np.add.at(lost[cause], late, waits[why][waited])
    if account.blocked_inside.any():
        lost[WAIT] = _for_blocked_inside(account, lost[WAIT])
    lost[WAIT] += account.computing.blocked[halo:] + account.calls.blocked[halo:]
    if leaders is not None:  # otherwise no transfer is uneven
        uneven = np.zeros(len(account.h_max), np.int64)
        np.add.at(uneven, step, account.communication.uneven[halo:])
        steps = np.flatnonzero(uneven)
        lost[COMM][leaders[steps] - halo] += uneven[steps]
        rows, late_ns = account.late_for_transfers()
        np.add.at(lost[COMM], _moving_most(account, rows, leaders) - halo, late_ns)
    return lost


def _for_blocked_inside(account: Account, lost: Ints) -> Ints:
    """Book what is lost for time blocked in sub-groups where it was blocked, and not around them.

    Args:
        account: the account of a window.
        lost: what others wait for each record of the window since it was blocked.
    """
    owner, own = account.owner, account.was_blocked
    inside = own + account.waits[parts.WAS_BLOCKED]
    spread = np.append(np.zeros(account.halo, np.int64), lost)
    depth = group_columns(account.run).depth[account.run.records["group"]]
    for level in range(1, int(depth.max()) + 1):
        rows = np.flatnonzero((depth == level) & (owner >= 0) & (inside > 0))
        rows = rows[spread[owner[rows]] > 0]
        around = owner[rows]
        share = spread[around] / own[around]
        for places, amounts in ((rows, own), (account.behind[rows], inside - own)):
            moved = (share * amounts[rows]).astype(np.int64)
            np.add.at(spread, places, moved)
            np.subtract.at(spread, around, moved)
    return spread[account.halo :]


def _moving_most(account: Account, late: Ints, leaders: Ints) -> Ints:
    """Return the records whose bytes made transfers take long for which others waited.

    The one that ends its transfers last need not be the one that moves most. In a Gather of MPI it
    can be a process that passes on the bytes of others on their way to the root, or one that sends
    to the root after the others. With far fewer bytes than another process, whose transfers took
    about as long, it is that one which all wait for.

    Args:
        account: the account of a window.
        late: the records that were waited for.
        leaders: for each superstep the record with the greatest h.
    """
    records, leading = account.run.records, leaders[account.step[late]]
    is_leader = leading >= account.halo
    leading = np.where(is_leader, leading, late)
    took, longest = (
        records["comm_calls"][rows] + records["end"][rows] - records["released"][rows]
        for rows in (late, leading)
    )
    far_less = FAR_MORE * account.h[late] < account.h[leading]
    return np.where(far_less & (longest >= _HALF * took), leading, late)


def _leaders(account: Account) -> Ints:
    """Return for each superstep the record with the greatest h; of equals, of the lowest pid."""
    return by_superstep(account.run).leader(account.h)


class LossRecord(NamedTuple):
    """A record of which something is lost."""

    ns: int
    position: int
    """Position of the record in the whole run."""
    pid: int
    group: int
    superstep: int


class WorstStep(NamedTuple):
    """The superstep that loses most at a call stack."""

    ns: int
    group: int
    superstep: int
    records: tuple[LossRecord, ...]


class CauseSums:
    """What is lost for one cause."""

    def __init__(self, nprocs: int) -> None:
        self._nprocs = nprocs
        self._keys: Ints = np.zeros(0, np.int64)
        self._sums: Ints = np.zeros((1, 0), np.int64)
        self._most: Ints = np.zeros((len(LossRecord._fields) + 1, 0), np.int64)
        """The two records that lose most, of each call stack and process: key, then fields."""
        self.worst: dict[int, WorstStep] = {}
        """By call stack."""
        self._sizes: Counter[tuple[int, int]] = Counter()
        """How many records lose something, by call stack and size of their group."""

    def add(self, account: Account, origin: Ints, lost: Ints) -> None:
        """Take in the records of a window, by their call stacks and what is lost for them."""
        rows = np.flatnonzero(lost)
        if len(rows) == 0:
            return
        records, at = account.run.records, account.halo + rows
        values, origin = lost[rows], origin[rows]
        pid, group, superstep = (records[name][at] for name in ("pid", "group", "superstep"))
        self._add_sizes(origin, group_sizes(account.run)[group])
        keys = origin * self._nprocs + pid
        number = keys.copy()
        found = rank_in_place(number)
        by_key = np.zeros((1, len(found)), np.int64)
        np.add.at(by_key[0], number, values)
        self._keys, self._sums = summed(
            np.concatenate([self._keys, found]), np.concatenate([self._sums, by_key], axis=1)
        )
        fields = np.stack([keys, values, account.position[rows], pid, group, superstep])
        self._add_most(fields, number, len(found))
        self._add_worst(account.step[at], origin, fields)

    def _add_sizes(self, origin: Ints, size: Ints) -> None:
        many = int(size.max()) + 1
        number = origin * many + size
        found = rank_in_place(number)
        for key, records in zip(found.tolist(), np.bincount(number).tolist(), strict=True):
            self._sizes[divmod(key, many)] += records

    def _add_most(self, fields: Ints, number: Ints, count: int) -> None:
        values, candidates = fields[1].copy(), [self._most]
        for _ in range(2):
            best = np.zeros(count, np.int64)
            np.maximum.at(best, number, values)
            rows = np.flatnonzero((values == best[number]) & (values > 0))[::-1]
            first = np.full(count, -1, np.int64)
            first[number[rows]] = rows
            first = first[first >= 0]
            candidates.append(fields[:, first])
            values[first] = 0
        every = np.concatenate(candidates, axis=1)
        every = every[:, np.lexsort((every[2], -every[1], every[0]))]
        rank = np.arange(every.shape[1])
        begins = starts(every[0])
        rank -= np.repeat(begins, np.diff(np.append(begins, len(rank))))
        self._most = every[:, rank < 2]

    def _add_worst(self, step: Ints, origin: Ints, fields: Ints) -> None:
        order = stable_order(origin)
        begins = starts(origin[order])
        for first, end in zip(begins.tolist(), [*begins[1:].tolist(), len(order)], strict=True):
            mine = order[first:end]
            low = step[mine].min()
            by_step = np.zeros(int(step[mine].max() - low) + 1, np.int64)
            np.add.at(by_step, step[mine] - low, fields[1, mine])
            at = int(by_step.argmax())
            known = self.worst.get(int(origin[mine[0]]))
            if known is None or by_step[at] > known.ns:
                rows = mine[step[mine] == at + low]
                records = tuple(LossRecord(*row) for row in fields[1:, rows].T.tolist())
                self.worst[int(origin[mine[0]])] = WorstStep(
                    int(by_step[at]), records[0].group, records[0].superstep, records
                )

    def by_origin(self) -> dict[int, dict[int, int]]:
        """Return by call stack and process what is lost, where something is."""
        found: dict[int, dict[int, int]] = {}
        for key, ns in zip(self._keys.tolist(), self._sums[0].tolist(), strict=True):
            origin, pid = divmod(key, self._nprocs)
            found.setdefault(origin, {})[pid] = ns
        return found

    def size(self, origin: int, without: WorstStep | None, size_of: Ints) -> int:
        """Return the size of the largest group that loses something at a call stack.

        Args:
            origin: the call stack.
            without: a superstep that does not count.
            size_of: number of processes of each group.
        """
        left = Counter({size: n for (at, size), n in self._sizes.items() if at == origin})
        if without:
            left[int(size_of[without.group])] -= len(without.records)
        return max((size for size, n in left.items() if n), default=1)

    def most(self, origin: int, pid: int, without: WorstStep | None) -> LossRecord:
        """Return the record of a call stack and a process that loses most.

        Args:
            origin: the call stack.
            pid: the process.
            without: a superstep that does not count.
        """
        at = np.searchsorted(self._most[0], origin * self._nprocs + pid)
        first = LossRecord(*self._most[1:, at].tolist())
        if without and (first.group, first.superstep) == (without.group, without.superstep):
            return LossRecord(*self._most[1:, at + 1].tolist())
        return first


class LossSums:
    """What is booked and lost in a run, by call stack and by process."""

    def __init__(self, run: Run, sums: RunSums) -> None:
        origins = len(sums.origins)
        self._run_sums = sums
        self.by_process: Ints = np.zeros((len(parts.PARTS), run.nprocs), np.int64)
        """Nanoseconds, shape (parts, processes), without start and end."""
        self.by_origin: Ints = np.zeros((len(parts.PARTS), origins), np.int64)
        """The same at each call stack."""
        self.covered: Ints = np.zeros(run.nprocs, np.int64)
        """How much of the time of each process is in its records, and between them."""
        self.passed: Ints = np.zeros((origins, run.nprocs), np.int64)
        """Number of records of each process at each call stack."""
        self.calls: Ints = np.zeros((1, origins), np.int64)
        """What of the transfers at each call stack is in calls of few bytes, beyond g h."""
        self.sent_bytes: Ints = np.zeros(origins, np.int64)
        """How many bytes leave the processes there, in a program of mpi4py."""
        self.lost = {cause: CauseSums(run.nprocs) for cause in WAITS}
        """By cause."""

    @property
    def origins(self) -> list[tuple[int, Kind]]:
        """Stack and kind of sync of each call stack."""
        return self._run_sums.origins

    def add(self, account: Account) -> None:
        """Take in the records of a window."""
        records = account.run.records[account.halo :]
        origin, pid = self._run_sums.origin_of(records), records["pid"].astype(np.int64)
        _add_by(self.by_process, pid, account.booked.parts)
        _add_by(self.by_origin, origin, account.booked.parts)
        _add_by(self.calls, origin, account.communication.calls[np.newaxis, account.halo :])
        self.covered += account.covered()
        if account.run.is_interleaved:
            sent = account.h_out_and_in[0][account.halo :]
            self.sent_bytes += np.bincount(origin, sent, len(self.sent_bytes)).astype(np.int64)
        keys = origin * self.passed.shape[1] + pid
        self.passed += np.bincount(keys, minlength=self.passed.size).reshape(self.passed.shape)
        for cause, lost in lost_by_cause(account).items():
            self.lost[cause].add(account, origin, lost)


def _add_by(sums: Ints, place: Ints, values: Ints) -> None:
    """Add the columns of an array to those of sums at some places, in whole numbers."""
    if len(place) == 0:
        return
    if not (place[1:] >= place[:-1]).all():
        order = stable_order(place)
        place, values = place[order], values[:, order]
    begins = starts(place)
    sums[:, place[begins]] += np.add.reduceat(values, begins, axis=1)
