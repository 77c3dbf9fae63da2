"""A block with free space on both sides, for the parts that arrive from other processes.

The part that a process keeps stays where it is. The arriving parts are copied before and
after it, over the parts that have been sent. So no large memory need be allocated, which
often takes longer than a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bsplib.apps.sorting.order import Records


class SpareBlock(NamedTuple):
    """Memory for a block that may grow."""

    memory: Records
    """Memory that is larger than the block; the rest of it has never been accessed."""
    block: Records
    """The block, a view of the memory."""
    start: int
    """Position of the block in the memory."""

    @classmethod
    def like(cls, block: Records) -> SpareBlock:
        """Return memory for a block that grows by less than a quarter; nothing is copied."""
        margin = len(block) // 4
        memory = np.empty(len(block) + 2 * margin, block.dtype)
        return cls(memory, memory[margin : margin + len(block)], margin)

    def around(self, kept: slice, before: Sequence[Records], after: Sequence[Records]) -> Records:
        """Return adjacent records, in this memory if there is enough space.

        Args:
            kept: part of the block that is kept; the rest of the block may be overwritten.
            before: records to put before it; no views of this memory.
            after: records to put after it; no views of this memory.
        """
        first = self.start + kept.start - sum(map(len, before))
        last = self.start + kept.stop + sum(map(len, after))
        if first < 0 or last > len(self.memory):
            row = [*before, self.block[kept], *after]
            return np.concatenate(row, dtype=self.block.dtype)  # else in native byte order
        for begin, parts in ((first, before), (self.start + kept.stop, after)):
            place = begin
            for part in parts:
                self.memory[place : place + len(part)] = part
                place += len(part)
        return self.memory[first:last]
