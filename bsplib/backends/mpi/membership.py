"""One process in one group: who is in it, how far it has come, and the posts that came for it."""

from __future__ import annotations

from bsplib.backends.members import Members
from bsplib.backends.mpi.link import Link
from bsplib.backends.mpi.received_posts import Inbox


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
        self.ended_by_sync = False
        """The last of them has ended by a sync of all."""
        self.neighbours = link.inside.neighbours
        """Those of the run; None where there are none."""
        self.inbox = Inbox()
        link.enter(label, self.inbox)

    def pid_of(self, rank: int) -> int:
        """Return the pid of a rank in the group."""
        return self.members.index(rank)
