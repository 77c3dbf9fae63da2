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
from bsplib.backends.shm.joining import Memory, Place
from bsplib.errors import OutOfSharedMemoryError

_NOWHERE = Place(*(0 for _ in Place._fields))
"""Stands for memory that could not be made: no process has the number 0."""


Seats = Sequence[tuple[bytes, set[int]]]
"""For each rank its system, and the cores that it may use."""


def seats_of(comm: MPI.Intracomm) -> Seats:
    """Return the seats of all ranks of a job, which all call it."""
    return comm.allgather((same_system(), os.sched_getaffinity(0)))


def shared_memory(
    comm: MPI.Intracomm, seats: Seats, nprocs: int, stop: Callable[[], bool]
) -> Memory | None:
    """Make or open memory that the ranks of a run share; all of them call it.

    Args:
        comm: connects the ranks of the job.
        seats: of these.
        nprocs: number of processes of the run, which are the first ranks.
        stop: tells whether the run has to stop.

    Returns:
        None where they cannot share memory; the same in all of them.

    Raises:
        Stopped: the run ends.
    """
    systems = {system for system, _ in seats[:nprocs]}
    if len(systems) > 1 or not all(systems) or nprocs > MOST_SHARING:
        return None
    has_core = nprocs <= len(set[int]().union(*(cores for _, cores in seats[:nprocs])))
    pid, others = comm.rank, range(1, nprocs)

    def to_all(ranks: Sequence[int], numbers: Sequence[int]) -> None:
        data = np.array(numbers, np.int64)
        finish(stop, *[comm.Isend(data, rank, MEMORY) for rank in ranks])

    def from_rank(rank: int) -> NDArray[np.int64]:
        data = np.zeros(len(_NOWHERE), np.int64)
        finish(stop, comm.Irecv(data, rank, MEMORY))
        return data

    if pid == 0:
        memory = _tried(lambda: Memory.made(nprocs, has_core))
        to_all(others, _NOWHERE if memory is None else memory.place())
        joined = min([int(from_rank(rank)[0]) for rank in others], default=memory is not None)
        to_all(others, [joined])
    else:
        place = Place(*map(int, from_rank(0)))
        memory = None
        if place != _NOWHERE:
            memory = _tried(lambda: Memory.joined(place, pid, nprocs, has_core))
        to_all([0], [memory is not None])
        joined = int(from_rank(0)[0])
    if memory is not None and not joined:
        memory.leave()
        return None
    return memory


def _tried(make: Callable[[], Memory]) -> Memory | None:
    try:
        return make()
    except (OSError, OutOfSharedMemoryError):
        return None
