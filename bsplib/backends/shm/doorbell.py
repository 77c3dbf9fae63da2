"""What a process that sleeps is woken by: a POSIX semaphore inside the segment.

It has no name, takes no file descriptor, and is gone with the memory in which it lies,
so that there is nothing to clean up whoever is killed; a semaphore of ``multiprocessing``
has a name and a page of its own in /dev/shm, and under ``spawn`` and ``forkserver`` the
name stays until somebody removes it.
"""

from __future__ import annotations

import ctypes
import time

from bsplib.backends.shm.control import BELL, WORD
from bsplib.backends.shm.segment import Segment

SIZE_BYTES = 32
"""Of a ``sem_t`` on every 64-bit Linux."""

_CLOCK_MONOTONIC = 1


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_library = ctypes.CDLL(None)
_init = _library.sem_init
_init.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint)
_post = ctypes.PyDLL(None).sem_post  # never waits: it may keep the interpreter's lock
_post.argtypes = (ctypes.c_void_p,)
_has_clock = hasattr(_library, "sem_clockwait")  # glibc 2.30 and later
if _has_clock:
    _wait = _library.sem_clockwait
    _wait.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Time))
else:
    _wait = _library.sem_timedwait
    _wait.argtypes = (ctypes.c_void_p, ctypes.POINTER(_Time))


class Doorbell:
    """The semaphore at an address of this process.

    Args:
        address: of :data:`SIZE_BYTES` bytes of shared memory, aligned to eight.
    """

    __slots__ = ("_address",)

    def __init__(self, address: int) -> None:
        self._address = address

    def hang(self) -> None:
        """Make it, once, before any process uses it."""
        _init(self._address, 1, 0)

    def release(self) -> None:
        """Wake the one who waits, or who will wait next."""
        _post(self._address)

    def acquire(self, timeout: float) -> None:
        """Wait to be woken.

        It also returns after ``timeout`` seconds, and when a signal has come: whoever
        waits looks again in any case.
        """
        if _has_clock:
            _wait(self._address, _CLOCK_MONOTONIC, _in(timeout, time.monotonic_ns()))
        else:
            _wait(self._address, _in(timeout, time.time_ns()))


def _in(timeout: float, now_ns: int) -> _Time:
    return _Time(*divmod(now_ns + int(timeout * 1e9), 1_000_000_000))


def doorbells(segment: Segment, nprocs: int) -> list[Doorbell]:
    """Return what wakes each process of a run."""
    base = ctypes.addressof(ctypes.c_char.from_buffer(segment.buffer)) + BELL * WORD
    return [Doorbell(base + segment.control(pid)) for pid in range(nprocs)]
