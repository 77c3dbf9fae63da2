"""Oblivious supersteps over shared memory: a ring of posts for each process.

A process posts and goes on as soon as enough messages have come; it may be ahead
of others by as many supersteps as the ring has elements. CONSUMED tells the others
which of their posts this process will not read again.

The **index** of a post is a table of (byte, length, messages) with one row for each process of the
group. The entries follow it, and bytes are counted from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from struct import Struct

from bsplib.backends.base import AFTER_ALL, Sent
from bsplib.backends.oblivious import NOTHING, Collector, Post
from bsplib.backends.shm.control import CONSUMED, LATEST, POSTED, RING, RING_START
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.segment import Segment
from bsplib.core.kinds import CHUNK_SHIFT

_ROW = Struct("QQQ")


class Oblivious:
    """The oblivious supersteps of one process in one group."""

    def __init__(self, members: Membership) -> None:
        self._members = members
        self._control = members.context.control
        self.collector = Collector(members.members, members.pid, self)
        self.latest = 0
        """The last superstep of the group that this process has ended by oblsync."""

    def post(
        self, entries: Mapping[int, tuple[int, Sent]], reserve: Callable[[int], int], stamp: int
    ) -> None:
        """End the superstep for this process, once an element of the ring is free.

        The port has looked at late posts before.

        Args:
            entries: see :meth:`Port.exchange_oblivious`.
            reserve: called with a number of bytes; returns the byte at which they may be written.
            stamp: time of arrival in ns, or 0.
        """
        self._wait_for_room()
        control, members = self._control, self._members
        element = self._element(members.block, self.collector.ended)
        segment = members.context.segment
        control[element] = _lay_out(segment, reserve, members.nprocs, entries) if entries else 0
        control[element + 1] = stamp
        members.context.fences.order()  # release: the element and the entries, before POSTED
        control[members.block + POSTED] = self.collector.ended + 1
        members.context.fences.order()  # release: the post, before LATEST
        control[members.block + LATEST] = members.superstep
        members.context.waiting.waiter.posted()
        self.latest = members.superstep
        self.collector.end_superstep(stamp)

    def read_everything(self) -> None:
        """Look at late posts; store in CONSUMED which posts this process will not read again.

        A message in a post that came after enough messages had come is an error.
        """
        if self.collector.ended:
            self._consume(self.collector.read_late())

    def has_read_all(self) -> bool:
        """Tell whether the others have posted in all supersteps that this process has ended."""
        self.read_everything()
        return self.collector.has_read_all()

    def leave(self) -> None:
        """Let no other process wait for this one from now on."""
        if self.collector.ended:
            self._consume(AFTER_ALL)

    def least_consumed(self) -> int:
        """Return how many posts of this process no process will read again."""
        least = self.collector.ended
        for pid in self._members.others:
            block = self._members.find(pid)
            least = min(least, self._control[block + CONSUMED] if block else 0)
        self._members.context.fences.order()  # acquire: CONSUMED, before memory is used again
        return least

    def _consume(self, number: int) -> None:
        self._members.context.fences.order()  # release: what was read, before CONSUMED
        self._control[self._members.block + CONSUMED] = number
        self._members.context.waiting.waiter.posted()

    def look(self, number: int, pids: Collection[int]) -> dict[int, Post]:
        members = self._members
        posted = [pid for pid in pids if self._has_posted(pid, number)]
        members.context.fences.order()  # acquire: POSTED, before the ring and the entries
        return {pid: self._read(pid, number) for pid in posted}

    def _read(self, pid: int, number: int) -> Post:
        members, control = self._members, self._control
        element = self._element(members.find(pid), number)
        messages, entries = open_row(members.context.segment, control[element], members.pid)
        return Post(messages, entries, control[element + 1]) if messages else NOTHING

    def _has_posted(self, pid: int, number: int) -> bool:
        block = self._members.find(pid)
        return block != 0 and self._control[block + POSTED] > number

    def wait(self, number: int, pids: Sequence[int]) -> None:
        members = self._members

        def suspect() -> None:
            self.read_everything()
            for pid in pids:
                members.suspect("oblsync", pid, partial(self._has_posted, pid, number))

        members.context.wait(
            lambda: any(self._has_posted(pid, number) for pid in pids),
            [members.root(pid) for pid in pids],
            suspect,
        )

    def _wait_for_room(self) -> None:
        """Stay at most RING oblivious supersteps ahead of the slowest process."""
        floor = self.collector.ended - RING + 1
        if floor > 0 and self.least_consumed() < floor:
            self._members.context.wait(
                lambda: self.least_consumed() >= floor,
                [self._members.root(pid) for pid in self._members.others],
                self.read_everything,
            )

    @staticmethod
    def _element(block: int, number: int) -> int:
        return block + RING_START + number % RING * 2


def _lay_out(
    segment: Segment,
    reserve: Callable[[int], int],
    nprocs: int,
    entries: Mapping[int, tuple[int, Sent]],
) -> int:
    """Write entries and their index into the staging buffer of the superstep.

    Args:
        segment: shared memory of the run.
        reserve: called with a number of bytes; returns the byte at which they may be written.
        nprocs: number of processes of the group.
        entries: as for :meth:`Oblivious.post`; a multiple of eight bytes for each receiver.

    Returns:
        The byte at which the index begins.
    """
    end = _ROW.size * nprocs
    index, parts = bytearray(end), []
    for receiver, (messages, sent) in entries.items():
        _ROW.pack_into(index, _ROW.size * receiver, end, len(sent), messages)
        parts.append(sent)
        end += len(sent)
    start = reserve(end)
    segment.view(start, end)[:] = b"".join([index, *parts])
    return start


def open_row(segment: Segment, index: int, row: int) -> tuple[int, memoryview]:
    """Return the number of messages, and the entries, in a row of an index."""
    if not index:
        return 0, memoryview(b"")
    first, buffer, _ = segment.windows[index >> CHUNK_SHIFT]
    index -= first
    start, nbytes, messages = _ROW.unpack_from(buffer, index + _ROW.size * row)
    return messages, memoryview(buffer)[index + start : index + start + nbytes]
