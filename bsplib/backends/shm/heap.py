"""Allocates memory for one process in its own area of the segment.

First fit over a short list of free ranges, where neighbours are merged. There are few and
large blocks (registered arrays, staging buffers), so that this simple method is also fast. The area
consists of windows (:mod:`bsplib.backends.shm.segment`); a block never crosses their borders.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable

from bsplib.backends.base import ALIGNMENT
from bsplib.backends.shm.control import PAGE, WORD
from bsplib.backends.shm.segment import Segment, full
from bsplib.core import atomics
from bsplib.errors import OutOfSharedMemoryError

_LEAST_STEP = 4 * PAGE
_MOST_STEP = 64 * PAGE
"""Bounds of the bytes reserved at a time, which are as many as are reserved already. A process
that uses little reserves little: hundreds of processes fit into the /dev/shm of a container."""


class _Window:
    """A window of the area; blocks are taken from its beginning."""

    __slots__ = ("fresh", "reserved", "start", "stop", "top")

    def __init__(self, start: int, stop: int) -> None:
        self.start = self.top = self.reserved = self.fresh = start
        self.stop = stop
        # top: end of the last block; reserved: end of the pages that may be touched;
        # fresh: from here on nothing was ever written.


class Heap:
    """Blocks of shared memory, which one process allocates and releases.

    Args:
        segment: shared memory in which pages are reserved.
        windows: first byte and end of each window of the area, the smallest first.
    """

    def __init__(self, segment: Segment, windows: Iterable[tuple[int, int]]) -> None:
        self._segment = segment
        self._later = iter(windows)
        """First byte and end of each window that no block has needed yet."""
        self._windows: list[_Window] = []
        self._borders: set[int] = set()
        self._free: list[tuple[int, int]] = []  # (start, bytes), sorted, none adjacent
        self._used: dict[int, int] = {}
        self._lent: dict[int, int] = {}
        """By block with a payload that its receiver may keep: the address of the word behind it."""
        self._kept: set[int] = set()
        """Those of them that were released while their receivers kept them."""
        self._reserved = 0

    def allocate(self, nbytes: int) -> tuple[int, bool]:
        """Return the byte at which a new block begins, and whether it is known to be zero.

        Raises:
            OutOfSharedMemoryError: /dev/shm is too small, or no addresses are left.
        """
        for start in [*self._kept]:
            self.release(start)
        size = max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
        for position, (start, free) in enumerate(self._free):
            if free >= size:
                if free == size:
                    del self._free[position]
                else:
                    self._free[position] = (start + size, free - size)
                self._used[start] = size
                return start, False  # the block before has written here
        start, is_fresh = self._extend(size)
        self._used[start] = size
        return start, is_fresh

    def lend(self, nbytes: int) -> int:
        """Return the byte of a new block for a payload that its receiver may keep."""
        start, _ = self.allocate(nbytes + 2 * WORD)
        self._lent[start] = word = word_behind(self._segment.address_of(start), nbytes)
        atomics.poke(word, 0)
        return start

    def clear(self) -> None:
        """Release all blocks."""
        for start in [*self._used]:
            self.release(start)

    def release(self, start: int) -> None:
        """Release the block that begins at ``start``; one that is kept, after that."""
        if start in self._lent and atomics.load(self._lent[start]):
            self._kept.add(start)
            return
        self._kept.discard(start)
        self._lent.pop(start, None)
        self._free_block(start)

    def _free_block(self, start: int) -> None:
        size = self._used.pop(start)
        position = bisect_left(self._free, (start, 0))
        after = start + size
        has_next = position < len(self._free) and self._free[position][0] == after
        if has_next and after not in self._borders:
            size += self._free.pop(position)[1]
        if position and start not in self._borders and sum(self._free[position - 1]) == start:
            start, before = self._free.pop(position - 1)
            size += before
            position -= 1
        for window in self._windows:
            if window.top == start + size and window.start <= start:
                # A block that needs more than this is extended, and not put behind it.
                window.top, window.fresh = start, max(window.fresh, window.top)
                return
        self._free.insert(position, (start, size))

    def _extend(self, size: int) -> tuple[int, bool]:
        """Return where a block behind all others begins, and whether it is zero."""
        for window in itertools.chain(self._windows, map(self._next_window, self._later)):
            start = window.top
            if start + size <= window.stop:
                if start + size > window.reserved:
                    self._reserve_up_to(start + size, window)
                window.top = start + size
                return start, start >= window.fresh
        raise full(size)

    def _next_window(self, bounds: tuple[int, int]) -> _Window:
        window = _Window(*bounds)
        self._windows.append(window)
        self._borders.add(window.start)
        return window

    def _reserve_up_to(self, stop: int, window: _Window) -> None:
        step = min(max(self._reserved, _LEAST_STEP), _MOST_STEP)
        missing = stop - window.reserved
        try:
            self._reserve(max(missing, step), window)
        except OutOfSharedMemoryError:
            self._reserve(missing, window)  # less than a whole step is left

    def _reserve(self, nbytes: int, window: _Window) -> None:
        nbytes = min(-(-nbytes // PAGE) * PAGE, window.stop - window.reserved)
        self._segment.reserve(window.reserved, nbytes)
        window.reserved += nbytes
        self._reserved += nbytes


def word_behind(address: int, nbytes: int) -> int:
    """Return the address of the word that says whether the receiver of a payload keeps it."""
    return address + nbytes + WORD & -WORD
