"""What windows let processes wait for: locks that others hold, and targets outside MPI.

A lock, and a call that completes what was put or got under a lock, wait for another process in
two cases that the records of the others show: one holds the same lock (one of the two locks
is exclusive) until it calls Unlock; and the one whose window it is was outside MPI, where many
libraries answer only inside of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bsplib.record.events import NUMBER
from bsplib.record.joining.calls import Role
from bsplib.record.joining.collectives import Collectives
from bsplib.record.joining.ranks import Ints, MpiCalls, distinct_numbers

_CREATIONS = ("Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic")
_SHARED = 0
"""The tag of a Lock that others can hold, too."""


class LateTargets(NamedTuple):
    """Calls that waited for a process that answered late; one element for each reason."""

    call: Ints
    until: Ints
    culprit: Ints
    """Pid of the process that was late."""


class _WindowCalls:
    """Calls of windows, by the window that all its processes know."""

    def __init__(self, calls: MpiCalls, collectives: Collectives) -> None:
        self.calls = calls
        self.number = self._numbers(collectives)
        """For each call the number of its window; -1 for other calls."""

    def _numbers(self, collectives: Collectives) -> Ints:
        """Return the numbers of windows: those of the collectives that made them."""
        calls = self.calls
        number = np.full(len(calls.role), -1, np.int64)
        number[collectives.begin] = collectives.number
        made = np.isin(calls.call, [NUMBER[name] for name in _CREATIONS])
        number[~made] = -1
        rows = np.flatnonzero(calls.request != 0)
        local = distinct_numbers(np.stack([calls.pid[rows], calls.request[rows]]))
        window = np.full(int(local.max(initial=-1)) + 1, -1, np.int64)
        is_made = number[rows] >= 0
        window[local[is_made]] = number[rows[is_made]]
        number[rows] = window[local]
        return number

    def of(self, *names: str) -> Ints:
        """Return the calls of some names on windows of two or more processes."""
        among = np.isin(self.calls.call, [NUMBER[name] for name in names])
        return np.flatnonzero(among & (self.number >= 0))


def late_targets(calls: MpiCalls, collectives: Collectives) -> LateTargets:
    """Return which locks, unlocks and flushes waited for other processes, and until when.

    Args:
        calls: all calls.
        collectives: all collectives, among them those that made the windows.
    """
    found = [*_held(_WindowCalls(calls, collectives)), *_outside(calls)]
    columns = np.array(found, np.int64).reshape(-1, 3)
    return LateTargets(*columns.T)


class _Lock(NamedTuple):
    """A lock that a process holds for a while."""

    lock: int
    unlock: int
    is_shared: bool
    released: int
    """When its Unlock began."""


def _held(windows: _WindowCalls) -> Iterator[tuple[int, int, int]]:
    """Yield the locks that were given when another process called Unlock."""
    calls = windows.calls
    for locks in _locks(windows).values():
        locks.sort(key=lambda each: each.released)
        released = np.array([each.released for each in locks], np.int64)
        for mine in locks:
            enter, leave = int(calls.enter[mine.lock]), int(calls.leave[mine.lock])
            first, stop = np.searchsorted(released, [enter, leave]).tolist()
            for other in reversed(locks[first:stop]):
                apart = calls.pid[other.lock] != calls.pid[mine.lock]
                if apart and not (mine.is_shared and other.is_shared):
                    yield mine.lock, other.released, int(calls.pid[other.lock])
                    break


def _locks(windows: _WindowCalls) -> dict[tuple[int, int], list[_Lock]]:
    """Return the locks of each window, by the number of the window and the pid of the target."""
    calls, found = windows.calls, defaultdict[tuple[int, int], list[_Lock]](list)
    opened: dict[tuple[int, int, int], int] = {}
    locks, unlocks = windows.of("Win_lock"), windows.of("Win_unlock")
    is_lock = np.isin(calls.call, [NUMBER["Win_lock"]])
    for call in np.sort(np.concatenate([locks, unlocks])).tolist():
        window, target = int(windows.number[call]), int(calls.partner[call])
        key = window, target, int(calls.pid[call])
        if is_lock[call]:
            opened[key] = call
        elif (lock := opened.pop(key, None)) is not None:
            shared = int(calls.tag[lock]) == _SHARED
            found[window, target].append(_Lock(lock, call, shared, int(calls.enter[call])))
    return found


def _outside(calls: MpiCalls) -> Iterator[tuple[int, int, int]]:
    """Yield the calls that lasted until a target outside MPI called MPI again."""
    waiting = np.flatnonzero(calls.role == Role.TARGET)
    for target in calls.ranks:
        rows = waiting[(calls.partner[waiting] == target) & (calls.pid[waiting] != target)]
        mine = slice(calls.first[target], calls.first[target + 1])
        enter, leave = calls.enter[mine], calls.leave[mine]
        after = np.searchsorted(enter, calls.enter[rows], side="right")
        ended = np.append(np.iinfo(np.int64).min, leave)[after]
        back = np.append(enter, np.iinfo(np.int64).max)[after]
        late = (ended < calls.enter[rows]) & (back < calls.leave[rows])
        for call, until in zip(rows[late].tolist(), back[late].tolist(), strict=True):
            yield call, until, target
