"""The futex of a process, which wakes it: a word of shared memory.

A process that sleeps waits until the word changes; who wakes it changes the word. A
word has no name and no file descriptor, and disappears with the memory in which it lies, so
that nothing has to be cleaned up when a process is killed. A semaphore of ``multiprocessing``
has a name and a page of its own in /dev/shm, and under ``spawn`` and ``forkserver`` the
name stays until it is removed explicitly.
"""

from __future__ import annotations

from bsplib.backends.shm.control import FUTEX, WORD
from bsplib.backends.shm.segment import Segment
from bsplib.core import atomics


class Futex:
    """The futex at an address of this process."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def look(self) -> int:
        """Return what the word is, to be given to :meth:`acquire`."""
        return atomics.load(self.address)

    def release(self) -> None:
        """Wake the process that waits, or let its next wait return at once."""
        atomics.wake_up(self.address)

    def acquire(self, seen: int, timeout: float) -> None:
        """Wait to be woken, unless that has happened since a look.

        It also returns after a time, and when a signal has come: the caller has to look
        again in any case.

        Args:
            seen: what :meth:`look` returned.
            timeout: in seconds.
        """
        atomics.sleep_while(self.address, seen, int(timeout * 1e9))


def futexes(segment: Segment, nprocs: int) -> list[Futex]:
    """Return the futexes of all processes of a run, by pid."""
    base = segment.address + FUTEX * WORD
    return [Futex(base + segment.control_start(pid)) for pid in range(nprocs)]
