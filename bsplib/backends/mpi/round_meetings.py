"""The meetings of one process in one large group, by rounds of heads.

PROTOCOL.md, section *Meetings of many*, argues why they are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Arrivals, Sent
from bsplib.backends.mismatch import are_apart
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import MOST_BODY, ROUND
from bsplib.backends.mpi.meetings import Meetings
from bsplib.backends.mpi.receiving import Post
from bsplib.backends.mpi.sending import HEADS


class MeetingsOfMany(Meetings):
    """Meetings in rounds: only what somebody has for certain others is a post."""

    _said_where = False

    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
        """See :meth:`bsplib.backends.sent.Exchanger.exchange`."""
        number, self._count = self._count, self._count + 1
        membership, link = self._membership, self._link
        head = self._head_maker(number, flags, stamp)
        try:
            for pid, sent in entries.items():
                self._posting.post(head, pid, sent)
        finally:
            self._posting.send_the_rest()
        came_at = link.clocks.sent(stamp)
        gathering = Gathering(membership.pid, membership.nprocs, flags, came_at, entries.keys())
        for turn in range(rounds_of(membership.nprocs)):
            self._pass_on(gathering, number, turn)
            came = self._await_round(number, turn)
            gathering.take(turn, came.body or b"", came.head.stamp)
        posts, count = self._inbox.meetings[number], gathering.count()
        link.wait(lambda: len(posts) == count, for_heads=True)
        self._end(number)
        if stamp:
            self.released = max(stamp, link.clocks.received(gathering.latest))
        if not (posts or entries) and gathering.is_unanimous():
            return None
        full = sorted((membership.pid_of(rank), post) for rank, post in posts.items())
        return self._opened(full, gathering.all_flags())

    def _pass_on(self, gathering: Gathering, number: int, turn: int) -> None:
        body = gathering.to_pass_on(turn)
        membership = self._membership
        first, middle = (self._link.run, ROUND, 0, 0), (membership.label, number)
        last = membership.superstep, len(body), turn, gathering.latest
        head = heads.pack(*first, *middle, *last)
        rank = membership.members[(membership.pid + (1 << turn)) % membership.nprocs]
        self._posting.sends.start(head + body, rank, HEADS)

    def _await_round(self, number: int, turn: int) -> Post:
        """Wait for the head of a round, and return it."""
        membership = self._membership
        pid = (membership.pid - (1 << turn)) % membership.nprocs
        rank, came = membership.members[pid], self._inbox.rounds

        def suspect() -> None:
            self._oblivious.collector.read_late()
            if (number, turn) not in came:
                self._absence.suspect_one(pid)

        def ask() -> None:
            self._absence.ask([rank])
            if not self._said_where:
                self._said_where = True
                self._absence.say_where()

        self._said_where = False
        self._link.wait(lambda: (number, turn) in came, suspect, ask, for_heads=True)
        post = came.pop((number, turn))
        if post.head.superstep != membership.superstep:
            raise are_apart(rank, membership.members[membership.pid])
        return post


# -- meetings of many processes: each learns in log2 p rounds that all have come, and what they say


_COUNT = np.dtype("<u2")


MOST_PROCESSES = MOST_BODY - 3
"""Greatest number of processes whose flags and counts of any round fit into a head. In larger
groups each process sends a head to each other one."""


def rounds_of(nprocs: int) -> int:
    """Return the number of rounds in which all of some processes hear of each other."""
    return (nprocs - 1).bit_length()


class Gathering:
    """What one process has heard at one meeting.

    Args:
        pid: the process.
        nprocs: number of processes.
        flags: its flags.
        stamp: its stamp.
        receivers: processes to which it sends posts.
    """

    def __init__(
        self, pid: int, nprocs: int, flags: int, stamp: int, receivers: Iterable[int]
    ) -> None:
        self._pid = pid
        self._nprocs = nprocs
        self._all_flags = bytes([flags])
        self.latest = stamp
        """Latest of the stamps that were heard of."""
        self._counts: NDArray[np.uint16] | None = None
        for receiver in receivers:
            self._add((receiver - pid) % nprocs, 1)

    def _add(self, distance: int, count: int) -> None:
        if self._counts is None:
            self._counts = np.zeros(self._nprocs, _COUNT)
        self._counts[distance] += count

    def to_pass_on(self, number: int) -> bytes:
        """Return what is sent in a round: all flags that are missing there, and counts.

        Args:
            number: of the round.
        """
        step = 1 << number
        all_flags = self._all_flags[: self._nprocs - step]
        if all_flags == all_flags[:1] * len(all_flags):
            all_flags = all_flags[:1]
        head = len(all_flags).to_bytes(2, "little") + all_flags
        if self._counts is None:
            return head
        counts = self._counts[step :: 2 * step]
        return head + counts.tobytes() if counts.any() else head

    def take(self, number: int, body: bytes | memoryview, stamp: int) -> None:
        """Note what has come in a round."""
        step = 1 << number
        missing = min(step, self._nprocs - step)
        size = int.from_bytes(body[:2], "little")
        all_flags = bytes(body[2 : 2 + size])
        self._all_flags += all_flags * missing if size == 1 else all_flags
        self.latest = max(self.latest, stamp)
        if len(body) > 2 + size:
            counts = np.frombuffer(body, _COUNT, offset=2 + size)
            if self._counts is None:
                self._counts = np.zeros(self._nprocs, _COUNT)
            self._counts[0 : 2 * step * len(counts) : 2 * step] += counts

    def all_flags(self) -> list[int]:
        """Return the flags of all processes by pid, after all rounds."""
        pid = self._pid
        before = self._all_flags[::-1]  # the last one is of this process
        return list(before[self._nprocs - 1 - pid :] + before[: self._nprocs - 1 - pid])

    def is_unanimous(self) -> bool:
        """Tell whether all flags are the same, after all rounds."""
        return self._all_flags == self._all_flags[:1] * self._nprocs

    def count(self) -> int:
        """Return how many posts are sent to this process, after all rounds."""
        return 0 if self._counts is None else int(self._counts[0])
