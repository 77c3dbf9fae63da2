"""Ranks of one host exchange through shared memory, as the processes of the backend shm do.

MPI only tells them where the memory is: one of them makes it, and the others open it. Once all
ranks of a run share memory, the run is one of shared memory, but for its start and its end. Where
a run has several hosts, those of each host share a memory as neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from bsplib.backends.base import Stopped
from bsplib.backends.mpi.clocks import keep_interrupted
from bsplib.backends.mpi.neighbours import Neighbours
from bsplib.backends.mpi.shared_page import Note
from bsplib.backends.proc_visibility import same_system
from bsplib.backends.shm.joining import (
    MOST_PROCESSES,
    JoinedPort,
    Memory,
    Outside,
    Place,
    Store,
)
from bsplib.errors import OutOfSharedMemoryError

_TAG = 31989
_NUMBERS = 4
_NOT_MADE = -1
"""In place of the number of a process: there is no memory."""


_Shared = TypeVar("_Shared", Memory, Store)


class Inside:
    """The memory that the ranks of a run share with others on their host.

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
        self._neighbours: Neighbours | None = None
        """The neighbours of this rank, with the memory."""
        self.neighbours: Neighbours | None = None
        """The same, where the run uses them."""
        self._number = 0
        """Of the memory, also where the ranks could not share it; 0 for none."""

    def open_root(self, nprocs: int, number: int) -> JoinedPort | None:
        """Return the port of a run to its root group; its processes are the first ranks.

        All of them call it.

        Args:
            nprocs: number of its processes.
            number: of the memory, which is that of the run in which it is made; negative where
                only payloads go through it. It differs where a memory is to be made; a rank that
                was in no run meanwhile finds that, too.

        Returns:
            None where they cannot share memory; the same in all of them.

        Raises:
            Stopped: the run ends.
        """
        if number != self._number:
            self.leave()
            self._share(nprocs, heads_too=number > 0)
            self._number = number
        self.neighbours = self._neighbours
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
        if self._neighbours is not None:
            self._neighbours.leave()
        self._neighbours = self.neighbours = None

    def _share(self, nprocs: int, *, heads_too: bool) -> None:
        """Make or open the memory of a run."""
        ranks = self._on_this_host(nprocs)
        if not 0 < len(ranks) <= MOST_PROCESSES:
            return
        number = ranks.index(self._comm.rank)
        if heads_too and len(ranks) == nprocs:
            outside = self._outside(ranks)
            self._memory = self._agreed(
                ranks,
                lambda: Memory.made(nprocs, outside),
                lambda place: Memory.joined(place, number, nprocs, outside),
            )
        elif len(ranks) > 1:
            store = self._agreed(
                ranks,
                lambda: Store.made(len(ranks)),
                lambda place: Store.joined(place, number, len(ranks)),
            )
            self._neighbours = None if store is None else Neighbours(store, ranks)

    def _on_this_host(self, nprocs: int) -> list[int]:
        """Return the ranks of a run that are in the same system as this one; it is among them."""
        system = self._seats[self._comm.rank][0]
        return [rank for rank in range(nprocs) if system and self._seats[rank][0] == system]

    def _outside(self, ranks: Sequence[int]) -> Outside:
        cores = set[int]().union(*(self._seats[rank][1] for rank in ranks))
        return Outside(self._stop, has_core=len(ranks) <= len(cores))

    def _agreed(
        self,
        ranks: Sequence[int],
        make: Callable[[], _Shared],
        join: Callable[[Place], _Shared],
    ) -> _Shared | None:
        """Return memory that some ranks have, of which the first makes it; None if one has not."""
        first, *others = ranks
        if self._comm.rank != first:
            return self._joined(first, join)
        memory = _tried(make)
        place = _NUMBERS * [_NOT_MADE] if memory is None else memory.place()
        self._to_all(others, place)
        joined = min([int(self._from(rank)[0]) for rank in others], default=memory is not None)
        self._to_all(others, _NUMBERS * [joined])
        if memory is not None and not joined:
            memory.leave()
        return memory if joined else None

    def _joined(self, first: int, join: Callable[[Place], _Shared]) -> _Shared | None:
        place = Place(*map(int, self._from(first)))
        memory = _tried(lambda: join(place)) if place.os_pid != _NOT_MADE else None
        self._to_all([first], _NUMBERS * [memory is not None])
        if not self._from(first)[0] and memory is not None:
            memory.leave()
            return None
        return memory

    def _to_all(self, ranks: Sequence[int], numbers: Sequence[int]) -> None:
        data = np.array(numbers, np.int64)
        self._finish(*[self._comm.Isend(data, rank, _TAG) for rank in ranks])

    def _from(self, rank: int) -> NDArray[np.int64]:
        data = np.zeros(_NUMBERS, np.int64)
        self._finish(self._comm.Irecv(data, rank, _TAG))
        return data

    def _finish(self, *requests: MPI.Request) -> None:
        while not MPI.Request.Testall(requests):
            if self._stop[0]:
                keep_interrupted(*requests)
                raise Stopped
            os.sched_yield()


def _tried(make: Callable[[], _Shared]) -> _Shared | None:
    try:
        return make()
    except (OSError, OutOfSharedMemoryError):
        return None
