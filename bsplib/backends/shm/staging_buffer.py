"""The staging buffer: memory in which a process lays out what others fetch later."""

from __future__ import annotations

from bsplib.backends.shm.heap import ALIGNMENT, Heap
from bsplib.backends.shm.parcels import Parcels

_FIRST_CHUNK = 1 << 13
_MOST_DOUBLED = 1 << 20
"""Each chunk is twice as large as the largest one before, up to this: what follows a large payload
is often small."""
_SPARE = 8
"""A payload that is longer than the one before it by less than its half gets a chunk that is longer
by this part: their lengths differ by chance, and the next one may be longer still. New memory costs
the writer and the reader as much as to move the payload twice."""
_MOST_UNUSED = 1 << 16
"""Bytes of chunks that a cleared staging buffer may keep although few of them were used."""


class StagingBuffer:
    """Memory of one superstep, taken from one chunk of the heap after the other.

    It grows by whole chunks during the superstep, since laid out data must not move. When it
    is cleared it keeps them: their pages are mapped, and perhaps still in the cache. The large
    payloads of messages lie apart, since their receivers may keep them.

    Args:
        heap: of this process.
        parcels: of this process.
    """

    def __init__(self, heap: Heap, parcels: Parcels) -> None:
        self._heap = heap
        self._parcels = parcels
        self._apart: list[int] = []
        self._chunks: list[tuple[int, int]] = []  # (start, bytes)
        self._entered = 0  # chunks that were entered since the last clear, the first ones
        self._used = 0  # bytes of those that were left
        self._begin = self._next = self._stop = 0  # of the chunk that was entered last
        self.has_messages = False
        """It has messages, which are read after the end of the superstep, too."""

    def reserve(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` may be written."""
        start = self._next
        if start + nbytes > self._stop:
            start = self._enter_chunk(nbytes)
        self._next = start + -(-nbytes // ALIGNMENT) * ALIGNMENT
        return start

    def reserve_for_parcel(self, nbytes: int, *, for_one: bool) -> int:
        """Return the byte at which the large payload of a message may be written."""
        start = self._parcels.reserve(nbytes, for_one=for_one)
        self._apart.append(start)
        return start

    def clear(self) -> None:
        """Empty the staging buffer, when no process reads it any more.

        It gives its chunks back where most of their bytes were not used in this superstep.
        """
        self.has_messages = False
        self._end_parcels()
        used = self._used + self._next - self._begin
        if self.kept_bytes() > 4 * used + _MOST_UNUSED:
            self.discard()
        self._entered = self._used = self._begin = self._next = self._stop = 0

    def kept_bytes(self) -> int:
        """Return the bytes of all chunks."""
        return sum(size for _, size in self._chunks)

    def discard(self) -> None:
        """Give all memory back to the heap."""
        self._end_parcels()
        for start, _ in self._chunks:
            self._heap.release(start)
        self._chunks.clear()
        self._entered = self._used = self._begin = self._next = self._stop = 0

    def _end_parcels(self) -> None:
        for start in self._apart:
            self._parcels.end_lease(start)
        self._apart.clear()

    def _enter_chunk(self, nbytes: int) -> int:
        """Return the beginning of the next chunk that has room for ``nbytes`` bytes.

        Those before it that are too short stay behind it, for what follows in this superstep.
        """
        begin, count = self._entered, len(self._chunks)
        number, left_out = begin, 0
        while number < count and self._chunks[number][1] < nbytes:
            left_out = max(left_out, self._chunks[number][1])
            number += 1
        if number < count:
            chunk = self._chunks.pop(number)
        else:
            chunk = self._new_chunk(nbytes + (nbytes // _SPARE if 2 * left_out >= nbytes else 0))
        self._chunks.insert(begin, chunk)
        self._entered = begin + 1
        self._used += self._next - self._begin
        start, size = chunk
        self._begin, self._stop = start, start + size
        return start

    def _new_chunk(self, nbytes: int) -> tuple[int, int]:
        longest = max((size for _, size in self._chunks), default=0)
        size = max(nbytes, min(2 * longest, _MOST_DOUBLED), _FIRST_CHUNK)
        size = -(-size // ALIGNMENT) * ALIGNMENT
        start, _ = self._heap.allocate(size)
        return start, size
