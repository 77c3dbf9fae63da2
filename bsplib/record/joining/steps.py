"""Where stretches of a process end, and which of these ends make one superstep.

A collective of all processes ends a superstep of the root group, whichever communicator it was
called on. One of some processes ends a superstep of a sub-group, and a message of two
processes one of the group in which all exchange messages. Both lie inside the superstep of the
root group that ends next.

The supersteps of sub-groups are numbered as if each process went on when all had come that it
has to do with: those at both ends of its messages, and those of its collective. So equal
numbers mean the same exchange, whatever the time was. Programs that rely on buffers, such as two
processes that both send before they receive, cannot be executed in this way: then the end that
came first goes on alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bsplib.record.joining.calls import Role
from bsplib.record.joining.collectives import Collectives
from bsplib.record.joining.messages import Messages
from bsplib.record.joining.ranks import NO_PROCESS, Ints, MpiCalls

MESSAGES = -1
"""Stands in the place of a set of processes at an end at which messages are exchanged."""
ALL = 0
"""The set of all processes, of the root group."""


@dataclass(frozen=True)
class Ends:
    """The calls at which stretches end; one element for each, in the order of calls."""

    call: Ints
    pid: Ints
    first: Ints
    """Position of the first end of each process, and the number of all ends."""
    collective: Ints
    """Number of the collective that ends there; -1 where messages are exchanged."""
    processes: Ints
    """``ALL``, ``MESSAGES``, or the position in ``sets`` of the processes of the collective."""
    sets: list[tuple[int, ...]]
    """Distinct sets of processes of communicators; the first is that of all."""
    families: list[tuple[int, int]]
    """The family of each set: those of one family were made side by side."""
    superstep: Ints
    """Superstep of the root group in which it lies, or that it ends."""
    level: Ints
    """Number of its superstep within that of the root group; of a root end meaningless."""
    roots: int
    """Number of supersteps of the root group that end with a collective."""

    def after(self, calls: Ints, pid: Ints, ends: Ints | None = None) -> Ints:
        """Return the ends at or after some calls of the same process; -1 where there is none.

        Args:
            calls: positions of calls.
            pid: their processes.
            ends: positions of ends that count, rising; all if None.
        """
        chosen = np.arange(len(self.call)) if ends is None else ends
        if len(chosen) == 0:
            return np.full(len(calls), -1, np.int64)
        at = np.searchsorted(self.call[chosen], calls)
        found = chosen[at.clip(max=len(chosen) - 1)]
        return np.where((at < len(chosen)) & (self.pid[found] == pid), found, -1)

    def of_all(self) -> Ints:
        """Return the ends at which any process can be a partner."""
        return np.flatnonzero(self.processes <= ALL)


def found_ends(calls: MpiCalls, messages: Messages, collectives: Collectives) -> Ends:
    """Return where the stretches of all processes end."""
    sets, families, set_of_comm = _sets(calls)
    set_of = set_of_comm[calls.comm[collectives.begin]]
    ordinal = _root_order(calls, collectives, set_of)
    roots = int(ordinal.max(initial=-1)) + 1
    known = collectives.end >= 0
    is_end = _exchanges(calls, messages)
    is_end[collectives.end[known]] = True
    call = np.flatnonzero(is_end)
    pid = calls.pid[call]
    collective, processes = _assigned(call, collectives, ordinal, set_of)
    superstep = _supersteps(pid, np.where(processes == ALL, ordinal[collective], -1))
    first = np.searchsorted(pid, np.arange(calls.nprocs + 1))
    ends = Ends(
        call, pid, first, collective, processes, sets, families, superstep, superstep * 0, roots
    )
    component = _components(ends, messages)
    ends.level[:] = _Execution(ends, component, calls.leave[call]).levels()
    return ends


def _sets(calls: MpiCalls) -> tuple[list[tuple[int, ...]], list[tuple[int, int]], Ints]:
    """Return the distinct sets of processes of communicators, and the set of each."""
    every = tuple(range(calls.nprocs))
    number = {frozenset(every): ALL}
    sets, families, of_comm = [every], [(-1, -1)], []
    for comm in calls.comms:
        found = number.setdefault(frozenset(comm.members), len(sets))
        if found == len(sets):
            sets.append(comm.members)
            families.append(comm.family)
        of_comm.append(found)
    return sets, families, np.array(of_comm, np.int64)


def _exchanges(calls: MpiCalls, messages: Messages) -> NDArray[np.bool_]:
    """Mark the calls at which a process waits for another one, or until a message is sent."""
    other = (calls.partner != NO_PROCESS) & (calls.partner != calls.pid)
    ends: NDArray[np.bool_] = np.isin(calls.role, [Role.SEND, Role.RECEIVE, Role.BOTH])
    ends &= other
    is_shared = np.array([len(comm.members) > 1 for comm in calls.comms], bool)[calls.comm]
    ends |= (calls.role == Role.TARGET) & (calls.partner != NO_PROCESS) & is_shared
    completed = np.zeros(len(ends), bool)
    completed[calls.dones["event"]] = True
    ends |= completed & (calls.role == Role.COMPLETE)
    arrivals = messages.arrival[(messages.arrival >= 0) & (messages.source != messages.target)]
    ends[arrivals] = True
    return ends


# -- supersteps of the root group -----------------------------------------------------------------


def _root_order(calls: MpiCalls, collectives: Collectives, set_of: Ints) -> Ints:
    """Return for each collective which superstep of the root group it ends; -1 for others.

    Communicators of all processes count as one, as long as all processes have their collectives
    in one order. Non-blocking ones can be completed in any order: what does not fit is left out.
    """
    ordinal = np.full(collectives.count + 1, -1, np.int64)  # the last one for no collective
    rows = np.flatnonzero((set_of == ALL) & (collectives.end >= 0))
    order = rows[np.argsort(collectives.end[rows], kind="stable")]  # first by pid, too
    number, end = collectives.number[order], collectives.end[order]
    first = np.searchsorted(end, calls.first)
    cut = {pid for pid, rank in calls.ranks.items() if rank.end is None}
    by_pid = {pid: slice(first[pid], first[pid + 1]) for pid in calls.ranks}
    kept = max((number[rows] for rows in by_pid.values()), key=len)
    if not all(_begins(kept, number[rows], cut=pid in cut) for pid, rows in by_pid.items()):
        sequences = {
            pid: dict(zip(number[rows].tolist(), end[rows].tolist(), strict=True))
            for pid, rows in by_pid.items()
        }
        kept = np.array(_agreed(sequences, cut), np.int64)
    ordinal[kept] = np.arange(len(kept))
    return ordinal


def _begins(longest: Ints, sequence: Ints, *, cut: bool) -> bool:
    """Tell whether a sequence is the longest one, or its begin where the last ones may lack."""
    is_long = cut or len(sequence) == len(longest)
    return is_long and np.array_equal(longest[: len(sequence)], sequence)


def _agreed(sequences: dict[int, dict[int, int]], cut: set[int]) -> list[int]:
    """Return the collectives that all processes ended in one order.

    Args:
        sequences: by process the collectives in the order in which they ended, and where.
        cut: processes that may lack the last ones.
    """
    kept: list[int] = []
    last = dict.fromkeys(sequences, -1)
    for number in max(sequences.values(), key=len):
        ends = {pid: ended.get(number) for pid, ended in sequences.items()}
        if all(pid in cut if end is None else end > last[pid] for pid, end in ends.items()):
            kept.append(number)
            last.update({pid: end for pid, end in ends.items() if end is not None})
    return kept


def _assigned(
    call: Ints, collectives: Collectives, ordinal: Ints, set_of: Ints
) -> tuple[Ints, Ints]:
    """Return for each end the collective that ends there, one of all processes first."""
    collective = np.full(len(call), -1, np.int64)
    processes = np.full(len(call), MESSAGES, np.int64)
    is_root = ordinal[collectives.number] >= 0
    for chosen in (np.flatnonzero(~is_root), np.flatnonzero(is_root)):  # the last one stays
        rows = chosen[collectives.end[chosen] >= 0]
        at = np.searchsorted(call, collectives.end[rows])
        collective[at] = collectives.number[rows]
        processes[at] = set_of[rows]
    # A collective of all that is not in their common order is one of a sub-group of all.
    apart = (processes == ALL) & (ordinal[collective] < 0)
    processes[apart] = MESSAGES
    return collective, processes


def _supersteps(pid: Ints, own: Ints) -> Ints:
    """Return the superstep of the root group in which each end lies.

    That is the one that its process ends next, or the one after its last.

    Args:
        pid: process of each end.
        own: the superstep that it ends itself; -1 if it ends none.
    """
    if len(own) == 0:
        return own
    place, ends_one = np.arange(len(own)), own >= 0
    after = np.where(ends_one, place, len(own))
    after = np.minimum.accumulate(after[::-1])[::-1].clip(max=len(own) - 1)
    before = np.maximum.accumulate(np.where(ends_one, place, 0))
    has_next = ends_one[after] & (pid[after] == pid)
    has_last = ends_one[before] & (pid[before] == pid)
    return np.where(has_next, own[after], np.where(has_last, own[before] + 1, 0))


# -- supersteps of sub-groups ---------------------------------------------------------------------


def _components(ends: Ends, messages: Messages) -> Ints:
    """Number the ends that belong together: by collectives and by messages."""
    union = _Union(len(ends.call))
    source, target = ends_of_messages(ends, messages)
    known = (source >= 0) & (target >= 0)
    known[known] &= (ends.collective[source[known]] < 0) & (ends.collective[target[known]] < 0)
    for one, other in zip(source[known].tolist(), target[known].tolist(), strict=True):
        union.join(one, other)
    component = np.array([union.top(position) for position in range(len(ends.call))], np.int64)
    of_collective = np.flatnonzero(ends.collective >= 0)  # which are not among those of messages
    _, first, which = np.unique(
        ends.collective[of_collective], return_index=True, return_inverse=True
    )
    component[of_collective] = of_collective[first[which.reshape(-1)]]
    return component


def ends_of_messages(ends: Ends, messages: Messages) -> tuple[Ints, Ints]:
    """Return the ends of the stretches in which messages were sent, and got; -1 where unknown."""
    source = ends.after(messages.send, messages.source, ends.of_all())
    target = ends.after(messages.arrival, messages.target)
    target[messages.arrival < 0] = -1
    return source, target


class _Union:
    """Sets of positions that are joined."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def top(self, position: int) -> int:
        """Return the position that stands for the set of another one."""
        above = self._above
        while above[position] != position:
            above[position] = above[above[position]]
            position = above[position]
        return position

    def join(self, one: int, other: int) -> None:
        """Join the sets of two positions."""
        one, other = self.top(one), self.top(other)
        self._above[max(one, other)] = min(one, other)


class _Execution:
    """Executes the ends of all processes without time, and numbers them."""

    def __init__(self, ends: Ends, component: Ints, ended: Ints) -> None:
        self._stop = ends.first[1:].tolist()
        self._at = ends.first[:-1].tolist()
        self._component = component.tolist()
        self._ended = ended
        self._is_root = (ends.processes == ALL).tolist()
        self._missing = Counter(self._component)
        self._waiting: defaultdict[int, list[int]] = defaultdict(list)
        self._floor: defaultdict[int, int] = defaultdict(int)
        self._last = [-1] * len(self._at)
        self._levels = [0] * len(self._component)

    def levels(self) -> list[int]:
        """Return the number of each end in its superstep of the root group."""
        self._arrive(range(len(self._at)))
        while stuck := list(self._stuck()):
            self._alone(min(stuck, key=lambda pid: self._ended[self._at[pid]]))
        return self._levels

    def _stuck(self) -> Iterator[int]:
        return (pid for pid, at in enumerate(self._at) if at < self._stop[pid])

    def _arrive(self, pids: range | list[int]) -> None:
        """Let processes come to their next ends, and go on where all have come."""
        coming = list(pids)
        while coming:
            pid = coming.pop()
            if self._at[pid] >= self._stop[pid]:
                continue
            component = self._component[self._at[pid]]
            self._waiting[component].append(pid)
            self._floor[component] = max(self._floor[component], self._last[pid] + 1)
            self._missing[component] -= 1
            if self._missing[component] == 0:
                together = self._waiting.pop(component)
                for each in together:
                    self._pass(each, self._floor[component])
                coming += together

    def _pass(self, pid: int, level: int) -> None:
        end = self._at[pid]
        self._levels[end] = level
        self._last[pid] = -1 if self._is_root[end] else level
        self._at[pid] += 1

    def _alone(self, pid: int) -> None:
        """Let a process go on although others have not come."""
        self._waiting[self._component[self._at[pid]]].remove(pid)
        self._pass(pid, self._last[pid] + 1)
        self._arrive([pid])
