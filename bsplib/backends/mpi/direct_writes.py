"""Whether the memory of a neighbour can be written in the middle of a superstep.

PROTOCOL.md, section *The memory of a neighbour*, argues when that is right.
"""

from __future__ import annotations

import os
import time

from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.neighbours import Neighbours
from bsplib.backends.sent import Exchanger, SentMeeting
from bsplib.core.meeting import LARGE

_BYTES_PER_NS = 2
"""Bytes for which a process waits 1 ns, as in shared memory."""


class Settling(SentMeeting):
    """The meetings of a group in which the memory of neighbours can be reached.

    Args:
        exchanges: sends and receives.
        membership: of this process in the group.
        neighbours: of this process.
    """

    def __init__(
        self, exchanges: Exchanger, membership: Membership, neighbours: Neighbours
    ) -> None:
        super().__init__(exchanges)
        self._membership = membership
        self._neighbours = neighbours

    def has_delivered(self, pid: int) -> bool:
        """See :meth:`bsplib.backends.base.Port.has_delivered`."""
        membership = self._membership
        if not membership.ended_by_sync:
            return False
        rank, superstep = membership.members[pid], membership.superstep
        return self._neighbours.has_delivered(rank, membership.label, superstep)

    def waits_for_delivery(self, pid: int, nbytes: int) -> bool:
        """Do as :meth:`has_delivered`, but wait where ``nbytes`` bytes are worth the time."""
        membership = self._membership
        if self.has_delivered(pid):
            return True
        if nbytes < LARGE or not membership.ended_by_sync:
            return False
        deadline = time.perf_counter_ns() + nbytes // _BYTES_PER_NS
        while time.perf_counter_ns() < deadline:
            os.sched_yield()
            if self.has_delivered(pid):
                return True
        return False
