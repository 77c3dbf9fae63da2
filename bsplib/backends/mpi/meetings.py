"""The meetings of one process in one group, by one head to each other process.

What a head announces follows it in the same round trip: PROTOCOL.md has the order, and argues why
it is right. In large groups the heads take rounds (:mod:`bsplib.backends.mpi.round_meetings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bsplib.backends.base import Arrivals, Sent
from bsplib.backends.mismatch import are_apart
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import MEET
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.oblivious import Oblivious
from bsplib.backends.mpi.payloads import Payloads
from bsplib.backends.mpi.posting import MakeHead, Posting
from bsplib.backends.mpi.receiving import Post
from bsplib.backends.mpi.sending import HEADS


class Meetings:
    """Meetings at which each process sends a head to each other one.

    Args:
        membership: of this process.
        payloads: of this process in the group.
        posting: sends its posts.
        oblivious: its oblivious supersteps in the group.
    """

    def __init__(
        self,
        membership: Membership,
        payloads: Payloads,
        posting: Posting,
        oblivious: Oblivious,
    ) -> None:
        self.released = 0
        """See :attr:`bsplib.core.meeting.Meeting.released`."""
        self._membership = membership
        self._link = membership.link
        self._inbox = membership.inbox
        self._payloads = payloads
        self._posting = posting
        self._oblivious = oblivious
        self._absence = oblivious.absence
        self._count = 0
        self._requests = self._link.requests_to(membership.ranks)

    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
        """See :meth:`bsplib.backends.sent.Exchanger.exchange`."""
        number, self._count = self._count, self._count + 1
        self._post_to_all(number, entries, flags, stamp)
        posts = self._inbox.meetings[number]
        if len(posts) < len(self._membership.others):
            self._await(posts)
        self._end(number)
        return self._arrivals(posts, bool(entries), flags, stamp)

    def _end(self, number: int) -> None:
        """Forget a meeting, and look at what else has come."""
        del self._inbox.meetings[number]
        if self._oblivious.collector.ended or self._link.left_over:
            self._oblivious.look_at_late()

    def _post_to_all(
        self, number: int, entries: Mapping[int, Sent], flags: int, stamp: int
    ) -> None:
        head = self._head_maker(number, flags, stamp)
        membership = self._membership
        if not entries:
            if membership.ranks:
                self._link.send_to_many(head(payloads=False, body_bytes=0), self._requests)
            return
        posting = self._posting
        try:
            for pid in membership.others_in_turn:
                sent = entries.get(pid)
                if sent is None:
                    empty = head(payloads=False, body_bytes=0)
                    posting.sends.start(empty, membership.members[pid], HEADS)
                else:
                    posting.post(head, pid, sent)
        finally:
            posting.send_the_rest()

    def _head_maker(self, number: int, flags: int, stamp: int) -> MakeHead:
        link, membership = self._link, self._membership
        first, middle = (link.run, MEET, flags), (membership.label, number, membership.superstep)
        sent = link.clocks.sent(stamp)

        def head(*, payloads: bool, body_bytes: int) -> bytes:
            return heads.pack(*first, payloads, *middle, body_bytes, 0, sent)

        return head

    def _await(self, posts: dict[int, Post]) -> None:
        """Wait for the posts of a meeting."""
        ranks, nothers = self._membership.ranks, len(self._membership.others)
        self._link.wait(
            lambda: len(posts) == nothers,
            lambda: self._absence.suspect_at_sync(posts),
            lambda: self._absence.ask(rank for rank in ranks if rank not in posts),
            for_heads=True,
        )

    def _arrivals(
        self,
        posts: Mapping[int, Post],
        has_news: bool,
        flags: int,
        stamp: int,
    ) -> Arrivals | None:
        """Return what the posts of a meeting brought."""
        membership = self._membership
        superstep, latest = membership.superstep, 0
        all_flags = [flags] * membership.nprocs
        full = []
        for pid, rank in zip(membership.others, membership.ranks, strict=True):
            post = posts[rank]
            head = post.head
            if head.superstep != superstep:
                raise are_apart(rank, membership.members[membership.pid])
            if head.flags != flags:
                all_flags[pid], has_news = head.flags, True
            if head.body_bytes:
                full.append((pid, post))
            latest = max(latest, head.stamp)
        if stamp:
            self.released = max(stamp, self._link.clocks.received(latest))
        if not (full or has_news):
            return None
        return self._opened(full, all_flags)

    def _opened(self, full: Sequence[tuple[int, Post]], all_flags: list[int]) -> Arrivals:
        self._payloads.open([post for _, post in full])
        return all_flags, [(pid, post.entries) for pid, post in full]
