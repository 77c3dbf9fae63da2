"""How one process sends its posts in one group: head, body and payloads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bsplib.backends.base import Sent
from bsplib.backends.mpi.heads import MOST_BODY
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.payloads import Payloads, Staged
from bsplib.backends.mpi.receiving import body_of
from bsplib.backends.mpi.sending import BODIES, HEADS, PAYLOADS, Sends

_HAND_OVER_NS = 200_000
"""An oblivious sync lets MPI work so long on what it has sent: small sends are done by then."""

MakeHead = Callable[..., bytes]
"""Makes a head from the last things that are known: ``payloads`` and ``body_bytes``."""


class Posting:
    """The posts of one process in one group, as far as they are not sent.

    Args:
        membership: of this process.
        payloads: of this process in the group.
    """

    def __init__(self, membership: Membership, payloads: Payloads) -> None:
        link = membership.link
        self._membership = membership
        self._link = link
        self._payloads = payloads
        self.sends = Sends(link.comm, link.buffers)
        link.sends.add(self.sends)
        self._behind: list[tuple[int, memoryview | None, list[Staged]]] = []
        """Ranks whose heads have been sent, and what follows those heads."""

    def post(self, head: MakeHead, to: int, entries: Sent) -> None:
        """Send the head of a post that has something for its receiver.

        What does not fit into the head follows by :meth:`send_the_rest`.

        Args:
            head: makes the head.
            to: pid of the receiver.
            entries: for that process.
        """
        rank = self._membership.members[to]
        first, staged = self._payloads.take_staged(to)
        body = body_of(entries, first, [each.size for each in staged])
        through_mpi = [each for each in staged if each.block is None]
        packed = head(payloads=bool(through_mpi), body_bytes=len(body))
        if staged:
            self._announce(staged)
        if len(body) <= MOST_BODY:
            self.sends.start(packed + body, rank, HEADS)
            if through_mpi:
                self._behind.append((rank, None, through_mpi))
        else:
            self.sends.start(packed, rank, HEADS)
            self._behind.append((rank, memoryview(body), through_mpi))

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
                start(each.memory, rank, PAYLOADS, each.buffer)

    def _announce(self, staged: Sequence[Staged]) -> None:
        neighbours = self._membership.neighbours
        if neighbours is not None:
            for each in staged:
                if each.block is not None:
                    neighbours.announce(each.block)

    def finish(self) -> None:
        """Wait until all that belongs to meetings is sent; let the rest go on."""
        link = self._link
        if not link.heads_are_sent():
            link.wait(link.heads_are_sent)
        if self.sends and not self.sends.all_sent():
            link.wait(self.sends.all_sent)
        if link.unsent:
            link.unsent.forget_sent()

    def hand_over(self) -> None:
        """Let MPI take the posts of an oblivious superstep; what it does not take is sent later."""
        link = self._link
        deadline = time.perf_counter_ns() + _HAND_OVER_NS
        while self.sends and self.sends.forget_sent() and time.perf_counter_ns() < deadline:
            link.pump()
        link.unsent.take_over(self.sends)
        if link.unsent:
            link.unsent.forget_sent()

    def leave(self) -> None:
        """Leave the group: the link sees to it that the rest is sent."""
        self._link.unsent.take_over(self.sends)
        self._link.sends.discard(self.sends)
