"""The payloads of one process in one group: those that it sends, and those that come for it.

PROTOCOL.md, section *A meeting*, argues when their memory is used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bsplib.backends.base import Room
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.receiving import Payload, Post, flat
from bsplib.backends.parcels import Ticket


class Staged(NamedTuple):
    """A payload of this superstep for another process."""

    room: Room
    buffer: Room | None
    """In which it lies; None where it was lent."""


class Payloads:
    """Payloads of this superstep, and of the one before.

    Args:
        membership: of this process.
    """

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._link = membership.link
        self._staged: dict[int, list[Staged]] = {}
        self._numbers = [0] * membership.nprocs
        """Payloads that have been staged for each process."""
        self._here: dict[tuple[int, int], Payload] = {}
        """Payloads of this superstep, by sender and number."""
        self._here_before: dict[tuple[int, int], Payload] = {}
        self._not_started: list[Post] = []
        """Open posts whose payloads are not being received yet."""

    # -- to others --------------------------------------------------------------------------

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """See :meth:`bsplib.backends.base.Port.stage`."""
        buffer = self._link.buffers.take(nbytes)
        room = buffer[:nbytes]
        return self.add(room, buffer, to), room

    def add(self, room: Room, buffer: Room | None, to: int) -> Ticket:
        """Note a payload for a process; return its ticket.

        Args:
            room: the payload.
            buffer: in which it lies; None where it was lent.
            to: pid.
        """
        number = self._numbers[to]
        self._numbers[to] = number + 1
        if to == self._membership.pid:
            self._here[to, number] = Payload(len(room), room, buffer)
        else:
            self._staged.setdefault(to, []).append(Staged(room, buffer))
        return self._membership.pid, number, len(room)

    def take_staged(self, to: int) -> tuple[int, Sequence[Staged]]:
        """Return what has been staged for a process, after the number of the first payload."""
        staged = self._staged.pop(to, ())
        return self._numbers[to] - len(staged), staged

    def copy_lent(self) -> None:
        """Copy what was lent: it may be sent after the superstep has ended here."""
        for staged in self._staged.values():
            for index, (room, buffer) in enumerate(staged):
                if buffer is None:
                    copy = self._link.buffers.take(len(room))
                    copy[: len(room)] = room
                    staged[index] = Staged(copy[: len(room)], copy)

    def drop_staged(self) -> None:
        """Give back memory of payloads that belong to no parcel: their put has failed."""
        for staged in self._staged.values():
            for _, buffer in staged:
                if buffer is not None:
                    self._link.buffers.give(buffer)
        self._staged = {}

    # -- for this process -------------------------------------------------------------------

    def open(self, posts: Sequence[Post]) -> None:
        """Take posts apart, whose payloads may then be fetched."""
        self._link.open(posts)
        for post in posts:
            if post.payloads:
                pid = self._membership.pid_of(post.source)
                self._not_started.append(post)
                for number, payload in enumerate(post.payloads, post.first):
                    self._here[pid, number] = payload

    def fetch(self, ticket: Ticket) -> memoryview:
        """See :meth:`bsplib.backends.base.Port.fetch`."""
        payload = self._find(ticket)
        if payload.room is None:
            self._start({})
        return self._arrived(payload).data

    def receive(self, landings: Iterable[tuple[Ticket, memoryview]]) -> None:
        """See :meth:`bsplib.backends.base.Port.receive`.

        All other payloads that have been announced are received, too, so that the senders can
        send at the same time.
        """
        if not self._not_started:
            return
        places = {}
        for ticket, room in landings:
            payload = self._find(ticket)
            if payload.room is None:
                places[payload] = flat(room)
        self._start(places)

    def land(self, ticket: Ticket, room: memoryview) -> None:
        """See :meth:`bsplib.backends.base.Port.land`.

        A payload is received there if its receive has not started yet.
        """
        payload = self._find(ticket)
        if payload.room is None:
            self._start({payload: flat(room)})
        came = self._arrived(payload)
        if not payload.is_in_place:
            room[:] = came.data

    def _arrived(self, payload: Payload) -> Room:
        """Wait for a payload that is being received, and return it."""
        if not payload.is_here():
            self._link.wait(payload.is_here)
        assert payload.room is not None
        return payload.room

    def _find(self, ticket: Ticket) -> Payload:
        key = ticket[:2]
        return self._here[key] if key in self._here else self._here_before[key]

    def _start(self, places: Mapping[Payload, Room]) -> None:
        """Start to receive all payloads of open posts."""
        posts, self._not_started = self._not_started, []
        self._link.start_payloads(posts, places)

    # -- the end of a superstep -------------------------------------------------------------

    def await_all(self) -> None:
        """Wait for all payloads of this superstep."""
        if self._not_started:
            self._start({})
        for payload in self._here.values():
            if not payload.is_here():
                self._link.wait(payload.is_here)

    def end_superstep(self) -> None:
        """Begin the next superstep: nobody reads payloads of the one before any more."""
        if self._staged:
            self.drop_staged()
        if self._here_before or self._here:
            for payload in self._here_before.values():
                if payload.buffer is not None:
                    self._link.buffers.give(payload.buffer)
            self._here_before, self._here = self._here, {}
