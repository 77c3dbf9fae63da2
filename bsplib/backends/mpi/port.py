"""The port of MPI: what a process has of its group, in modules of one idea each.

Meetings, oblivious supersteps and payloads are apart; PROTOCOL.md argues why they are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Alignment, Arrivals, Arrived, Port, Room
from bsplib.backends.members import as_members
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.deaths import noticing_deaths
from bsplib.backends.mpi.link import Link
from bsplib.backends.mpi.many import MeetingsOfMany
from bsplib.backends.mpi.meetings import Meetings
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.oblivious import Oblivious
from bsplib.backends.mpi.payloads import Payloads
from bsplib.backends.mpi.posting import Posting
from bsplib.backends.mpi.rounds import MOST_PROCESSES
from bsplib.backends.parcels import Parcel, Ticket

_ALIGNMENT = 64


class MpiPort(Port):
    """The connection of one process to the others of a group, over MPI.

    Args:
        membership: of this process in the group.
    """

    def __init__(self, membership: Membership) -> None:
        self.pid = membership.pid
        self.nprocs = membership.nprocs
        self.members = membership.members
        self.released = 0
        self._membership = membership
        self._link = membership.link
        self._payloads = Payloads(membership)
        self._posting = Posting(membership, self._payloads)
        self._oblivious = Oblivious(membership, self._payloads, self._posting)
        in_rounds = self._link.most_direct < self.nprocs <= MOST_PROCESSES
        meetings = MeetingsOfMany if in_rounds else Meetings
        self._meetings = meetings(membership, self._payloads, self._posting, self._oblivious)

    @classmethod
    def of_root(cls, link: Link) -> MpiPort:
        """Return the port of this process to the root group of the run that has begun."""
        return cls(Membership(link, link.rank, range(link.nprocs), heads.ROOT, None))

    def align_clocks(self, *, again: bool) -> Alignment:
        """See :meth:`Port.align_clocks`."""
        return self._link.clocks.align(self.nprocs, again=again)

    def await_stop(self) -> None:
        """See :meth:`Link.await_stop`."""
        self._link.await_stop()

    # -- memory and payloads ----------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        """See :meth:`Port.allocate`."""
        memory = (np.zeros if zero else np.empty)(nbytes + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        return memory[start : start + nbytes].data

    def release(self, memory: memoryview) -> None:
        """See :meth:`Port.release`: it is freed with the last array that shows it."""

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """See :meth:`Port.stage`."""
        return self._payloads.stage(nbytes, to)

    def lend(self, values: NDArray[Any], to: int) -> Ticket:
        """See :meth:`Port.lend`; at the end of an oblivious superstep the values are copied."""
        return self._payloads.add(values.reshape(-1).view(np.uint8), None, to)

    @noticing_deaths
    def fetch(self, ticket: Ticket) -> memoryview:
        """See :meth:`Port.fetch`."""
        return self._payloads.fetch(ticket)

    receives_in_place = True

    @noticing_deaths
    def receive(self, landings: Iterable[tuple[Ticket, memoryview]]) -> None:
        """See :meth:`Port.receive`."""
        self._payloads.receive(landings)

    @noticing_deaths
    def land(self, ticket: Ticket, room: memoryview) -> None:
        """See :meth:`Port.land`."""
        self._payloads.land(ticket, room)

    # -- supersteps -------------------------------------------------------------------------

    @noticing_deaths
    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any = None, stamp: int = 0
    ) -> Arrivals | None:
        """See :meth:`Port.exchange`."""
        arrivals = self._meetings.exchange(parcels, note, common, stamp)
        self.released = self._meetings.released
        return arrivals

    @noticing_deaths
    def exchange_oblivious(
        self, parcels: Mapping[int, tuple[int, Parcel]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        arrived = self._oblivious.exchange(parcels, expected, stamp)
        self.released = self._oblivious.collector.released
        return arrived

    @noticing_deaths
    def end_superstep(self) -> None:
        """See :meth:`Port.end_superstep`: all that belongs to the superstep has come by then.

        All that was sent at its meetings is sent, too.
        """
        self._payloads.await_all()
        self._posting.finish()
        self._payloads.end_superstep()
        membership = self._membership
        membership.superstep += 1
        if membership.parent is None:
            self._link.superstep[0] = membership.superstep

    # -- groups -----------------------------------------------------------------------------

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> MpiPort:
        """See :meth:`Port.split`."""
        members = as_members([self.members[pid] for pid in pids])
        label = heads.label_of(self._membership.label, ordinal, index)
        return MpiPort(
            Membership(self._link, pids.index(self.pid), members, label, self._membership)
        )

    @noticing_deaths
    def close(self) -> None:
        """See :meth:`Port.close`."""
        self._payloads.drop_staged()
        if self._membership.parent is not None:
            self._oblivious.leave()
            self._link.leave_group(self._membership.label)
            if not self.try_to_release():
                self._link.left_over.append(self)

    def try_to_release(self) -> bool:
        """See :meth:`LeftGroup.try_to_release`."""
        collector = self._oblivious.collector
        collector.read_late()
        if not collector.has_read_all():
            return False
        self._link.forget_group(self._membership.label)
        return True


def open_root(link: Link) -> Port:
    """Return the port of this process to the root group of the run that has begun.

    Raises:
        Stopped: the run ends.
    """
    port = link.inside.open_root(link.nprocs, link.memory) if link.memory else None
    return MpiPort.of_root(link) if port is None else port
