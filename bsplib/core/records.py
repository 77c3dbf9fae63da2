"""The records in a box or on a card as a list, for the long way."""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.meeting import Meeting

if not cython.compiled:
    from bsplib.core.atomics import bytes_at, peek
    from bsplib.core.box import (
        HEAD_BYTES,
        KIND_SHIFT,
        MESSAGE,
        MOST_SLOTS,
        PUT,
        SIZE_MASK,
        SLOT_SHIFT,
        STAGED_MESSAGE,
    )

Record = tuple[bool, int, int, Any, Any]
"""A record that was read: whether it is a message, the slot and the first byte of a put, the
encoded head of a message or None, and the data or, as (where, bytes), where they are staged."""


def records_at(meeting: Meeting, byte: int) -> list[Record]:
    """Return the records in a row of chunks.

    Args:
        meeting: finds the chunks.
        byte: of the first chunk; 0 if there is none.
    """
    records: list[Record] = []
    while byte:
        chunk = meeting.address_of(byte)
        records += records_between(chunk + HEAD_BYTES, chunk + peek(chunk + 8))
        byte = peek(chunk)
    return records


def records_between(at: int, stop: int) -> list[Record]:
    """Return the records between two addresses."""
    records: list[Record] = []
    while at < stop:
        head, first = peek(at), peek(at + 8)
        at += HEAD_BYTES
        kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
        slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
        is_message = kind in (MESSAGE, STAGED_MESSAGE)
        encoded: Any = None
        if is_message:
            encoded = bytes_at(at, first)
            at += (first + 7) & ~7
        if kind in (PUT, MESSAGE):
            data: Any = bytes_at(at, nbytes)
            at += (nbytes + 7) & ~7
        else:
            data = (peek(at), nbytes)
            at += 8
        records.append((is_message, slot, first, encoded, data))
    return records
