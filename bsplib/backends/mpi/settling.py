"""Whether the memory of a neighbour can be written in the middle of a superstep.

PROTOCOL.md, section *The memory of a neighbour*, argues when that is right.
"""

from __future__ import annotations

import os
import time

from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.neighbours import Neighbours
from bsplib.core.meeting import LARGE, Meeting

_BYTES_PER_NS = 2
"""A process waits 1 ns for so many bytes, as in shared memory."""


class Settling(Meeting):
    """The meetings of a group for the core: none are quick, but memory can be reached.

    Args:
        membership: of this process in the group.
        neighbours: of this process.
    """

    def __init__(self, membership: Membership, neighbours: Neighbours) -> None:
        Meeting.__init__(self)
        self._membership = membership
        self._neighbours = neighbours

    def is_settled(self, pid: int) -> bool:
        """See :meth:`bsplib.backends.base.Port.is_settled`."""
        membership = self._membership
        if not membership.ended_by_sync:
            return False
        rank, superstep = membership.members[pid], membership.superstep
        return self._neighbours.has_delivered(rank, membership.label, superstep)

    def settles(self, pid: int, nbytes: int) -> bool:
        """Do as :meth:`is_settled`, but wait for it where so many bytes are worth the time."""
        membership = self._membership
        if self.is_settled(pid):
            return True
        if nbytes < LARGE or not membership.ended_by_sync:
            return False
        deadline = time.perf_counter_ns() + nbytes // _BYTES_PER_NS
        while time.perf_counter_ns() < deadline:
            os.sched_yield()
            if self.is_settled(pid):
                return True
        return False
