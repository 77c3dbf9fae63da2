"""Entries: their form, and how they are written, delivered, and read.

A process collects its transfers of a superstep in a :class:`SendBuffer`. After a meeting, the
others find there what is for them, their :class:`Arrivals`, and deliver it.

An **entry** describes one transfer, with its data behind it::

    word 0    kind << 60 | slot << 40 | bytes of the data
    word 1    of a plain put: first byte in the array there; of all others: bytes of the
              description, and above bit 32 the number of indices that begin the data
    then      the description, up to a multiple of eight bytes; a plain put has none
    then      the data, up to a multiple of eight bytes

Most kinds exist twice. The data of a *staged* entry lie elsewhere: in their place the entry
has the number that says where, which only the backend understands; where processes share memory
it is the byte at which they begin.

The entries for one receiver follow each other in **chunks**, each twice as large as the one
before::

    word 0    the byte at which the next chunk begins; 0 in the last one
    word 1    bytes of this chunk that are used, these two words included

A send buffer begins with a table of the first chunk of each receiver, by pid; behind the last one
is that of the entries for all. If a superstep has only one entry, and that one is small, it is
kept apart: it is the **inline entry**, and is copied into the cell of the post.

Processes name memory to each other by a **byte**: the number of the byte in the memory that all
of them share. Where they share no memory, the byte is an address.

Two send buffers are used in turn. PROTOCOL.md argues when a send buffer is free again.
"""

from __future__ import annotations

import marshal
from array import array as numbers
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.kinds import (
    ASK,
    BYTE_MASK,
    DESCRIPTION_MASK,
    IN_BUFFER,
    INDICES_SHIFT,
    INLINE,
    INLINE_BYTES,
    INLINE_SIZE_MASK,
    KIND_SHIFT,
    MESSAGE,
    MOST_SLOTS,
    PUT,
    RECEIVER_SHIFT,
    SIZE_MASK,
    SLOT_SHIFT,
    STAGED_MESSAGE,
    STAGED_PLACED,
    STAGED_PUT,
    STRIDED,
)
from bsplib.core.meeting import Meeting
from bsplib.core.queue import Queue
from bsplib.sync_kinds import KIND_BITS

if not cython.compiled:
    from bsplib.core.atomics import (
        address_of,
        array_at,
        bytearray_at,
        bytes_at,
        copy,
        copy_out,
        nbytes_of,
        peek,
        poke,
        prepare,
        wrapped,
        write_bytes,
    )
    from bsplib.core.known_arrays import scatter
prepare()

HEAD_BYTES = 16
"""The two words at the beginning of an entry, and of a chunk."""
MOST_LARGE = 1 << 17
"""Most bytes of a value that is large, and is in the send buffer all the same."""
_MOST_OF_LARGE = 2 * MOST_LARGE
"""Most bytes of all such values of a superstep: a send buffer keeps its memory."""
_LEAST_CHUNK = 64
_MOST_CHUNK = 1 << 16
_LEAST_BLOCK = 1 << 13

MOST_HEADS = 4096
"""Heads of messages that are kept at most: most programs send the same ones again."""
_BYTE = np.dtype(np.uint8)

Block = tuple[int, int, int]
"""Memory of a send buffer: its byte, its address, its size."""
Entry = tuple[int, int, int, bytes, int, int, int]
"""An entry that was read: its kind; the slot and the first byte of a plain put; the description;
the number of indices; where the data are; and their bytes. A place is the address of the data, or
the number that says where they are staged."""


class PrivateMemory:
    """Memory of this process alone, for the send buffers of a group without shared memory."""

    def __init__(self) -> None:
        self._arrays: list[Any] = []

    def allocate(self, nbytes: int) -> Block:
        """Return a block of ``nbytes`` bytes; its byte is its address."""
        memory = np.empty(nbytes, np.uint8)
        self._arrays.append(memory)
        address = address_of(memory)
        return address, address, nbytes


class SendBuffer:
    """The entries of one process in one group.

    Args:
        pid: this process.
        nprocs: number of processes of the group.
        allocate: returns a new block of at least the number of bytes that it is given.
    """

    def __init__(self, pid: int, nprocs: int, allocate: Callable[[int], Block]) -> None:
        self.pid = pid
        self.nprocs = nprocs
        self.all = nprocs
        """Stands in place of a receiver for all processes, this one too."""
        self.holds_inline = False
        self.holds_more = False
        self._allocate = allocate
        # By receiver; made when the first send buffer is opened.
        self._next = self._stop = self._chunk = self._touched = numbers("Q", [0])
        self._count = 0
        self._large_bytes = 0
        self._inline_memory = np.zeros(32, np.uint64)
        self._inline = address_of(self._inline_memory)
        self._inline_to = 0
        self._inline_bytes = 0
        self._blocks: tuple[list[Block], list[Block]] = [], []
        self._side = 0
        self._used_blocks = 0
        self._table = 0
        self._table_byte = 0
        self._top = 0
        self._end = 0
        self._delta = 0

    def reserve(self, to: int, head: int, first: int, nbytes: int) -> int:
        """Begin an entry; return the address at which its data are to be written.

        Args:
            to: the receiver, or ``all``.
            head: kind and slot of the entry, shifted, and its bytes of data.
            first: word 1 of the entry.
            nbytes: bytes behind the two words.

        Raises:
            OutOfSharedMemoryError: there is no memory for it.
        """
        size = HEAD_BYTES + ((nbytes + 7) & ~7)
        if not self.holds_more:
            if not self.holds_inline and size <= INLINE_BYTES and to != self.pid:
                self.holds_inline = True
                self._inline_to = to
                self._inline_bytes = size
                poke(self._inline, head)
                poke(self._inline + 8, first)
                return self._inline + HEAD_BYTES
            self._open()
        entry = self._next[to]
        if entry + size > self._stop[to]:
            entry = self._new_chunk(to, size)
        poke(entry, head)
        poke(entry + 8, first)
        self._next[to] = entry + size
        return entry + HEAD_BYTES

    def describe(
        self,
        to: int,
        kind: int,
        description: bytes,
        indices: int,
        data: Any,
    ) -> None:
        """Add an entry with a description; its data are those of a contiguous array.

        Args:
            to: the receiver.
            kind: of the entry, an odd number.
            description: says what it is.
            indices: how many indices the data begin with.
            data: the array.
        """
        nbytes = nbytes_of(data)
        at = self.reserve_described(to, kind, description, indices, nbytes, nbytes)
        copy_out(at, address_of(data), nbytes)

    def describe_staged(
        self,
        to: int,
        kind: int,
        description: bytes,
        indices: int,
        where: int,
        nbytes: int,
    ) -> None:
        """Do as :meth:`describe` for staged data.

        Args:
            to: the receiver.
            kind: of the entry, an even number.
            description: says what it is.
            indices: as for :meth:`reserve_described`.
            where: the number that says where the data are.
            nbytes: of the data.
        """
        poke(self.reserve_described(to, kind, description, indices, nbytes, 8), where)

    def reserve_described(
        self,
        to: int,
        kind: int,
        description: bytes,
        indices: int,
        nbytes: int,
        behind: int,
    ) -> int:
        """Begin an entry with a description; return the address at which its data are written.

        Args:
            to: the receiver.
            kind: of the entry.
            description: says what it is.
            indices: how many indices the data begin with.
            nbytes: of the data.
            behind: bytes that the entry has behind the description.
        """
        size = len(description)
        padded = size + 7 & ~7
        first = indices << INDICES_SHIFT | size
        at = self.reserve(to, kind << KIND_SHIFT | nbytes, first, padded + behind)
        write_bytes(at, description)
        return at + padded

    def takes(self, nbytes: int) -> bool:
        """Tell whether the buffer takes a large value of this superstep, and count it if it does.

        It takes a few. What it does not take is staged, which costs more at each superstep, but
        gives memory back that is used no longer.
        """
        if nbytes > MOST_LARGE or self._large_bytes + nbytes > _MOST_OF_LARGE:
            return False
        self._large_bytes += nbytes
        return True

    def _open(self) -> None:
        """Begin to use the buffer of this superstep; the inline entry becomes its first entry."""
        blocks = self._blocks[self._side]
        if not blocks:
            blocks.append(self._allocate(max(_LEAST_BLOCK, 16 * (self.nprocs + 1))))
            if not self._blocks[1 - self._side]:
                none = bytes(8 * (self.nprocs + 1))
                self._next, self._stop = numbers("Q", none), numbers("Q", none)
                self._chunk, self._touched = numbers("Q", none), numbers("Q", none)
        self._used_blocks = 1
        self._enter(blocks[0])
        self._table, self._table_byte = self._top, wrapped(self._top - self._delta)
        for pid in range(self.nprocs + 1):
            poke(self._table + 8 * pid, 0)
        self._top = self._table + 8 * (self.nprocs + 1)
        self.holds_more = True
        if self.holds_inline:
            self.holds_inline = False
            entry = self._new_chunk(self._inline_to, self._inline_bytes)
            copy(entry, self._inline, self._inline_bytes)
            self._next[self._inline_to] = entry + self._inline_bytes

    def _enter(self, block: Block) -> None:
        """Take chunks from a block from now on."""
        byte, address, nbytes = block
        self._delta = wrapped(address - byte)
        self._top, self._end = address, address + nbytes

    def _new_chunk(self, to: int, size: int) -> int:
        """Return where the next entry for a receiver begins, in a new chunk."""
        last = self._chunk[to]
        chunk_bytes = _LEAST_CHUNK
        if last:
            used = self._next[to] - last
            chunk_bytes = min(max(2 * used, _LEAST_CHUNK), _MOST_CHUNK)
        chunk_bytes = max(chunk_bytes, HEAD_BYTES + size + 7 & ~7)
        if self._top + chunk_bytes > self._end:
            self._next_block(chunk_bytes)
        chunk = self._top
        self._top = chunk + chunk_bytes
        poke(chunk, 0)
        if last:
            poke(last, wrapped(chunk - self._delta))
            poke(last + 8, self._next[to] - last)
        else:
            poke(self._table + 8 * to, wrapped(chunk - self._delta))
            self._touched[self._count] = to
            self._count += 1
        self._chunk[to] = chunk
        self._next[to] = chunk + HEAD_BYTES
        self._stop[to] = chunk + chunk_bytes
        return chunk + HEAD_BYTES

    def _next_block(self, nbytes: int) -> None:
        """Take chunks from another block, which has room for ``nbytes`` bytes."""
        blocks = self._blocks[self._side]
        while self._used_blocks < len(blocks):
            block = blocks[self._used_blocks]
            self._used_blocks += 1
            if block[2] >= nbytes:
                self._enter(block)
                return
        block = self._allocate(max(nbytes, 2 * blocks[len(blocks) - 1][2]))
        blocks.append(block)
        self._used_blocks += 1
        self._enter(block)

    def complete(self, cell: int) -> int:
        """Complete the entries; return the head word of a post with them, 0 if there are none.

        Args:
            cell: address behind the head word in the cell of the post, for the inline entry.
        """
        if self.holds_inline:
            copy(cell, self._inline, self._inline_bytes)
            return INLINE << KIND_SHIFT | self._inline_to << RECEIVER_SHIFT | self._inline_bytes
        if not self.holds_more:
            return 0
        for number in range(self._count):
            to = self._touched[number]
            poke(self._chunk[to] + 8, self._next[to] - self._chunk[to])
        return IN_BUFFER << KIND_SHIFT | self._table_byte

    def unfold(self) -> None:
        """Make the inline entry an entry like any other, and complete all entries."""
        if self.holds_inline:
            self._open()
        self.complete(0)

    def change_side(self) -> None:
        """Begin the next superstep after a post: with the other buffer, which is free by now."""
        if self.holds_more:
            self._side = 1 - self._side
        self.clear()

    def clear(self) -> None:
        """Drop all entries."""
        self.holds_inline = False
        self._large_bytes = 0
        if self.holds_more:
            self.holds_more = False
            for number in range(self._count):
                to = self._touched[number]
                self._chunk[to] = self._next[to] = self._stop[to] = 0
            self._count = 0

    def first_byte(self, to: int) -> int:
        """Return the byte of the first chunk for a receiver; 0 if there is none.

        The entries are complete; see :meth:`unfold`.
        """
        return peek(self._table + 8 * to) if self.holds_more else 0


class Arrivals:
    """The entries that others have for one process of a group.

    Args:
        pid: this process.
        nprocs: number of processes of the group.
        meeting: has brought them.
        slow_path: the ``Supersteps`` of the group: writes puts to what is not contiguous here.
        most_in_buffer: bytes up to which values are copied into send buffers.
    """

    def __init__(
        self, pid: int, nprocs: int, meeting: Meeting, slow_path: Any, most_in_buffer: int
    ) -> None:
        self.queue = Queue()
        """The messages that the program can read."""
        self.kinds_differ = False
        """The processes did not end the superstep in the same way."""
        self._pid = pid
        self._nprocs = nprocs
        self._meeting = meeting
        self._slow_path = slow_path
        self._most_in_buffer = most_in_buffer
        self._here = numbers("Q", bytes(8 * 16))
        """The addresses of the registered arrays of this process, by slot; 0 for an array that is
        not contiguous."""
        self._heads: dict[bytes, Any] = {}
        """The heads of messages that have come before, by their encoded form."""
        self._is_open = False
        """The next two arrays have the right size."""
        self._first = self._stop = numbers("Q", [0])
        """By source: where its entries for this process begin, and where those of an inline entry
        end."""
        self._any_inline = False
        """One of them is an inline entry."""
        self._inline: Any = None
        """Memory for copies of inline entries."""
        self._chunk = self._chunk_byte = 0
        """Address and byte of the chunk whose entries are delivered, in memory of their sender; 0
        for entries that are not there."""

    def define(self, slot: int, address: int) -> None:
        """Note the address of a registered array; 0 if it is not contiguous."""
        size = len(self._here)
        if slot >= size:
            longer = numbers("Q", bytes(16 * max(size, slot + 1)))
            longer[:size] = numbers("Q", self._here)
            self._here = longer
        self._here[slot] = address

    # -- to find them -------------------------------------------------------------------------

    def find(self, flags: int) -> int:
        """Find the entries after a meeting; return what the flags of all processes say together.

        Args:
            flags: of this process at the meeting.
        """
        if not self._is_open:
            self._is_open = True
            none = bytes(8 * self._nprocs)
            self._first, self._stop = numbers("Q", none), numbers("Q", none)
        meeting, all_flags = self._meeting, flags
        self.kinds_differ = self._any_inline = False
        for source in range(self._nprocs):
            theirs = meeting.flags_of(source)
            all_flags |= theirs
            if (theirs ^ flags) & KIND_BITS:
                self.kinds_differ = True
            self._first[source] = self._stop[source] = 0
            head = meeting.head_of(source)
            if head:
                self._find_from(source, head)
        return all_flags

    def _find_from(self, source: int, head: int) -> int:
        """Find the entries of a process, which has a head word in its post."""
        meeting, kind = self._meeting, head >> KIND_SHIFT
        if kind == INLINE:
            if (head & BYTE_MASK) >> RECEIVER_SHIFT == self._pid:
                self._first[source] = meeting.inline_of(source)
                self._stop[source] = self._first[source] + (head & INLINE_SIZE_MASK)
                self._any_inline = True
        elif kind == IN_BUFFER:
            self._first[source] = peek(meeting.address_of(head & BYTE_MASK) + 8 * self._pid)
        else:
            self._first[source] = meeting.inline_of(source)
            self._stop[source] = self._first[source] + meeting.size_of(source)
        return 0

    def keep_inline(self) -> None:
        """Copy the inline entries.

        They lie in cells, which the others may write again as soon as they have passed the next
        meeting of this superstep.
        """
        if not self._any_inline:
            return
        if self._inline is None:
            self._inline = np.empty(INLINE_BYTES * self._nprocs, np.uint8)
        at = address_of(self._inline)
        for source in range(self._nprocs):
            nbytes = self._stop[source] - self._first[source]
            if self._stop[source] and nbytes <= INLINE_BYTES:
                copy(at, self._first[source], nbytes)
                self._first[source] = at
                self._stop[source] = at + nbytes
                at += INLINE_BYTES

    def entries_of(self, source: int) -> list[Entry]:
        """Return the entries of a process for this one that the last meeting has brought."""
        if self._stop[source]:
            return entries_between(self._first[source], self._stop[source])
        return entries_at(self._meeting, self._first[source])

    def posted_for(self, source: int, receiver: int) -> list[Entry]:
        """Return the entries in the post of a process at the last meeting.

        Args:
            source: that process.
            receiver: this process, or the number of processes for what is for all. Where entries
                are sent, those for this process and for all are not told apart.
        """
        meeting = self._meeting
        head = meeting.head_of(source)
        kind = head >> KIND_SHIFT
        if kind == IN_BUFFER:
            table = meeting.address_of(head & BYTE_MASK)
            return entries_at(meeting, peek(table + 8 * receiver))
        if kind == 0 or (kind == INLINE and (head & BYTE_MASK) >> RECEIVER_SHIFT != receiver):
            return []
        at = meeting.inline_of(source)
        size = head & INLINE_SIZE_MASK if kind == INLINE else meeting.size_of(source)
        return entries_between(at, at + size)

    # -- to deliver them ----------------------------------------------------------------------

    def apply_all(self) -> int:
        """Write all puts, and queue all messages, in the order of their sources."""
        for source in range(self._nprocs):
            first = self._first[source]
            if self._stop[source]:
                self.apply(source, first, self._stop[source])
                continue
            while first:
                chunk = self._meeting.address_of(first)
                self._chunk, self._chunk_byte = chunk, first
                self.apply(source, chunk + HEAD_BYTES, chunk + peek(chunk + 8))
                first = peek(chunk)
        self._chunk = 0
        return 0

    def apply(self, source: int, at: int, stop: int) -> int:
        """Write the puts, and queue the messages, whose entries lie between two addresses."""
        while at < stop:
            head, first = peek(at), peek(at + 8)
            at += HEAD_BYTES
            kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
            if kind == PUT:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    self._slow_path.write_gaps(slot, first, array_at((nbytes,), _BYTE, at, nbytes))
                elif nbytes == 8:
                    copy(here + first, at, 8)  # the compiler makes this one load and one store
                else:
                    copy(here + first, at, nbytes)
                at += (nbytes + 7) & ~7
            elif kind == STAGED_PUT:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                self._write_staged(source, slot, first, peek(at), nbytes)
                at += 8
            elif kind <= STAGED_MESSAGE:
                at = self._receive(source, kind, at, first & DESCRIPTION_MASK, nbytes)
            elif kind == STRIDED:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    values = array_at((nbytes,), _BYTE, at + first, nbytes)
                    self._slow_path.write_strided(slot, bytes_at(at, first), values)
                else:
                    scatter(at, here, at + first)
                at += first + ((nbytes + 7) & ~7)
            else:
                at = self._place(source, kind, at, first, nbytes)
        return 0

    def _write_staged(self, source: int, slot: int, first: int, where: int, nbytes: int) -> int:
        """Write a put whose values are staged."""
        here = self._here[slot]
        if here == 0 or not self._meeting.shares_memory:
            self._slow_path.write_gaps(slot, first, self._slow_path.fetch(source, where, nbytes))
        else:
            copy(here + first, self._meeting.address_of(where), nbytes)
        return 0

    def _receive(self, source: int, kind: int, at: int, size: int, nbytes: int) -> int:
        """Add a message to the queue; return the address behind its entry."""
        head = self._head_in(bytes_at(at, size))
        at += (size + 7) & ~7
        if kind == MESSAGE:
            content = self._content(source, head, at, nbytes)
            self.queue.messages.append((source, head, content))
            return at + ((nbytes + 7) & ~7)
        self.queue.messages.append((source, head, (source, peek(at), nbytes)))
        return at + 8

    def _content(self, source: int, head: Any, at: int, nbytes: int) -> Any:
        """Return the content of a message whose payload lies at an address."""
        if nbytes <= self._most_in_buffer or head[2][0] != "array":
            return bytes_at(at, nbytes)
        if self._chunk and type(head[0]) is tuple:
            # A collective reads it before the next superstep, and knows whether it needs a copy.
            return source, wrapped(self._chunk_byte + at - self._chunk), nbytes
        # It is copied once: the program gets the array of this very memory.
        return bytearray_at(at, nbytes)

    def _place(self, source: int, kind: int, at: int, first: int, nbytes: int) -> int:
        """Write a put with a description, or pass what is no put; return what is behind it."""
        size = first & DESCRIPTION_MASK
        data = at + ((size + 7) & ~7)
        stop = data + ((nbytes + 7) & ~7 if kind & 1 else 8)
        if kind > STAGED_PLACED:
            return stop
        values = (
            array_at((nbytes,), _BYTE, data, nbytes)
            if kind & 1
            else self._slow_path.fetch(source, peek(data), nbytes)
        )
        self._slow_path.write_placed(bytes_at(at, size), first >> INDICES_SHIFT, values)
        return stop

    def _head_in(self, encoded: bytes) -> Any:
        """Return a head of a message decoded."""
        head = self._heads.get(encoded)
        if head is None:
            head = marshal.loads(encoded)
            if len(self._heads) > MOST_HEADS:
                self._heads.clear()
            self._heads[encoded] = head
        return head


def entries_at(meeting: Meeting, byte: int) -> list[Entry]:
    """Return the entries in a row of chunks.

    Args:
        meeting: finds the chunks.
        byte: of the first chunk; 0 if there is none.
    """
    entries: list[Entry] = []
    while byte:
        chunk = meeting.address_of(byte)
        entries += entries_between(chunk + HEAD_BYTES, chunk + peek(chunk + 8))
        byte = peek(chunk)
    return entries


def entries_between(at: int, stop: int) -> list[Entry]:
    """Return the entries between two addresses."""
    entries: list[Entry] = []
    while at < stop:
        head, first = peek(at), peek(at + 8)
        at += HEAD_BYTES
        kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
        slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
        description, indices = b"", 0
        if kind > STAGED_PUT:
            indices, size = first >> INDICES_SHIFT, first & DESCRIPTION_MASK
            description = bytes_at(at, size)
            at += (size + 7) & ~7
        if kind & 1:
            entries.append((kind, slot, first, description, indices, at, nbytes))
            at += (nbytes + 7) & ~7
        else:
            entries.append((kind, slot, first, description, indices, peek(at), nbytes))
            at += 8
    return entries


def joined(meeting: Meeting, byte: int) -> bytes:
    """Return the bytes of the entries in a row of chunks, one entry after the other."""
    parts: Any = []
    while byte:
        chunk = meeting.address_of(byte)
        parts.append(bytes_at(chunk + HEAD_BYTES, peek(chunk + 8) - HEAD_BYTES))
        byte = peek(chunk)
    found: bytes = parts[0] if len(parts) == 1 else b"".join(parts)
    return found


def by_receiver(meeting: Meeting, head: int, nprocs: int) -> dict[int, bytes]:
    """Return the entries of a post of this process, by receiver; ``nprocs`` stands for all.

    Args:
        meeting: knows where the inline entry and the chunks are.
        head: head word of the post; 0 if it has no entries.
        nprocs: number of processes of the group.
    """
    kind, found = head >> KIND_SHIFT, {}
    if kind == INLINE:
        entry = bytes_at(meeting.inline_address(), head & INLINE_SIZE_MASK)
        found[(head & BYTE_MASK) >> RECEIVER_SHIFT] = entry
    elif kind == IN_BUFFER:
        table = meeting.address_of(head & BYTE_MASK)
        for to in range(nprocs + 1):
            first = peek(table + 8 * to)
            if first:
                found[to] = joined(meeting, first)
    return found


def amounts_of(sent: Any) -> Any:
    """Return what :func:`add_amounts` finds in entries that are bytes."""
    memory, amounts = np.frombuffer(sent, np.uint8), np.zeros(2, np.uint64)
    at = address_of(memory)
    add_amounts(at, at + nbytes_of(memory), amounts)
    return amounts.tolist()


def add_amounts(at: int, stop: int, amounts: Any) -> int:
    """Add what the puts and messages between two addresses transfer.

    Args:
        at: where the entries begin.
        stop: where they end.
        amounts: bytes of payload, and number of transfers: two 64-bit words.
    """
    while at < stop:
        head = peek(at)
        kind = head >> KIND_SHIFT
        if kind < ASK:
            amounts[0] += head & SIZE_MASK
            amounts[1] += 1
            if kind > STAGED_PUT:
                amounts[0] -= index_bytes(peek(at + 8) >> INDICES_SHIFT)
        at = behind(at)
    return 0


def behind(at: int) -> int:
    """Return the address behind the entry at an address."""
    head = peek(at)
    kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
    description = 0
    if kind > STAGED_PUT:
        description = ((peek(at + 8) & DESCRIPTION_MASK) + 7) & ~7
    return at + HEAD_BYTES + description + ((nbytes + 7) & ~7 if kind & 1 else 8)


def index_bytes(indices: int) -> int:
    """Return how many bytes some indices take: what follows them is aligned for every dtype."""
    return (8 * indices + 15) & ~15
