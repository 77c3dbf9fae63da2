"""The one piece of shared memory that a run has, and how it is mapped as it grows.

It is a file in /dev/shm that ``multiprocessing.shared_memory`` creates and whose name is
removed at once: processes inherit its descriptor or are handed it, and a run that is
killed leaves nothing behind.

Layout: a page for the whole run, then the control words of each process
(:mod:`bsplib.backends.shm.control`), which everybody maps from the start. Far behind
them each process has an area of its own for its heap, of which it uses the beginning.
The file has holes: pages are reserved with ``posix_fallocate`` before they are touched,
so that a full /dev/shm is an error with numbers and never a SIGBUS.

A process maps memory of an area, its own or another's, when it first uses it, by
**windows**: the first window of an area has 1 MiB, each further one twice as much as
the one before. No block of a heap crosses the border of a window. So where a window
begins and ends follows from any byte in it, nobody has to be asked or told when an
area grows, and what is mapped never moves. The addresses that a process takes are
at most a few times the memory that it uses.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import secrets
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.reduction import DupFd
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.shm.control import CONTROL_BYTES, PAGE
from bsplib.errors import OutOfSharedMemoryError

CHUNK_SHIFT = 20
"""Of the bytes of the first window: every window consists of whole chunks of so many."""
_AREA_SHIFT = 44
"""Of the bytes of the file that belong to one process, most of them a hole."""
_CHUNKS_SHIFT = _AREA_SHIFT - CHUNK_SHIFT
_WINDOWS = _CHUNKS_SHIFT
"""In an area; the last one has half of it, 8 TiB."""


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


def _no_addresses(nbytes: int) -> OutOfSharedMemoryError:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    why = f"a process may use {limit} (ulimit -v)" if limit >= 0 else "the system refuses them"
    return OutOfSharedMemoryError(
        f"no addresses are left: {nbytes} bytes of shared memory cannot be mapped, since "
        f"{why}; use smaller arrays or raise the limit"
    )


_Window = tuple[int, memoryview, NDArray[np.uint8]]
"""A part of the file as this process has it mapped: the number of its first byte in the
file, and the memory twice. (A NamedTuple takes longer to unpack.)"""


class _Windows(dict[int, _Window]):
    """The window in which each chunk of 1 MiB lies; mapped where it is first asked for."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.mapped: dict[int, tuple[int, _Window]] = {}
        """Address and window, by the window's first byte."""
        self._descriptor = descriptor

    def __missing__(self, chunk: int) -> _Window:
        area, number = chunk >> _CHUNKS_SHIFT, chunk & (1 << _CHUNKS_SHIFT) - 1
        first, nbytes = window_at(area << _AREA_SHIFT, (number + 1).bit_length() - 1)
        if first not in self.mapped:
            self.mapped[first] = self._map(first, nbytes)
        window = self[chunk] = self.mapped[first][1]
        return window

    def _map(self, first: int, nbytes: int) -> tuple[int, _Window]:
        address = _mmap(None, nbytes, _READ_WRITE, mmap.MAP_SHARED, self._descriptor, first)
        if address == _FAILED:
            code = ctypes.get_errno()
            if code == errno.ENOMEM:
                raise _no_addresses(nbytes)
            raise OSError(code, os.strerror(code))
        buffer = memoryview((ctypes.c_uint8 * nbytes).from_address(address)).cast("B")
        return address, (first, buffer, np.frombuffer(buffer, np.uint8))


def window_at(area: int, number: int) -> tuple[int, int]:
    """Return where a window of the area at a byte begins, and its bytes."""
    return area + ((1 << number) - 1 << CHUNK_SHIFT), 1 << number + CHUNK_SHIFT


# Python's own mmap takes a file descriptor for each mapping; there may be hundreds.
_mmap = ctypes.CDLL(None, use_errno=True).mmap
_mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
)
_mmap.restype = ctypes.c_void_p
_FAILED = ctypes.c_void_p(-1).value
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE


class Segment:
    """Shared memory of one run, as its parent or one of its processes sees it.

    Args:
        nprocs: number of processes.
        descriptor: of the file; None to make one.

    Raises:
        OutOfSharedMemoryError: /dev/shm has no room, or no addresses are left.
    """

    def __init__(self, nprocs: int, descriptor: int | None = None) -> None:
        self._nprocs = nprocs
        size = PAGE + nprocs * CONTROL_BYTES
        self.descriptor = _create(size) if descriptor is None else descriptor
        try:
            self._mapping = mmap.mmap(self.descriptor, size)
        except OSError as error:
            os.close(self.descriptor)
            if error.errno != errno.ENOMEM:
                raise
            raise _no_addresses(size) from None
        self.buffer = memoryview(self._mapping)
        """The control words of all processes, as bytes."""
        self.control = self.buffer.cast("Q")
        """The same, as words."""
        self.windows = _Windows(self.descriptor)
        """By chunk, that is by the byte in the file shifted by CHUNK_SHIFT."""

    @classmethod
    def _received(cls, nprocs: int, descriptor: Any) -> Self:
        """Return the segment in a process that was not forked."""
        return cls(nprocs, descriptor.detach())

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to a process that was not forked, as a file descriptor."""
        return self._received, (self._nprocs, DupFd(self.descriptor))

    def control_start(self, pid: int) -> int:
        """Return the byte at which the control words of a process begin."""
        return PAGE + pid * CONTROL_BYTES

    def area(self, pid: int) -> Iterator[tuple[int, int]]:
        """Return where the windows of a process's area begin and end, the smallest first."""
        for number in range(_WINDOWS):
            first, nbytes = window_at(pid + 1 << _AREA_SHIFT, number)
            yield first, first + nbytes

    def view(self, start: int, nbytes: int) -> memoryview:
        """Return bytes of one block in the area of any process."""
        first, buffer, _ = self.windows[start >> CHUNK_SHIFT]
        start -= first
        return buffer[start : start + nbytes]

    def view_array(self, start: int, nbytes: int) -> NDArray[np.uint8]:
        """Do as :meth:`view`, as an array."""
        first, _, array = self.windows[start >> CHUNK_SHIFT]
        start -= first
        return array[start : start + nbytes]

    def byte_of(self, array: NDArray[Any]) -> int | None:
        """Return the byte of the file at which an array begins, if it lies in the file."""
        address: int = array.__array_interface__["data"][0]
        for begin, (first, buffer, _) in self.windows.mapped.values():
            if begin <= address < begin + len(buffer):
                return first + address - begin
        return None

    def reserve(self, start: int, nbytes: int) -> None:
        """Make sure that bytes ``start .. start + nbytes - 1`` may be touched.

        Raises:
            OutOfSharedMemoryError: /dev/shm is too small, or no addresses are left.
        """
        if start >= 1 << _AREA_SHIFT:
            self.windows[start >> CHUNK_SHIFT]  # is mapped, or fails before pages are taken
        try:
            os.posix_fallocate(self.descriptor, start, nbytes)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.ENOMEM):
                raise
            raise full(nbytes) from None

    def close(self) -> None:
        """Let go of the control words and of the descriptor; windows stay mapped."""
        self.control.release()
        self.buffer.release()
        self._mapping.close()
        os.close(self.descriptor)


def _create(size: int) -> int:
    """Return the descriptor of a new shared memory that has no name any more.

    The resource tracker of multiprocessing, which removes what a process leaves behind,
    is told of the name before it exists: at no moment can it stay.
    """
    name = f"bsp_{secrets.token_hex(8)}"
    resource_tracker.register(f"/{name}", "shared_memory")
    try:
        memory = SharedMemory(name, create=True, size=size)
    except OSError as error:
        resource_tracker.register(f"/{name}", "shared_memory")  # it may have been forgotten
        resource_tracker.unregister(f"/{name}", "shared_memory")
        if error.errno not in (errno.ENOSPC, errno.ENOMEM):
            raise
        raise full(size) from None
    try:
        return os.open(f"/dev/shm/{name}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        memory.unlink()  # tells the tracker, too
        memory.close()
