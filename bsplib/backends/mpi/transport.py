"""Sends that have been started, and the posts that come: bodies and payloads follow the heads.

All of it is received in the order in which it was sent: see PROTOCOL.md.
"""

from __future__ import annotations

import marshal
from collections import defaultdict, deque
from typing import Any

import numpy as np
from mpi4py import MPI

from bsplib.backends.base import Buffer, Sent
from bsplib.backends.mpi.heads import MEET, MOST_BODY, OBLIVIOUS, ROUND, Head

HEADS, BODIES, PAYLOADS, MEMORY = range(1, 5)
"""Tags: one for each kind of what is sent. See PROTOCOL.md. MEMORY is that of the few numbers by
which ranks of one host find their memory."""
PIECE_BYTES = 1 << 30
"""What is larger is sent in pieces: counts of MPI have 32 bits, but for the newest."""


class Sends:
    """Sends of one process that have been started and may not have been completed.

    A request keeps the memory that it reads.

    Args:
        comm: of the job.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self._requests: list[MPI.Request] = []
        self._sizes: list[int] = []
        self.unsent_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._requests)

    def start(self, data: Any, to: int, tag: int) -> None:
        """Start to send bytes, which stay as they are until they are sent.

        Args:
            data: contiguous bytes.
            to: rank.
            tag: of MPI.
        """
        for begin in range(0, len(data), PIECE_BYTES):
            piece = data[begin : begin + PIECE_BYTES]
            self._requests.append(self._comm.Isend((piece, MPI.BYTE), to, tag))
            self._sizes.append(len(piece))
            self.unsent_bytes += len(piece)

    def all_sent(self) -> bool:
        """Tell whether all is sent; then forget it."""
        if self._requests and not MPI.Request.Testall(self._requests):
            return False
        self._requests, self._sizes, self.unsent_bytes = [], [], 0
        return True

    def forget_sent(self) -> int:
        """Forget what is sent; return the bytes of what is not."""
        if self._requests and MPI.Request.Testsome(self._requests):
            unsent = [index for index, each in enumerate(self._requests) if each]
            self._requests = [self._requests[index] for index in unsent]
            self._sizes = [self._sizes[index] for index in unsent]
            self.unsent_bytes = sum(self._sizes)
        return self.unsent_bytes

    def take_over(self, others: Sends) -> None:
        """Keep the sends of others from now on."""
        self._requests += others._requests
        self._sizes += others._sizes
        self.unsent_bytes += others.unsent_bytes
        others._requests, others._sizes, others.unsent_bytes = [], [], 0


# -- what comes for a process ---------------------------------------------------------------------


class Payload:
    """A payload: one that another process sends here, or one of this process for itself."""

    __slots__ = ("_among", "_requests", "memory", "nbytes")

    def __init__(self, nbytes: int, memory: Buffer | None = None) -> None:
        self.nbytes = nbytes
        self.memory = memory
        """Where it is, or will be; None before its receive has started."""
        self._requests: list[MPI.Request] = []
        self._among: set[Payload] = set()

    def receive(self, inflow: Inflow, source: int, tag: int) -> None:
        """Start to receive it; it is among the unfinished ones of its inflow until it is here."""
        self.memory = memory = np.empty(self.nbytes, np.uint8)
        if not self.nbytes:
            return
        comm, self._among = inflow.comm, inflow.unfinished
        self._among.add(self)
        self._requests = [
            comm.Irecv((memory[begin : begin + PIECE_BYTES], MPI.BYTE), source, tag)
            for begin in range(0, self.nbytes, PIECE_BYTES)
        ]

    def is_here(self) -> bool:
        """Tell whether it has come."""
        if self._requests and MPI.Request.Testall(self._requests):
            self._requests = []
            self._among.discard(self)
        return not self._requests


class Post:
    """What another process has sent to this one at a meeting."""

    __slots__ = (
        "_body",
        "body",
        "entries",
        "first",
        "head",
        "is_credited",
        "payloads",
        "source",
    )

    def __init__(self, source: int, head: Head, body: bytes | None) -> None:
        self.source = source
        """Rank of that process."""
        self.head = head
        self.body: bytes | memoryview | None = body
        """The body where it is known; None where it has to be received."""
        self.is_credited = False
        """The sender of an oblivious post knows that this one needs no memory any more."""
        self._body: Payload | None = None
        self.entries = b""
        self.first = 0
        """Number of the first payload among those of that process for this one in the group."""
        self.payloads: list[Payload] | None = None

    def receive_body(self, inflow: Inflow) -> None:
        """Start to receive a body that was not part of the head."""
        self._body = Payload(self.head.body_bytes)
        self._body.receive(inflow, self.source, BODIES)

    def has_body(self) -> bool:
        """Tell whether the body is here."""
        if self.body is None and self._body is not None and self._body.is_here():
            assert self._body.memory is not None
            self.body, self._body = self._body.memory.data, None
        return self.body is not None

    def read(self) -> None:
        """Take the body apart."""
        if self.payloads is None:
            assert self.body is not None
            self.entries, self.first, sizes = marshal.loads(self.body)
            self.payloads = [*map(Payload, sizes)]
            self.body = b""


def body_of(entries: Sent, first: int, sizes: list[int]) -> bytes:
    """Return the body of a post.

    Args:
        entries: for the receiver.
        first: number of the first payload.
        sizes: bytes of the payloads.
    """
    return marshal.dumps((entries, first, sizes))


class Inflow:
    """What follows the heads of one other process and has not been received yet.

    Args:
        comm: of the job.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self.comm = comm
        self.unfinished: set[Payload] = set()
        """What is being received; a body counts as a payload here."""
        self._bodies: deque[Post] = deque()
        self._payloads: deque[Post] = deque()
        self._dropped: list[Payload] = []

    def expect(self, post: Post) -> None:
        """Note what follows a head; called in the order of the heads."""
        if post.head.body_bytes > MOST_BODY:
            self._bodies.append(post)
        if post.head.payloads:
            self._payloads.append(post)

    def start_bodies(self, post: Post) -> None:
        """Start to receive the body of a post, after those of earlier ones."""
        while post in self._bodies:
            self._bodies.popleft().receive_body(self)

    def before(self, post: Post) -> list[Post]:
        """Return the posts whose payloads have to be received before those of a post."""
        if post not in self._payloads:
            return []
        earlier = list(self._payloads)
        return earlier[: earlier.index(post)]

    def start_payloads(self, last: Post) -> None:
        """Start to receive the payloads of a post, after those of earlier ones.

        All these posts have been read.
        """
        while last in self._payloads:
            post = self._payloads.popleft()
            for payload in post.payloads or ():
                payload.receive(self, post.source, PAYLOADS)

    def drop(self) -> bool:
        """Receive for nobody what has not been received; tell whether nothing is left."""
        while self._bodies:
            self.start_bodies(self._bodies[-1])
        while self._payloads and self._payloads[0].has_body():
            post = self._payloads[0]
            post.read()
            self.start_payloads(post)
            self._dropped += post.payloads or ()
        self._dropped = [payload for payload in self._dropped if not payload.is_here()]
        return not (self._payloads or self._dropped)


# -- the posts of one group that have come for one process ----------------------------------------


class Inbox:
    """The posts of the other processes of a group, by their ranks."""

    def __init__(self) -> None:
        self.meetings: defaultdict[int, dict[int, Post]] = defaultdict(dict)
        """Posts of meetings, by number of the meeting."""
        self.oblivious: defaultdict[int, dict[int, Post]] = defaultdict(dict)
        """Posts of oblivious supersteps, by number of the superstep."""
        self.rounds: dict[tuple[int, int], Post] = {}
        """Heads of rounds, by number of the meeting and of the round."""
        self.left: set[int] = set()
        """Ranks that have said that they have left the group."""
        self.passed = 0
        """Oblivious supersteps that this process has ended: what still comes for them is late."""
        self.latest: dict[str, dict[int, int]] = {"sync": {}, "oblsync": {}}

    def take(self, post: Post) -> bool:
        """Keep a post; return whether it is a late one."""
        head, source = post.head, post.source
        way = "oblsync" if head.kind == OBLIVIOUS else "sync"
        self.latest[way][source] = head.superstep
        if head.kind == OBLIVIOUS:
            self.oblivious[head.number][source] = post
            return head.number < self.passed
        if head.kind == MEET:
            self.meetings[head.number][source] = post
        elif head.kind == ROUND:
            self.rounds[head.number, head.messages] = post
        return False
