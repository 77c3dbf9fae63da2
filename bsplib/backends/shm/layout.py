"""The layout of parcels in shared memory, and their index.

The index of a post is a table of (byte, length, messages). It has one row for each process
of the group, and a last one for the announcement to all. The parcels follow it, and bytes are
counted from its beginning. A single small parcel needs no index: it lies inline in the slot,
and in place of the position of the index the slot has the receiver and the length. A lone
put lies in the slot, too, in a form that is read faster: slot of the registration, first
element, and the values or, where they are staged, their ticket.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable, Iterable
from functools import cache
from struct import Struct
from typing import Any

from bsplib.backends.parcels import LonePut, Parcel, parcel_of
from bsplib.backends.shm.control import INDEX, INLINE, INLINE_BYTES, WORD
from bsplib.backends.shm.segment import CHUNK_SHIFT, Segment

_ROW = 3
_ROW_BYTES = _ROW * WORD
_IS_INLINE = 1 << 63
_IS_LONE_PUT = 1 << 62
RECEIVER_SHIFT = 32
_IS_STAGED = 1 << RECEIVER_SHIFT - 1
_NBYTES = _IS_STAGED - 1
_PUT_BYTES = 2 * WORD  # of a lone put, before the values
_HEAD = WORD * INDEX
_read_put = Struct("Qqq").unpack_from
_write_staged = Struct("Qqqqqq").pack_into
_read_staged = Struct("qqq").unpack_from  # a ticket
_read_row = Struct("QQQ").unpack_from


def inline_to(receiver: int) -> int:
    """Return the index word of an inline parcel for a process, with length 0."""
    return _IS_INLINE | receiver << RECEIVER_SHIFT


def lone_put_to(receiver: int) -> int:
    """Return the index word of a lone put for a process, with length 0."""
    return _IS_LONE_PUT | inline_to(receiver)


def is_inline(index: int) -> bool:
    """Tell whether an index word stands for an inline parcel or lone put."""
    return index >= _IS_INLINE


def write_lone_put(segment: Segment, slot: int, receiver: int, lone_put: LonePut) -> None:
    """Write a lone put, and its index word, into the slot that begins at a word.

    Of staged values the ticket is written.
    """
    array, first, data = lone_put
    head = _IS_INLINE | _IS_LONE_PUT | receiver << RECEIVER_SHIFT
    if data.__class__ is tuple:
        head |= _IS_STAGED
        _write_staged(segment.buffer, WORD * slot + _HEAD, head, array, first, *data)
        return
    nbytes = len(data)
    _writer(nbytes)(segment.buffer, WORD * slot + _HEAD, head | nbytes, array, first, data)


def read_lone_put(segment: Segment, slot: int) -> LonePut:
    """Read a lone put from the slot that begins at a word; valid until the slot is written."""
    buffer, start = segment.buffer, WORD * slot + _HEAD
    head, array, first = _read_put(buffer, start)
    start += WORD + _PUT_BYTES
    if head & _IS_STAGED:
        return array, first, _read_staged(buffer, start)
    return array, first, buffer[start : start + (head & _NBYTES)]


@cache
def _writer(nbytes: int) -> Callable[..., None]:
    return Struct(f"Qqq{nbytes}s").pack_into


def write_inline(segment: Segment, slot: int, receiver: int, parcel: Parcel) -> bool:
    """Write a parcel inline into the slot that begins at a word; False if it is too long."""
    blob = marshal.dumps(parcel.plain())
    nbytes = len(blob)
    if nbytes > INLINE_BYTES:
        return False
    start = WORD * (slot + INLINE)
    segment.buffer[start : start + nbytes] = blob
    segment.control[slot + INDEX] = inline_to(receiver) | nbytes
    return True


def read_inline(segment: Segment, slot: int, receiver: int) -> Parcel | None:
    """Return the inline parcel of the slot at a word; None if it is for another process."""
    head = segment.control[slot + INDEX]
    to = head & ~(_NBYTES | _IS_STAGED)
    if to == inline_to(receiver):
        start = WORD * (slot + INLINE)
        return Parcel.of_plain(marshal.loads(segment.buffer[start : start + (head & _NBYTES)]))
    if to == lone_put_to(receiver):
        return parcel_of(read_lone_put(segment, slot))
    return None


def lay_out(
    segment: Segment, room: Callable[[int], int], rows: int, parcels: Iterable[tuple[int, int, Any]]
) -> int:
    """Write parcels, as plain values, and their index into the outbox of the superstep.

    Args:
        segment: shared memory of the run.
        room: called with a number of bytes; returns the byte at which they may be written.
        rows: number of rows: one for each process, and one for the announcement.
        parcels: (row, messages, parcel).

    Returns:
        The byte at which the index begins.
    """
    index, blobs = array("Q", bytes(_ROW_BYTES * rows)), []
    end = _ROW_BYTES * rows
    for row, messages, parcel in parcels:
        blob = marshal.dumps(parcel)
        index[_ROW * row : _ROW * row + _ROW] = array("Q", (end, len(blob), messages))
        blobs.append(blob)
        end += len(blob)
    start = room(end)
    segment.view(start, end)[:] = b"".join([index.tobytes(), *blobs])
    return start


def open_row(segment: Segment, index: int, row: int) -> tuple[int, Any]:
    """Return number of messages and parcel of a row of an index; (0, None) where it is empty."""
    if not index:
        return 0, None
    first, buffer, _ = segment.windows[index >> CHUNK_SHIFT]
    index -= first
    start, nbytes, messages = _read_row(buffer, index + _ROW_BYTES * row)
    if not nbytes:
        return 0, None
    return messages, marshal.loads(buffer[index + start : index + start + nbytes])
