"""Numbers from 0 on, each of which is taken by one process of a group, whenever it wants one.

Processes that share a loop take its next iterations when they have done those before. This needs
something that all of them can change at any time, which no superstep gives. Here it is a pipe that
holds the numbers: the system lets one process after the other read, and no process waits for
another one that computes. Processes open it by its place in ``/proc``, however they were started.

Processes on several hosts have a pipe on each host. Number k lies in the pipe on the host of
process k mod p: a host gets as many numbers for each of its processes as the others. Where a
process cannot open its pipe, each process takes the numbers k for which k mod p is its pid.
"""

from __future__ import annotations

import array
import fcntl
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from bsplib.backends.proc_visibility import same_system
from bsplib.group import Group

_BYTES = 4
"""Of a number in a pipe."""
_LEAST_ROOM = 4096
"""Bytes that every pipe has room for."""
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class _PipeAddress(NamedTuple):
    """Where a process has a pipe, for the others."""

    system: bytes
    """See :func:`same_system`."""
    os_pid: int
    reading: int
    """The end for reading, as a descriptor of that process; negative for none."""
    most: int
    """How many numbers the pipe has room for."""


class _Pipe(NamedTuple):
    """The ends of a pipe that this process has made."""

    reading: int
    writing: int

    def fill(self, numbers: Sequence[int]) -> bool:
        """Write all numbers, and close the end for writing; return whether there was room."""
        data = array.array("I", numbers).tobytes()
        try:
            return os.write(self.writing, data) == len(data)
        except OSError:
            return False
        finally:
            os.close(self.writing)


class Tickets:
    """The numbers that a process can take.

    Args:
        bsp: the group.
        pipe: descriptor of the pipe with the numbers of this host; None where there is none.
        own: the numbers of this process where it has no pipe.
    """

    def __init__(self, bsp: Group, pipe: int | None, own: Sequence[int]) -> None:
        self._port = bsp._port
        self._pipe = pipe
        self._own = own

    def take(self, most: int) -> Sequence[int]:
        """Return the next numbers, rising; none once all are taken.

        In virtual time they are given out in the order in which processes ask.

        Args:
            most: how many at most, at least 1.
        """
        self._port.in_turn()
        if self._pipe is None:
            taken, self._own = self._own[:most], self._own[most:]
            return taken
        try:
            return memoryview(os.read(self._pipe, most * _BYTES)).cast("I").tolist()
        except BlockingIOError:  # it is empty, and a process of the program has inherited it
            return ()


def tickets(bsp: Group, wanted: int, most: int, stack: ExitStack) -> tuple[int, int, Tickets]:
    """Make the tickets of a group; all its processes call this.

    Args:
        bsp: the group.
        wanted: how many tickets are wanted.
        most: the greatest number of tickets.
        stack: closes the pipe; before it does, all processes have to sync.

    Returns:
        How many tickets there are, how many of the wanted ones each stands for, and the tickets.
    """
    pipe = _made(bsp)
    if pipe is not None:
        stack.callback(os.close, pipe.reading)
    places = bsp.allgather(_place_of(pipe, bsp.pid))
    unit = max(1, -(-wanted // min(most, *(each.most for each in places))))
    count = -(-wanted // unit)
    leaders = [_leader(places, each.system) for each in places]
    mine = leaders[bsp.pid]
    numbers = range(count) if mine == bsp.pid else ()
    is_filled = pipe is None or pipe.fill(
        [number for number in numbers if leaders[number % bsp.nprocs] == mine]
    )
    opened = _opened(places[mine], stack)
    if not bsp.allreduce(is_filled and opened is not None, "min"):
        opened = None
    return count, unit, Tickets(bsp, opened, range(bsp.pid, count, bsp.nprocs))


def _made(bsp: Group) -> _Pipe | None:
    """Return a pipe of this process; virtual processors, which are in one, need only one."""
    if bsp.pid and bsp._port.clock is not None:
        return None
    with suppress(OSError):  # too many are open
        return _Pipe(*os.pipe2(_FLAGS))
    return None


def _place_of(pipe: _Pipe | None, pid: int) -> _PipeAddress:
    system = same_system() or b"%d" % pid
    if pipe is None:
        return _PipeAddress(system, os.getpid(), -1, _LEAST_ROOM // _BYTES)
    room = fcntl.fcntl(pipe.writing, getattr(fcntl, "F_GETPIPE_SZ", -1))
    return _PipeAddress(system, os.getpid(), pipe.reading, room // _BYTES)


def _leader(places: Sequence[_PipeAddress], system: bytes) -> int:
    """Return the first process of a host."""
    return next(pid for pid, place in enumerate(places) if place.system == system)


def _opened(place: _PipeAddress, stack: ExitStack) -> int | None:
    """Return a descriptor of the pipe of another process; None if it cannot be opened."""
    if place.os_pid == os.getpid():
        return place.reading if place.reading >= 0 else None
    with suppress(OSError):
        pipe = os.open(f"/proc/{place.os_pid}/fd/{place.reading}", os.O_RDONLY | _FLAGS)
        stack.callback(os.close, pipe)
        return pipe
    return None
