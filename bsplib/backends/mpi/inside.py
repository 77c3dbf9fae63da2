"""Ranks of one host exchange through shared memory, as the processes of the backend shm do.

MPI only tells them where the memory is: rank 0 makes it, and the others open it. Once all ranks
of a run share memory, the run is one of shared memory, but for its start and its end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from bsplib.backends.base import Stopped
from bsplib.backends.mpi.control import Note
from bsplib.backends.shm.joining import (
    MOST_PROCESSES,
    JoinedPort,
    Memory,
    Outside,
    Place,
    same_system,
)
from bsplib.errors import OutOfSharedMemoryError

_TAG = 31989
_NUMBERS = 4
_NOT_MADE = -1
"""In place of the number of a process: there is no memory."""


class Inside:
    """The memory that the ranks of a run share, where they are on one host.

    All ranks of a job make theirs together.

    Args:
        comm: connects the ranks.
        stop: a byte that is 1 once the run has to stop.
    """

    def __init__(self, comm: MPI.Intracomm, stop: memoryview) -> None:
        self._comm = comm
        self._stop = stop
        own = same_system(), os.sched_getaffinity(0)
        self._seats: Sequence[tuple[bytes, set[int]]] = comm.allgather(own)
        """Of each rank: its system, and the cores that it may use."""
        self._memory: Memory | None = None
        self._number = 0
        """Of the memory, also where the ranks could not share it; 0 for none."""

    def open_root(self, nprocs: int, number: int) -> JoinedPort | None:
        """Return the port of a run to its root group; its processes are the first ranks.

        All of them call it.

        Args:
            nprocs: number of its processes.
            number: of the memory, which is that of the run in which it is made. It differs
                where a memory is to be made; a rank that was in no run meanwhile finds that, too.

        Returns:
            None where they cannot share memory; the same in all of them.

        Raises:
            Stopped: the run ends.
        """
        if number != self._number:
            self.leave()
            self._memory = self._agreed(nprocs) if self._may_share(nprocs) else None
            self._number = number
        return None if self._memory is None else self._memory.open_root()

    def note(self) -> Note | None:
        """Return where the supersteps of this rank are; None where it shares no memory."""
        if self._memory is None:
            return None
        descriptor = self._memory.place().descriptor
        return Note(self._number, descriptor, self._memory.superstep_byte())

    def leave(self) -> None:
        """Leave the memory, which no process of a run uses."""
        memory, self._memory, self._number = self._memory, None, 0
        if memory is not None:
            memory.leave()

    def _may_share(self, nprocs: int) -> bool:
        system = self._seats[0][0]
        shares = system != b"" and all(each == system for each, _ in self._seats[:nprocs])
        return shares and nprocs <= MOST_PROCESSES

    def _outside(self, nprocs: int) -> Outside:
        cores = set[int]().union(*(cores for _, cores in self._seats[:nprocs]))
        return Outside(self._stop, has_core=nprocs <= len(cores))

    def _agreed(self, nprocs: int) -> Memory | None:
        """Return memory that all processes of a run have; None where one of them has not."""
        if self._comm.rank:
            return self._joined(nprocs)
        memory = _tried(lambda: Memory.made(nprocs, self._outside(nprocs)))
        place = _NUMBERS * [_NOT_MADE] if memory is None else memory.place()
        others = range(1, nprocs)
        self._to_all(others, place)
        joined = min([int(self._from(rank)[0]) for rank in others], default=memory is not None)
        self._to_all(others, _NUMBERS * [joined])
        if memory is not None and not joined:
            memory.leave()
        return memory if joined else None

    def _joined(self, nprocs: int) -> Memory | None:
        place = Place(*map(int, self._from(0)))
        memory = None
        if place.os_pid != _NOT_MADE:
            outside = self._outside(nprocs)
            memory = _tried(lambda: Memory.joined(place, self._comm.rank, nprocs, outside))
        self._to_all([0], _NUMBERS * [memory is not None])
        if not self._from(0)[0] and memory is not None:
            memory.leave()
            return None
        return memory

    def _to_all(self, ranks: Sequence[int], numbers: Sequence[int]) -> None:
        data = np.array(numbers, np.int64)
        for request in [self._comm.Isend(data, rank, _TAG) for rank in ranks]:
            self._finish(request)

    def _from(self, rank: int) -> NDArray[np.int64]:
        data = np.zeros(_NUMBERS, np.int64)
        self._finish(self._comm.Irecv(data, rank, _TAG))
        return data

    def _finish(self, request: MPI.Request) -> None:
        while not request.Test():
            if self._stop[0]:
                raise Stopped
            os.sched_yield()


def _tried(make: Callable[[], Memory]) -> Memory | None:
    try:
        return make()
    except (OSError, OutOfSharedMemoryError):
        return None
