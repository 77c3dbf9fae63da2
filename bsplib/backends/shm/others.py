"""The slots of the other processes of a group, and waiting until something is in them."""

from __future__ import annotations

import functools
from collections.abc import Callable

from bsplib.backends.mismatch import ENDED_BY_OBLSYNC, are_apart, waits_in_vain
from bsplib.backends.shm.control import MEETING_SHIFT, SLOTS
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious

Slots = tuple[list[int], list[int]]
"""For each of the two slots: its first word in the block of each other process, by pid."""


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
        self._waiting = members.context.waiting
        self._fences = members.context.fences
        self._slots: Slots = [], []

    def slots(self) -> Slots:
        """Return the slots of all others; wait until they have entered the group."""
        members = self._members
        # Processes start in the order of their pids: wait for the one that starts last first.
        for pid in reversed(members.others):
            self._wait_until(functools.partial(members.find, pid), pid)
        blocks = [members.find(pid) for pid in members.others]
        first, second = ([block + slot for block in blocks] for slot in SLOTS)
        self._slots = first, second
        return self._slots

    def look_at(self, slot: int, floor: int) -> int:
        """Wait until another process has posted into a slot; return the word of the post.

        The caller has to fence before it reads what the word announces.

        Args:
            slot: first word of the slot of the other process.
            floor: least value of the word once it is posted.

        Raises:
            SyncMismatchError: it will never be posted, or is of a later meeting.
        """
        control = self._control
        if control[slot] < floor and not self._waiting.arrives(slot, floor):
            self._wait_until(lambda: control[slot] >= floor, self._whose(slot), spun=True)
        seen: int = control[slot]
        if seen >> MEETING_SHIFT != floor >> MEETING_SHIFT:
            members = self._members
            ahead = members.root(self._whose(slot))
            raise are_apart(ahead, members.root(members.pid), "a later")
        return seen

    def _whose(self, slot: int) -> int:
        of_one_meeting = next(slots for slots in self._slots if slot in slots)
        return self._members.others[of_one_meeting.index(slot)]

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
