"""The page of memory that a rank shares with its watcher.

The watcher sets a byte there when the rank is to stop, and the rank writes there how far it has
come.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Callable
from typing import NamedTuple

PAGE_BYTES = mmap.PAGESIZE
STOP = 0
"""Byte of the page: 1 where the rank is to stop at its next sync."""
ELSEWHERE = 1
"""Byte of the page: 1 where the supersteps of this run are noted in memory that ranks share."""
MAPPED = 2
"""Byte of the page: 1 where the watcher has mapped that memory."""
SUPERSTEP = 8
"""First byte of a native integer of 8 bytes: how many supersteps of the root group have ended."""

_LOOK_S = 1e-4


class Note(NamedTuple):
    """Where a rank notes the supersteps that it has ended, in memory that ranks share."""

    memory: int
    """Number of the memory."""
    descriptor: int
    """Of its file, in the rank."""
    byte: int
    """Where an integer of 8 bytes begins."""


class Page:
    """The memory that a rank shares with its watcher."""

    def __init__(self) -> None:
        self.memory = memoryview(mmap.mmap(-1, PAGE_BYTES))
        self.stop = self.memory[STOP : STOP + 1]
        """1 where the rank is to stop."""
        self.begun = self._there = self.memory[SUPERSTEP : SUPERSTEP + 8].cast("q")
        """Supersteps that the rank has ended in the root group; the barrier before ``main`` is
        one of them."""
        self.noted: Note | None = None
        """In the rank: where the watcher can read supersteps beside this memory."""

    @property
    def superstep(self) -> int:
        """Superstep of the root group in which the rank is."""
        word = self._there if self.memory[ELSEWHERE] else self.begun
        return int(max(word[0], 1) - 1)

    def begin(self) -> None:
        """Begin a run; the byte is cleared by the watcher, which knows what comes first."""
        self.begun[0] = 0
        self.memory[ELSEWHERE] = 0

    def map(self, os_pid: int, note: Note) -> None:
        """In the watcher: map where the rank notes its supersteps; say that this is done."""
        with contextlib.suppress(OSError):  # the rank has ended
            file = os.open(f"/proc/{os_pid}/fd/{note.descriptor}", os.O_RDWR | os.O_CLOEXEC)
            page = note.byte - note.byte % PAGE_BYTES
            try:
                memory = memoryview(mmap.mmap(file, PAGE_BYTES, offset=page))
            finally:
                os.close(file)
            self._there = memory[note.byte - page : note.byte - page + 8].cast("q")
        self.memory[MAPPED] = 1

    def read_elsewhere(self, note: Note, ask: Callable[[], None]) -> None:
        """In the rank: let the watcher read the supersteps of this run in another file.

        Args:
            note: where.
            ask: asks the watcher to map that.
        """
        if note != self.noted:
            self.memory[MAPPED] = 0
            ask()
            while not self.memory[MAPPED] and not self.stop[0]:
                time.sleep(_LOOK_S)  # or this rank might end before that
            self.noted = note
        self.memory[ELSEWHERE] = 1
