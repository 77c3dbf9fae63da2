"""The payloads of one process in one group: those that it sends, and those that come for it.

PROTOCOL.md, section *A meeting*, argues when their memory is used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bsplib.backends.base import Buffer, Handle
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.neighbours import Block, Readable
from bsplib.backends.mpi.receiving import Payload, Place, Post, Size, flat


class Staged(NamedTuple):
    """A payload of this superstep for another process."""

    memory: Buffer
    buffer: Buffer | None
    """In which it lies; None where it was lent, or lies in a block."""
    block: Block | None = None
    """In which it lies, for a neighbour."""
    is_message: bool = False

    @property
    def size(self) -> Size:
        """What the body of its post says of it."""
        place = None if self.block is None else (self.block.start, self.is_message)
        return len(self.memory), place


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
        self._neighbours = membership.neighbours
        self._transfers: list[Readable] = []
        """Blocks of neighbours that are read in this superstep only."""
        self._messages: list[Readable] = []
        """Blocks of neighbours that are read in the next superstep, too."""
        self._messages_before: list[Readable] = []

    # -- to others --------------------------------------------------------------------------

    def stage(self, nbytes: int, to: int, *, is_message: bool = False) -> tuple[Handle, Buffer]:
        """See :meth:`bsplib.backends.base.Port.stage`."""
        if self.is_for_neighbour(to):
            assert self._neighbours is not None
            block = self._neighbours.take(nbytes)
            if block is not None:
                staged = Staged(block.memory, None, block, is_message)
                return self._add(staged, to), block.memory
        buffer = self._link.buffers.take(nbytes)
        memory = buffer[:nbytes]
        return self._add(Staged(memory, buffer), to), memory

    def is_for_neighbour(self, to: int) -> bool:
        """Tell whether a payload for a process can lie in memory that it shares."""
        if self._neighbours is None or to == self._membership.pid:
            return False
        return self._membership.members[to] in self._neighbours

    def lend(self, values: Buffer, to: int) -> Handle:
        """Note values that stay as they are until the superstep has ended; return their handle."""
        return self._add(Staged(values, None), to)

    def _add(self, staged: Staged, to: int) -> Handle:
        memory = staged.memory
        number = self._numbers[to]
        self._numbers[to] = number + 1
        if to == self._membership.pid:
            self._here[to, number] = Payload(len(memory), memory, staged.buffer)
        else:
            self._staged.setdefault(to, []).append(staged)
        return self._membership.pid, number, len(memory)

    def take_staged(self, to: int) -> tuple[int, Sequence[Staged]]:
        """Return what has been staged for a process, after the number of the first payload."""
        staged = self._staged.pop(to, ())
        return self._numbers[to] - len(staged), staged

    def copy_lent(self) -> None:
        """Copy what was lent: it may be sent after the superstep has ended here."""
        for staged in self._staged.values():
            for index, (memory, buffer, block, _) in enumerate(staged):
                if buffer is None and block is None:
                    copy = self._link.buffers.take(len(memory))
                    copy[: len(memory)] = memory
                    staged[index] = Staged(copy[: len(memory)], copy)

    def drop_staged(self) -> None:
        """Give back memory of payloads that belong to no entry: their put has failed."""
        for staged in self._staged.values():
            for _, buffer, block, _ in staged:
                if buffer is not None:
                    self._link.buffers.give(buffer)
                if block is not None and self._neighbours is not None:
                    self._neighbours.give(block)
        self._staged = {}

    # -- for this process -------------------------------------------------------------------

    def open(self, posts: Sequence[Post]) -> None:
        """Take posts apart, whose payloads may then be fetched."""
        self._link.open(posts)
        for post in posts:
            if post.payloads:
                pid = self._membership.pid_of(post.source)
                if post.head.payloads:
                    self._not_started.append(post)
                for number, payload in enumerate(post.payloads, post.first):
                    self._here[pid, number] = payload
                    if payload.place is not None:
                        self._find_in_memory(payload, payload.place)

    def _find_in_memory(self, payload: Payload, place: Place) -> None:
        """Note where a payload lies that a neighbour has staged."""
        assert self._neighbours is not None
        block = self._neighbours.find(place.start, payload.nbytes)
        payload.memory = block.memory
        (self._messages if place.is_message else self._transfers).append(block)

    def fetch(self, handle: Handle) -> memoryview:
        """See :meth:`bsplib.backends.base.Port.fetch`."""
        payload = self._find(handle)
        if payload.memory is None:
            self._start({})
        return self._arrived(payload).data

    def are_to_be_received(self) -> bool:
        """Tell whether payloads have been announced of which no receive has started."""
        return bool(self._not_started)

    def receive(self, landings: Iterable[tuple[Handle, memoryview]]) -> None:
        """See :meth:`bsplib.backends.base.Port.receive`.

        All other payloads that have been announced are received, too, so that the senders can
        send at the same time.
        """
        if not self._not_started:
            return
        places = {}
        for handle, memory in landings:
            payload = self._find(handle)
            if payload.memory is None:
                places[payload] = flat(memory)
        self._start(places)

    def land(self, handle: Handle, memory: memoryview) -> None:
        """See :meth:`bsplib.backends.base.Port.land`.

        A payload is received there if its receive has not started yet.
        """
        payload = self._find(handle)
        if payload.memory is None:
            self._start({payload: flat(memory)})
        came = self._arrived(payload)
        if not payload.is_in_place:
            memory[:] = came.data

    def _arrived(self, payload: Payload) -> Buffer:
        """Wait for a payload that is being received, and return it."""
        if not payload.is_here():
            self._link.wait(payload.is_here)
        assert payload.memory is not None
        return payload.memory

    def _find(self, handle: Handle) -> Payload:
        key = handle[:2]
        return self._here[key] if key in self._here else self._here_before[key]

    def _start(self, places: Mapping[Payload, Buffer]) -> None:
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
        if self._neighbours is not None:
            self._neighbours.have_read(self._transfers + self._messages_before)
            self._messages_before, self._messages, self._transfers = self._messages, [], []
        if self._here_before or self._here:
            for payload in self._here_before.values():
                if payload.buffer is not None:
                    self._link.buffers.give(payload.buffer)
            self._here_before, self._here = self._here, {}

    def leave(self) -> None:
        """Leave the group: nothing that has come there is read any more."""
        self.drop_staged()
        if self._neighbours is not None:
            self._neighbours.have_read(self._transfers + self._messages_before + self._messages)
            self._transfers, self._messages_before, self._messages = [], [], []
