"""What one process sends and receives in one group: its posts, and payloads in both directions.

PROTOCOL.md, section *A meeting*, argues when their memory is used again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from bsplib.backends.base import Buffer, Handle, Sent
from bsplib.backends.mpi.heads import MOST_BODY
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.transport import BODIES, HEADS, PAYLOADS, Payload, Post, Sends, body_of

_HAND_OVER_NS = 200_000
"""An oblivious sync lets MPI work so long on what it has sent: small sends are done by then."""

MakeHead = Callable[..., bytes]
"""Makes a head from the last things that are known: ``payloads`` and ``body_bytes``."""


class Posting:
    """The posts of one process in one group, as far as they are not sent, and all payloads.

    Args:
        membership: of this process.
    """

    def __init__(self, membership: Membership) -> None:
        link = membership.link
        self._membership = membership
        self._link = link
        self.sends = Sends(link.comm)
        link.sends.add(self.sends)
        self._behind: list[tuple[int, memoryview | None, Sequence[Buffer]]] = []
        """Ranks whose heads have been sent, and what follows those heads."""
        self._staged: dict[int, list[Buffer]] = {}
        self._numbers = [0] * membership.nprocs
        """Payloads that have been staged for each process."""
        self._here: dict[tuple[int, int], Payload] = {}
        """Payloads of this superstep, by sender and number."""
        self._here_before: dict[tuple[int, int], Payload] = {}

    # -- to others --------------------------------------------------------------------------

    def stage(self, nbytes: int, to: int) -> tuple[Handle, Buffer]:
        memory = np.empty(nbytes, np.uint8)
        pid, number = self._membership.pid, self._numbers[to]
        self._numbers[to] = number + 1
        if to == pid:
            self._here[to, number] = Payload(nbytes, memory)
        else:
            self._staged.setdefault(to, []).append(memory)
        return (pid, number, nbytes), memory

    def post(self, head: MakeHead, to: int, entries: Sent) -> None:
        """Send the head of a post that has something for its receiver.

        What does not fit into the head follows by :meth:`send_the_rest`.

        Args:
            head: makes the head.
            to: pid of the receiver.
            entries: for that process.
        """
        rank = self._membership.members[to]
        staged = self._staged.pop(to, [])
        first = self._numbers[to] - len(staged)
        body = body_of(entries, first, [len(each) for each in staged])
        packed = head(payloads=bool(staged), body_bytes=len(body))
        if len(body) <= MOST_BODY:
            self.sends.start(packed + body, rank, HEADS)
            if staged:
                self._behind.append((rank, None, staged))
        else:
            self.sends.start(packed, rank, HEADS)
            self._behind.append((rank, memoryview(body), staged))

    def send_the_rest(self) -> None:
        """Send what follows the heads: no head waits in a link behind it.

        It has to be called after all posts, also if an error was raised in between: what a head
        announces comes in any case.
        """
        behind, self._behind = self._behind, []
        start = self.sends.start
        for rank, body, _ in behind:
            if body is not None:
                start(body, rank, BODIES)
        for rank, _, payloads in behind:
            for each in payloads:
                start(each, rank, PAYLOADS)

    def hand_over(self) -> None:
        """Let MPI take the posts of an oblivious superstep; what it does not take is sent later."""
        link = self._link
        deadline = time.perf_counter_ns() + _HAND_OVER_NS
        while self.sends and self.sends.forget_sent() and time.perf_counter_ns() < deadline:
            link.pump()
        link.unsent.take_over(self.sends)
        if link.unsent:
            link.unsent.forget_sent()

    # -- for this process -------------------------------------------------------------------

    def open(self, posts: Sequence[Post]) -> None:
        """Take posts apart, whose payloads may then be fetched."""
        self._link.open(posts)
        for post in posts:
            if post.payloads:
                pid = self._membership.pid_of(post.source)
                for number, payload in enumerate(post.payloads, post.first):
                    self._here[pid, number] = payload

    def fetch(self, handle: Handle) -> memoryview:
        key = handle[:2]
        payload = self._here[key] if key in self._here else self._here_before[key]
        if not payload.is_here():
            self._link.wait(payload.is_here)
        assert payload.memory is not None
        return payload.memory.data

    # -- the end of a superstep, and of the group ----------------------------------------------

    def end_superstep(self) -> None:
        """Wait until all payloads have come, and all that belongs to meetings is sent."""
        link = self._link
        for payload in self._here.values():
            if not payload.is_here():
                link.wait(payload.is_here)
        if not link.heads_are_sent():
            link.wait(link.heads_are_sent)
        if self.sends and not self.sends.all_sent():
            link.wait(self.sends.all_sent)
        if link.unsent:
            link.unsent.forget_sent()
        self._staged = {}  # what is left belongs to no entry: its put has failed
        self._here_before, self._here = self._here, {}  # nobody reads those before any more

    def leave(self) -> None:
        """Leave the group: the link sees to it that the rest is sent."""
        self._staged = {}
        self._link.unsent.take_over(self.sends)
        self._link.sends.discard(self.sends)
