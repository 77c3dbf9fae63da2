"""The meetings of one process in one large group, by rounds of heads.

PROTOCOL.md, section *Meetings of many*, argues why they are right.
"""

from __future__ import annotations

from collections.abc import Mapping

from bsplib.backends.base import Arrivals, Sent
from bsplib.backends.mismatch import are_apart
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import ROUND
from bsplib.backends.mpi.meetings import Meetings
from bsplib.backends.mpi.receiving import Post
from bsplib.backends.mpi.rounds import Gathering, rounds_of
from bsplib.backends.mpi.sending import HEADS


class MeetingsOfMany(Meetings):
    """Meetings in rounds: only what somebody has for certain others is a post."""

    _said_where = False

    def exchange(self, records: Mapping[int, Sent], note: int, stamp: int) -> Arrivals | None:
        """See :meth:`bsplib.backends.sent.Exchanger.exchange`."""
        number, self._count = self._count, self._count + 1
        membership, link = self._membership, self._link
        head = self._head_maker(number, note, stamp)
        try:
            for pid, sent in records.items():
                self._posting.post(head, pid, sent)
        finally:
            self._posting.send_the_rest()
        came_at = link.clocks.sent(stamp)
        gathering = Gathering(membership.pid, membership.nprocs, note, came_at, records.keys())
        for turn in range(rounds_of(membership.nprocs)):
            self._pass_on(gathering, number, turn)
            came = self._await_round(number, turn)
            gathering.take(turn, came.body or b"", came.head.stamp)
        posts, count = self._box.meetings[number], gathering.count()
        link.wait(lambda: len(posts) == count, for_heads=True)
        self._end(number)
        if stamp:
            self.released = max(stamp, link.clocks.received(gathering.latest))
        if not (posts or records) and gathering.is_unanimous():
            return None
        full = sorted((membership.pid_of(rank), post) for rank, post in posts.items())
        return self._opened(full, gathering.notes())

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
