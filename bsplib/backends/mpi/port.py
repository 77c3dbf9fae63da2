"""The port of MPI: what a process has of its group, in modules of one idea each.

Meetings, oblivious supersteps and payloads are apart; PROTOCOL.md argues why they are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Alignment, Arrivals, Arrived, Buffer, Handle, Port, Sent
from bsplib.backends.members import as_members
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.direct_writes import Settling
from bsplib.backends.mpi.link import Link
from bsplib.backends.mpi.meetings import Meetings
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.mpi_errors import noticing_deaths
from bsplib.backends.mpi.oblivious import Oblivious
from bsplib.backends.mpi.payloads import Payloads
from bsplib.backends.mpi.posting import Posting
from bsplib.backends.mpi.round_meetings import MOST_PROCESSES, MeetingsOfMany
from bsplib.backends.sent import SentMeeting
from bsplib.core.meeting import Meeting

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
        self._ends_by_sync = True
        self._membership = membership
        self._link = membership.link
        self._neighbours = membership.neighbours
        self._meeting = self._meeting_of_core()
        self._payloads = Payloads(membership)
        self._posting = Posting(membership, self._payloads)
        self._oblivious = Oblivious(membership, self._payloads, self._posting)
        in_rounds = self._link.most_direct < self.nprocs <= MOST_PROCESSES
        meetings = MeetingsOfMany if in_rounds else Meetings
        self._meetings = meetings(membership, self._payloads, self._posting, self._oblivious)

    def _meeting_of_core(self) -> Meeting:
        if self._neighbours is None:
            return SentMeeting(self)
        return Settling(self, self._membership, self._neighbours)

    @classmethod
    def of_root(cls, link: Link) -> MpiPort:
        """Return the port of this process to the root group of the run that has begun."""
        return cls(Membership(link, link.rank, range(link.nprocs), heads.ROOT, None))

    def align_clocks(self, *, again: bool) -> Alignment:
        """See :meth:`Port.align_clocks`."""
        return self._link.align_clocks(self.nprocs, again=again)

    def await_stop(self) -> None:
        """See :meth:`Link.await_stop`."""
        self._link.await_stop()

    def note_broken(self) -> None:
        """See :meth:`Link.note_broken`."""
        self._link.note_broken()

    # -- memory and payloads ----------------------------------------------------------------

    def meeting(self) -> Meeting:
        """See :meth:`Port.meeting`."""
        return self._meeting

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        """See :meth:`Port.allocate`; neighbours can reach it where there is room."""
        if self._neighbours is not None:
            shared = self._neighbours.allocate(nbytes, zero=zero)
            if shared is not None:
                return shared
        memory = (np.zeros if zero else np.empty)(nbytes + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        return memory[start : start + nbytes].data

    def release(self, memory: memoryview) -> None:
        """See :meth:`Port.release`; other memory is freed with the last array that shows it."""
        if self._neighbours is not None:
            self._neighbours.release(memory)

    def shared_address_of(self, array: NDArray[Any]) -> int | None:
        """See :meth:`Port.shared_address_of`: only neighbours can use it."""
        return None if self._neighbours is None else self._neighbours.address_of(array)

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview | None:
        """See :meth:`Port.reach`."""
        if self._neighbours is None:
            return None
        return self._neighbours.reach(self.members[pid], shared_address, nbytes)

    def map_at_once(self, address: int, nbytes: int) -> None:
        """See :meth:`Port.map_at_once`."""
        if self._neighbours is not None:
            self._neighbours.map_at_once(address, nbytes)

    def has_delivered(self, pid: int) -> bool:
        """See :meth:`Port.has_delivered`: it is only known of neighbours."""
        return self._meeting.has_delivered(pid)

    def stage(self, nbytes: int, to: int) -> tuple[Handle, Buffer]:
        """See :meth:`Port.stage`."""
        return self._payloads.stage(nbytes, to)

    def stage_message(self, nbytes: int, to: int) -> tuple[Handle, Buffer]:
        """See :meth:`Port.stage_message`."""
        return self._payloads.stage(nbytes, to, is_message=True)

    def lend(self, values: NDArray[Any], to: int) -> Handle | None:
        """See :meth:`Port.lend`; at the end of an oblivious superstep the values are copied."""
        if self._payloads.is_for_neighbour(to):
            return None
        return self._payloads.lend(values.reshape(-1).view(np.uint8), to)

    @noticing_deaths
    def fetch(self, handle: Handle) -> memoryview:
        """See :meth:`Port.fetch`."""
        return self._payloads.fetch(handle)

    @property
    def receives_in_place(self) -> bool:
        """See :attr:`Port.receives_in_place`."""
        return self._payloads.are_to_be_received()

    @noticing_deaths
    def receive(self, landings: Iterable[tuple[Handle, memoryview]]) -> None:
        """See :meth:`Port.receive`."""
        self._payloads.receive(landings)

    @noticing_deaths
    def land(self, handle: Handle, memory: memoryview) -> None:
        """See :meth:`Port.land`."""
        self._payloads.land(handle, memory)

    # -- supersteps -------------------------------------------------------------------------

    @noticing_deaths
    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
        """See :meth:`bsplib.backends.sent.Exchanger.exchange`."""
        self._order()
        arrivals = self._meetings.exchange(entries, flags, stamp)
        self._ends_by_sync = True
        self.released = self._meetings.released
        return arrivals

    @noticing_deaths
    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        self._order()
        arrived = self._oblivious.exchange(entries, expected, stamp)
        self._ends_by_sync = False
        self._meeting.released = self._oblivious.collector.released
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
        self._meeting.end_superstep()
        membership.superstep += 1
        membership.ended_by_sync = self._ends_by_sync
        if membership.parent is None:
            self._link.superstep[0] = membership.superstep
        if self._neighbours is not None:
            self._neighbours.end_superstep(obliviously=not self._ends_by_sync)
            self._neighbours.note_delivered(membership.label, membership.superstep)

    def _order(self) -> None:
        """Let neighbours see all that was written before the heads that follow."""
        if self._neighbours is not None:
            self._neighbours.order()

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
        self._payloads.leave()
        self._posting.leave()
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
    port = link.open_memory()
    return MpiPort.of_root(link) if port is None else port
