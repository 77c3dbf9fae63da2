"""The port of shared memory: the meetings of a group, and its memory.

A meeting is one post and one look at all others: a process lays out its parcels in an outbox
of its own, stores their index and then a word in its block, and waits until the words of
all others belong to this meeting. Two slots and at least two outboxes are used in
turn, so that what a process reads after a meeting stays as it is until it comes to the
next one; no second barrier is needed. PROTOCOL.md argues why this is right.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Arrivals, Arrived, Port, Room
from bsplib.backends.parcels import LonePut, Parcel, Ticket
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import (
    DELIVERED,
    INDEX,
    MEETING_SHIFT,
    SLOTS,
    STAMP,
    SUPERSTEP_SHIFT,
)
from bsplib.backends.shm.inbox import Inbox
from bsplib.backends.shm.layout import (
    lay_out,
    write_inline,
    write_lone_put,
)
from bsplib.backends.shm.leaving import Leaving
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.others import Others, Slots
from bsplib.backends.shm.outboxes import Outboxes

_NEXT_MEETING = 1 << MEETING_SHIFT

_Outgoing = tuple[Mapping[int, Parcel], Any]
"""Parcels by receiving pid, and what is announced to all processes."""


class ShmPort(Port):
    """The connection of one process to the others of a group, over shared memory."""

    def __init__(self, context: ProcessContext, members: Membership) -> None:
        self.pid = members.pid
        self.nprocs = members.nprocs
        self.members = members.roots
        self.released = 0
        self.now = time.perf_counter_ns  # type: ignore[method-assign]  # saves a call
        self._context = context
        self._segment = context.segment
        self._control = context.control
        self._waiting = context.waiting
        self._waited = context.waiting.waited
        self._fences = context.fences
        self._is_fenced = context.fences.weak or context.fences.posts_need_fence
        self._members = members
        self._mine: list[int] = []  # first words of this process's slots, once it has entered
        self._delivered = 0
        self._oblivious = Oblivious(members)
        self._others = Others(members, self._oblivious)
        self._inbox = Inbox(self._segment, self.pid, self.nprocs)
        self._outboxes = Outboxes(context, members, self._oblivious, self.is_settled)
        self._laid = self._outboxes.laid
        self._leaving = Leaving(members, self._oblivious, self._outboxes)
        self._left_over = context.left_over
        self._has_to_prepare = True  # before a meeting: to enter, or to look at late posts
        self._parity = 0
        self._floor = members.superstep << SUPERSTEP_SHIFT
        self._slots: Slots | None = None  # of others, once all are found

    @classmethod
    def of_root(cls, context: ProcessContext) -> ShmPort:
        """Return the port of a process to the root group."""
        root = cls(context, Membership(context, range(context.nprocs), context.pid))
        root._enter()
        return root

    # -- memory ---------------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        """See :meth:`Port.allocate`."""
        start, is_zero = self._context.heap.allocate(nbytes)
        memory = self._segment.view(start, nbytes)
        if zero and not is_zero:
            np.frombuffer(memory, np.uint8)[:] = 0
        return memory

    def release(self, memory: memoryview) -> None:
        """See :meth:`Port.release`."""
        start = self._segment.byte_of(np.frombuffer(memory, np.uint8))
        assert start is not None  # it comes from allocate
        self._context.heap.release(start)

    def shared_address_of(self, array: NDArray[Any]) -> int | None:
        """See :meth:`Port.shared_address_of`."""
        return self._segment.byte_of(array) if array.flags.c_contiguous else None

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview:  # noqa: ARG002  # all lie in one segment
        """See :meth:`Port.reach`."""
        return self._segment.view(shared_address, nbytes)

    def is_settled(self, pid: int) -> bool:
        """See :meth:`Port.is_settled`."""
        last = self._members.superstep - 1
        if self._oblivious.latest == last:
            return False
        delivered = self._members.find(pid) + DELIVERED
        # It may need a moment to deliver what the last sync brought it.
        control = self._control
        if control[delivered] != last and not (
            self._waiting.arrives(delivered, last) and control[delivered] == last
        ):
            return False
        if self._is_fenced:
            self._fences.order()  # acquire: DELIVERED, before others write into its memory
        return True

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:  # noqa: ARG002  # all can fetch it
        """See :meth:`Port.stage`."""
        start = self._outboxes.room(nbytes)
        return (self.pid, start, nbytes), self._segment.view_array(start, nbytes)

    def stage_message(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """See :meth:`Port.stage_message`."""
        staged = self.stage(nbytes, to)
        self._outboxes.keep_messages()
        return staged

    def fetch(self, ticket: Ticket) -> memoryview:
        """See :meth:`Port.fetch`."""
        _, start, nbytes = ticket
        return self._segment.view(start, nbytes)

    # -- meetings of all ------------------------------------------------------------

    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any = None, stamp: int = 0
    ) -> Arrivals | None:
        """See :meth:`Port.exchange`."""
        return self._meet(note, stamp, outgoing=(parcels, common))  # type: ignore[return-value]

    def _meet(  # noqa: C901, PLR0912  # a call for each part would cost a twentieth of a superstep
        self,
        note: int,
        stamp: int = 0,
        to: int = 0,
        lone_put: LonePut | None = None,
        outgoing: _Outgoing | None = None,
    ) -> Arrivals | list[LonePut] | None:
        """Make the post of this process, and look at the posts of all others.

        One function serves all three ways to end a superstep by a sync, and calls others only
        where there is something to do: an empty superstep takes less than a microsecond, and
        a call more than a twentieth of that.

        Args:
            note: see :meth:`Port.exchange`.
            stamp: see :meth:`Port.exchange`.
            to: see :meth:`Port.sync_one_put`.
            lone_put: see :meth:`Port.sync_one_put`.
            outgoing: parcels and announcement of :meth:`exchange`; None for the other ways.
        """
        if self._has_to_prepare:
            self._prepare()
        control, parity, floor = self._control, self._parity, self._floor
        mine, word = self._mine[parity], floor | note << 1
        if stamp:
            control[mine + STAMP] = stamp
        if lone_put is not None:
            write_lone_put(self._segment, mine, to, lone_put)
            word |= 1
        elif outgoing is not None:
            word |= self._write_parcels(mine, *outgoing)
        if self._is_fenced:
            self._store_fenced(mine, word)
        else:
            control[mine] = word
        if control[self._waited]:
            self._waiting.wake()
        nothing_new = not word & 1
        slots = (self._slots or self._find_others())[parity]
        for slot in slots:
            if control[slot] != word and self._others.look_at(slot, floor) != word:
                nothing_new = False
        self._parity = 1 - parity
        self._floor = floor + _NEXT_MEETING
        if stamp or self._laid or self._left_over or self._has_to_prepare or self._is_fenced:
            self._after_posts(stamp, slots)
        inbox, came = self._inbox, None
        if not nothing_new:
            came = (inbox.collect if outgoing else inbox.lone_puts)(mine, slots)
        if not (came or outgoing):  # nothing has to be delivered: the superstep ends here
            if self._outboxes.current is not None:  # the values of a lone put lie in it
                self._outboxes.put_aside(self._outboxes.current)
            members = self._members
            control[self._delivered] = superstep = members.superstep
            members.superstep = superstep + 1
            self._floor = superstep + 1 << SUPERSTEP_SHIFT
        return came or None

    sync_empty = sync_one_put = _meet

    def _store_fenced(self, mine: int, word: int) -> None:
        """Store the word of a post where the machine or the system needs fences for that."""
        self._fences.order()  # release: what the word announces, before it
        self._control[mine] = word
        if self._fences.posts_need_fence:
            self._fences.full()  # the store of the word, before the load of WAITED

    def _after_posts(self, stamp: int, slots: list[int]) -> None:
        """Do what only some meetings need, after all processes have posted."""
        self._fences.order()  # acquire: the words, before what they announce
        if stamp:
            self.released = self._inbox.latest(stamp, slots)
        if self._has_to_prepare:
            self._oblivious.read_everything()  # all earlier posts are visible now
        if self._laid:
            self._outboxes.reclaim()
        if self._left_over:
            self._context.reclaim_left_groups()

    def _find_others(self) -> Slots:
        self._slots = self._others.slots()
        return self._slots

    def _write_parcels(self, mine: int, parcels: Mapping[int, Parcel], common: Any) -> bool:
        """Write parcels and announcement of a post; return whether there are any."""
        if common is None:
            if not parcels:
                return False
            if len(parcels) == 1:
                [(pid, parcel)] = parcels.items()
                if write_inline(self._segment, mine, pid, parcel):
                    return True
        rows = [(pid, 0, parcel.plain()) for pid, parcel in parcels.items()]
        if common is not None:
            rows.append((self.nprocs, 0, common))
        index = lay_out(self._segment, self._outboxes.room, self.nprocs + 1, rows)
        self._control[mine + INDEX] = index
        return True

    # -- oblivious meetings -----------------------------------------------------------

    def exchange_oblivious(
        self, parcels: Mapping[int, tuple[int, Parcel]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        rows = [(pid, count, parcel.plain()) for pid, (count, parcel) in parcels.items()]

        def write() -> int:
            if not rows:
                return 0
            return lay_out(self._segment, self._outboxes.room, self.nprocs + 1, rows)

        self._prepare()
        self._has_to_prepare = True  # from now on: late posts have to be looked at
        self._oblivious.post(write, stamp)
        arrived = self._oblivious.collect(expected)
        self.released = self._oblivious.released
        return arrived

    # -- supersteps and sub-groups ------------------------------------------------------

    def end_superstep(self) -> None:
        """See :meth:`Port.end_superstep`."""
        if self._outboxes.current is not None:
            self._outboxes.put_aside(self._outboxes.current)
        if self._is_fenced:
            self._fences.order()  # release: what was delivered, before DELIVERED
        members = self._members
        superstep = members.superstep
        self._control[self._delivered] = superstep
        members.superstep = superstep + 1
        self._floor = superstep + 1 << SUPERSTEP_SHIFT

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> ShmPort:
        """See :meth:`Port.split`."""
        pid = pids.index(self.pid)
        members = Membership(self._context, pids, pid, self._members, ordinal, index)
        return ShmPort(self._context, members)

    def _prepare(self) -> None:
        """Enter the group before the first post, and look at late posts."""
        if not self._mine:
            self._enter()
        self._has_to_prepare = self._oblivious.ended > 0
        self._oblivious.read_everything()

    def _enter(self) -> None:
        """Take a block, by which the others find this process in the group."""
        self._members.enter()
        block = self._members.block
        self._mine = [block + slot for slot in SLOTS]
        self._delivered = block + DELIVERED

    def close(self) -> None:
        """See :meth:`Port.close`."""
        self._outboxes.free_current()
        self._leaving.try_to_leave()
        if self._members.may_be_given_back():
            self._left_over.append(self._leaving)
