"""The meetings of one process in one large group, by rounds of heads.

PROTOCOL.md, section *Meetings of many*, argues why they are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bsplib.backends.base import Arrivals
from bsplib.backends.mismatch import are_apart
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import ROUND
from bsplib.backends.mpi.meetings import Meetings
from bsplib.backends.mpi.receiving import Post
from bsplib.backends.mpi.rounds import Gathering, rounds_of
from bsplib.backends.mpi.sending import HEADS
from bsplib.backends.parcels import Parcel


class MeetingsOfMany(Meetings):
    """Meetings in rounds: only what somebody has for certain others is a post."""

    _said_where = False

    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any, stamp: int
    ) -> Arrivals | None:
        """See :meth:`bsplib.backends.base.Port.exchange`."""
        number, self._count = self._count, self._count + 1
        membership, link = self._membership, self._link
        receivers = membership.others if common is not None else parcels.keys()
        head = self._head_maker(number, note, stamp)
        try:
            for pid in receivers:
                self._posting.post(head, pid, parcels.get(pid), common)
        finally:
            self._posting.send_the_rest()
        sent = link.clocks.sent(stamp)
        gathering = Gathering(membership.pid, membership.nprocs, note, sent, receivers)
        for turn in range(rounds_of(membership.nprocs)):
            self._pass_on(gathering, number, turn)
            came = self._await_round(number, turn)
            gathering.take(turn, came.body or b"", came.head.stamp)
        posts, count = self._box.meetings[number], gathering.count()
        link.wait(lambda: len(posts) == count, for_heads=True)
        self._end(number)
        if stamp:
            self.released = max(stamp, link.clocks.received(gathering.latest))
        has_news = bool(posts or parcels) or common is not None
        if not has_news and gathering.is_unanimous():
            return None
        full = sorted((membership.pid_of(rank), post) for rank, post in posts.items())
        return self._opened(full, gathering.notes(), common)

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
        rank, came = membership.members[pid], self._box.rounds

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
