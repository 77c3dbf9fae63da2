"""What windows let processes wait for: posts, the ends of epochs, and locks that others hold.

A post tells each process of its group that it may begin, and the end of an epoch (Complete) tells
each process of its group that all has come. So both are messages without bytes: the n-th Start
that names a process waits for the n-th Post of that process that names the one that starts, and its
Wait waits for the Complete.

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
from bsplib.record.joining.messages import Messages, pairs
from bsplib.record.joining.numbering import distinct_numbers
from bsplib.record.joining.ranks import NO_PROCESS, Ints, MpiCalls

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

    def last_before_next(self, begins: Ints, ends: Ints) -> Ints:
        """Return for each begin of an epoch the last end before the next begin; -1 for none.

        Args:
            begins: positions of calls, rising.
            ends: positions of calls, rising.
        """
        both = np.concatenate([begins, ends])
        local = distinct_numbers(np.stack([self.calls.pid[both], self.number[both]]))
        width = len(self.calls.role) + 1
        keys = local * width + both
        begin, end = keys[: len(begins)], np.sort(keys[len(begins) :])
        order = np.argsort(begin)
        limit = np.append(begin[order][1:], np.iinfo(np.int64).max)
        limit = np.minimum(limit, (local[: len(begins)][order] + 1) * width)
        at = np.searchsorted(end, limit) - 1
        found = np.full(len(begins), -1, np.int64)
        known = at >= 0
        known[known] = end[at[known]] > begin[order][known]
        found[order[known]] = end[at[known]] % width
        return found


def notices(calls: MpiCalls, collectives: Collectives) -> Messages:
    """Return the messages without bytes by which processes tell each other of epochs.

    Args:
        calls: all calls.
        collectives: all collectives, among them those that made the windows.
    """
    windows = _WindowCalls(calls, collectives)
    posts, starts = windows.of("Win_post"), windows.of("Win_start")
    post, start = _told(windows, posts, starts)
    complete = windows.last_before_next(starts, windows.of("Win_complete"))
    wait = windows.last_before_next(posts, windows.of("Win_wait", "Win_test"))
    completed = complete[np.searchsorted(starts, start)]
    waited = wait[np.searchsorted(posts, post)]
    # A library may let a Start return at once: then Complete waits for the post.
    late = (calls.enter[post] > calls.leave[start]) & (completed >= 0)
    begun = np.where(late, completed, start)
    whole = (completed >= 0) & (waited >= 0)
    send = np.concatenate([post, completed[whole]])
    arrival = np.concatenate([begun, waited[whole]])
    return Messages(
        send, arrival, arrival, calls.pid[send], calls.pid[arrival], np.zeros_like(send)
    )


def _told(windows: _WindowCalls, posts: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Return the posts and the starts that belong together, one element for each pair."""
    calls = windows.calls
    rows = calls.parts[calls.parts["partner"] != NO_PROCESS]
    event, partner = rows["event"].astype(np.int64), rows["partner"].astype(np.int64)
    posting, starting = (np.flatnonzero(np.isin(event, each)) for each in (posts, starts))
    sent = np.stack([windows.number[event], calls.pid[event], partner])[:, posting]
    got = np.stack([windows.number[event], partner, calls.pid[event]])[:, starting]
    channel = distinct_numbers(np.concatenate([sent, got], axis=1))
    got_by = pairs((channel[: len(posting)], channel[len(posting) :]), event[starting])
    known = got_by >= 0
    return event[posting[known]], event[starting[got_by[known]]]


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
