"""A group that a process has left: late posts, its leases and its control block."""

from __future__ import annotations

from bsplib.backends.base import LeftGroup
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.staging import Leases


class Leaving(LeftGroup):
    """The end of a group for one process.

    Args:
        members: processes of the group.
        oblivious: oblivious supersteps of the group.
        leases: what this process has written for the others of the group.
    """

    def __init__(self, members: Membership, oblivious: Oblivious, leases: Leases) -> None:
        self._members = members
        self._oblivious = oblivious
        self._leases = leases

    def try_to_leave(self) -> None:
        """Leave the group if all late posts have come, in it and in its sub-groups."""
        if not self._members.open_inside and self._oblivious.has_read_all():
            self._oblivious.leave()
            self._members.leave()

    def try_to_release(self) -> bool:
        """End all leases and give the control block back if every process has left.

        Returns:
            Whether that is so.

        Raises:
            SyncMismatchError: a late post has a message that this process did not wait for.
        """
        if not self._members.closed:
            self.try_to_leave()
        if not self._members.closed or not self._members.all_have_left():
            return False
        self._leases.all_have_left()
        self._members.give_block()
        return True
