"""The meetings of one process in one group, by one head to each other process or by rounds.

What a head announces follows it in the same round trip: PROTOCOL.md has the order, and argues why
it is right. In large groups the heads take rounds (:class:`MeetingsOfMany`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import AFTER_ALL, Arrivals, Arrived, Sent
from bsplib.backends.members import are_apart
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import MEET, MOST_BODY, OBLIVIOUS, ROUND
from bsplib.backends.mpi.membership import Absence, Membership
from bsplib.backends.mpi.posting import MakeHead, Posting
from bsplib.backends.mpi.transport import HEADS, Post
from bsplib.backends.oblivious import NOTHING, Collector
from bsplib.backends.oblivious import Post as ObliviousPost

_MOST_UNSENT_BYTES = 1 << 28
"""Unsent bytes of oblivious supersteps with which a process waits before the next one."""


class Oblivious:
    """The oblivious supersteps of one process in a group; see ``bsplib.backends.oblivious.Posts``.

    PROTOCOL.md, section *Oblivious superstep*, says how far a process may run ahead.

    Args:
        membership: of this process.
        posting: sends its posts.
    """

    def __init__(self, membership: Membership, posting: Posting) -> None:
        self._membership = membership
        self._link = membership.link
        self._inbox = membership.inbox
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
            self._posting.open(full)
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
            # None is absent where one of them has come just now.
            lambda: self.absence.suspect(
                "oblsync", lambda: ranks if ranks.isdisjoint(came) else ()
            ),
            lambda: self.absence.ask(ranks),
            for_heads=has_sent,
        )

    def look_at_late(self) -> None:
        """Look at posts that came late, in this group and in those that were left."""
        self.collector.read_late()
        self._link.release_left_groups()

    def leave(self) -> None:
        """Let all that still comes be late."""
        self._inbox.passed = AFTER_ALL


class Meetings:
    """Meetings at which each process sends a head to each other one.

    Args:
        membership: of this process.
        posting: sends its posts.
        oblivious: its oblivious supersteps in the group.
    """

    def __init__(
        self,
        membership: Membership,
        posting: Posting,
        oblivious: Oblivious,
    ) -> None:
        self.released = 0
        """See :attr:`bsplib.core.meeting.Meeting.released`."""
        self._membership = membership
        self._link = membership.link
        self._inbox = membership.inbox
        self._posting = posting
        self._oblivious = oblivious
        self._absence = oblivious.absence
        self._count = 0
        self._requests = self._link.requests_to(membership.ranks)

    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
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

        def missing() -> list[int]:
            return [rank for rank in ranks if rank not in posts]

        self._link.wait(
            lambda: len(posts) == nothers,
            lambda: self._absence.suspect("sync", missing),
            lambda: self._absence.ask(missing()),
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
        self._posting.open([post for _, post in full])
        return all_flags, [(pid, post.entries) for pid, post in full]


# -- the meetings of one process in one large group, by rounds of heads ---------------------------
# PROTOCOL.md, section *Meetings of many*, argues why they are right.


class MeetingsOfMany(Meetings):
    """Meetings in rounds: only what somebody has for certain others is a post."""

    _said_where = False

    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
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
        for round_number in range(rounds_of(membership.nprocs)):
            self._pass_on(gathering, number, round_number)
            came = self._await_round(number, round_number)
            gathering.take(round_number, came.body or b"", came.head.stamp)
        posts, count = self._inbox.meetings[number], gathering.count()
        link.wait(lambda: len(posts) == count, for_heads=True)
        self._end(number)
        if stamp:
            self.released = max(stamp, link.clocks.received(gathering.latest))
        if not (posts or entries) and gathering.is_unanimous():
            return None
        full = sorted((membership.pid_of(rank), post) for rank, post in posts.items())
        return self._opened(full, gathering.all_flags())

    def _pass_on(self, gathering: Gathering, number: int, round_number: int) -> None:
        body = gathering.to_pass_on(round_number)
        membership = self._membership
        first, middle = (self._link.run, ROUND, 0, 0), (membership.label, number)
        last = membership.superstep, len(body), round_number, gathering.latest
        head = heads.pack(*first, *middle, *last)
        rank = membership.members[(membership.pid + (1 << round_number)) % membership.nprocs]
        self._posting.sends.start(head + body, rank, HEADS)

    def _await_round(self, number: int, round_number: int) -> Post:
        """Wait for the head of a round, and return it."""
        membership = self._membership
        pid = (membership.pid - (1 << round_number)) % membership.nprocs
        rank, came = membership.members[pid], self._inbox.rounds

        def suspect() -> None:
            self._absence.suspect("sync", lambda: [] if (number, round_number) in came else [rank])

        def ask() -> None:
            self._absence.ask([rank])
            if not self._said_where:
                self._said_where = True
                self._absence.say_where()

        self._said_where = False
        self._link.wait(lambda: (number, round_number) in came, suspect, ask, for_heads=True)
        post = came.pop((number, round_number))
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
