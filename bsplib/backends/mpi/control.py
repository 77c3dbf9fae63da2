"""What driver, watchers and ranks of a job tell each other: kinds of messages, and their way.

The messages travel beside MPI: over TCP between the driver and each watcher, and over a pair of
sockets between a watcher and its rank (:class:`Stream`). So they reach a
watcher while its rank computes, and MPI is used by one thread only.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import select
import socket
import threading
from collections import deque
from struct import Struct
from typing import NamedTuple

PART = 0
"""The beginning of a long message, or more of it; the kind comes with the rest."""
# To a rank, through its watcher:
RUNNER = 1
"""What the rank needs for the jobs that follow; see :class:`JobRunner`."""
JOB = 2
"""What :data:`RUN` has, and the job."""
END = 3
"""There are no more jobs: the rank leaves MPI and exits."""
RENEW = 4
"""A run has failed: all ranks renew their link, and answer by RENEWED. Where the byte is 1, they
take a new communicator, too."""
RESULT = 5
"""What a call of ``bsplib.run`` returns or raises in all ranks that have called it."""
# To a watcher:
PROOF = 8
"""The hub knows the key; sent once, first."""
PING = 9
"""Answered by PONG."""
STOP_NOW = 10
"""The rank stops where it waits for others, now or later."""
KILL = 11
"""The rank is ended by force, and so is its watcher."""
WHERE = 12
"""Answered by PLACE."""
# From a rank, through its watcher:
JOINS = 16
"""For the watcher itself: the rank joins MPI now, with this library."""
HUB = 17
"""For the watcher itself: how it reaches the hub."""
READY = 18
"""The rank has joined MPI: its number, the size of its world, and how it can be asked."""
OUTPUT = 19
"""What the rank writes to its standard output (first byte 1) or error (2)."""
REPORT = 20
"""How the process ended in a run, or what it tells before; what :data:`REPORTED` has stands before
it."""
MEMORY = 21
"""For the watcher itself: where it reads the supersteps of runs in which ranks share memory."""
RENEWED = 22
"""Nothing of the failed run is left in the rank."""
# From a watcher, which may stand between the parts of a message that it passes on:
CHALLENGE = 24
"""Sent by the hub to whoever connects: bytes that only the key can answer."""
HELLO = 25
"""Answers a challenge: a challenge for the hub, the proof, and who this is."""
PONG = 26
"""Whether the rank is stopped by a signal, and its superstep."""
DIED = 27
"""The rank has ended: its exit status and its superstep."""
PLACE = 28
"""Where the rank is: its superstep and its stack."""

RUN = Struct("!QIq")
"""Before a job: number of the run, number of processes, and number of the run that has made the
memory which they may share, perhaps this one; 0 where they may not, and negative where they meet
through MPI even if all are on one host."""
REPORTED = Struct("!QB")
"""Before the report of a process: number of the run, and the condition in which it has left the
link of the rank: SOUND, INTERRUPTED or BROKEN."""
SOUND, INTERRUPTED, BROKEN = range(3)
"""After a failed run the rank can serve the next one, or it can do so with another communicator,
or it cannot, since nothing is known of what MPI does for it."""
STATE = Struct("!?q")
"""The content of PONG: whether a signal has stopped the process, and its superstep."""
NOTE = Struct("!QiQ")
"""The content of MEMORY: a :class:`Note`."""
ENDED = Struct("!iq")
"""The content of DIED: exit status, superstep."""


# -- proofs that both ends of a connection belong to one job --------------------------------------


KEY_BYTES = 32


def challenge() -> bytes:
    """Return bytes that have not been used before."""
    return os.urandom(KEY_BYTES)


def proof(key: bytes, who: bytes, *challenges: bytes) -> bytes:
    """Return what shows that somebody knows the key.

    Args:
        key: the secret of the job.
        who: ``b"hub"`` or ``b"watcher"``, so that neither can repeat what the other one said.
        challenges: that of the other end first.
    """
    return hmac.digest(key, b"".join([who, *challenges]), hashlib.sha256)


def is_proof(given: bytes, key: bytes, who: bytes, *challenges: bytes) -> bool:
    """Tell whether a proof is right."""
    return hmac.compare_digest(given, proof(key, who, *challenges))


# -- messages of control on their way: each is its kind, its length and its bytes -----------------


_OF_WATCHER = CHALLENGE
"""From this kind on, messages are of a watcher; they are never long."""
_HEAD = Struct("!BQ")
_READ = 1 << 18
_PART_BYTES = 1 << 20
"""A longer message is sent in parts, so that others come through between them."""
_CROWD = 64
"""Messages, or parts of them, that wait to be sent."""
LIMIT = 1 << 12
"""Most bytes of a message from somebody who has not shown yet that he knows the key."""


class Message(NamedTuple):
    """A message."""

    kind: int
    content: bytes


class TooLongError(OSError):
    """A message is longer than it may be."""


class Stream:
    """Messages in both directions through a socket; sends and reads without waiting.

    Several threads, and a signal handler, may send.

    Args:
        plug: the socket; it must not be used in another way.
        limit: most bytes of a message that comes; None where there is no limit.
        whole: put parts together again; otherwise they come as they are.
    """

    def __init__(
        self, plug: socket.socket, limit: int | None = None, *, whole: bool = True
    ) -> None:
        plug.setblocking(False)
        self._plug = plug
        self.limit = limit
        self._puts_together = whole
        self._out: deque[memoryview] = deque()
        self._sends = threading.Lock()
        self._came: list[bytes] = []  # that is no whole message yet
        self._came_bytes = 0
        self._parts: list[bytes] = []

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self._plug.fileno()

    # -- sending ----------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Whether bytes wait to be sent: call :meth:`flush` when the socket can take some."""
        return bool(self._out)

    @property
    def is_crowded(self) -> bool:
        """Whether enough waits to be sent already that nothing should be added now."""
        return len(self._out) > _CROWD

    def put(self, kind: int, *content: bytes) -> None:
        """Send a message; what the socket does not take now is kept.

        Args:
            kind: of the message.
            content: its bytes, of which only the last may be many.

        Raises:
            OSError: the connection has ended.
        """
        nbytes = sum(map(len, content))
        if nbytes <= _PART_BYTES:
            self._out.append(memoryview(b"".join([_HEAD.pack(kind, nbytes), *content])))
        else:
            self._put_parts(kind, b"".join(content[:-1]), memoryview(content[-1]))
        self.flush()

    def _put_parts(self, kind: int, first: bytes, rest: memoryview) -> None:
        pieces = [rest[start : start + _PART_BYTES] for start in range(0, len(rest), _PART_BYTES)]
        out: list[memoryview] = []
        if first:
            pieces.insert(0, memoryview(first))
        for piece in pieces[:-1]:
            out += memoryview(_HEAD.pack(PART, len(piece))), piece
        out += memoryview(_HEAD.pack(kind, len(pieces[-1]))), pieces[-1]
        self._out += out

    def flush(self) -> bool:
        """Send what the socket takes; return whether that was anything.

        Raises:
            OSError: the connection has ended.
        """
        any_sent = False
        while self._out and self._sends.acquire(blocking=False):  # else another call sends it
            try:
                if not self._send_some():
                    break
                any_sent = True
            finally:
                self._sends.release()
        return any_sent

    def _send_some(self) -> bool:
        """Send bytes that wait; return whether the socket took any."""
        if not self._out:
            return True
        first = self._out[0]
        try:
            sent = self._plug.send(first)
        except BlockingIOError:
            return False
        if sent < len(first):
            self._out[0] = first[sent:]
        else:
            self._out.popleft()
        return True

    def flush_all(self) -> None:
        """Wait until all is sent.

        Raises:
            OSError: the connection has ended.
        """
        poll = select.poll()
        poll.register(self, select.POLLOUT)
        while self._out:
            poll.poll()
            self.flush()

    # -- receiving --------------------------------------------------------------------------

    def take(self) -> list[Message]:
        """Return the messages that have come by now.

        Raises:
            EOFError: the other end is closed.
            OSError: the connection has ended, or a message is too long.
        """
        try:
            data = self._plug.recv(_READ)
        except BlockingIOError:
            return []
        if not data:
            raise EOFError
        self._came.append(data)
        self._came_bytes += len(data)
        if self._came_bytes < self._end(self._came[0]):
            return []
        return self._put_together(self._split())

    def _split(self) -> list[Message]:
        """Return the whole messages that have come, and keep the rest."""
        data = b"".join(self._came)
        messages, start = [], 0
        while len(data) >= (end := start + self._end(data, start)):
            messages.append(Message(data[start], data[start + _HEAD.size : end]))
            start = end
        self._came, self._came_bytes = [data[start:]], len(data) - start
        return messages

    def _end(self, data: bytes, start: int = 0) -> int:
        """Return the length of a message with its head; that of a head while it is not known."""
        if len(data) - start < _HEAD.size:
            return _HEAD.size
        nbytes = _HEAD.size + int(_HEAD.unpack_from(data, start)[1])
        if self.limit is not None and nbytes > self.limit:
            raise TooLongError(f"a message of {nbytes} bytes")
        return nbytes

    def _put_together(self, messages: list[Message]) -> list[Message]:
        if not self._puts_together:
            return messages
        whole = []
        for message in messages:
            if message.kind == PART:
                self._parts.append(message.content)
            elif self._parts and message.kind < _OF_WATCHER:
                whole.append(Message(message.kind, b"".join([*self._parts, message.content])))
                self._parts.clear()
            else:
                whole.append(message)
        return whole

    # -- both -------------------------------------------------------------------------------

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until messages can be taken; send what waits to be sent meanwhile.

        Args:
            seconds: most seconds; None where there is no limit.

        Returns:
            Whether something has come.
        """
        poll = select.poll()
        while True:
            poll.register(self, select.POLLIN | (select.POLLOUT if self._out else 0))
            ready = poll.poll(None if seconds is None else 1000 * seconds)
            if self._out:
                self.flush()
            if not ready or ready[0][1] & ~select.POLLOUT:
                return bool(ready)

    def close(self) -> None:
        """Close the socket."""
        self._plug.close()


# -- connections --------------------------------------------------------------------------------

LOST_S = 5
"""Seconds without anything taken by the other side, after which a connection counts as cut."""


def keep_alive(plug: socket.socket) -> None:
    """Let a connection end by itself where the other host is cut off."""
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, LOST_S - 2)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * LOST_S)
