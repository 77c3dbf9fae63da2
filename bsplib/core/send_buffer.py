"""The send buffer: memory in which a process collects its transfers of a superstep.

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

from array import array as numbers
from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.kinds import IN_BUFFER, INLINE, INLINE_BYTES, KIND_SHIFT

if not cython.compiled:
    from bsplib.core.atomics import address_of, copy, peek, poke, prepare, wrapped
prepare()

DESCRIPTION_MASK = (1 << 32) - 1
SLOT_SHIFT = 40
SIZE_MASK = (1 << 40) - 1
MOST_SLOTS = 1 << 20
HEAD_BYTES = 16
"""The two words at the beginning of an entry, and of a chunk."""
INLINE_COPY_BYTES = 256
"""Bytes that are set aside for a copy of an inline entry."""
BYTE_MASK = (1 << 60) - 1

RECEIVER_SHIFT = 32
INLINE_SIZE_MASK = (1 << 32) - 1
"""The bits of the head word that have the size of an inline entry. The receiver is in the bits
above."""

_MOST_LARGE = 1 << 17
"""Most bytes of a value that is large, and is in the send buffer all the same."""
_MOST_OF_LARGE = 1 << 18
"""Most bytes of all such values of a superstep: a send buffer keeps its memory."""
_LEAST_CHUNK = 64
_MOST_CHUNK = 1 << 16
_LEAST_BLOCK = 1 << 13

Block = tuple[int, int, int]
"""Memory of a send buffer: its byte, its address, its size."""


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
        self._turn = 0
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

    def takes(self, nbytes: int) -> bool:
        """Tell whether the buffer takes a large value of this superstep, and count it if it does.

        It takes a few. What it does not take is staged, which costs more at each superstep, but
        gives memory back that is used no longer.
        """
        if nbytes > _MOST_LARGE or self._large_bytes + nbytes > _MOST_OF_LARGE:
            return False
        self._large_bytes += nbytes
        return True

    def _open(self) -> None:
        """Begin to use the buffer of this superstep; the inline entry becomes its first entry."""
        blocks = self._blocks[self._turn]
        if not blocks:
            blocks.append(self._allocate(max(_LEAST_BLOCK, 16 * (self.nprocs + 1))))
            if not self._blocks[1 - self._turn]:
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
        blocks = self._blocks[self._turn]
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

    def turn(self) -> None:
        """Begin the next superstep after a post: with the other buffer, which is free by now."""
        if self.holds_more:
            self._turn = 1 - self._turn
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
