"""For the first trials of the launch only: every exchange is one collective of MPI."""

# ruff: noqa
# mypy: ignore-errors

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bsplib.backends.base import Arrivals, Arrived, Port, Room
from bsplib.backends.parcels import Parcel, Ticket
from bsplib.extras import need


class Link:
    """Connections of this rank; see the port."""

    def __init__(self, stop: memoryview) -> None:
        MPI: Any = need("mpi4py.MPI")
        self.stop = stop
        self.comm = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self.comm.rank, self.comm.size
        self._mpi = MPI
        self._groups: dict[int, Any] = {}

    def begin(self, run: int, nprocs: int) -> None:
        if nprocs not in self._groups:
            ranks = self.comm.group.Incl(range(nprocs))
            self._groups[nprocs] = self.comm.Create_group(ranks)
        self.now = self._groups[nprocs]

    def open_root(self) -> Port:
        return StubPort(self.now)

    def end(self) -> None:
        pass

    def leave(self) -> None:
        self._mpi.Finalize()


class StubPort(Port):
    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.pid, self.nprocs = comm.rank, comm.size
        self.members = range(comm.size)
        self.released = 0
        self.staged: dict[int, Any] = {}
        self.here: dict[Any, Any] = {}
        self.serials = itertools.count()

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        return np.zeros(nbytes, np.uint8).data

    def release(self, memory: memoryview) -> None:
        pass

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        number = next(self.serials)
        room = self.staged.setdefault(to, {})[self.pid, number] = np.empty(nbytes, np.uint8)
        return (self.pid, number, nbytes), room

    def fetch(self, ticket: Ticket) -> memoryview:
        return self.here[ticket[:2]].data

    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any = None, stamp: int = 0
    ) -> Arrivals | None:
        out = [
            (note, common, stamp, self.staged.get(pid), parcels.get(pid))
            for pid in range(self.nprocs)
        ]
        self.staged = {}
        came = self.comm.alltoall(out)
        self.here = {}
        for each in came:
            self.here |= each[3] or {}
        self.released = max(each[2] for each in came)
        arrived = [(pid, each[4]) for pid, each in enumerate(came) if each[4] is not None]
        commons = [each[1] for each in came]
        return (
            [each[0] for each in came],
            arrived,
            commons if any(c is not None for c in commons) else None,
        )

    def exchange_oblivious(self, parcels: Any, expected: int, stamp: int = 0) -> list[Arrived]:
        raise NotImplementedError

    def end_superstep(self) -> None:
        pass

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> Port:
        raise NotImplementedError

    def close(self) -> None:
        pass
