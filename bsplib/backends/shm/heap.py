"""Memory for one process out of its own area of the segment.

First fit over a short list of free ranges, neighbours merged. Blocks are few and
large (registered arrays, outboxes), so that simple is also fast. The area consists of
windows (:mod:`bsplib.backends.shm.segment`); a block lies in one of them as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from bsplib.backends.shm.control import PAGE
from bsplib.backends.shm.segment import Segment, full
from bsplib.errors import OutOfSharedMemoryError

ALIGNMENT = 64
"""A cache line: no two blocks share one."""

_LEAST_STEP = 4 * PAGE
_MOST_STEP = 64 * PAGE
"""Reserved at a time: as much as there is already, within these bounds. A process that
uses little takes little, so that hundreds fit into the /dev/shm of a container."""


class _Room:
    """A window of the area, of which blocks take the front."""

    __slots__ = ("fresh", "reserved", "start", "stop", "top")

    def __init__(self, start: int, stop: int) -> None:
        self.start = self.top = self.reserved = self.fresh = start
        self.stop = stop
        # top: beyond all blocks; reserved: up to here pages may be touched;
        # fresh: from here on nothing was ever written.


class Heap:
    """Blocks of shared memory, given out and taken back by one process.

    Args:
        segment: where pages are reserved.
        windows: where those of the area begin and end, the smallest first.
    """

    def __init__(self, segment: Segment, windows: Iterable[tuple[int, int]]) -> None:
        self._segment = segment
        self._rooms = [_Room(start, stop) for start, stop in windows]
        self._borders = {room.start for room in self._rooms}
        self._free: list[tuple[int, int]] = []  # (start, bytes), sorted, none adjacent
        self._used: dict[int, int] = {}
        self._reserved = 0

    def allocate(self, nbytes: int) -> tuple[int, bool]:
        """Return where a block of ``nbytes`` begins, and whether it is known to be zero.

        Raises:
            OutOfSharedMemoryError: /dev/shm is too small, or no addresses are left.
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
        start, is_fresh = self._extend(size)
        self._used[start] = size
        return start, is_fresh

    def clear(self) -> None:
        """Take back all blocks at once."""
        for room in self._rooms:
            room.fresh = max(room.fresh, room.top)
            room.top = room.start
        self._free.clear()
        self._used.clear()

    def release(self, start: int) -> None:
        """Take back the block that begins at ``start``."""
        size = self._used.pop(start)
        position = bisect_left(self._free, (start, 0))
        after = start + size
        if after not in self._borders and self._begins_free(position, after):
            size += self._free.pop(position)[1]
        if position and start not in self._borders and sum(self._free[position - 1]) == start:
            start, before = self._free.pop(position - 1)
            size += before
            position -= 1
        self._free.insert(position, (start, size))

    def _begins_free(self, position: int, start: int) -> bool:
        return position < len(self._free) and self._free[position][0] == start

    def _extend(self, size: int) -> tuple[int, bool]:
        """Return where a block begins beyond all others, and whether it is zero."""
        for room in self._rooms:
            start = room.top
            if start + size <= room.stop:
                if start + size > room.reserved:
                    self._reserve_up_to(start + size, room)
                room.top = start + size
                return start, start >= room.fresh
        raise full(size)

    def _reserve_up_to(self, stop: int, room: _Room) -> None:
        step = min(max(self._reserved, _LEAST_STEP), _MOST_STEP)
        missing = stop - room.reserved
        try:
            self._reserve(max(missing, step), room)
        except OutOfSharedMemoryError:
            self._reserve(missing, room)  # less than a whole step is left

    def _reserve(self, nbytes: int, room: _Room) -> None:
        nbytes = min(-(-nbytes // PAGE) * PAGE, room.stop - room.reserved)
        self._segment.reserve(room.reserved, nbytes)
        room.reserved += nbytes
        self._reserved += nbytes
