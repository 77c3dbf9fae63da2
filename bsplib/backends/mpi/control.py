"""Messages of control between the driver of a job, its watchers and its ranks.

They travel beside MPI: over TCP between the driver and each watcher, and over a pair of
sockets between a watcher and its rank. So they reach a watcher while its rank computes, and
MPI is used by one thread only. A message is its kind, its length and its bytes.

A rank and its watcher also share a page of memory: the watcher sets a byte there when the rank
is to stop, and the rank writes there how far it has come.
"""

from __future__ import annotations

import hashlib
import hmac
import mmap
import os
import select
import socket
import sys
from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

# -- the page -----------------------------------------------------------------------------------

PAGE_BYTES = mmap.PAGESIZE
STOP = 0
"""Byte of the page: 1 where the rank is to stop at its next sync."""
SUPERSTEP = 8
"""First byte of a native integer of 8 bytes: the superstep of the root group that has begun."""


class Page:
    """The memory that a rank shares with its watcher."""

    def __init__(self) -> None:
        self.memory = memoryview(mmap.mmap(-1, PAGE_BYTES))
        self.stop = self.memory[STOP : STOP + 1]
        """1 where the rank is to stop."""
        self._superstep = self.memory[SUPERSTEP : SUPERSTEP + 8].cast("q")

    @property
    def superstep(self) -> int:
        """Superstep of the root group in which the rank is."""
        return max(self._superstep[0], 1) - 1  # the barrier before main is 1 there

    def begin(self) -> None:
        """Begin a run; the byte is cleared by the watcher, which knows what comes first."""
        self._superstep[0] = 0


# -- messages -----------------------------------------------------------------------------------

# To a rank, through its watcher:
RUNNER = 1
"""What the rank needs for the jobs that follow; see :class:`JobRunner`."""
JOB = 2
"""Number of the run, number of its processes, and the job."""
END = 3
"""There are no more jobs: the rank leaves MPI and exits."""
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
HUB = 16
"""For the watcher itself: how it reaches the hub."""
READY = 17
"""The rank has joined MPI: its number, the size of its world, and how it can be asked."""
REPORT = 18
"""How the process ended in a run; the number of the run stands before it."""
# From a watcher:
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

RUN = Struct("!QI")
"""Before a job: number of the run, number of processes."""
NUMBER = Struct("!Q")
STATE = Struct("!?q")
"""Of PONG: stopped by a signal, superstep."""
ENDED = Struct("!iq")
"""Of DIED: exit status, superstep."""

_HEAD = Struct("!BQ")
_READ = 1 << 18
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

    Args:
        plug: the socket; it must not be used in another way.
        limit: most bytes of a message that comes; None where there is no limit.
    """

    def __init__(self, plug: socket.socket, limit: int | None = None) -> None:
        plug.setblocking(False)
        self._plug = plug
        self.limit = limit
        self._out: deque[memoryview] = deque()
        self._parts: list[bytes] = []  # of what has come and is no whole message yet
        self._came = 0

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self._plug.fileno()

    # -- sending ----------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Whether bytes wait to be sent: call :meth:`flush` when the socket can take some."""
        return bool(self._out)

    def put(self, kind: int, *parts: bytes) -> None:
        """Send a message; what the socket does not take now is kept.

        Raises:
            OSError: the connection has ended.
        """
        self._out.append(memoryview(_HEAD.pack(kind, sum(map(len, parts)))))
        self._out += (memoryview(part) for part in parts if part)
        self.flush()

    def flush(self) -> bool:
        """Send what the socket takes; return whether that was anything.

        Raises:
            OSError: the connection has ended.
        """
        any_sent = False
        while self._out:
            first = self._out[0]
            try:
                sent = self._plug.send(first)
            except BlockingIOError:
                break
            any_sent = True
            if sent < len(first):
                self._out[0] = first[sent:]
            else:
                self._out.popleft()
        return any_sent

    # -- receiving --------------------------------------------------------------------------

    def take(self) -> Iterator[Message]:
        """Return the messages that have come by now.

        Raises:
            EOFError: the other end is closed.
            OSError: the connection has ended, or a message is too long.
        """
        try:
            data = self._plug.recv(_READ)
        except BlockingIOError:
            return iter(())
        if not data:
            raise EOFError
        self._parts.append(data)
        self._came += len(data)
        return iter(self._whole())

    def _whole(self) -> list[Message]:
        messages = []
        while (end := self._end()) and self._came >= end:
            data = b"".join(self._parts)
            messages.append(Message(data[0], data[_HEAD.size : end]))
            self._parts, self._came = [data[end:]], self._came - end
        return messages

    def _end(self) -> int:
        """Return the length of the first message with its head; 0 while it is not known."""
        if self._came < _HEAD.size:
            return 0
        if len(self._parts[0]) < _HEAD.size:
            self._parts = [b"".join(self._parts)]
        end = _HEAD.size + _HEAD.unpack_from(self._parts[0])[1]
        if self.limit is not None and end > self.limit:
            raise TooLongError(f"a message of {end} bytes")
        return int(end)

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


# -- proofs -------------------------------------------------------------------------------------

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


# -- connections --------------------------------------------------------------------------------

LOST_S = 5
"""Seconds after which a connection counts as cut that does not take what is sent."""


def keep_alive(plug: socket.socket) -> None:
    """Let a connection end by itself where the other host is cut off."""
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, LOST_S - 2)
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * LOST_S)
