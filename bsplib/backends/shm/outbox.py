"""The outbox: memory in which a process lays out what others fetch at the end of a superstep."""

from __future__ import annotations

from bsplib.backends.shm.heap import ALIGNMENT, Heap

_FIRST_CHUNK = 1 << 13


class Outbox:
    """Memory of one superstep, allocated from beginning to end in chunks of the heap.

    It grows by whole chunks during the superstep, since laid out data must not move. When it
    is cleared, one chunk of the same total size replaces them.
    """

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._chunks: list[tuple[int, int]] = []  # (start, bytes)
        self._next = 0
        self._stop = 0
        self.has_messages = False
        """It has messages, which are read after the end of the superstep, too."""

    def room(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` may be written."""
        start = self._next
        if start + nbytes > self._stop:
            start = self._grow(nbytes)
        self._next = start + -(-nbytes // ALIGNMENT) * ALIGNMENT
        return start

    def clear(self) -> None:
        """Empty the outbox, when no process reads it any more."""
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
            size = (
                -(-nbytes // ALIGNMENT) * ALIGNMENT
            )  # a large payload gets a chunk of its own size
        size = max(size, _FIRST_CHUNK)
        start, _ = self._heap.allocate(size)
        self._chunks.append((start, size))
        self._next, self._stop = start, start + size
        return start
