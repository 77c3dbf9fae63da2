"""A group that a process has left: late posts, and giving back its block and outboxes."""

from __future__ import annotations

from bsplib.backends.base import LeftGroup
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.outboxes import Outboxes


class Leaving(LeftGroup):
    """The end of a group for one process.

    Args:
        members: processes of the group.
        oblivious: oblivious supersteps of the group.
        outboxes: outboxes of this process in the group.
    """

    def __init__(self, members: Membership, oblivious: Oblivious, outboxes: Outboxes) -> None:
        self._members = members
        self._oblivious = oblivious
        self._outboxes = outboxes

    def try_to_leave(self) -> None:
        """Leave the group if all late posts have come, in it and in its sub-groups."""
        if not self._members.open_inside and self._oblivious.has_read_all():
            self._oblivious.leave()
            self._members.leave()

    def try_to_release(self) -> bool:
        """Give block and outboxes back if every process has left; return whether that is so.

        Raises:
            SyncMismatchError: a late post has a message that this process did not wait for.
        """
        if not self._members.closed:
            self.try_to_leave()
        if not self._members.closed or not self._members.all_have_left():
            return False
        self._outboxes.free_all()
        self._members.give_block()
        return True
