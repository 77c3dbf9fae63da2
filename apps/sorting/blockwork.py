"""The work of a process of the external sort: its files and its blocks in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.progress import ProgressSteps
from bsplib.apps.sorting.blocks import BlockTable, Pair
from bsplib.apps.sorting.keyfile import FileChannel, KeyFile
from bsplib.apps.sorting.keys import Keys
from bsplib.apps.sorting.overlapped_io import Buffer

_CHUNK = 1 << 16
"""Number of keys that are processed together where memory is limited."""


class Files(NamedTuple):
    """The files of a sort."""

    source: KeyFile
    scratch: KeyFile
    """Scratch file, with blocks in any order."""
    result: KeyFile


@dataclass
class BlockWork:
    """The files, the table and the options that a process works with."""

    files: Files
    table: BlockTable
    channels: dict[KeyFile, FileChannel]
    buffers: list[Buffer]
    show: ProgressSteps
    read_bytes: int = 0
    written_bytes: int = 0

    def keys(self, buffer: Buffer, count: int) -> Keys:
        """Return the first keys in a buffer."""
        dtype = self.files.source.dtype
        return buffer[: count * dtype.itemsize].view(dtype)

    def read(self, file: KeyFile, first: int, into: Keys) -> None:
        """Read keys of a file, beginning with key ``first``."""
        self.channels[file].read(into.view(np.uint8).data, file.start_of(first))
        self.read_bytes += into.nbytes

    def write(self, file: KeyFile, first: int, keys: Keys) -> None:
        """Write keys to a file, beginning with key ``first``."""
        self.channels[file].write(keys.view(np.uint8).data, file.start_of(first))
        self.written_bytes += keys.nbytes

    def read_pair(self, pair: Pair, buffer: Buffer) -> None:
        """Read both blocks of a pair, the lower one first."""
        for first, keys in self._slots(pair, buffer):
            self.read(self.files.scratch, first, keys)

    def write_pair(self, pair: Pair, buffer: Buffer) -> None:
        """Write both blocks of a pair to their positions."""
        for first, keys in self._slots(pair, buffer):
            self.write(self.files.scratch, first, keys)

    def _slots(self, pair: Pair, buffer: Buffer) -> Iterator[tuple[int, Keys]]:
        """Yield the position of each block in the scratch file, and its keys in the buffer."""
        table = self.table
        keys = self.keys(buffer, table.keys_of_pair(pair))
        for number, position in enumerate(pair.positions()):
            start = number * table.length
            block = keys[start : start + table.keys_of(position)]
            yield int(table.slots[position]) * table.length, block


class ChangedKeys:
    """The least and the greatest keys of blocks that this process has changed."""

    def __init__(self, table: BlockTable) -> None:
        self._table = table
        self._rows: list[tuple[int, Any, Any]] = []

    def note(self, position: int, keys: Keys) -> None:
        """Store the least and the greatest key of one or two blocks."""
        length = self._table.length
        for start in range(0, len(keys), length):
            ends = keys[start : start + length][[0, -1]]  # copies, as the buffer is used again
            self._rows.append((position + start // length, *ends))

    def rows(self) -> NDArray[Any]:
        """Return the stored rows."""
        return np.array(self._rows, self._table.ends.dtype)


def merge(keys: Keys) -> None:
    """Merge two adjacent sorted blocks, of which the first is full.

    numpy's stable sort merges them with memory for one block. Small integers it sorts by
    radix instead, which takes more memory.
    """
    keys.sort(kind="stable" if keys.itemsize > 2 else None)


def reverse(keys: Keys) -> None:
    """Reverse keys in place, with memory for a few of them."""
    for start in range(0, len(keys) // 2, _CHUNK):
        stop = min(start + _CHUNK, len(keys) // 2)
        front, back = keys[start:stop], keys[len(keys) - stop : len(keys) - start]
        front[:], back[:] = back[::-1].copy(), front[::-1].copy()
