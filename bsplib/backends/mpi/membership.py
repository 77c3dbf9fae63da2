"""One process in one group: who is in it, how far it has come, and whether another will come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from bsplib.backends.members import (
    ENDED_BY_OBLSYNC,
    ENDED_BY_SYNC,
    Members,
    has_left,
    is_outside,
    waits_in_vain,
)
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import HERE, MEET, OBLIVIOUS
from bsplib.backends.mpi.link import Link
from bsplib.backends.mpi.transport import HEADS, Inbox


class Membership:
    """What the parts of a port share.

    Args:
        link: of this rank.
        pid: this process in the group.
        members: of the group.
        label: of the group.
        parent: this process in the group that was divided; None in the root group.
    """

    def __init__(
        self, link: Link, pid: int, members: Members, label: int, parent: Membership | None
    ) -> None:
        self.link = link
        self.pid = pid
        self.nprocs = len(members)
        self.members = members
        self.label = label
        self.parent = parent
        self.others = [other for other in range(self.nprocs) if other != pid]
        self.others_in_turn = self.others[pid:] + self.others[:pid]
        """The others from the next one on: the first head of each process has another receiver."""
        self.ranks = [members[other] for other in self.others]
        """Ranks of the others."""
        self.superstep = 0
        """Supersteps that this process has ended."""
        self.inbox = Inbox()
        link.enter(label, self.inbox)

    def pid_of(self, rank: int) -> int:
        """Return the pid of a rank in the group."""
        return self.members.index(rank)


# -- whether a process waits in vain for another one of its group ---------------------------------
# PROTOCOL.md, section *Waiting in vain*, says what each of them can know.


class Absence:
    """What one process knows of others for which it waits.

    Args:
        membership: of this process.
        read_late: looks at posts that came late.
    """

    def __init__(self, membership: Membership, read_late: Callable[[], object]) -> None:
        self._membership = membership
        self._link = membership.link
        self._inbox = membership.inbox
        self._read_late = read_late

    def suspect_at_sync(self, came: Collection[int]) -> None:
        """Raise if a process will never come to the meeting for which this one waits.

        Args:
            came: ranks that have come.
        """
        self._read_late()
        membership = self._membership
        for pid, rank in zip(membership.others, membership.ranks, strict=True):
            if rank not in came:
                self.suspect_one(pid)

    def suspect_one(self, pid: int) -> None:
        """Raise if one process will never come to a meeting, after late posts have been read."""
        rank = self._membership.members[pid]
        why = self._why_absent(rank)
        if self._inbox.latest(OBLIVIOUS, rank) >= self._membership.superstep:
            why = ENDED_BY_OBLSYNC
        self._raise_if(why, "sync", pid)

    def suspect_at_oblsync(self, pids: Sequence[int], came: Collection[int]) -> None:
        """Raise if one of some processes, of which none has come, never ends the superstep.

        Args:
            pids: the processes.
            came: ranks that have come.
        """
        self._read_late()
        ranks = [self._membership.members[pid] for pid in pids]
        if any(rank in came for rank in ranks):  # it has come just now
            return
        for pid, rank in zip(pids, ranks, strict=True):
            why = self._why_absent(rank)
            if self._inbox.latest(MEET, rank) >= self._membership.superstep:
                why = ENDED_BY_SYNC
            self._raise_if(why, "oblsync", pid)

    def _why_absent(self, rank: int) -> str:
        """Return why a process cannot come to the end of this superstep; empty if it can."""
        membership = self._membership
        if rank in self._inbox.left:
            return has_left(membership.members)
        while membership.parent is not None:
            above = membership.parent
            inbox = above.inbox
            if max(inbox.latest(MEET, rank), inbox.latest(OBLIVIOUS, rank)) >= above.superstep:
                return is_outside(membership.members)
            membership = above
        return ""

    def _raise_if(self, why: str, operation: str, pid: int) -> None:
        if why:
            members = self._membership.members
            raise waits_in_vain(operation, members[self._membership.pid], members[pid], why)

    def ask(self, ranks: Iterable[int]) -> None:
        """Ask processes whether they have left the group."""
        if self._membership.parent is not None:
            for rank in ranks:
                self._link.send_head(rank, heads.QUESTION, self._membership.label)

    def say_where(self) -> None:
        """Tell all others that this process waits here: no head of a meeting may reach them."""
        link, membership = self._link, self._membership
        superstep = membership.superstep
        head = heads.pack(link.run, HERE, 0, 0, membership.label, 0, superstep, 0, 0, 0)
        for rank in membership.ranks:
            link.unsent.start(head, rank, HEADS)
