"""Ranks of one host exchange through shared memory, as the processes of the backend shm do.

MPI only tells them where the memory is: one of them makes it, and the others open it. Once all
ranks of a run share memory, the run is one of shared memory, but for its start and its end. Where
a run has several hosts, those of each host share a memory as neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from bsplib.backends.base import Buffer
from bsplib.backends.mpi.clocks import finish
from bsplib.backends.mpi.heads import ROOT
from bsplib.backends.proc_visibility import same_system
from bsplib.backends.shm.joining import (
    MOST_PROCESSES,
    JoinedPort,
    Memory,
    Place,
    Store,
)
from bsplib.errors import OutOfSharedMemoryError

_TAG = 31989
_NUMBERS = 4
_NOT_MADE = -1
"""Stands in the place of a number of a process where no memory could be made."""


_Shared = TypeVar("_Shared", Memory, Store)


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
        self._neighbours: Neighbours | None = None
        """The neighbours of this rank, with the memory."""
        self.neighbours: Neighbours | None = None
        """The same, where the run uses them."""
        self._number = 0
        """Number of the memory, also of one that the ranks could not share; 0: there is none."""

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
            has_core = self._have_cores(ranks)
            self._memory = self._agreed(
                ranks,
                lambda: Memory.made(nprocs, has_core),
                lambda place: Memory.joined(place, number, nprocs, has_core),
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

    def _have_cores(self, ranks: Sequence[int]) -> bool:
        """Tell whether each of some ranks has a core."""
        return len(ranks) <= len(set[int]().union(*(self._seats[rank][1] for rank in ranks)))

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
        finish(self._stop, *[self._comm.Isend(data, rank, _TAG) for rank in ranks])

    def _from(self, rank: int) -> NDArray[np.int64]:
        data = np.zeros(_NUMBERS, np.int64)
        finish(self._stop, self._comm.Irecv(data, rank, _TAG))
        return data


def _tried(make: Callable[[], _Shared]) -> _Shared | None:
    try:
        return make()
    except (OSError, OutOfSharedMemoryError):
        return None


# -- the processes of a run on several hosts that are on one of them: they share memory -----------
# Their heads go through MPI, like all others; large payloads and arrays lie in the memory.
# PROTOCOL.md, section *Neighbours*, has each word of it, and argues when memory is used again.


_MARK_BYTES = 64
"""A mark has a cache line of its own."""
_WORD = 8
_MOST_RUN_AHEAD_BYTES = 1 << 28
"""Bytes that oblivious supersteps may leave in blocks before payloads go through MPI."""
_IN_ROOT, _IN_SUB_GROUP = 0, 8
"""Words of a process, each in a cache line of its own. See PROTOCOL.md."""
_RUN_SHIFT = 32
_ODD = 0x9E3779B97F4A7C15
"""Its multiples are different modulo 2^64."""
_WORDS = 1 << 64


class Block(NamedTuple):
    """A payload that this process has staged for a neighbour."""

    start: int
    """Byte of the memory at which the mark is; the payload is behind it."""
    mark: memoryview
    """As one word: 1 while the receiver may read the payload."""
    memory: Buffer
    """The payload."""


class Readable(NamedTuple):
    """A payload that a neighbour has staged for this process."""

    mark: memoryview
    memory: Buffer


class Neighbours:
    """The neighbours of this process in a run, and the memory that it shares with them.

    Args:
        store: the memory.
        ranks: of all that share it, this one too, in the order in which the memory numbers them.
    """

    def __init__(self, store: Store, ranks: Sequence[int]) -> None:
        self._store = store
        self._numbers = {rank: number for number, rank in enumerate(ranks)}
        self._run = 0
        self._announced: list[Block] = []
        """Blocks of this superstep of which the head may have left."""
        self._marked: list[Block] = []
        """Blocks of earlier supersteps that were not read when this process last looked."""
        self._run_ahead: list[Block] = []
        """The same, of supersteps that ended obliviously."""
        self._run_ahead_bytes = 0
        self.order = store.order
        """See PROTOCOL.md, *Order*."""
        self.map_at_once = store.map_at_once

    def __contains__(self, rank: int) -> bool:
        return rank in self._numbers

    def begin(self, run: int) -> None:
        """Begin a run: nobody needs what this process has in the memory."""
        self._run = run
        self._announced, self._marked, self._run_ahead = [], [], []
        self._run_ahead_bytes = 0
        self._store.clear()
        for word in (_IN_ROOT, _IN_SUB_GROUP):
            self._store.note(word, 0)

    def leave(self) -> None:
        """Leave the memory, which no process of a run uses."""
        self._store.leave()

    # -- arrays -----------------------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview | None:
        """Return memory for an array that neighbours can reach; None where there is no room."""
        found = self._store.allocate(nbytes) if nbytes else None
        if found is None:
            return None
        start, is_zero = found
        if zero and not is_zero:
            self._store.view_array(start, nbytes)[:] = 0
        return self._store.view(start, nbytes)

    def release(self, memory: memoryview) -> None:
        """Take back what :meth:`allocate` gave out; do nothing with other memory."""
        if memory.nbytes:
            start = self._store.byte_of(np.frombuffer(memory, np.uint8))
            if start is not None:
                self._store.release(start)

    def address_of(self, array: NDArray[Any]) -> int | None:
        """Return the byte at which an array begins, for neighbours; None if it lies elsewhere."""
        return self._store.byte_of(array) if array.flags.c_contiguous else None

    def reach(self, rank: int, address: int, nbytes: int) -> memoryview | None:
        """Return memory of a process; None if it is no neighbour."""
        return self._store.view(address, nbytes) if rank in self else None

    def note_delivered(self, label: int, superstep: int) -> None:
        """Note how many supersteps of a group this process has ended and delivered."""
        self._store.note(*self._delivered(label, superstep))

    def has_delivered(self, rank: int, label: int, superstep: int) -> bool:
        """Tell whether a process has ended exactly ``superstep`` supersteps of a group.

        Of a sub-group it is only known if the process has ended none of another sub-group since.
        """
        number = self._numbers.get(rank)
        word, value = self._delivered(label, superstep)
        if number is None or self._store.word(number, word) != value:
            return False
        self.order()
        return True

    def _delivered(self, label: int, superstep: int) -> tuple[int, int]:
        """Return a word, and its value once a process has ended ``superstep`` supersteps."""
        if label == ROOT:
            return _IN_ROOT, self._run << _RUN_SHIFT | superstep
        return _IN_SUB_GROUP, (label + superstep * _ODD) % _WORDS

    # -- payloads for neighbours ------------------------------------------------------------

    def take(self, nbytes: int) -> Block | None:
        """Return a marked block for a payload; None where there is no room."""
        if self._run_ahead_bytes > _MOST_RUN_AHEAD_BYTES:
            return None
        found = self._store.allocate(_MARK_BYTES + nbytes)
        if found is None:
            return None
        start, _ = found
        block = Block(start, *self._at(start, nbytes))
        block.mark[0] = 1
        return block

    def give(self, block: Block) -> None:
        """Take back a block that is not announced."""
        self._store.release(block.start)

    def announce(self, block: Block) -> None:
        """Note that the receiver of a block is told of it."""
        self._announced.append(block)

    def end_superstep(self, *, obliviously: bool) -> None:
        """Release the blocks that have been read, after a superstep of any group."""
        if self._run_ahead:
            self._run_ahead = self._still_marked(self._run_ahead)
            self._run_ahead_bytes = sum(len(block.memory) for block in self._run_ahead)
        if self._marked:
            self._marked = self._still_marked(self._marked)
        if self._announced:
            announced, self._announced = self._still_marked(self._announced), []
            if obliviously:
                self._run_ahead += announced
                self._run_ahead_bytes += sum(len(block.memory) for block in announced)
            else:
                self._marked += announced

    def _still_marked(self, blocks: Sequence[Block]) -> list[Block]:
        """Release blocks that are not marked any more; return the others."""
        read = [block for block in blocks if not block.mark[0]]
        if not read:
            return list(blocks)
        self.order()
        for block in read:
            self._store.release(block.start)
        released = {block.start for block in read}
        return [block for block in blocks if block.start not in released]

    # -- payloads of neighbours -------------------------------------------------------------

    def find(self, start: int, nbytes: int) -> Readable:
        """Return the payload in a block of a neighbour, whose head has come.

        Raises:
            OutOfSharedMemoryError: no addresses are left for it.
        """
        return Readable(*self._at(start, nbytes))

    def _at(self, start: int, nbytes: int) -> tuple[memoryview, Buffer]:
        mark = self._store.view(start, _WORD).cast("Q")
        return mark, self._store.view_array(start + _MARK_BYTES, nbytes)

    def have_read(self, blocks: Sequence[Readable]) -> None:
        """Let the senders use blocks again, which this process reads no more."""
        if blocks:
            self.order()
            for block in blocks:
                block.mark[0] = 0
