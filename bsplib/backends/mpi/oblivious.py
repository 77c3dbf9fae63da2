"""The oblivious supersteps of one process in one group.

PROTOCOL.md, section *Oblivious superstep*, says how far a process may run ahead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bsplib.backends.base import Arrived, Sent
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import OBLIVIOUS
from bsplib.backends.mpi.membership import Absence, Membership
from bsplib.backends.mpi.payloads import Payloads, Posting
from bsplib.backends.mpi.receiving import Post
from bsplib.backends.mpi.sending import HEADS
from bsplib.backends.oblivious import NOTHING, Collector
from bsplib.backends.oblivious import Post as ObliviousPost

_MOST_UNSENT_BYTES = 1 << 28
"""Unsent bytes of oblivious supersteps with which a process waits before the next one."""
_FOREVER = 1 << 62


class Oblivious:
    """See :class:`bsplib.backends.oblivious.Posts`.

    Args:
        membership: of this process.
        payloads: of this process in the group.
        posting: sends its posts.
    """

    def __init__(self, membership: Membership, payloads: Payloads, posting: Posting) -> None:
        self._membership = membership
        self._link = membership.link
        self._inbox = membership.inbox
        self._payloads = payloads
        self._posting = posting
        self.collector = Collector(membership.members, membership.pid, self)
        self.absence = Absence(membership, self.collector.read_late)

    def exchange(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int
    ) -> list[Arrived]:
        number = self.collector.ended
        self.look_at_late()
        self._wait_for_credit()
        self._post(entries, stamp)
        self.collector.end_superstep(stamp)
        arrived = self.collector.collect(expected)
        self._inbox.passed = self.collector.ended
        if not self._inbox.oblivious[number]:
            del self._inbox.oblivious[number]
        self._posting.hand_over()
        return arrived

    def _wait_for_credit(self) -> None:
        """Wait while others have not read many posts of this process, or not received much."""
        link = self._link
        for rank in self._membership.ranks:
            if not link.has_credit(rank):
                link.wait(lambda rank=rank: link.has_credit(rank), self.look_at_late)  # type: ignore[misc]
        if link.unsent and link.unsent.forget_sent() > _MOST_UNSENT_BYTES:
            link.wait(lambda: link.unsent.forget_sent() <= _MOST_UNSENT_BYTES, self.look_at_late)

    def _post(self, entries: Mapping[int, tuple[int, Sent]], stamp: int) -> None:
        link, number, membership = self._link, self.collector.ended, self._membership
        sent = link.clocks.sent(stamp)
        first = link.run, OBLIVIOUS, 0
        middle = membership.label, number, membership.superstep
        empty = heads.pack(*first, 0, *middle, 0, 0, sent)
        try:
            for pid, rank in zip(membership.others, membership.ranks, strict=True):
                link.spend_credit(rank)
                messages, entries_there = entries.get(pid, (0, b""))
                if messages:

                    def head(*, payloads: bool, body_bytes: int, messages: int = messages) -> bytes:
                        return heads.pack(*first, payloads, *middle, body_bytes, messages, sent)

                    self._posting.post(head, pid, entries_there)
                else:
                    self._posting.sends.start(empty, rank, HEADS)
        finally:
            self._posting.send_the_rest()

    def look(self, number: int, pids: Collection[int]) -> dict[int, ObliviousPost]:
        link = self._link
        link.pump()
        came, members = self._inbox.oblivious[number], self._membership.members
        posts = {pid: came.pop(members[pid]) for pid in pids if members[pid] in came}
        if number < self._inbox.passed and not came:
            del self._inbox.oblivious[number]
        full = [post for post in posts.values() if post.head.messages]
        if number >= self._inbox.passed:  # else they are an error, and never opened
            self._payloads.open(full)
        for post in posts.values():
            link.credit(post)
        return {pid: self._oblivious_post(post) for pid, post in posts.items()}

    def _oblivious_post(self, post: Post) -> ObliviousPost:
        head = post.head
        if not head.messages:
            return NOTHING
        return ObliviousPost(head.messages, post.entries, self._link.clocks.received(head.stamp))

    def wait(self, number: int, pids: Sequence[int]) -> None:
        ranks = {self._membership.members[pid] for pid in pids}
        came = self._inbox.oblivious[number]
        sends = self._posting.sends
        has_sent = not (sends and sends.forget_sent())  # then it may take longer naps
        self._link.wait(
            lambda: not ranks.isdisjoint(came),
            lambda: self.absence.suspect_at_oblsync(pids, came),
            lambda: self.absence.ask(ranks),
            for_heads=has_sent,
        )

    def look_at_late(self) -> None:
        """Look at posts that came late, in this group and in those that were left."""
        self.collector.read_late()
        self._link.release_left_groups()

    def leave(self) -> None:
        """Let all that still comes be late."""
        self._inbox.passed = _FOREVER
