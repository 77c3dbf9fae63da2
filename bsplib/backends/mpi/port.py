"""The port of MPI: what a process has of its group.

Meetings, oblivious supersteps and payloads are apart; PROTOCOL.md argues why they are right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar, cast

from mpi4py import MPI

from bsplib.backends.base import Alignment, Arrivals, Arrived, Buffer, Handle, Port, Sent, Stopped
from bsplib.backends.members import as_members
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.link import BROKEN, Link
from bsplib.backends.mpi.meetings import MOST_PROCESSES, Meetings, MeetingsOfMany, Oblivious
from bsplib.backends.mpi.membership import Membership
from bsplib.backends.mpi.posting import Posting
from bsplib.backends.sent import SentMeeting
from bsplib.errors import BspError

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
        meeting = SentMeeting(self, membership.pid, membership.nprocs)
        super().__init__(membership.pid, membership.members, meeting)
        self.released = 0
        self._membership = membership
        self._link = membership.link
        self._posting = Posting(membership)
        self._oblivious = Oblivious(membership, self._posting)
        in_rounds = self._link.most_direct < self.nprocs <= MOST_PROCESSES
        meetings = MeetingsOfMany if in_rounds else Meetings
        self._meetings = meetings(membership, self._posting, self._oblivious)

    def align_clocks(self, *, again: bool) -> Alignment:
        return self._link.align_clocks(self.nprocs, again=again)

    # -- memory and payloads ----------------------------------------------------------------

    def stage(self, nbytes: int, to: int, *, message: bool = False) -> tuple[Handle, Buffer]:  # noqa: ARG002  # no difference
        return self._posting.stage(nbytes, to)

    @with_own_errors
    def fetch(self, handle: Handle) -> memoryview:
        return self._posting.fetch(handle)

    # -- supersteps -------------------------------------------------------------------------

    @with_own_errors
    def exchange(self, entries: Mapping[int, Sent], flags: int, stamp: int) -> Arrivals | None:
        arrivals = self._meetings.exchange(entries, flags, stamp)
        self.released = self._meetings.released
        return arrivals

    @with_own_errors
    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        arrived = self._oblivious.exchange(entries, expected, stamp)
        self.meeting.released = self._oblivious.collector.released
        return arrived

    @with_own_errors
    def end_superstep(self) -> None:
        """See :meth:`Port.end_superstep`: all that belongs to the superstep has come by then.

        All that was sent at its meetings is sent, too.
        """
        self._posting.end_superstep()
        membership = self._membership
        self.meeting.end_superstep()
        membership.superstep += 1
        if membership.parent is None:
            self._link.superstep = membership.superstep

    # -- groups -----------------------------------------------------------------------------

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> MpiPort:
        members = as_members([self.members[pid] for pid in pids])
        label = heads.label_of(self._membership.label, ordinal, index)
        return MpiPort(
            Membership(self._link, pids.index(self.pid), members, label, self._membership)
        )

    @with_own_errors
    def close(self) -> None:
        self._posting.leave()
        if self._membership.parent is not None:
            self._oblivious.leave()
            self._link.leave_group(self._membership.label)
            if not self.try_to_release():
                self._link.left_over.append(self)

    def try_to_release(self) -> bool:
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
