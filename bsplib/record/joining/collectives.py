"""The collectives of a program: which calls belong together, and who waits in them for whom.

The n-th collective that a process begins on a communicator is the n-th of every other one,
since MPI wants them in one order. It ends where its call returns or, for a non-blocking
one, where the call returns that completed it.
"""

from __future__ import annotations

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
    begin, number = begin[order], number[order]
    since = calls.enter[begin]
    until, culprit = _waits(calls, begin, number, since)
    return Collectives(begin, _ends(calls, begin), number, since, until, culprit)


def _ends(calls: MpiCalls, begin: Ints) -> Ints:
    """Return the calls in which collectives ended: those that completed their requests."""
    completed = np.full(len(calls.role), -1, np.int64)
    known = calls.origin >= 0
    completed[calls.origin[known]] = calls.dones["event"][known]
    return np.where(IS_START[calls.call[begin]], completed[begin], begin)


def _waits(calls: MpiCalls, begin: Ints, number: Ints, since: Ints) -> tuple[Ints, Ints]:
    """Return until when each process waits in a collective, and for whom."""
    role, pid, partner = calls.role[begin], calls.pid[begin], calls.partner[begin]
    needed = np.arange(len(begin))
    """The part that each part needs last."""
    order = np.lexsort((since, number))
    last = order[np.searchsorted(number[order], number, side="right") - 1]
    root = np.full(int(number.max(initial=-1)) + 1, -1, np.int64)
    root[number[partner == pid]] = np.flatnonzero(partner == pid)
    to_last = (role == Role.ALL) | ((role == Role.TO_ROOT) & (partner == pid))
    from_root = (role == Role.FROM_ROOT) & (root[number] >= 0)
    needed[to_last], needed[from_root] = last[to_last], root[number[from_root]]
    for each in np.unique(number[role == Role.PREFIX]).tolist():
        mine = np.arange(*np.searchsorted(number, [each, each + 1]))
        members = calls.comms[int(calls.comm[begin[mine[0]]])].members
        rank = {pid: rank for rank, pid in enumerate(members)}
        mine = mine[np.argsort([rank[pid] for pid in pid[mine].tolist()])]
        is_latest = since[mine] == np.maximum.accumulate(since[mine])
        needed[mine] = mine[np.maximum.accumulate(np.where(is_latest, np.arange(len(mine)), 0))]
    got = calls.parts[calls.parts["bytes_in"] > 0]
    got = got[np.argsort(got["event"], kind="stable")]
    for part in np.flatnonzero(role == Role.NEIGHBOURS).tolist():
        first, stop = np.searchsorted(got["event"], [begin[part], begin[part] + 1])
        mine = np.arange(*np.searchsorted(number, [number[part], number[part] + 1]))
        others = mine[np.isin(pid[mine], got["partner"][first:stop])]
        if len(others):
            needed[part] = others[since[others].argmax()]
    later = since[needed] > since
    return np.where(later, since[needed], since), np.where(later, pid[needed], pid)
