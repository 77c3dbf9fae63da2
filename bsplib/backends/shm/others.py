"""The other processes of a group, and waiting for them at a meeting."""

from __future__ import annotations

import functools
from collections.abc import Callable

from bsplib.backends.mismatch import ENDED_BY_OBLSYNC, waits_in_vain
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious


class Others:
    """The other processes of a group, at its meetings.

    Args:
        members: processes of the group.
        oblivious: oblivious supersteps of the group.
    """

    def __init__(self, members: Membership, oblivious: Oblivious) -> None:
        self._members = members
        self._oblivious = oblivious
        self._control = members.context.control
        self._fences = members.context.fences

    def find(self) -> None:
        """Wait until all others have entered the group."""
        members = self._members
        # Processes start in the order of their pids: wait for the one that starts last first.
        for pid in reversed(members.others):
            self._wait_until(functools.partial(members.find, pid), pid)

    def wait_for(self, pid: int, cell: int, floor: int) -> None:
        """Wait until another process has posted; the meeting has looked for it in vain so far.

        Args:
            pid: the other process.
            cell: first word of its cell.
            floor: least value of the word of its cell once it is posted.

        Raises:
            SyncMismatchError: it will never be posted.
        """
        control = self._control
        self._wait_until(lambda: control[cell] >= floor, pid, spun=True)

    def _wait_until(self, arrived: Callable[[], object], pid: int, *, spun: bool = False) -> None:
        members = self._members

        def suspect() -> None:
            self._oblivious.read_everything()
            why = members.why_absent(pid)
            if self._oblivious.is_ahead(pid):
                why = ENDED_BY_OBLSYNC
            self._fences.order()  # acquire: its absence, before its post
            if why and not arrived():  # it may have come, and continued, since the last look
                raise waits_in_vain("sync", members.root(members.pid), members.root(pid), why)

        members.context.wait(arrived, [members.root(pid)], suspect, spun=spun)
