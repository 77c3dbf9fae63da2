"""Parcels laid out in shared memory, and their index.

The index of a post is a table of (byte, length, messages), one row for each
process of the group and a last one for what is announced to all. A single small
parcel needs none: it is a letter, and the word that would say where the index lies
says who receives it, and its length.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Iterable
from typing import Any

from bsplib.backends.base import Parcel
from bsplib.backends.shm.control import WORD
from bsplib.backends.shm.outbox import Outbox
from bsplib.backends.shm.segment import Segment

_ROW = 3
_IS_LETTER = 1 << 63
_RECEIVER_SHIFT = 32


def letter_to(receiver: int, nbytes: int) -> int:
    """Return what stands in place of an index for a letter of so many bytes."""
    return _IS_LETTER | receiver << _RECEIVER_SHIFT | nbytes


def is_letter(index: int) -> bool:
    """Tell whether it is no index, but stands for a letter."""
    return index >= _IS_LETTER


def lay_out(
    segment: Segment, outbox: Outbox, rows: int, parcels: Iterable[tuple[int, int, Parcel]]
) -> int:
    """Write parcels and their index into an outbox.

    Args:
        segment: the memory.
        outbox: of the superstep.
        rows: number of processes, and one.
        parcels: (row, messages, parcel).

    Returns:
        The byte at which the index begins.
    """
    buffer = segment.buffer
    index = array("Q", bytes(_ROW * WORD * rows))
    for row, messages, parcel in parcels:
        blob = marshal.dumps(parcel)  # type: ignore[arg-type]  # plain values, see base
        start = outbox.room(len(blob))
        buffer[start : start + len(blob)] = blob
        index[_ROW * row : _ROW * row + _ROW] = array("Q", (start, len(blob), messages))
    raw = index.tobytes()
    start = outbox.room(len(raw))
    buffer[start : start + len(raw)] = raw
    return start


def open_row(segment: Segment, index: int, row: int) -> tuple[int, Any]:
    """Return the messages in a parcel, and the parcel; (0, None) where there is none."""
    if not index:
        return 0, None
    at = index // WORD + _ROW * row
    start, nbytes, messages = segment.words[at : at + _ROW]
    if not nbytes:
        return 0, None
    return messages, marshal.loads(segment.buffer[start : start + nbytes])
