"""How long processes waited at the ends of their stretches, and for whom in the end.

A process that waits for a message waits until that is sent (*late sender*), and one
that sends may wait until the receive is posted (*late receiver*); what is left of the call is
transfer. In a collective it waits by the rules of :mod:`bsplib.record.joining.collectives`.

The process that came late may have waited itself, for a third one. So a wait is followed: the one
to blame is the stretch of the late process that takes most of the wait, and if that
stretch is itself a wait for most of this time, whoever that one was for.

Source: late sender and late receiver as in Scalasca (Geimer et al. 2010, The Scalasca
performance toolset architecture); who is to blame as in its search for root causes (Boehme et al.
2010, Identifying the root causes of wait states in large-scale parallel applications).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bsplib.record.events import NUMBER
from bsplib.record.joining.calls import Role
from bsplib.record.joining.collectives import Collectives
from bsplib.record.joining.messages import Messages
from bsplib.record.joining.ranks import Ints, MpiCalls, distinct_numbers
from bsplib.record.joining.steps import Ends


class Waits:
    """Until when each end of a stretch was waited, and for which process."""

    def __init__(self, arrive: Ints, pid: Ints) -> None:
        self.until = arrive.copy()
        self.culprit = pid.copy()
        """Pid; the process itself where it did not wait."""

    def add(self, at: Ints, until: Ints, culprit: Ints) -> None:
        """Let some ends wait for a process until a moment, if that is later."""
        order = np.argsort(until, kind="stable")
        at, until, culprit = at[order], until[order], culprit[order]
        later = until > self.until[at]
        # Of several of one end the last one is kept, which is the latest.
        self.until[at[later]] = until[later]
        self.culprit[at[later]] = culprit[later]


def waits_at(
    calls: MpiCalls,
    ends: Ends,
    messages: Messages,
    collectives: Collectives,
    arrive: Ints,
) -> Waits:
    """Return how long processes wait at the ends of their stretches.

    Args:
        calls: all calls.
        ends: where stretches end.
        messages: all messages.
        collectives: all collectives.
        arrive: when the process began to wait at each end.
    """
    latest = Waits(arrive, ends.pid)
    rows = np.flatnonzero(collectives.end >= 0)
    at = np.searchsorted(ends.call, collectives.end[rows])
    latest.add(at, collectives.until[rows], collectives.culprit[rows])
    apart = messages.source != messages.target
    late = np.flatnonzero(apart & (messages.arrival >= 0))
    at = np.searchsorted(ends.call, messages.arrival[late])
    latest.add(at, calls.enter[messages.send[late]], messages.source[late])
    _add_late_receivers(calls, ends, messages, latest)
    found = [*_held(calls, _windows(calls, collectives)), *_outside(calls)]
    call, until, culprit = np.array(found, np.int64).reshape(-1, 3).T
    latest.add(np.searchsorted(ends.call, call), until, culprit)
    latest.until = np.minimum(latest.until, calls.leave[ends.call])
    return latest


def _add_late_receivers(calls: MpiCalls, ends: Ends, messages: Messages, latest: Waits) -> None:
    """Let senders wait for receives that were posted while they sent.

    Where a call also receives, and waited for that, the send has not delayed it.
    """
    done = _completions(calls, messages.send)
    rows = np.flatnonzero((done >= 0) & (messages.post >= 0) & (messages.source != messages.target))
    at = np.searchsorted(ends.call, done[rows]).clip(max=max(len(ends.call) - 1, 0))
    posted = calls.enter[messages.post[rows]]
    if len(rows) == 0:
        return
    here = (ends.call[at] == done[rows]) & (posted < calls.leave[done[rows]])
    here &= latest.culprit[at] == ends.pid[at]
    latest.add(at[here], posted[here], messages.target[rows[here]])


def _completions(calls: MpiCalls, send: Ints) -> Ints:
    """Return the calls in which sends were complete; -1 where none is known."""
    completed = np.full(len(calls.role), -1, np.int64)
    known = calls.origin >= 0
    completed[calls.origin[known]] = calls.dones["event"][known]
    at_once = np.isin(calls.role[send], [Role.SEND, Role.BOTH])
    return np.where(at_once, send, completed[send])


# -- who is to blame ------------------------------------------------------------------------------


@dataclass(frozen=True)
class WaitingTimes:
    """The stretches of all processes, by pid and time; one element for each."""

    first: Ints
    """Position of the first one of each process, and the number of all."""
    start: Ints
    arrive: Ints
    released: Ints
    end: Ints
    culprit: Ints


def blamed(stretches: WaitingTimes) -> tuple[Ints, Ints]:
    """Return the stretches that waited, and for each the one to blame."""
    rows = np.flatnonzero(stretches.released > stretches.arrive)
    search = _BlameSearch(stretches)
    found = np.array([search.blamed(row) for row in rows.tolist()], np.int64)
    known = found != rows if len(rows) else np.zeros(0, bool)
    return rows[known], found[known]


class _BlameSearch:
    """Follows waits from process to process."""

    def __init__(self, stretches: WaitingTimes) -> None:
        # Lists of numbers would need five times the memory.
        self._first, self._start, self._arrive, self._released, self._end, self._culprit = (
            np.ascontiguousarray(column).data
            for column in (
                *(stretches.first, stretches.start, stretches.arrive),
                *(stretches.released, stretches.end, stretches.culprit),
            )
        )

    def blamed(self, row: int) -> int:
        """Return the stretch that is to blame for the wait of another one, or that one itself."""
        begin, until, pid = self._arrive[row], self._released[row], self._culprit[row]
        found = row
        for _ in self._first:  # through as many processes as there are, at most
            late = self._longest(pid, begin, until)
            if late is None:
                return found
            found = late
            lasted = min(until, self._end[late]) - max(begin, self._start[late])
            low, high = max(begin, self._arrive[late]), min(until, self._released[late])
            if (waited := high - low) <= lasted - waited:
                return found
            begin, until, pid = low, high, self._culprit[late]
        return found

    def _longest(self, pid: int, begin: int, until: int) -> int | None:
        """Return the stretch of a process that takes most of a range of time."""
        first, stop = self._first[pid], self._first[pid + 1]
        at = max(bisect_right(self._start, begin, first, stop) - 1, first)
        longest, most = None, 0
        while at < stop and self._start[at] < until:
            lasted = min(until, self._end[at]) - max(begin, self._start[at])
            if lasted > most:
                longest, most = at, lasted
            at += 1
        return longest


# -- what windows let processes wait for ----------------------------------------------------------
# A lock, and a call that completes what was put or got under a lock, wait for another process in
# two cases that the records of the others show: one holds the same lock (one of the two locks
# is exclusive) until it calls Unlock; and the one whose window it is was outside MPI, where many
# libraries answer only inside of it.


_CREATIONS = ("Win_create", "Win_allocate", "Win_allocate_shared", "Win_create_dynamic")


def _windows(calls: MpiCalls, collectives: Collectives) -> Ints:
    """Return the window of each call: the number of the collective that made it; -1 for others."""
    number = np.full(len(calls.role), -1, np.int64)
    number[collectives.begin] = collectives.number
    number[~np.isin(calls.call, [NUMBER[name] for name in _CREATIONS])] = -1
    rows = np.flatnonzero(calls.request != 0)
    local = distinct_numbers(np.stack([calls.pid[rows], calls.request[rows]]))
    window = np.full(int(local.max(initial=-1)) + 1, -1, np.int64)
    is_made = number[rows] >= 0
    window[local[is_made]] = number[rows[is_made]]
    number[rows] = window[local]
    return number


class _Lock(NamedTuple):
    """A lock that a process holds for a while."""

    lock: int
    is_shared: bool
    released: int
    """When its Unlock began."""


def _held(calls: MpiCalls, windows: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield the locks that were given when another process called Unlock, when, and by whom."""
    for locks in _locks(calls, windows).values():
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


def _locks(calls: MpiCalls, windows: Ints) -> dict[tuple[int, int], list[_Lock]]:
    """Return the locks of each window, by the number of the window and the pid of the target."""
    found = defaultdict[tuple[int, int], list[_Lock]](list)
    opened: dict[tuple[int, int, int], int] = {}
    is_lock = calls.call == NUMBER["Win_lock"]
    among = (is_lock | (calls.call == NUMBER["Win_unlock"])) & (windows >= 0)
    for call in np.flatnonzero(among).tolist():
        window, target = int(windows[call]), int(calls.partner[call])
        key = window, target, int(calls.pid[call])
        if is_lock[call]:
            opened[key] = call
        elif (lock := opened.pop(key, None)) is not None:
            shared = calls.tag[lock] == 0  # others can hold it, too
            found[window, target].append(_Lock(lock, bool(shared), int(calls.enter[call])))
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
