"""The port of shared memory: the meetings of a group, and its memory.

A meeting is one post and one look at all others: a process has its entries in a send buffer of its
own, stores where they are and then a word in its control block, and waits until the words of all
others belong to this meeting. Two cells and two send buffers are used in turn, so that what a
process reads after a meeting stays as it is until it comes to the next one; no second barrier is
needed. PROTOCOL.md argues why this is right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Arrived, Buffer, Handle, Port, Sent
from bsplib.backends.members import are_apart
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import CELLS, DELIVERED, WORD
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.segment import area_of
from bsplib.backends.shm.staging import Kept, Leases
from bsplib.core.entries import Block
from bsplib.core.meeting import LARGE, SharedMeeting


class ShmPort(Port):
    """The connection of one process to the others of a group, over shared memory."""

    meeting: SharedMeeting
    MEETING: ClassVar[type[SharedMeeting]] = SharedMeeting
    OBLIVIOUS: ClassVar[type[Oblivious]] = Oblivious

    def __init__(self, context: ProcessContext, members: Membership) -> None:
        self._context = context
        self._segment = context.segment
        self._members = members
        waiter, areas = context.waiting.waiter, context.nprocs
        meeting = members.meeting = self.MEETING(members.pid, members.nprocs, areas, self, waiter)
        self._has_entered = False  # the control block may be there: a sub-group enters its parents
        self._oblivious = self.OBLIVIOUS(members)
        self._leases = Leases(context.heap, context.segment, members, self._oblivious)
        super().__init__(members.pid, members.members, meeting, self._leases)
        self.meeting.leases = self._leases.leases
        self._left_over = self.meeting.left_over = context.left_over

    @classmethod
    def of_root(cls, context: ProcessContext) -> Self:
        """Return the port of a process to the root group."""
        kind: type[Self] = context.port_class(cls)
        root = kind(context, Membership(context, range(context.nprocs), context.pid))
        root._enter()
        return root

    # -- memory ---------------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        start, is_zero = self._context.heap.allocate(nbytes)
        memory = self._segment.view(start, nbytes)
        if zero and not is_zero:
            np.frombuffer(memory, np.uint8)[:] = 0
        return memory

    def release(self, memory: memoryview) -> None:
        start = self._segment.byte_of(np.frombuffer(memory, np.uint8))
        assert start is not None  # it comes from allocate
        self._context.heap.release(start)

    def shared_address_of(self, array: NDArray[Any]) -> int | None:
        """See :meth:`Port.shared_address_of`; a view of a message lies in another's area."""
        byte = self._segment.byte_of(array) if array.flags.c_contiguous else None
        return byte if byte is not None and area_of(byte) == self._context.pid else None

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview:  # noqa: ARG002  # all lie in one segment
        return self._segment.view(shared_address, nbytes)

    def stage(self, nbytes: int, to: int, *, message: bool = False) -> tuple[Handle, Buffer]:  # noqa: ARG002  # all can fetch it
        start = self._leases.reserve(nbytes, message=message)
        return (self.pid, start, nbytes), self._segment.view_array(start, nbytes)

    def fetch(self, handle: Handle) -> memoryview:
        _, start, nbytes = handle
        return self._segment.view(start, nbytes)

    def keep(self, handle: Handle) -> Buffer | None:
        source, start, nbytes = handle
        if source == self.pid or nbytes < LARGE or self._segment.is_short():
            return None
        return np.asarray(Kept(self._segment.address_of(start), nbytes))

    # -- meetings of all ------------------------------------------------------------

    def send_buffer_memory(self) -> Callable[[int], Block]:
        return self._leases.block_of_send_buffer

    # -- what a meeting leaves to the port -----------------------------------------------------

    def prepare(self) -> None:
        """Enter the group before the first post, and look at late posts."""
        if not self._has_entered:
            self._enter()
        self.meeting.has_to_prepare = self._oblivious.collector.ended > 0
        self._oblivious.read_everything()

    def find_others(self) -> None:
        """Wait until all others have entered the group; tell the meeting where they are."""
        members = self._members
        # Processes start in the order of their pids: wait for the one that starts last first.
        for pid in reversed(members.others):
            self._wait_until(functools.partial(members.find, pid), pid)
        for pid in members.others:
            self.meeting.know(pid, *self._addresses(members.find(pid)))

    def wait_for(self, pid: int, cell: int, floor: int) -> None:
        """Wait until another process has posted; the meeting has looked for it in vain so far.

        Args:
            pid: the other process.
            cell: address of the word of its cell.
            floor: least value of that word once it is posted.

        Raises:
            SyncMismatchError: it will never be posted.
        """
        control, word = self._context.control, (cell - self._segment.address) // WORD
        self._wait_until(lambda: control[word] >= floor, pid)

    def _wait_until(self, arrived: Callable[[], object], pid: int) -> None:
        members = self._members

        def suspect() -> None:
            self._oblivious.read_everything()
            members.suspect("sync", pid, arrived)

        self._context.wait(arrived, [members.root(pid)], suspect)

    def apart(self, pid: int) -> Exception:
        """Return the error for a process whose post is of a later meeting."""
        members = self._members
        return are_apart(members.root(pid), members.root(members.pid), "a later")

    def after_posts(self) -> None:
        """Do what only some meetings need, after all processes have posted."""
        if self.meeting.has_to_prepare:
            self._oblivious.read_everything()  # all earlier posts are visible now
        if self._leases.leases:
            self._leases.all_have_met()
        if self._left_over:
            self._context.reclaim_left_groups()

    def map_byte(self, byte: int) -> int:
        """Map the window of a byte of the segment; return the address of the byte."""
        return self._segment.address_of(byte)

    def _addresses(self, block: int) -> tuple[tuple[int, ...], int]:
        """Return the addresses of the cells and of DELIVERED of a control block."""
        base = self._segment.address
        cells = tuple(base + WORD * (block + cell) for cell in CELLS)
        return cells, base + WORD * (block + DELIVERED)

    # -- oblivious meetings -----------------------------------------------------------

    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        self.prepare()
        self.meeting.has_to_prepare = True  # from now on: late posts have to be looked at
        self._oblivious.post(entries, self._leases.reserve, stamp)
        arrived = self._oblivious.collector.collect(expected)
        self.meeting.oblivious = self._oblivious.latest
        self.meeting.released = self._oblivious.collector.released
        return arrived

    # -- supersteps and sub-groups ------------------------------------------------------

    def end_superstep(self) -> None:
        self._leases.end_superstep()

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> ShmPort:
        pid = pids.index(self.pid)
        members = Membership(self._context, pids, pid, self._members, ordinal, index)
        return type(self)(self._context, members)

    def _enter(self) -> None:
        """Take a control block, by which the others find this process in the group."""
        self._has_entered = True
        self._members.enter()
        self.meeting.enter(*self._addresses(self._members.block))

    def begin_anew(self) -> bool:
        """Make this port of the root group ready for another run of a pool.

        Every process has ended the run before, and none has failed. Supersteps are counted on;
        PROTOCOL.md argues that the next run finds nothing of the last one.

        Returns:
            False if another port has to be opened for the next run; the same in all processes.
        """
        if self._oblivious.collector.ended or not self._members.has_numbers_left():
            return False
        self._leases.begin_anew()
        self.meeting.gets.clear()
        self._members.begin_anew()
        return True

    def close(self) -> None:
        self._leases.close()
        self._try_to_leave()
        if self._members.may_be_given_back():
            self._left_over.append(self)

    def _try_to_leave(self) -> None:
        """Leave the group if all late posts have come, in it and in its sub-groups."""
        if not self._members.open_inside and self._oblivious.has_read_all():
            self._oblivious.leave()
            self._members.leave()

    def try_to_release(self) -> bool:
        """See :meth:`LeftGroup.try_to_release`: end all leases, and give the control block back."""
        if not self._members.closed:
            self._try_to_leave()
        if not self._members.closed or not self._members.all_have_left():
            return False
        self._leases.all_have_left()
        self._members.give_block()
        return True
