"""A group that a process has left: what it still looks at, and what it gives back."""

from __future__ import annotations

from bsplib.backends.base import LeftGroup
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.outboxes import Outboxes


class Leaving(LeftGroup):
    """The end of a group for one process.

    Args:
        members: of the group.
        oblivious: its oblivious supersteps.
        outboxes: of this process there.
    """

    def __init__(self, members: Membership, oblivious: Oblivious, outboxes: Outboxes) -> None:
        self._members = members
        self._oblivious = oblivious
        self._outboxes = outboxes

    def try_to_leave(self) -> None:
        """Leave once this process has seen that nobody sent it a message too many."""
        if not self._members.open_inside and self._oblivious.has_read_all():
            self._oblivious.leave()
            self._members.leave()

    def let_go(self) -> bool:
        """Give blocks and outboxes back if everybody has left; return whether so.

        Raises:
            SyncMismatchError: a message came that nobody waited for.
        """
        if not self._members.closed:
            self.try_to_leave()
        if not self._members.closed or not self._members.all_have_left():
            return False
        self._outboxes.free_all()
        self._members.give_block()
        return True
