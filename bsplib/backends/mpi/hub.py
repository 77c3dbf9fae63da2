"""The driver's end of the control connections: one from the watcher of each rank."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import select
import socket
import struct
import time
from typing import NamedTuple

from bsplib.backends.limits import check_descriptors
from bsplib.backends.mpi import control
from bsplib.backends.mpi.control import LIMIT, Message, Stream, keep_alive
from bsplib.backends.mpi.watcher import Hub as Address

_PING_S = 1.0
"""Seconds between two questions whether a watcher is there."""
_UNANSWERED = 5
"""Questions without an answer, and without another sign, after which a host counts as lost."""
_SILENT = (
    f"was lost (its host has not answered for {_UNANSWERED * _PING_S:.0f} s: stopped, or cut off)"
)
_BACKLOG = 512
_PROVE_S = 10.0
"""Seconds within which whoever connects has to show that he knows the key."""
_FURTHER = 16
"""File descriptors for mpiexec, and for those who connect and cannot show the key."""
_GET_ADDRESS = 0x8915
"""SIOCGIFADDR of <linux/sockios.h>."""


class News(NamedTuple):
    """Something about a rank."""

    rank: int
    message: Message | None
    """A message of its watcher; None where the connection has ended."""
    why: str = ""
    """Why the connection has ended, as text that follows ``process 3``."""
    superstep: int = 0
    """Where the connection has ended: the last superstep that is known."""


class _Guest:
    """Somebody who has connected; a watcher once the proof has come."""

    def __init__(self, plug: socket.socket) -> None:
        self.plug = plug
        self.stream = Stream(plug, LIMIT)
        self.challenge = control.challenge()
        self.until = time.monotonic() + _PROVE_S
        self.rank = -1
        self.os_pid = 0
        self.unanswered = 0
        self.is_stopped = False
        self.superstep = 0


class Hub:
    """Listens for watchers, and exchanges messages with them; polled by one thread.

    Args:
        size: number of watchers.

    Raises:
        StartError: this process may not open all connections.
    """

    def __init__(self, size: int) -> None:
        check_descriptors(size, size + _FURTHER)
        self._key = control.challenge()
        self._listener = socket.create_server(("", 0), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._listener, select.POLLIN)
        self._guests: dict[int, _Guest] = {}  # by descriptor
        self._ranks: dict[int, _Guest] = {}
        self._next_ping = time.monotonic()
        self.hosts: dict[int, str] = {}
        """Names of the hosts of the ranks that have connected."""
        self.systems: dict[int, bytes] = {}
        """The :func:`bsplib.backends.proc_visibility.system_key` of each of them."""

    def address(self) -> Address:
        """Return what a watcher needs to connect."""
        port = self._listener.getsockname()[1]
        return Address(tuple((host, port) for host in _own_addresses()), self._key)

    # -- to watchers ------------------------------------------------------------------------

    def send(self, rank: int, kind: int, *parts: bytes) -> None:
        """Send a message; one to a rank whose connection has ended is dropped."""
        guest = self._ranks.get(rank)
        if guest is None:
            return
        with contextlib.suppress(OSError):  # found when the connection is read
            guest.stream.put(kind, *parts)
        self._register(guest)

    def send_all(self, kind: int, *parts: bytes) -> None:
        """Send a message to all ranks that are connected."""
        for rank in [*self._ranks]:
            self.send(rank, kind, *parts)

    def has_unsent(self) -> bool:
        """Tell whether a message to a rank has not been sent to its end yet."""
        return any(guest.stream.unsent for guest in self._ranks.values())

    def connected(self) -> list[int]:
        """Return the ranks that are connected."""
        return sorted(self._ranks)

    def is_stopped(self, rank: int) -> bool:
        """Tell whether a rank was stopped by a signal when its watcher was asked last."""
        return rank in self._ranks and self._ranks[rank].is_stopped

    def os_pid(self, rank: int) -> int:
        """Return the number of a rank in the operating system of its host."""
        return self._ranks[rank].os_pid if rank in self._ranks else 0

    def superstep(self, rank: int) -> int:
        """Return the superstep in which a rank was when its watcher was asked last."""
        return self._ranks[rank].superstep if rank in self._ranks else 0

    # -- from watchers ----------------------------------------------------------------------

    def also(self, descriptor: int, *, watch: bool) -> None:
        """Wake a call of :meth:`wait` when another descriptor can be read, or no more."""
        (self._poll.register if watch else self._poll.unregister)(descriptor)

    def wait(self, seconds: float) -> list[News]:
        """Wait for news, at most some seconds; ask now and then who is there."""
        seconds = max(min(seconds, self._next_ping - time.monotonic()), 0)
        news: list[News] = []
        for descriptor, event in self._poll.poll(1000 * seconds):
            if descriptor == self._listener.fileno():
                self._accept()
            elif (guest := self._guests.get(descriptor)) is not None:
                news += self._attend(guest, event)
        if time.monotonic() >= self._next_ping:
            news += self._ping()
            self._next_ping = time.monotonic() + _PING_S
        return news

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it has gone already
            plug, _ = self._listener.accept()
            guest = _Guest(plug)
            self._guests[plug.fileno()] = guest
            self._register(guest)
            try:
                guest.stream.put(control.CHALLENGE, guest.challenge)
            except OSError:
                self._drop(guest)

    def _register(self, guest: _Guest) -> None:
        events = select.POLLIN | (select.POLLOUT if guest.stream.unsent else 0)
        self._poll.register(guest.stream, events)

    def _attend(self, guest: _Guest, event: int) -> list[News]:
        try:
            if guest.stream.flush():
                guest.unanswered = 0
            self._register(guest)
            if not event & ~select.POLLOUT:
                return []
            messages = guest.stream.take()
            guest.unanswered = 0
            if guest.rank < 0:
                for message in messages:
                    self._greet(guest, message)
                return []
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as reason:
            return self._lose(guest, _ended(reason))
        return [News(guest.rank, each) for each in messages if not self._is_pong(guest, each)]

    def _is_pong(self, guest: _Guest, message: Message) -> bool:
        """Tell whether a message only says that somebody is there; note what it says."""
        if message.kind != control.PONG:
            return False
        guest.is_stopped, guest.superstep = control.STATE.unpack(message.content)
        return True

    def _greet(self, guest: _Guest, message: Message) -> None:
        """Check that somebody is a watcher of this job, and answer him.

        Raises:
            ValueError: he is not.
        """
        size = control.KEY_BYTES
        theirs, shown = message.content[:size], message.content[size : 2 * size]
        about = (b"watcher", guest.challenge, theirs)
        if message.kind != control.HELLO or not control.is_proof(shown, self._key, *about):
            raise ValueError
        about_itself = pickle.loads(message.content[2 * size :])  # the proof is right
        guest.rank, guest.os_pid, host, system = about_itself
        self.hosts[guest.rank], self.systems[guest.rank] = host, system
        keep_alive(guest.plug)
        guest.stream.limit = None
        guest.stream.put(control.PROOF, control.proof(self._key, b"hub", theirs, guest.challenge))
        self._ranks[guest.rank] = guest

    def _ping(self) -> list[News]:
        """Ask all watchers whether they are there; return who has not answered for long."""
        news: list[News] = []
        for guest in [*self._guests.values()]:
            if guest.rank < 0:
                if time.monotonic() > guest.until:
                    self._drop(guest)
            elif guest.unanswered >= _UNANSWERED:
                news += self._lose(guest, _SILENT)
            else:
                guest.unanswered += 1
                if not guest.stream.unsent:  # it would come late behind a large message
                    self.send(guest.rank, control.PING)
        return news

    def _lose(self, guest: _Guest, why: str) -> list[News]:
        self._drop(guest)
        if self._ranks.get(guest.rank) is not guest:
            return []
        del self._ranks[guest.rank]
        return [News(guest.rank, None, why, guest.superstep)]

    def _drop(self, guest: _Guest) -> None:
        del self._guests[guest.plug.fileno()]
        self._poll.unregister(guest.stream)
        guest.stream.close()

    # -- the end ----------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections: watchers that are connected end their ranks."""
        for guest in [*self._guests.values()]:
            self._drop(guest)
        self._ranks.clear()
        self._listener.close()


def _ended(reason: Exception) -> str:
    """Return why a connection has ended."""
    if isinstance(reason, EOFError | ConnectionResetError):
        return "was lost (somebody has killed its watcher, and so the process)"
    if isinstance(reason, OSError):
        why = (reason.strerror or str(reason)).lower()
        return f"was lost (its host cannot be reached: {why})"
    return "was lost (what its watcher sends is no message)"


def _own_addresses() -> list[str]:
    """Return the addresses at which other hosts may reach this one, and last the local one."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plug:
        for _, name in socket.if_nameindex():
            asked = struct.pack("256s", os.fsencode(name)[:15])
            with contextlib.suppress(OSError):  # the interface has no address
                answer = fcntl.ioctl(plug.fileno(), _GET_ADDRESS, asked)
                found.append(socket.inet_ntoa(answer[20:24]))
    local = "127.0.0.1"
    return [*(address for address in found if address != local), local]
