"""Memory for payloads that is used again: fresh pages would cost more than a copy into them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from bsplib.backends.base import Room

_LEAST_BYTES = 4096
_MOST_KEPT_BYTES = 1 << 28
"""Most bytes of memory that nobody uses and that is kept."""


class Buffers:
    """Buffers in sizes that are powers of two."""

    def __init__(self) -> None:
        self._free: defaultdict[int, list[Room]] = defaultdict(list)
        self._free_bytes = 0

    def take(self, nbytes: int) -> Room:
        """Return a buffer of at least ``nbytes`` bytes."""
        size = max(_LEAST_BYTES, 1 << (nbytes - 1).bit_length()) if nbytes else _LEAST_BYTES
        free = self._free[size]
        if not free:
            return np.empty(size, np.uint8)
        self._free_bytes -= size
        return free.pop()

    def give(self, buffer: Room) -> None:
        """Take back a buffer that nobody reads or writes any more."""
        if self._free_bytes + len(buffer) <= _MOST_KEPT_BYTES:
            self._free[len(buffer)].append(buffer)
            self._free_bytes += len(buffer)
