"""A block with free room on both sides, into which the parts of others go.

A part that a process keeps then stays where it is, and those that come are laid
around it, over those that have been sent: nothing large need be allocated, which
often takes longer than a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from apps.sorting.order import Records


class Room(NamedTuple):
    """Memory for a block that may grow."""

    memory: Records
    """More than the block; what is beyond it has never been touched."""
    block: Records
    """A view of it."""
    start: int
    """Of the block in the memory."""

    @classmethod
    def like(cls, block: Records) -> Room:
        """Return room for a block that grows by less than a quarter; nothing is copied."""
        margin = len(block) // 4
        memory = np.empty(len(block) + 2 * margin, block.dtype)
        return cls(memory, memory[margin : margin + len(block)], margin)

    def around(self, kept: slice, before: Sequence[Records], after: Sequence[Records]) -> Records:
        """Return records in a row, in this memory if they find room there.

        Args:
            kept: what stays of the block; everything else of it may be overwritten.
            before: what is to come before that; no views of this memory.
            after: what is to come after it.
        """
        first = self.start + kept.start - sum(map(len, before))
        last = self.start + kept.stop + sum(map(len, after))
        if first < 0 or last > len(self.memory):
            row = [*before, self.block[kept], *after]
            return np.concatenate(row, dtype=self.block.dtype)  # else in native byte order
        place = first
        for part in before:
            self.memory[place : place + len(part)] = part
            place += len(part)
        place = self.start + kept.stop
        for part in after:
            self.memory[place : place + len(part)] = part
            place += len(part)
        return self.memory[first:last]
