"""The layout of entries in shared memory at the end of an oblivious superstep, and their index.

The index of a post is a table of (byte, length, messages) with one row for each process of the
group. The entries follow it, and bytes are counted from its beginning.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from struct import Struct

from bsplib.backends.base import Sent
from bsplib.backends.shm.control import WORD
from bsplib.backends.shm.segment import CHUNK_SHIFT, Segment

_ROW = 3
_ROW_BYTES = _ROW * WORD
_read_row = Struct("QQQ").unpack_from


def lay_out(
    segment: Segment,
    reserve: Callable[[int], int],
    nprocs: int,
    posted: Iterable[tuple[int, int, Sent]],
) -> int:
    """Write entries and their index into the staging buffer of the superstep.

    Args:
        segment: shared memory of the run.
        reserve: called with a number of bytes; returns the byte at which they may be written.
        nprocs: number of processes of the group.
        posted: (receiver, messages, entries); entries have a multiple of eight bytes.

    Returns:
        The byte at which the index begins.
    """
    end = _ROW_BYTES * nprocs
    index, parts = array("Q", bytes(end)), []
    for receiver, messages, entries in posted:
        index[_ROW * receiver : _ROW * (receiver + 1)] = array("Q", (end, len(entries), messages))
        parts.append(entries)
        end += len(entries)
    start = reserve(end)
    segment.view(start, end)[:] = b"".join([index.tobytes(), *parts])
    return start


def open_row(segment: Segment, index: int, row: int) -> tuple[int, memoryview]:
    """Return the number of messages, and the entries, in a row of an index."""
    if not index:
        return 0, memoryview(b"")
    first, buffer, _ = segment.windows[index >> CHUNK_SHIFT]
    index -= first
    start, nbytes, messages = _read_row(buffer, index + _ROW_BYTES * row)
    return messages, memoryview(buffer)[index + start : index + start + nbytes]
