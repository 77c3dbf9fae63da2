"""Shared memory for processes that another backend has started.

It is all that a backend needs of this one to let processes of one host exchange as those of
a run over shared memory do. One process makes the memory; the others open it through
``/proc``. The file is in no file system: it needs no /dev/shm, has no name, and is gone with the
last process.
"""

from __future__ import annotations

import os
import platform
from typing import NamedTuple, Self

from bsplib.backends.base import Alignment, Handle
from bsplib.backends.shm.context import context_class
from bsplib.backends.shm.control import ABORT, DELIVERED, FIRST_BLOCK, WORD
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment


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


class Memory:
    """Memory by which processes meet and exchange, as one of them has it.

    Args:
        segment: the memory.
        pid: the process.
        has_core: each process has a core of its own.
    """

    def __init__(self, segment: Segment, pid: int, has_core: bool) -> None:
        self._segment = segment
        self._pid = pid
        self._context = context_class()(segment, pid, has_core=has_core)
        self._context.begin()
        self._is_used = False

    @classmethod
    def made(cls, nprocs: int, has_core: bool) -> Self:
        """Make memory, in process 0.

        Raises:
            OSError: the system has none.
            OutOfSharedMemoryError: it has too little.
        """
        segment = Segment.outside_files(nprocs)
        try:
            segment.reserve_control()
            return cls(segment, 0, has_core)
        except BaseException:
            segment.close()
            raise

    @classmethod
    def joined(cls, where: Place, pid: int, nprocs: int, has_core: bool) -> Self:
        """Join the memory that process 0 has made; see :meth:`made` for what is raised."""
        return cls(Segment(nprocs, where.opened()), pid, has_core)

    def place(self) -> Place:
        """Return where the other processes find the memory."""
        descriptor = self._segment.descriptor
        return Place(os.getpid(), descriptor, **_identity(os.fstat(descriptor)))

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

    def leave(self) -> None:
        """Leave for good, after a run that may have failed: no process uses the memory again.

        What is mapped stays so, since arrays of the last run may lie there.
        """
        self._segment.discard_area(self._pid)
        self._segment.close()


class JoinedPort(ShmPort):
    """The connection of a process that another backend has started to others of its host."""

    def keep(self, handle: Handle) -> None:
        """See :meth:`Port.keep`: arrays may outlive the run, and with it the memory."""

    def align_clocks(self, *, again: bool) -> Alignment:  # noqa: ARG002  # all read one clock
        return Alignment(platform.node(), 0, 0)
