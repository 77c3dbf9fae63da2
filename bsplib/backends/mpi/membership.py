"""One process in one group: who is in it, how far it has come, and whether another will come."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bsplib.backends.members import Members, waits_in_vain
from bsplib.backends.mpi import heads
from bsplib.backends.mpi.heads import HERE
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

    def has_left(self, pid: int) -> bool:
        """See :meth:`Standing.has_left`; a process has said so."""
        return self.members[pid] in self.inbox.left

    def has_ended(self, process: int, *ways: str) -> bool:
        """See :meth:`Standing.has_ended`; a post of the superstep has come."""
        return max(self.inbox.latest[way].get(process, -1) for way in ways) >= self.superstep


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
        self._read_late = read_late

    def suspect(self, operation: str, missing: Callable[[], Iterable[int]]) -> None:
        """Raise if this process waits in vain.

        Args:
            operation: ``sync`` or ``oblsync``.
            missing: returns the ranks of which one must not be absent, once late posts are read.
        """
        self._read_late()
        for rank in missing():
            pid = self._membership.pid_of(rank)
            if (error := waits_in_vain(self._membership, operation, pid)) is not None:
                raise error

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
