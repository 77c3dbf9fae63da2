"""Large payloads of messages, whose memory may become the receiver's.

A **parcel** is a block of the heap with one payload, behind a cache line whose first word is its
*state*. The receiver may keep it in place of a copy: the array that the program gets from the
message is the payload itself. The parcel then outlives the lease of its superstep, until the
receiver has dropped that array and all views of it.

PROTOCOL.md, section *Memory that is used again*, argues who writes the state, and when.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.shm.control import WORD
from bsplib.backends.shm.fences import STORES_IN_ORDER, full_fence
from bsplib.backends.shm.heap import ALIGNMENT, Heap
from bsplib.backends.shm.segment import free_shared_memory

if TYPE_CHECKING:
    from bsplib.backends.shm.context import ProcessContext

LEAST_BYTES = 1 << 18
"""Payloads from this size on are usually parcels: to copy a smaller one takes less time."""
_KEPT_SHARE = 1 / 4
"""The parcels that others keep may have this share of the shared memory that is free."""
LENT, OFFERED, KEPT, RETURNED = range(4)
"""States: it can only be read; its receiver may keep it; it does; it has dropped the array."""

_forks = 0
"""Number of times that this process has forked."""


def _count_fork() -> None:
    global _forks  # noqa: PLW0603  # the system has one set of processes
    _forks += 1


os.register_at_fork(before=_count_fork)


class Kept:
    """The memory of one parcel, as the base of the arrays of its receiver.

    Args:
        state: the word of the parcel.
        address: of the payload.
        nbytes: of the payload.
    """

    __slots__ = ("__array_interface__", "__weakref__", "_forks", "_state")

    def __init__(self, state: memoryview, address: int, nbytes: int) -> None:
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
        }
        self._state = state
        self._forks = _forks

    def __del__(self) -> None:
        # A child that the program has forked has the array, too, and may have it for longer.
        if self._forks == _forks:
            if not STORES_IN_ORDER:
                full_fence()  # the last use of the array, before the store
            self._state[0] = RETURNED


class Parcels:
    """The parcels that a process has staged, and how it keeps those of others.

    Args:
        context: of this process.
        least_bytes: payloads from this size on are parcels; the same in all processes.
    """

    def __init__(self, context: ProcessContext, least_bytes: int = LEAST_BYTES) -> None:
        self.least_bytes = least_bytes
        self._context = context
        self._staged: dict[int, int] = {}
        """Bytes of all parcels that are not free, by the first byte of the payload."""
        self._outlived: list[int] = []
        """Those whose lease has ended while their receiver kept them."""

    # -- of this process ----------------------------------------------------------------------

    def reserve(self, nbytes: int, *, for_one: bool) -> int:
        """Return the byte at which a payload may be written.

        Args:
            nbytes: of the payload.
            for_one: one other process receives it, and may keep it while memory is not short.
        """
        self.reclaim()
        block, _ = self._context.heap.allocate(ALIGNMENT + nbytes)
        start = block + ALIGNMENT
        self._staged[start] = nbytes
        self._state(start)[0] = OFFERED if for_one and self._may_lend(nbytes) else LENT
        return start

    def end_lease(self, start: int) -> None:
        """Free a parcel that nobody reads any more, unless its receiver keeps it."""
        if self._is_kept(start):
            self._outlived.append(start)
        else:
            self._free(start)

    def reclaim(self) -> None:
        """Free the parcels that their receivers have dropped."""
        if self._outlived:
            self._outlived = [each for each in self._outlived if not self._is_dropped(each)]

    def begin_anew(self) -> None:
        """Release all other memory of the process: a run has ended in all of them.

        What a receiver still keeps, perhaps in a variable of a module, stays.
        """
        self._outlived = [start for start in self._staged if self._is_kept(start)]
        self._staged = {start: self._staged[start] for start in self._outlived}
        self._context.heap.clear({start - ALIGNMENT for start in self._outlived})

    def _is_kept(self, start: int) -> bool:
        is_kept = self._state(start)[0] == KEPT
        self._context.fences.order()  # what follows may write where the receiver has read
        return is_kept

    def _is_dropped(self, start: int) -> bool:
        if self._is_kept(start):
            return False
        self._free(start)
        return True

    def _free(self, start: int) -> None:
        del self._staged[start]
        self._context.heap.release(start - ALIGNMENT)

    def _may_lend(self, nbytes: int) -> bool:
        outlived = sum(self._staged[start] for start in self._outlived)
        return outlived + nbytes <= _KEPT_SHARE * free_shared_memory()

    # -- of others ----------------------------------------------------------------------------

    def keep(self, start: int, nbytes: int) -> NDArray[np.uint8] | None:
        """Return the payload of a parcel for this process to keep; None if it has to be copied."""
        if nbytes < self.least_bytes:
            return None
        state = self._state(start)
        if state[0] != OFFERED:
            return None
        state[0] = KEPT  # its owner looks after the next post of this process
        return np.asarray(Kept(state, self._context.segment.address_of(start), nbytes))

    def _state(self, start: int) -> memoryview:
        return self._context.segment.view(start - ALIGNMENT, WORD).cast("Q")


# -- the staging buffer: memory in which a process lays out what others fetch later ---------------


_FIRST_CHUNK = 1 << 13
_MOST_DOUBLED = 1 << 20
"""Each chunk is twice as large as the one before, up to this: what follows a large payload is
often small."""
_MOST_UNUSED = 1 << 16
"""Bytes of chunks that a cleared staging buffer may keep although few of them were used."""


class StagingBuffer:
    """Memory of one superstep, taken from one chunk of the heap after the other.

    It grows by whole chunks during the superstep, since laid out data must not move. When it
    is cleared it keeps them: their pages are mapped, and perhaps still in the cache. The large
    payloads of messages lie apart, since their receivers may keep them.

    Args:
        heap: of this process.
        parcels: of this process.
    """

    def __init__(self, heap: Heap, parcels: Parcels) -> None:
        self._heap = heap
        self._parcels = parcels
        self._apart: list[int] = []
        self._chunks: list[tuple[int, int]] = []  # (start, bytes), in the order of their use
        self._entered = 0  # chunks that were entered, or left out, since the last clear
        self._used = 0  # bytes of those that were left
        self._begin = self._next = self._stop = 0  # of the chunk that was entered last
        self.has_messages = False
        """It has messages, which are read after the end of the superstep, too."""

    def reserve(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` may be written."""
        start = self._next
        if start + nbytes > self._stop:
            start = self._enter_chunk(nbytes)
        self._next = start + -(-nbytes // ALIGNMENT) * ALIGNMENT
        return start

    def reserve_for_parcel(self, nbytes: int, *, for_one: bool) -> int:
        """Return the byte at which the large payload of a message may be written."""
        start = self._parcels.reserve(nbytes, for_one=for_one)
        self._apart.append(start)
        return start

    def clear(self) -> None:
        """Empty the staging buffer, when no process reads it any more.

        It gives its chunks back where most of their bytes were not used in this superstep.
        """
        self.has_messages = False
        self._end_parcels()
        used = self._used + self._next - self._begin
        if self.kept_bytes() > 4 * used + _MOST_UNUSED:
            self.discard()
        self._entered = self._used = self._begin = self._next = self._stop = 0

    def kept_bytes(self) -> int:
        """Return the bytes of all chunks."""
        return sum(size for _, size in self._chunks)

    def discard(self) -> None:
        """Give all memory back to the heap."""
        self._end_parcels()
        for start, _ in self._chunks:
            self._heap.release(start)
        self._chunks.clear()
        self._entered = self._used = self._begin = self._next = self._stop = 0

    def _end_parcels(self) -> None:
        for start in self._apart:
            self._parcels.end_lease(start)
        self._apart.clear()

    def _enter_chunk(self, nbytes: int) -> int:
        """Return the beginning of the next chunk that has room for ``nbytes`` bytes."""
        number = self._entered
        while number < len(self._chunks) and self._chunks[number][1] < nbytes:
            number += 1
        if number == len(self._chunks):
            self._chunks.append(self._new_chunk(nbytes))
        self._entered = number + 1
        self._used += self._next - self._begin
        start, size = self._chunks[number]
        self._begin, self._stop = start, start + size
        return start

    def _new_chunk(self, nbytes: int) -> tuple[int, int]:
        last = self._chunks[-1][1] if self._chunks else 0
        size = max(nbytes, min(2 * last, _MOST_DOUBLED), _FIRST_CHUNK)
        size = -(-size // ALIGNMENT) * ALIGNMENT
        start, _ = self._heap.allocate(size)
        return start, size
