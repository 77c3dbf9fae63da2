"""The collectives of a program: which calls belong together, and who waits in them for whom.

The n-th collective that a process begins on a communicator is the n-th of every other one,
since MPI wants them in one order. It ends where its call returns or, for a non-blocking
one, where the call returns that completed it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from bsplib.record.joining.calls import FIRST_COLLECTIVE, IS_START, Role
from bsplib.record.joining.ranks import Ints, MpiCalls, distinct_numbers, nth_of_key


@dataclass(frozen=True)
class Collectives:
    """The parts that processes had in collectives; one element for each part.

    The parts of one collective are neighbours, in the order of pids.
    """

    begin: Ints
    """Position of the call that began it."""
    end: Ints
    """Position of the call in which it ended; -1 where none is known."""
    number: Ints
    """The collective: those of one have one number, from 0 without gaps."""
    nth: Ints
    """Which collective of its communicator it is."""
    since: Ints
    """From when on the others can have what they need of this process."""
    until: Ints
    """From when on the process itself has what it needs."""
    culprit: Ints
    """Pid of the process that it needs last, which can be itself."""

    @property
    def count(self) -> int:
        """Number of collectives."""
        return int(self.number.max(initial=-1)) + 1


def gathered(calls: MpiCalls) -> Collectives:
    """Return the collectives of communicators of two or more processes, and of all."""
    size = np.array([len(comm.members) for comm in calls.comms], np.int64)
    found = (calls.role >= FIRST_COLLECTIVE) & (calls.comm >= 0)
    begin = np.flatnonzero(found)
    begin = begin[size[calls.comm[begin]] >= min(2, calls.nprocs)]
    nth = nth_of_key(calls.pid[begin] * len(calls.comms) + calls.comm[begin])
    number = distinct_numbers(np.stack([calls.comm[begin], nth]))
    order = np.lexsort((begin, number))
    begin, nth, number = begin[order], nth[order], number[order]
    since = calls.enter[begin]
    until, culprit = _waits(calls, begin, number, since)
    return Collectives(begin, _ends(calls, begin), number, nth, since, until, culprit)


def _ends(calls: MpiCalls, begin: Ints) -> Ints:
    """Return the calls in which collectives ended: those that completed their requests."""
    completed = np.full(len(calls.role), -1, np.int64)
    known = calls.origin >= 0
    completed[calls.origin[known]] = calls.dones["event"][known]
    return np.where(IS_START[calls.call[begin]], completed[begin], begin)


def _waits(calls: MpiCalls, begin: Ints, number: Ints, since: Ints) -> tuple[Ints, Ints]:
    """Return until when each process waits in a collective, and for whom."""
    until, culprit = since.copy(), calls.pid[begin].copy()
    bounds = np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(number))
    role = calls.role[begin]
    last = _last_of(number, since)
    for kind, rule in _RULES.items():
        rows = np.flatnonzero(role == kind)
        if len(rows):
            rule(_Parts(calls, begin, number, since, until, culprit, last, bounds), rows)
    return until, culprit


@dataclass
class _Parts:
    """What the rules of waiting need."""

    calls: MpiCalls
    begin: Ints
    number: Ints
    since: Ints
    until: Ints
    culprit: Ints
    last: Ints
    """For each collective the part that began last."""
    bounds: Ints

    def wait(self, rows: Ints, part: Ints) -> None:
        """Let parts wait for others, where these began later."""
        later = self.since[part] > self.since[rows]
        rows, part = rows[later], part[later]
        self.until[rows] = self.since[part]
        self.culprit[rows] = self.calls.pid[self.begin[part]]


def _last_of(number: Ints, since: Ints) -> Ints:
    order = np.lexsort((since, number))
    ends = np.append(np.flatnonzero(np.diff(number[order])), len(order) - 1)
    return order[ends] if len(order) else order


def _for_all(parts: _Parts, rows: Ints) -> None:
    parts.wait(rows, parts.last[parts.number[rows]])


def _for_the_root(parts: _Parts, rows: Ints) -> None:
    calls = parts.calls
    is_root = calls.partner[parts.begin] == calls.pid[parts.begin]
    root = np.full(len(parts.last), -1, np.int64)
    root[parts.number[is_root]] = np.flatnonzero(is_root)
    known = root[parts.number[rows]] >= 0
    parts.wait(rows[known], root[parts.number[rows[known]]])


def _as_the_root(parts: _Parts, rows: Ints) -> None:
    calls = parts.calls
    roots = rows[calls.partner[parts.begin[rows]] == calls.pid[parts.begin[rows]]]
    _for_all(parts, roots)


def _for_lower_ranks(parts: _Parts, rows: Ints) -> None:
    calls = parts.calls
    for number in np.unique(parts.number[rows]).tolist():
        mine = np.arange(parts.bounds[number], parts.bounds[number + 1])
        members = calls.comms[int(calls.comm[parts.begin[mine[0]]])].members
        rank = {pid: rank for rank, pid in enumerate(members)}
        mine = mine[np.argsort([rank[pid] for pid in calls.pid[parts.begin[mine]].tolist()])]
        highest = np.maximum.accumulate(parts.since[mine])
        latest = np.maximum.accumulate(
            np.where(parts.since[mine] == highest, np.arange(len(mine)), 0)
        )
        parts.wait(mine, mine[latest])


def _for_neighbours(parts: _Parts, rows: Ints) -> None:
    """Let processes wait for those from which they receive bytes, by the rows by partner."""
    calls = parts.calls
    received: defaultdict[int, list[int]] = defaultdict(list)
    events = calls.parts[calls.parts["bytes_in"] > 0]
    for event, partner in zip(events["event"].tolist(), events["partner"].tolist(), strict=True):
        received[event].append(partner)
    for row in rows.tolist():
        wanted = received.get(int(parts.begin[row]), [])
        mine = np.arange(parts.bounds[parts.number[row]], parts.bounds[parts.number[row] + 1])
        others = mine[np.isin(calls.pid[parts.begin[mine]], wanted)]
        if len(others):
            latest = others[parts.since[others].argmax()]
            parts.wait(np.array([row]), np.array([latest]))


_RULES = {
    Role.ALL: _for_all,
    Role.FROM_ROOT: _for_the_root,
    Role.TO_ROOT: _as_the_root,
    Role.PREFIX: _for_lower_ranks,
    Role.NEIGHBOURS: _for_neighbours,
}
