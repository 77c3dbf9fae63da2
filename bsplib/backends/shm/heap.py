"""Memory for one process out of its own area of the segment.

First fit over a short list of free ranges, neighbours merged. Blocks are few and
large (registered arrays, outboxes), so that simple is also fast.
"""

from __future__ import annotations

from bisect import bisect_left

from bsplib.backends.shm.segment import PAGE, Segment, full
from bsplib.errors import OutOfSharedMemoryError

ALIGNMENT = 64
"""A cache line: no two blocks share one."""

_RESERVE_STEP = 64 * PAGE


class Heap:
    """Blocks of shared memory, given out and taken back by one process."""

    def __init__(self, segment: Segment, start: int, stop: int) -> None:
        self._segment = segment
        self._start = start
        self._stop = stop
        self._free: list[tuple[int, int]] = []  # (start, bytes), sorted, none adjacent
        self._top = start  # beyond all blocks
        self._reserved = start  # up to here pages may be touched
        self._used: dict[int, int] = {}
        self._fresh = start  # from here on nothing was ever written

    def allocate(self, nbytes: int) -> tuple[int, bool]:
        """Return where a block of ``nbytes`` begins, and whether it is known to be zero.

        Raises:
            OutOfSharedMemoryError: /dev/shm is too small.
        """
        size = max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
        for position, (start, free) in enumerate(self._free):
            if free >= size:
                if free == size:
                    del self._free[position]
                else:
                    self._free[position] = (start + size, free - size)
                self._used[start] = size
                return start, False
        start = self._extend(size)
        self._used[start] = size
        return start, start >= self._fresh

    def clear(self) -> None:
        """Take back all blocks at once."""
        self._fresh = max(self._fresh, self._top)
        self._top = self._start
        self._free.clear()
        self._used.clear()

    def release(self, start: int) -> None:
        """Take back the block that begins at ``start``."""
        size = self._used.pop(start)
        position = bisect_left(self._free, (start, 0))
        if position < len(self._free) and self._free[position][0] == start + size:
            size += self._free.pop(position)[1]
        if position and sum(self._free[position - 1]) == start:
            start, before = self._free.pop(position - 1)
            size += before
            position -= 1
        self._free.insert(position, (start, size))

    def _extend(self, size: int) -> int:
        start = self._top
        if start + size > self._stop:
            raise full(size)  # there are as many addresses as /dev/shm has bytes
        if start + size > self._reserved:
            missing = start + size - self._reserved
            try:
                self._reserve(max(missing, _RESERVE_STEP))
            except OutOfSharedMemoryError:
                self._reserve(missing)  # the last bytes are worth more than the step
        self._top = start + size
        return start

    def _reserve(self, nbytes: int) -> None:
        nbytes = min(-(-nbytes // PAGE) * PAGE, self._stop - self._reserved)
        self._segment.reserve(self._reserved, nbytes)
        self._reserved += nbytes
