"""Shared memory for processes that another backend has started.

It is all that a backend needs of this one to let processes of one host exchange as those of
a run over shared memory do. One process makes the memory; the others open it through
``/proc``. The file is in no file system: it needs no /dev/shm, has no name, and is gone with the
last process.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from bsplib.backends.base import Alignment
from bsplib.backends.shm.context import context_class
from bsplib.backends.shm.control import ABORT, DELIVERED, FIRST_BLOCK, WORD
from bsplib.backends.shm.fences import Fences
from bsplib.backends.shm.heap import Heap
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment, populate
from bsplib.backends.shm.waiting import Outside, futexes
from bsplib.errors import OutOfSharedMemoryError

__all__ = ["MOST_PROCESSES", "JoinedPort", "Memory", "Place", "Store"]

MOST_PROCESSES = 256
"""Processes that may share memory: each looks at the words of all others."""


class Place(NamedTuple):
    """Where another process of this system finds the file of some shared memory."""

    os_pid: int
    """The process that has made it."""
    descriptor: int
    """Its number there."""
    device: int
    inode: int

    @property
    def path(self) -> str:
        """The path that leads to the file."""
        return f"/proc/{self.os_pid}/fd/{self.descriptor}"

    def opened(self) -> int:
        """Open the file; return its descriptor here.

        Raises:
            OSError: it is not there, or this process may not open it.
        """
        if self != self._replace(**_identity(os.stat(self.path))):
            raise FileNotFoundError(self.path)
        return os.open(self.path, os.O_RDWR | os.O_CLOEXEC)


def _identity(stat: os.stat_result) -> dict[str, int]:
    return {"device": stat.st_dev, "inode": stat.st_ino}


class _Shared:
    """Memory that processes share, as one of them has it.

    Args:
        segment: the memory.
        pid: the process.
    """

    def __init__(self, segment: Segment, pid: int) -> None:
        self._segment = segment
        self._pid = pid

    @classmethod
    def made(cls, nprocs: int, *more: Any) -> Self:
        """Make memory, in process 0.

        Args:
            nprocs: number of processes.
            *more: further arguments of the class.

        Raises:
            OSError: the system has none.
            OutOfSharedMemoryError: it has too little.
        """
        make: Callable[..., Self] = cls
        segment = Segment.outside_files(nprocs)
        try:
            segment.reserve_control()
            return make(segment, 0, nprocs, *more)
        except BaseException:
            segment.close()
            raise

    @classmethod
    def joined(cls, where: Place, pid: int, nprocs: int, *more: Any) -> Self:
        """Join the memory that process 0 has made; see :meth:`made` for what is raised."""
        make: Callable[..., Self] = cls
        return make(Segment(nprocs, where.opened()), pid, nprocs, *more)

    def place(self) -> Place:
        """Return where the other processes find the memory."""
        descriptor = self._segment.descriptor
        return Place(os.getpid(), descriptor, **_identity(os.fstat(descriptor)))

    def leave(self) -> None:
        """Leave for good, after a run that may have failed: no process uses the memory again.

        What is mapped stays so, since arrays of the last run may lie there.
        """
        self._segment.discard_area(self._pid)
        self._segment.close()


class Memory(_Shared):
    """Memory by which processes meet, too.

    Args:
        segment: the memory.
        pid: the process.
        nprocs: number of processes.
        has_core: each process has a core of its own.
    """

    def __init__(self, segment: Segment, pid: int, nprocs: int, has_core: bool) -> None:
        super().__init__(segment, pid)
        outside = Outside(segment.control, has_core)
        self._context = context_class()(
            segment, pid, futexes(segment, nprocs), "auto", outside=outside
        )
        self._context.begin()
        self._is_used = False

    def open_root(self) -> JoinedPort:
        """Return the port of this process to the root group of another run.

        All processes call it equally often. Nobody needs what they had in the run before: each
        of them has ended it.
        """
        if self._is_used:
            self._context.begin_anew()
        self._is_used = True
        return JoinedPort.of_root(self._context)

    def supersteps(self) -> int:
        """Return how many supersteps of the root group this process has ended in a run."""
        start = self._segment.control_start(self._pid) // WORD
        return self._segment.control[start + FIRST_BLOCK + DELIVERED]

    def stop(self) -> None:
        """Let all processes stop where they wait, now or later: a run has failed."""
        self._segment.control[ABORT] = 1


class Store(_Shared):
    """Memory that processes of a host share, without meetings: these go another way.

    Each process has some words in which it notes what others want to know (at most 64, from 0). It
    allocates in its own area, and reads and writes where others tell it.

    Args:
        segment: the memory.
        pid: the process.
        nprocs: number of processes.
    """

    def __init__(self, segment: Segment, pid: int, nprocs: int) -> None:
        super().__init__(segment, pid)
        self._heap = Heap(segment, segment.area(pid))
        self._words = [
            segment.control_start(other) // WORD + FIRST_BLOCK for other in range(nprocs)
        ]
        fences = Fences()
        self.order = fences.order
        """Keeps the order of loads and stores; see PROTOCOL.md of the backend that meets."""
        self.release, self.clear = self._heap.release, self._heap.clear
        """Release memory of this process, by its first byte, or all of it at once."""
        self.view, self.view_array = segment.view, segment.view_array
        """Return bytes that one process has allocated together."""
        self.byte_of = segment.byte_of
        """Returns the byte at which an array begins; None where it lies elsewhere."""
        self.map_at_once = populate
        """Maps memory that will be written, which is quicker than page by page."""

    def allocate(self, nbytes: int) -> tuple[int, bool] | None:
        """Return the byte at which new memory begins, and whether it is known to be zero.

        It is None where there is no room.
        """
        try:
            return self._heap.allocate(nbytes)
        except (OSError, OutOfSharedMemoryError):
            return None

    def word(self, pid: int, number: int) -> int:
        """Return what a process has noted in one of its words; 0 where it has noted nothing."""
        return self._segment.control[self._words[pid] + number]

    def note(self, number: int, value: int) -> None:
        """Note something in a word of this process, after all that it has written before."""
        self.order()
        self._segment.control[self._words[self._pid] + number] = value


class JoinedPort(ShmPort):
    """The connection of a process that another backend has started to others of its host."""

    def align_clocks(self, *, again: bool) -> Alignment:  # noqa: ARG002  # all read one clock
        """See :meth:`Port.align_clocks`."""
        return Alignment(platform.node(), 0, 0)
