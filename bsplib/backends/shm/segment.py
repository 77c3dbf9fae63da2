"""The one piece of shared memory that a run has.

It is as large as /dev/shm in address space for every process and costs nothing
until it is used: pages are reserved with ``posix_fallocate`` before they are
touched, so that a full /dev/shm is an error with numbers and never a SIGBUS.
Nothing is ever attached later, hence the name can go as soon as all processes
have the segment mapped, and a run that is killed leaves nothing behind.

Layout: a page for the whole run, then one area for each process, which starts
with its control words (:mod:`bsplib.backends.shm.control`) and goes on as its heap.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from bsplib.errors import OutOfSharedMemoryError

PAGE = mmap.PAGESIZE
_ADDRESS_SPACE = 1 << 45
"""Bytes of addresses that a run asks for at most: a quarter of what x86-64 has."""


def free_shared_memory() -> int:
    """Return the bytes that /dev/shm can still give."""
    stat = os.statvfs("/dev/shm")
    return stat.f_bavail * stat.f_frsize


def full(nbytes: int) -> OutOfSharedMemoryError:
    """Return the error for what does not fit."""
    return OutOfSharedMemoryError(
        f"shared memory is full: {nbytes} bytes more are needed and /dev/shm has "
        f"{free_shared_memory()} free; use smaller arrays or give it more room, for example "
        f"docker run --shm-size"
    )


def _total_shared_memory() -> int:
    stat = os.statvfs("/dev/shm")
    return stat.f_blocks * stat.f_frsize


class Segment:
    """Shared memory of one run, mapped by its parent and by each of its processes."""

    def __init__(self, nprocs: int, *, create: bool = True, name: str | None = None) -> None:
        per_process = min(_total_shared_memory(), _ADDRESS_SPACE // nprocs)
        self.area_bytes = max(per_process // PAGE, 64) * PAGE
        self.memory = _open(name, create=create, size=PAGE + nprocs * self.area_bytes)
        self.name = self.memory.name
        buffer = self.memory.buf
        assert buffer is not None  # only after close()
        self.buffer = buffer
        self.bytes = np.frombuffer(buffer, np.uint8)
        self.words = buffer.cast("Q")

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to a process that was not forked: there it is attached by name."""
        nprocs = (len(self.bytes) - PAGE) // self.area_bytes
        return _attach, (nprocs, self.name)

    def area(self, pid: int) -> int:
        """Return the byte at which the area of a process begins."""
        return PAGE + pid * self.area_bytes

    def reserve(self, start: int, nbytes: int) -> None:
        """Make sure that bytes ``start .. start + nbytes - 1`` may be touched.

        Raises:
            OutOfSharedMemoryError: /dev/shm is too small.
        """
        try:
            os.posix_fallocate(self._descriptor, start, nbytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.ENOMEM):
                raise
            raise full(nbytes) from None

    @property
    def _descriptor(self) -> int:
        return self.memory._fd  # type: ignore[attr-defined, no-any-return]  # no public way to it

    def unlink(self) -> None:
        """Take the name away; the memory lives as long as a process maps it."""
        if not _tracks():  # on 3.11 and 3.12 unlink() tells the tracker, which never knew
            resource_tracker.register(self.memory._name, "shared_memory")  # type: ignore[attr-defined]
        self.memory.unlink()

    def close(self) -> None:
        """Let go of the mapping, as far as no array of the program still uses it."""
        del self.bytes, self.buffer
        self.words.release()
        try:
            self.memory.close()
        except BufferError:
            # An array that the program kept still lives in it: its end unmaps it.
            self.memory._mmap = self.memory._buf = None  # type: ignore[attr-defined]
            os.close(self._descriptor)
            self.memory._fd = -1  # type: ignore[attr-defined]


def _tracks() -> bool:
    return sys.version_info >= (3, 13)


def _open(name: str | None, *, create: bool, size: int) -> SharedMemory:
    """Create or attach, without the helper process that would unlink it once more."""
    if _tracks():
        return SharedMemory(name, create=create, size=size, track=False)  # type: ignore[call-arg, unused-ignore]
    memory = SharedMemory(name, create=create, size=size)
    resource_tracker.unregister(memory._name, "shared_memory")  # type: ignore[attr-defined]
    return memory


def _attach(nprocs: int, name: str) -> Segment:
    return Segment(nprocs, create=False, name=name)
