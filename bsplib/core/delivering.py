"""The quick way of a transfer from the meeting to its destination: an array, or the queue."""

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
from bsplib.core.records import Record, records_at, records_between
from bsplib.sync_kinds import HAS_GET, KIND_BITS, UNRESOLVED

if not cython.compiled:
    from bsplib.core.atomics import address_of, bytearray_at, bytes_at, copy, peek, prepare
    from bsplib.core.box import (
        BYTE_MASK,
        CARD_ROOM,
        CARD_SIZE_MASK,
        HEAD_BYTES,
        IN_BOX,
        KIND_SHIFT,
        MESSAGE,
        MOST_SLOTS,
        ON_CARD,
        PUT,
        RECEIVER_SHIFT,
        SIZE_MASK,
        SLOT_SHIFT,
        STAGED_PUT,
    )
prepare()

_MOST_HEADS = 4096
"""So many decoded heads of messages are kept, since most programs send the same ones again."""


class Delivering(Collecting):
    """Delivers what a meeting has brought."""

    def _deliver(self, note: int) -> None:
        """Deliver what the meeting has brought: gets, then puts and messages in order of source.

        Args:
            note: of this process at the meeting.
        """
        if not self._delivers:
            self._delivers = True
            self._first, self._stop = self._zeros(), self._zeros()
        meeting, me = self._meeting, self._pid
        needs_long_way, held, any_card = False, note, False
        for source in range(self._nprocs):
            theirs = meeting.note_of(source)
            held |= theirs
            if (theirs ^ note) & KIND_BITS:
                needs_long_way = True
            self._first[source] = self._stop[source] = 0
            head = meeting.head_of(source)
            if head:
                kind = head >> KIND_SHIFT
                if kind == ON_CARD:
                    if (head & BYTE_MASK) >> RECEIVER_SHIFT == me:
                        self._first[source] = meeting.card_of(source)
                        self._stop[source] = self._first[source] + (head & CARD_SIZE_MASK)
                        any_card = True
                elif kind == IN_BOX:
                    self._first[source] = peek(meeting.address_of(head & BYTE_MASK) + 8 * me)
                else:
                    needs_long_way = True
        if needs_long_way or held & UNRESOLVED:
            self._deliver_with_parcels(note)
            return
        if held & HAS_GET:
            if any_card:
                self._keep_cards()
            self._read_gets()
            meeting.meet(0, 0, 0)
            self._write_gets()
        for source in range(self._nprocs):
            first = self._first[source]
            if self._stop[source]:
                self._apply(source, first, self._stop[source])
                continue
            while first:
                chunk = meeting.address_of(first)
                self._apply(source, chunk + HEAD_BYTES, chunk + peek(chunk + 8))
                first = peek(chunk)

    def _keep_cards(self) -> None:
        """Copy the cards for this process.

        They lie in slots, which the others may write again as soon as they have passed the second
        meeting of this superstep.
        """
        if self._cards is None:
            self._cards = np.empty(CARD_ROOM * self._nprocs, np.uint8)
        at = address_of(self._cards)
        for source in range(self._nprocs):
            nbytes = self._stop[source] - self._first[source]
            if self._stop[source]:
                copy(at, self._first[source], nbytes)
                self._first[source] = at
                self._stop[source] = at + nbytes
                at += CARD_ROOM

    # -- gets ---------------------------------------------------------------------------------

    def _read_gets(self) -> None:
        """Read the values of this process's gets, before any process writes a put.

        They are written to their destinations at once if no other process can get from there.
        Otherwise they are kept until all processes have read.
        """
        if self._gets_are_direct:
            for dst, there, nbytes, _pid, _lane in self._quick_gets:
                copy(address_of(dst), there, nbytes)
            return
        size = 0
        for _dst, _there, nbytes, _pid, _lane in self._quick_gets:
            size += nbytes
        if size > len(self._read):
            self._read = np.empty(size, np.uint8)
        at = address_of(self._read)
        for _dst, there, nbytes, _pid, _lane in self._quick_gets:
            copy(at, there, nbytes)
            at += nbytes

    def _write_gets(self) -> None:
        """Write the destinations of this process's gets, in program order."""
        if not self._gets_are_direct:
            at = address_of(self._read)
            for dst, _there, nbytes, _pid, _lane in self._quick_gets:
                copy(address_of(dst), at, nbytes)
                at += nbytes
        self._quick_gets.clear()
        self._gets_are_direct = True

    # -- puts and messages --------------------------------------------------------------------

    def _apply(self, source: int, at: int, stop: int) -> None:
        """Write the puts, and queue the messages, whose records lie between two addresses."""
        while at < stop:
            head, first = peek(at), peek(at + 8)
            at += HEAD_BYTES
            kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
            if kind == PUT:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    self._write_slowly(slot, first, bytes_at(at, nbytes))
                elif nbytes == 8:
                    copy(here + first, at, 8)  # the compiler makes this one load and one store
                else:
                    copy(here + first, at, nbytes)
                at += (nbytes + 7) & ~7
            elif kind == STAGED_PUT:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    self._write_slowly(
                        slot, first, bytes_at(self._meeting.address_of(peek(at)), nbytes)
                    )
                else:
                    copy(here + first, self._meeting.address_of(peek(at)), nbytes)
                at += 8
            else:
                at = self._receive(source, kind, at, first, nbytes)

    def _receive(self, source: int, kind: int, at: int, size: int, nbytes: int) -> int:
        """Add a message to the queue; return the address behind its record."""
        head = self._head_in(bytes_at(at, size))
        at += (size + 7) & ~7
        if kind == MESSAGE:
            # A large array is copied once: the program gets the array of this very memory.
            is_large = nbytes > self._most_in_box and head[2][0] == "array"
            content = bytearray_at(at, nbytes) if is_large else bytes_at(at, nbytes)
            self._queue.messages.append((source, head, content))
            return at + ((nbytes + 7) & ~7)
        self._queue.messages.append((source, head, (source, peek(at), nbytes)))
        return at + 8

    def _head_in(self, encoded: bytes) -> Any:
        """Return a head of a message decoded."""
        head = self._heads_in.get(encoded)
        if head is None:
            head = marshal.loads(encoded)
            if len(self._heads_in) > _MOST_HEADS:
                self._heads_in.clear()
            self._heads_in[encoded] = head
        return head

    # -- what the long way asks ---------------------------------------------------------------

    def _define(self, slot: int, address: int) -> None:
        """Note the address of a registered array; 0 if it is not contiguous."""
        size = len(self._here)
        if slot >= size:
            longer = numbers("Q", bytes(16 * max(size, slot + 1)))
            longer[:size] = numbers("Q", self._here)
            self._here = longer
        self._here[slot] = address

    def _serve_own_gets(self, first_half: bool) -> None:
        """Read the values of this process's gets, or write them to their destinations."""
        if first_half:
            self._read_gets()
        else:
            self._write_gets()

    def _records_from(self, source: int) -> list[Record]:
        """Read the records of a process for this one, after a meeting."""
        head = self._meeting.head_of(source)
        kind = head >> KIND_SHIFT
        if kind == IN_BOX:
            table = self._meeting.address_of(head & BYTE_MASK)
            return records_at(self._meeting, peek(table + 8 * self._pid))
        if kind == ON_CARD and (head & BYTE_MASK) >> RECEIVER_SHIFT == self._pid:
            at = self._meeting.card_of(source)
            return records_between(at, at + (head & CARD_SIZE_MASK))
        return []

    def _own_records(self, to: int) -> list[Record]:
        """Read the records of this process for another one, before the end of the superstep."""
        self._box.unfold()
        return records_at(self._meeting, self._box.first_byte(to))
