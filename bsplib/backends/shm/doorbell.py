"""The doorbell of a process, which wakes it: a POSIX semaphore inside the segment.

It has no name and no file descriptor, and disappears with the memory in which it lies, so
that nothing has to be cleaned up when a process is killed. A semaphore of ``multiprocessing``
has a name and a page of its own in /dev/shm, and under ``spawn`` and ``forkserver`` the
name stays until it is removed explicitly.
"""

from __future__ import annotations

import ctypes
import time
from struct import Struct

from bsplib.backends.shm.control import DOORBELL, WORD
from bsplib.backends.shm.segment import Segment

SIZE_BYTES = 32
"""Size of a ``sem_t`` on every 64-bit Linux."""

_CLOCK_MONOTONIC = 1


_library = ctypes.CDLL(None)
_init = _library.sem_init
_init.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)
_post = ctypes.PyDLL(None).sem_post  # never waits: no need to release the interpreter's lock
_post.argtypes = (ctypes.c_void_p,)
_has_clock = hasattr(_library, "sem_clockwait")  # glibc 2.30 and later
if _has_clock:
    _wait = _library.sem_clockwait
    _wait.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
else:
    _wait = _library.sem_timedwait
    _wait.argtypes = (ctypes.c_void_p, ctypes.c_void_p)


_write_time = Struct("qq").pack_into  # a struct timespec
_now_ns = time.monotonic_ns if _has_clock else time.time_ns


class Doorbell:
    """The semaphore at an address of this process.

    Args:
        address: address of :data:`SIZE_BYTES` bytes of shared memory, aligned to eight bytes.
    """

    __slots__ = ("_address", "_arguments", "_until")

    def __init__(self, address: int) -> None:
        self._address = address
        self._until = ctypes.create_string_buffer(16)
        until = ctypes.addressof(self._until)
        self._arguments = (address, _CLOCK_MONOTONIC, until) if _has_clock else (address, until)

    def initialise(self) -> None:
        """Initialise the semaphore, once, before any process uses it."""
        _init(self._address, 1, 0)

    def release(self) -> None:
        """Wake the process that waits, or let its next wait return at once."""
        _post(self._address)

    def acquire(self, timeout: float) -> None:
        """Wait to be woken.

        It also returns after ``timeout`` seconds, and when a signal has come: the caller has to
        look again in any case.
        """
        seconds, nanoseconds = divmod(_now_ns() + int(timeout * 1e9), 1_000_000_000)
        _write_time(self._until, 0, seconds, nanoseconds)
        _wait(*self._arguments)


def doorbells(segment: Segment, nprocs: int) -> list[Doorbell]:
    """Return the doorbells of all processes of a run, by pid."""
    base = ctypes.addressof(ctypes.c_char.from_buffer(segment.buffer)) + DOORBELL * WORD
    return [Doorbell(base + segment.control_start(pid)) for pid in range(nprocs)]
