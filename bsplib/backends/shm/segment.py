"""The shared memory of a run, which is one file, and how it is mapped as it grows.

The file is in /dev/shm and never has a name; where that has no files without names, the file is
in no file system. Processes inherit its descriptor or receive it, and a run that is killed leaves
nothing behind.

Layout: a page for the whole run, then the control words of each process
(:mod:`bsplib.backends.shm.control`), which every process maps from the start. Far behind
them each process has an area of its own for its heap, of which it uses the beginning.
The file has holes: pages are reserved with ``posix_fallocate`` before they are touched,
so that a full /dev/shm is an error with numbers and never a SIGBUS.

A process maps memory of an area, its own or another's, when it first uses it, by
**windows**: the first window of an area has 1 MiB, each further one twice as much as
the one before. No block of a heap crosses the border of a window. So any byte
determines its window, processes need no communication when an area grows, and mapped
memory never moves. The addresses that a process takes are
at most a few times the memory that it uses.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
from collections.abc import Iterator
from multiprocessing.reduction import DupFd
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.shm.control import CONTROL_BYTES, FUTEX, PAGE, WORD
from bsplib.core.kinds import AREA_SHIFT, CHUNK_SHIFT
from bsplib.errors import OutOfSharedMemoryError

_TRIES = 3
"""While one process reserves pages in vain, which the system then takes back, another one may
find too few: where there is room afterwards, it tries again."""
AREA_BYTES = 1 << AREA_SHIFT
_CHUNKS_SHIFT = AREA_SHIFT - CHUNK_SHIFT
_WINDOWS = _CHUNKS_SHIFT
"""Number of windows in an area; the last one has half of the area, 8 TiB."""


def free_shared_memory() -> int:
    """Return the number of free bytes in /dev/shm."""
    stat = os.statvfs("/dev/shm")
    return stat.f_bavail * stat.f_frsize


def full(nbytes: int) -> OutOfSharedMemoryError:
    """Return the error for bytes that /dev/shm does not have."""
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


_POPULATE = 1 << 16
"""Least number of bytes whose pages are mapped when reserved, see :meth:`Segment.reserve`."""
_POPULATE_WRITE = 23
"""``MADV_POPULATE_WRITE`` of Linux 5.14; Python's mmap does not name it."""

_Window = tuple[int, memoryview, NDArray[np.uint8]]
"""A mapped part of the file: its first byte in the file, and its memory as a memoryview and as
an array. (A NamedTuple takes longer to unpack.)"""


class _Windows(dict[int, _Window]):
    """The window of each chunk of 1 MiB; it is mapped when it is first needed."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.mapped: dict[int, tuple[int, _Window]] = {}
        """Address and window, by the first byte of the window in the file."""
        self._descriptor = descriptor

    def __missing__(self, chunk: int) -> _Window:
        area, number = chunk >> _CHUNKS_SHIFT, chunk & (1 << _CHUNKS_SHIFT) - 1
        first, nbytes = window_at(area << AREA_SHIFT, (number + 1).bit_length() - 1)
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


def area_of(byte: int) -> int:
    """Return the process in whose area a byte of the file is; -1 for control words."""
    return (byte >> AREA_SHIFT) - 1


def window_at(area: int, number: int) -> tuple[int, int]:
    """Return first byte and size of a window, in the area that begins at a byte."""
    return area + ((1 << number) - 1 << CHUNK_SHIFT), 1 << number + CHUNK_SHIFT


_libc = ctypes.CDLL(None, use_errno=True)
# Python's own mmap takes a file descriptor for each mapping; there may be hundreds.
_mmap = _libc.mmap
_mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
)
_mmap.restype = ctypes.c_void_p
_madvise = _libc.madvise
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_fallocate = _libc.fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_PUNCH_HOLE = 3
"""``FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`` of <linux/falloc.h>."""
_FAILED = ctypes.c_void_p(-1).value
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE


def populate(address: int, nbytes: int) -> bool:
    """Map all pages of some bytes at once, which are reserved.

    Returns:
        Whether the system can do that. It need not: a page is mapped when it is touched.
    """
    start = address & -mmap.PAGESIZE
    stop = address + nbytes + mmap.PAGESIZE - 1 & -mmap.PAGESIZE
    return bool(_madvise(start, stop - start, _POPULATE_WRITE) == 0)


class Segment:
    """Shared memory of one run, as its caller or one of its processes has it mapped.

    Args:
        nprocs: number of processes.
        descriptor: file descriptor; None to create the file.

    Raises:
        OutOfSharedMemoryError: /dev/shm has no room, or no addresses are left.
    """

    def __init__(self, nprocs: int, descriptor: int | None = None) -> None:
        self.nprocs = nprocs
        size = _control_bytes(nprocs)
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
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        """Address of the control words."""
        self.control = self.buffer.cast("Q")
        """The control words of all processes, as words."""
        self.windows = _Windows(self.descriptor)
        """Windows by the number of a chunk: a byte of the file, shifted by CHUNK_SHIFT."""

    @classmethod
    def outside_files(cls, nprocs: int) -> Self:
        """Create the file in no file system: its size is not limited by that of /dev/shm.

        Raises:
            OSError: the system has no such files.
            OutOfSharedMemoryError: see the class.
        """
        return cls(nprocs, _create_outside(_control_bytes(nprocs)))

    @classmethod
    def _received(cls, nprocs: int, descriptor: Any) -> Self:
        """Return the segment in a process that was not forked."""
        return cls(nprocs, descriptor.detach())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for a process that is not forked, as a file descriptor."""
        return self._received, (self.nprocs, DupFd(self.descriptor))

    def control_start(self, pid: int) -> int:
        """Return the byte at which the control words of a process begin."""
        return PAGE + pid * CONTROL_BYTES

    def futexes(self) -> list[int]:
        """Return the addresses of the futexes of all processes of the run, by pid.

        A futex is a word of shared memory, which changes to wake the process that sleeps at it. It
        has no name and no file descriptor, and disappears with the memory in which it lies, so that
        nothing has to be cleaned up when a process is killed. A semaphore of ``multiprocessing``
        has a name and a page of its own in /dev/shm, and under ``spawn`` and ``forkserver`` the
        name stays until it is removed explicitly.
        """
        base = self.address + FUTEX * WORD
        return [base + self.control_start(pid) for pid in range(self.nprocs)]

    def reserve_control(self) -> None:
        """Reserve the first page of the run, and that of the control words of each process.

        Labels and the root group's block are read before their owner has started.
        """
        self.reserve(0, PAGE)
        for pid in range(self.nprocs):
            self.reserve(self.control_start(pid), PAGE)

    def area(self, pid: int) -> Iterator[tuple[int, int]]:
        """Return first byte and end of each window of a process's area, the smallest first."""
        for number in range(_WINDOWS):
            first, nbytes = window_at(pid + 1 << AREA_SHIFT, number)
            yield first, first + nbytes

    def address_of(self, start: int) -> int:
        """Return the address of a byte in the area of any process."""
        first = self.windows[start >> CHUNK_SHIFT][0]
        return self.windows.mapped[first][0] + start - first

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
        return self.byte_at(array.__array_interface__["data"][0])

    def byte_at(self, address: int) -> int | None:
        """Return the byte of the file at an address, if the file is mapped there."""
        for begin, (first, buffer, _) in self.windows.mapped.values():
            if begin <= address < begin + len(buffer):
                return first + address - begin
        return None

    def reserve(self, start: int, nbytes: int) -> None:
        """Make sure that bytes ``start .. start + nbytes - 1`` may be touched.

        In an area, many pages are also cleared and mapped here, in one call: it takes half as
        long as to do so page by page, when each is first touched. An error of that call does
        not matter, since the pages are reserved: an old kernel does not know it.

        Args:
            start: byte at which a page begins.
            nbytes: whole pages.

        Raises:
            OutOfSharedMemoryError: /dev/shm is too small, or no addresses are left.
        """
        address = 0
        if start >= 1 << AREA_SHIFT:
            address = self.address_of(start)  # maps the window, or raises before pages are reserved
        for _ in range(_TRIES):
            try:
                os.posix_fallocate(self.descriptor, start, nbytes)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.ENOMEM):
                    raise
                if free_shared_memory() < nbytes:
                    break
            else:
                if address and nbytes >= _POPULATE:
                    populate(address, nbytes)
                return
        raise full(nbytes)

    def is_short(self) -> bool:
        """Tell whether more than a quarter of all shared memory is in use."""
        stat = os.fstatvfs(self.descriptor)
        return 4 * stat.f_bavail < 3 * stat.f_blocks

    def discard_area(self, pid: int) -> None:
        """Give the memory of a process's area back to the system; what is mapped reads as zeros."""
        _fallocate(self.descriptor, _PUNCH_HOLE, pid + 1 << AREA_SHIFT, 1 << AREA_SHIFT)

    def close(self) -> None:
        """Unmap the control words and close the descriptor; windows stay mapped."""
        self.control.release()
        self.buffer.release()
        self._mapping.close()
        os.close(self.descriptor)


def _control_bytes(nprocs: int) -> int:
    return PAGE + nprocs * CONTROL_BYTES


def _create(size: int) -> int:
    """Return the descriptor of a new file in shared memory that has no name."""
    try:
        descriptor = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.ENOMEM):
            raise full(size) from None
        return _create_outside(size)  # EISDIR or EOPNOTSUPP: it has no such files
    return _sized(descriptor, size)


def _create_outside(size: int) -> int:
    """Return the descriptor of a new file in no file system."""
    return _sized(os.memfd_create("bsplib", os.MFD_CLOEXEC), size)


def _sized(descriptor: int, size: int) -> int:
    """Give a new file its size, or close it."""
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
