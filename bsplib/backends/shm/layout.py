"""The layout of parcels in shared memory, and their index.

The index of a post is a table of (byte, length, messages). It has one row for each process
of the group, and a last one for the announcement to all. The parcels follow it, and bytes are
counted from its beginning. A single small parcel needs no index: it lies inline in the slot,
and in place of the position of the index the slot has the receiver and the length.

Only the supersteps that end by the long way have parcels; the others have the records of
:mod:`bsplib.core.box`.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any

from bsplib.backends.parcels import Parcel
from bsplib.backends.shm.control import INLINE_BYTES, WORD
from bsplib.backends.shm.segment import CHUNK_SHIFT, Segment

_ROW = 3
_ROW_BYTES = _ROW * WORD
_INLINE = 8 << 60
"""The head word of a post whose parcel lies inline; :mod:`bsplib.core.box` has the others."""
_RECEIVER_SHIFT = 32
_NBYTES = (1 << _RECEIVER_SHIFT) - 1
_KIND_SHIFT = 60
_read_row = Struct("QQQ").unpack_from


def write_inline(segment: Segment, room: int, receiver: int, parcel: Parcel) -> int:
    """Write a parcel inline into a slot; return the head word, 0 if the parcel is too long.

    Args:
        segment: shared memory of the run.
        room: byte in the control words behind the head word of the slot.
        receiver: pid of the process that reads it.
        parcel: what is written.
    """
    blob = marshal.dumps(parcel.plain())
    nbytes = len(blob)
    if nbytes > INLINE_BYTES:
        return 0
    segment.buffer[room : room + nbytes] = blob
    return _INLINE | receiver << _RECEIVER_SHIFT | nbytes


def is_inline(head: int) -> bool:
    """Tell whether a head word stands for an inline parcel."""
    return head >> _KIND_SHIFT == _INLINE >> _KIND_SHIFT


def is_index(head: int) -> bool:
    """Tell whether a head word is the byte of an index."""
    return head != 0 and head >> _KIND_SHIFT == 0


def read_inline(segment: Segment, room: int, head: int, receiver: int) -> Parcel | None:
    """Return the inline parcel of a slot; None if it is for another process."""
    if head >> _RECEIVER_SHIFT != (_INLINE >> _RECEIVER_SHIFT) | receiver:
        return None
    return Parcel.of_plain(marshal.loads(segment.buffer[room : room + (head & _NBYTES)]))


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
