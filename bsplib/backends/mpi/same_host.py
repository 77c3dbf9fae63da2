"""Ranks of one host exchange through shared memory, as the processes of the backend shm do.

MPI only tells them where the memory is: one of them makes it, and the others open it. Once all
ranks of a run share memory, the run is one of shared memory, but for its start and its end. Where
a run has several hosts, all its processes exchange through MPI.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from bsplib.backends.launching import MOST_SHARING
from bsplib.backends.mpi.clocks import finish
from bsplib.backends.mpi.transport import MEMORY
from bsplib.backends.proc_visibility import same_system
from bsplib.backends.shm.joining import JoinedPort, Memory, Place
from bsplib.errors import OutOfSharedMemoryError

_NOWHERE = Place(*(0 for _ in Place._fields))
"""Stands for memory that could not be made: no process has the number 0."""


class Inside:
    """The memory that the ranks of a run share with others on their host.

    All ranks of a job make theirs together.

    Args:
        comm: connects the ranks.
        stop: tells whether the run has to stop.
    """

    def __init__(self, comm: MPI.Intracomm, stop: Callable[[], bool]) -> None:
        self._comm = comm
        self._stop = stop
        own = same_system(), os.sched_getaffinity(0)
        self._seats: Sequence[tuple[bytes, set[int]]] = comm.allgather(own)
        """For each rank its system, and the cores that it may use."""
        self._memory: Memory | None = None
        self._number = 0
        """Number of the memory, also of one that the ranks could not share; 0: there is none."""

    def open_root(self, nprocs: int, number: int) -> JoinedPort | None:
        """Return the port of a run to its root group; its processes are the first ranks.

        All of them call it.

        Args:
            nprocs: number of its processes.
            number: of the memory, which is that of the run in which it is made. It differs where
                a memory is to be made; a rank that was in no run meanwhile finds that, too.

        Returns:
            None where they cannot share memory; the same in all of them.

        Raises:
            Stopped: the run ends.
        """
        if number != self._number:
            self.leave()
            self._share(nprocs)
            self._number = number
        return None if self._memory is None else self._memory.open_root()

    def superstep(self) -> int | None:
        """Return how many supersteps this rank has ended; None where ranks meet through MPI."""
        return None if self._memory is None else self._memory.supersteps()

    def stop(self) -> None:
        """Let all processes of the run stop that wait in memory which they share."""
        if self._memory is not None:
            self._memory.stop()

    def leave(self) -> None:
        """Leave the memory, which no process of a run uses."""
        memory, self._memory, self._number = self._memory, None, 0
        if memory is not None:
            memory.leave()

    def _share(self, nprocs: int) -> None:
        """Make or open the memory of a run, if all its ranks are on one host."""
        systems = {system for system, _ in self._seats[:nprocs]}
        if len(systems) > 1 or not all(systems) or nprocs > MOST_SHARING:
            return
        cores = set[int]().union(*(cores for _, cores in self._seats[:nprocs]))
        has_core = nprocs <= len(cores)
        if self._comm.rank:
            self._memory = self._joined(nprocs, has_core)
            return
        memory = _tried(lambda: Memory.made(nprocs, has_core))
        place = _NOWHERE if memory is None else memory.place()
        others = range(1, nprocs)
        self._to_all(others, place)
        joined = min([int(self._from(rank)[0]) for rank in others], default=memory is not None)
        self._to_all(others, [joined])
        if memory is not None and not joined:
            memory.leave()
        self._memory = memory if joined else None

    def _joined(self, nprocs: int, has_core: bool) -> Memory | None:
        """Open the memory that rank 0 has made; None if one of the ranks has not got it."""
        place, pid = Place(*map(int, self._from(0))), self._comm.rank
        memory = None
        if place != _NOWHERE:
            memory = _tried(lambda: Memory.joined(place, pid, nprocs, has_core))
        self._to_all([0], [memory is not None])
        if not self._from(0)[0] and memory is not None:
            memory.leave()
            return None
        return memory

    def _to_all(self, ranks: Sequence[int], numbers: Sequence[int]) -> None:
        data = np.array(numbers, np.int64)
        finish(self._stop, *[self._comm.Isend(data, rank, MEMORY) for rank in ranks])

    def _from(self, rank: int) -> NDArray[np.int64]:
        data = np.zeros(len(_NOWHERE), np.int64)
        finish(self._stop, self._comm.Irecv(data, rank, MEMORY))
        return data


def _tried(make: Callable[[], Memory]) -> Memory | None:
    try:
        return make()
    except (OSError, OutOfSharedMemoryError):
        return None
