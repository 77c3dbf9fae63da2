"""The port of MPI: what a process has of its group.

Meetings, oblivious supersteps and payloads are apart; PROTOCOL.md argues why they are right.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from bsplib.backends.base import Alignment, Arrivals, Arrived, Buffer, Handle, Port, Sent, Stopped
from bsplib.backends.members import as_members
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.link import BROKEN, Link
from bsplib.backends.mpi.meetings import MOST_PROCESSES, Meetings, MeetingsOfMany
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.oblivious import Oblivious
from bsplib.backends.mpi.payloads import Payloads, Posting
from bsplib.backends.mpi.same_host import Neighbours
from bsplib.backends.sent import Exchanger, SentMeeting
from bsplib.core.meeting import LARGE, Meeting
from bsplib.errors import BspError, OutOfSharedMemoryError

_ALIGNMENT = 64


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def with_own_errors(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a method of a port raise a BspError in place of an error of MPI.

    After this error, and after any other than Stopped and BspError, nothing is known of what MPI
    was doing.
    """

    @functools.wraps(method)
    def checked(*args: _Arguments.args, **more: _Arguments.kwargs) -> _Result:
        try:
            return method(*args, **more)
        except (Stopped, BspError):
            raise
        except BaseException as error:
            cast("MpiPort", args[0])._link.condition = BROKEN
            if not isinstance(error, MPI.Exception):
                raise
            raise BspError(f"{method.__name__}: MPI has failed: {error}") from None

    return checked


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

    def align_clocks(self, *, again: bool) -> Alignment:
        """See :meth:`Port.align_clocks`."""
        return self._link.align_clocks(self.nprocs, again=again)

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
        try:
            memory = (np.zeros if zero else np.empty)(nbytes + _ALIGNMENT, np.uint8)
        except (MemoryError, ValueError):  # of more bytes than a dimension can have
            raise OutOfSharedMemoryError(
                f"memory is full: {nbytes} bytes more are needed, which the system does not give; "
                f"use smaller arrays or more hosts"
            ) from None
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

    @with_own_errors
    def fetch(self, handle: Handle) -> memoryview:
        """See :meth:`Port.fetch`."""
        return self._payloads.fetch(handle)

    # -- supersteps -------------------------------------------------------------------------

    @with_own_errors
    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
        """See :meth:`bsplib.backends.sent.Exchanger.exchange`."""
        self._order()
        arrivals = self._meetings.exchange(entries, flags, stamp)
        self._ends_by_sync = True
        self.released = self._meetings.released
        return arrivals

    @with_own_errors
    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        self._order()
        arrived = self._oblivious.exchange(entries, expected, stamp)
        self._ends_by_sync = False
        self._meeting.released = self._oblivious.collector.released
        return arrived

    @with_own_errors
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
            self._link.superstep = membership.superstep
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

    @with_own_errors
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
    if port is not None:
        return port
    return MpiPort(Membership(link, link.rank, range(link.nprocs), heads.ROOT, None))


# -- whether the memory of a neighbour can be written in the middle of a superstep ----------------
# PROTOCOL.md, section *The memory of a neighbour*, argues when that is right.


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
