"""Entries that have come, one by one; see :mod:`bsplib.core.send_buffer` for their form."""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.kinds import ASK, INDICES_SHIFT, STAGED_PUT
from bsplib.core.meeting import Meeting

if not cython.compiled:
    from bsplib.core.atomics import bytes_at, peek
    from bsplib.core.kinds import IN_BUFFER, INLINE, KIND_SHIFT
    from bsplib.core.send_buffer import (
        BYTE_MASK,
        DESCRIPTION_MASK,
        HEAD_BYTES,
        INLINE_SIZE_MASK,
        MOST_SLOTS,
        RECEIVER_SHIFT,
        SIZE_MASK,
        SLOT_SHIFT,
    )

Entry = tuple[int, int, int, bytes, int, int, int]
"""an entry that was read: its kind; the slot and the first byte of a plain put; the description;
the number of indices; where the data are; and their bytes. A place is the address of the data, or
the number that says where they are staged."""


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


def calls_between(at: int, stop: int) -> int:
    """Return how many puts and messages have entries between two addresses."""
    count = 0
    while at < stop:
        count += peek(at) >> KIND_SHIFT < ASK
        at = behind(at)
    return count


def payload_between(at: int, stop: int) -> int:
    """Return the bytes of the values of puts, and of the messages, between two addresses."""
    total = 0
    while at < stop:
        head = peek(at)
        kind = head >> KIND_SHIFT
        if kind < ASK:
            total += head & SIZE_MASK
            if kind > STAGED_PUT:
                total -= index_bytes(peek(at + 8) >> INDICES_SHIFT)
        at = behind(at)
    return total


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
