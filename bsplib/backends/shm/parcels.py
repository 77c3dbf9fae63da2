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
from bsplib.backends.shm.heap import ALIGNMENT
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
