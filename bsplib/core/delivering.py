"""From a meeting to the destinations of transfers: arrays, and the queue of messages.

Some functions return 0 although nobody reads it: with a result the compiled form finds an error by
a comparison, and without one it would have to ask the interpreter.
"""

from __future__ import annotations

import marshal
from array import array as numbers
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.collecting import Collecting
from bsplib.core.entries import Entry, entries_at, entries_between
from bsplib.core.kinds import (
    INDICES_SHIFT,
    MESSAGE,
    PUT,
    STAGED_MESSAGE,
    STAGED_PLACED,
    STAGED_PUT,
    STRIDED,
)
from bsplib.core.strided import StridedView
from bsplib.sync_kinds import HAS_ASKS, HAS_GET, HAS_NOTICE, KIND_BITS, UNRESOLVED

if not cython.compiled:
    from bsplib.core.atomics import (
        address_of,
        array_at,
        bytearray_at,
        bytes_at,
        copy,
        peek,
        prepare,
    )
    from bsplib.core.kinds import IN_BUFFER, INLINE, KIND_SHIFT
    from bsplib.core.send_buffer import (
        BYTE_MASK,
        DESCRIPTION_MASK,
        HEAD_BYTES,
        INLINE_COPY_BYTES,
        INLINE_SIZE_MASK,
        MOST_SLOTS,
        RECEIVER_SHIFT,
        SIZE_MASK,
        SLOT_SHIFT,
    )
    from bsplib.core.strided import gather, scatter
prepare()

_MOST_HEADS = 4096
"""Decoded heads of messages that are kept at most: most programs send the same ones again."""
_BYTE = np.dtype(np.uint8)


class Delivering(Collecting):
    """Delivers what a meeting has brought."""

    def _deliver(self, flags: int) -> int:
        """Deliver what the meeting has brought: gets, then puts and messages in order of source.

        Args:
            flags: of this process at the meeting.
        """
        if not self._delivers:
            self._delivers = True
            none = bytes(8 * self.nprocs)
            self._first, self._stop = numbers("Q", none), numbers("Q", none)
        meeting = self.meeting
        held, differ, any_inline = flags, False, False
        for source in range(self.nprocs):
            theirs = meeting.flags_of(source)
            held |= theirs
            if (theirs ^ flags) & KIND_BITS:
                differ = True
            self._first[source] = self._stop[source] = 0
            head = meeting.head_of(source)
            if head:
                any_inline |= self._find(source, head)
        if differ:
            self.rare.check_kinds(self, flags)
        if any_inline and held & (HAS_GET | UNRESOLVED):
            self._keep_inline()
        if held & (HAS_NOTICE | UNRESOLVED):
            self.rare.prepare(self, held)
        return self._distribute(held)

    def _distribute(self, held: int) -> int:
        """Write what has been found: all that had to be checked has been.

        Args:
            held: what the flags of all processes say together.
        """
        if held & HAS_GET:
            self._exchange_gets(held)
        if not self.meeting.shares_memory:
            self.rare.land_early(self)
        for source in range(self.nprocs):
            if self._first[source]:
                self._apply_all(source)
        if held & HAS_NOTICE:
            self.rare.after_delivery(self)
        return 0

    def _find(self, source: int, head: int) -> bool:
        """Find the entries of a process for this one; return whether they are one inline entry."""
        meeting, kind = self.meeting, head >> KIND_SHIFT
        if kind == INLINE:
            if (head & BYTE_MASK) >> RECEIVER_SHIFT == self.pid:
                self._first[source] = meeting.inline_of(source)
                self._stop[source] = self._first[source] + (head & INLINE_SIZE_MASK)
                return True
        elif kind == IN_BUFFER:
            self._first[source] = peek(meeting.address_of(head & BYTE_MASK) + 8 * self.pid)
        else:
            self._first[source] = meeting.inline_of(source)
            self._stop[source] = self._first[source] + meeting.size_of(source)
        return False

    def _keep_inline(self) -> None:
        """Copy the inline entries for this process.

        They lie in cells, which the others may write again as soon as they have passed the next
        meeting of this superstep.
        """
        if self._inline is None:
            self._inline = np.empty(INLINE_COPY_BYTES * self.nprocs, np.uint8)
        at = address_of(self._inline)
        for source in range(self.nprocs):
            nbytes = self._stop[source] - self._first[source]
            if self._stop[source] and nbytes <= INLINE_COPY_BYTES:
                copy(at, self._first[source], nbytes)
                self._first[source] = at
                self._stop[source] = at + nbytes
                at += INLINE_COPY_BYTES

    # -- gets ---------------------------------------------------------------------------------

    def _exchange_gets(self, held: int) -> int:
        """Read all gets before any process writes a put, and write their destinations."""
        # What is read at once is also written at once, perhaps to where others ask for values.
        head = self.rare.answer(self) if held & HAS_ASKS else 0
        self._read_gets()
        self.meeting.meet(0, head, 0)
        if self.asks:
            self.rare.take_answers(self)
        self._write_gets()
        if head:
            self.replies.clear()
        return 0

    def _read_gets(self) -> None:
        """Read the values of this process's gets, as far as it can reach them.

        They are written to their destinations at once if no other process can get from there.
        Otherwise they are kept until all processes have read.
        """
        if self.gets_are_direct:
            for dst, there, nbytes, _pid, strided in self.gets:
                _read(address_of(dst), there, nbytes, strided)
            return
        size = 0
        for _dst, there, nbytes, _pid, _strided in self.gets:
            if there:
                size += nbytes
        if size > len(self._read):
            self._read = np.empty(size, np.uint8)
        at = address_of(self._read)
        for _dst, there, nbytes, _pid, strided in self.gets:
            if there:
                _read(at, there, nbytes, strided)
                at += nbytes

    def _write_gets(self) -> None:
        """Write the destinations of this process's gets, in program order."""
        if not self.gets_are_direct:
            at = address_of(self._read)
            for dst, there, nbytes, _pid, _strided in self.gets:
                if there:
                    copy(address_of(dst), at, nbytes)
                    at += nbytes
                else:
                    self.rare.write_answer(dst)
        self.gets.clear()
        self.asks = False
        self.gets_are_direct = True

    # -- puts and messages --------------------------------------------------------------------

    def _apply_all(self, source: int) -> int:
        """Write the puts, and queue the messages, that have been found from a process."""
        first = self._first[source]
        if self._stop[source]:
            return self._apply(source, first, self._stop[source])
        while first:
            chunk = self.meeting.address_of(first)
            self._apply(source, chunk + HEAD_BYTES, chunk + peek(chunk + 8))
            first = peek(chunk)
        return 0

    def _apply(self, source: int, at: int, stop: int) -> int:
        """Write the puts, and queue the messages, whose entries lie between two addresses."""
        while at < stop:
            head, first = peek(at), peek(at + 8)
            at += HEAD_BYTES
            kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
            if kind == PUT:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    self.rare.write_gaps(slot, first, array_at((nbytes,), _BYTE, at, nbytes))
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
                at = self._receive(source, kind, at, first, nbytes)
            elif kind == STRIDED:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    values = array_at((nbytes,), _BYTE, at + first, nbytes)
                    self.rare.write_strided(slot, bytes_at(at, first), values)
                else:
                    scatter(at, here, at + first)
                at += first + ((nbytes + 7) & ~7)
            else:
                at = self._place(source, kind, at, first, nbytes)
        return 0

    def _write_staged(self, source: int, slot: int, first: int, where: int, nbytes: int) -> int:
        """Write a put whose values are staged."""
        here = self._here[slot]
        if not self.meeting.shares_memory:
            self.rare.land(source, slot, first, where, nbytes)
        elif here == 0:
            self.rare.write_gaps(slot, first, self.rare.fetch(source, where, nbytes))
        else:
            copy(here + first, self.meeting.address_of(where), nbytes)
        return 0

    def _receive(self, source: int, kind: int, at: int, size: int, nbytes: int) -> int:
        """Add a message to the queue; return the address behind its entry."""
        head = self._head_in(bytes_at(at, size))
        at += (size + 7) & ~7
        if kind == MESSAGE:
            # A large array is copied once: the program gets the array of this very memory.
            is_large = nbytes > self.most_in_buffer and head[2][0] == "array"
            content = bytearray_at(at, nbytes) if is_large else bytes_at(at, nbytes)
            self.queue.messages.append((source, head, content))
            return at + ((nbytes + 7) & ~7)
        self.queue.messages.append((source, head, (source, peek(at), nbytes)))
        return at + 8

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
            else self.rare.fetch(source, peek(data), nbytes)
        )
        self.rare.write_placed(bytes_at(at, size), first >> INDICES_SHIFT, values)
        return stop

    def _head_in(self, encoded: bytes) -> Any:
        """Return a head of a message decoded."""
        head = self._heads_in.get(encoded)
        if head is None:
            head = marshal.loads(encoded)
            if len(self._heads_in) > _MOST_HEADS:
                self._heads_in.clear()
            self._heads_in[encoded] = head
        return head

    # -- what the primitives ask --------------------------------------------------------------

    def define(self, slot: int, address: int) -> None:
        """Note the address of a registered array; 0 if it is not contiguous."""
        size = len(self._here)
        if slot >= size:
            longer = numbers("Q", bytes(16 * max(size, slot + 1)))
            longer[:size] = numbers("Q", self._here)
            self._here = longer
        self._here[slot] = address

    def entries_of(self, source: int) -> list[Entry]:
        """Return the entries of a process for this one that the last meeting has brought."""
        if self._stop[source]:
            return entries_between(self._first[source], self._stop[source])
        return entries_at(self.meeting, self._first[source])

    def posted_for(self, source: int, receiver: int) -> list[Entry]:
        """Return the entries in the post of a process at the last meeting.

        Args:
            source: that process.
            receiver: this process, or the number of processes for what is for all. Where entries
                are sent, those for this process and for all are not told apart.
        """
        meeting = self.meeting
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

    def own_entries(self, to: int) -> list[Entry]:
        """Return the entries of this process for another one, before the end of the superstep."""
        if not (self.send_buffer.holds_inline or self.send_buffer.holds_more):
            return []
        self.send_buffer.unfold()
        return entries_at(self.meeting, self.send_buffer.first_byte(to))

    def apply_sent(self, source: int, at: int, stop: int) -> None:
        """Do as :meth:`_apply` for what an oblivious superstep has brought."""
        self._apply(source, at, stop)


def _read(at: int, there: int, nbytes: int, strided: StridedView | None) -> None:
    """Copy the values of a get.

    Args:
        at: address of memory for them.
        there: address of the values or, with a strided view, of the array.
        nbytes: of the values.
        strided: the elements of the array; None for those that follow each other.
    """
    if strided is None:
        copy(at, there, nbytes)
    else:
        gather(strided.words, there, at)
