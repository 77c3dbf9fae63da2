"""Where a process lays out what others fetch at the end of a superstep."""

from __future__ import annotations

from bsplib.backends.shm.heap import ALIGNMENT, Heap

_FIRST_CHUNK = 1 << 13


class Outbox:
    """Room of one superstep, handed out front to back from chunks of the heap.

    It grows by whole chunks while the superstep lasts, since what is laid out may
    not move any more; cleared, it comes back as one chunk of the size it had.
    """

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._chunks: list[tuple[int, int]] = []  # (start, bytes)
        self._next = 0
        self._stop = 0
        self.has_messages = False
        """Something in it is read after the end of the superstep, too."""

    def room(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` may be written."""
        start = self._next
        if start + nbytes > self._stop:
            start = self._grow(nbytes)
        self._next = start + -(-nbytes // ALIGNMENT) * ALIGNMENT
        return start

    def clear(self) -> None:
        """Begin anew: nobody reads any more what was laid out."""
        self.has_messages = False
        if len(self._chunks) > 1:
            total = sum(size for _, size in self._chunks)
            self.discard()
            self._grow(total)
        elif self._chunks:
            self._next = self._chunks[0][0]

    def discard(self) -> None:
        """Give all memory back to the heap."""
        for start, _ in self._chunks:
            self._heap.release(start)
        self._chunks.clear()
        self._next = self._stop = 0

    def _grow(self, nbytes: int) -> int:
        last = self._chunks[-1][1] if self._chunks else _FIRST_CHUNK // 2
        size = -(-max(nbytes, 2 * last) // ALIGNMENT) * ALIGNMENT
        if nbytes > last:
            size = -(-nbytes // ALIGNMENT) * ALIGNMENT  # a large payload gets just its size
        size = max(size, _FIRST_CHUNK)
        start, _ = self._heap.allocate(size)
        self._chunks.append((start, size))
        self._next, self._stop = start, start + size
        return start
