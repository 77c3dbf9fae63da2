"""The memory of one process in one group that others may read, and how long they may.

:class:`Leases` is the only owner of this memory. Whoever needs some asks it for a part; whoever
ends a superstep tells it so. What was written in a superstep then becomes a :class:`Lease`, which
ends when all processes have passed the next meeting of the group, or have left the group. No
other code gives such memory back. So a lease that is forgotten keeps memory for too long, and
can do no other harm.

PROTOCOL.md, section *Memory that is used again*, argues when a lease may end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.parcels import StagingBuffer
from bsplib.core.entries import Block
from bsplib.core.meeting import LARGE

_NOT_YET = 1 << 62


class Lease(NamedTuple):
    """A staging buffer that others may still read."""

    last_read: int
    """Last superstep in which it may be read."""
    oblivious: int
    """It ends, too, as soon as all have consumed this number of posts."""
    staging_buffer: StagingBuffer


class Leases:
    """What one process has written for the others of a group to read.

    Args:
        context: context of this process.
        members: processes of the group; their meeting is told while a staging buffer is open.
        oblivious: oblivious supersteps of the group.
    """

    def __init__(
        self,
        context: ProcessContext,
        members: Membership,
        oblivious: Oblivious,
    ) -> None:
        self.held: list[Lease] = []
        """The leases of earlier supersteps. The meeting has the list, too: it calls back while
        there are any."""
        self._open: StagingBuffer | None = None
        self._send_buffers: list[int] = []
        self._context = context
        self._members = members
        self._oblivious = oblivious

    # -- memory for others ------------------------------------------------------------------

    def reserve(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` of this superstep may be written."""
        if self._open is None and nbytes >= LARGE:
            self._end_delivered(nbytes)
        return self._staging_buffer().reserve(nbytes)

    def reserve_for_message(self, nbytes: int, *, for_one: bool) -> int:
        """Do as :meth:`reserve` for the payload of a message, which is read after the superstep.

        Args:
            nbytes: of the payload.
            for_one: one other process receives it, and may keep it.
        """
        staging_buffer = self._staging_buffer()
        if nbytes < self._context.parcels.least_bytes:
            start = staging_buffer.reserve(nbytes)
        else:
            start = staging_buffer.reserve_for_parcel(nbytes, for_one=for_one)
        staging_buffer.has_messages = True
        return start

    def _staging_buffer(self) -> StagingBuffer:
        """Return the staging buffer of this superstep."""
        if self._open is None:
            self._open = self._context.take_staging_buffer()
            # However the superstep ends, the core has to tell that it does.
            self._members.meeting.has_staged = True
        return self._open

    def block_of_send_buffer(self, nbytes: int) -> Block:
        """Return memory for a send buffer: its lease ends when all have left the group."""
        byte, _ = self._context.heap.allocate(nbytes)
        self._send_buffers.append(byte)
        return byte, self._context.segment.address_of(byte), nbytes

    # -- how long others may read it --------------------------------------------------------

    def end_superstep(self) -> None:
        """Let what was written in this superstep be read until all have read it.

        What a sync brings has been read when all come to the next sync. So has that of an
        oblsync, which late readers may look at until then; its lease ends earlier if all have
        consumed the post.

        Consumed leases end before that of this superstep begins. It may have messages that this
        process has sent to itself: they are in its queue now, and are read until it ends the next
        superstep. Those of earlier supersteps are no longer in the queue.
        """
        if self._open is None:
            return
        if len(self.held) > 1:
            consumed = self._oblivious.least_consumed()
            self._end(lambda lease: lease.oblivious <= consumed)
        superstep = self._members.superstep
        synced = self._oblivious.latest != superstep
        last_read = superstep if synced else _NOT_YET
        self.held.append(Lease(last_read, self._oblivious.ended + synced, self._open))
        self._close_staging_buffer()

    def all_have_met(self) -> None:
        """End the leases of earlier supersteps: all processes have come to this sync."""
        superstep = self._members.superstep
        still = []
        for lease in self.held:  # one pass, since this is part of every long superstep
            if lease.last_read < superstep:
                self._context.give_staging_buffer(lease.staging_buffer)
            elif lease.last_read == _NOT_YET:
                still.append(lease._replace(last_read=superstep))
            else:
                still.append(lease)
        self.held[:] = still

    def close(self) -> None:
        """Leave the group: the others may read what this process has posted until they leave.

        A process that has no block has posted nothing, so that no other process knows of its
        memory. It may have written some in a superstep that an exception has ended.
        """
        self.end_superstep()
        if not self._members.block:
            self.all_have_left()

    def all_have_left(self) -> None:
        """End all leases: no process reads any memory of the group."""
        if self.held:
            self._end(lambda _: True)
        for byte in self._send_buffers:
            self._context.heap.release(byte)
        self._send_buffers.clear()

    def begin_anew(self) -> None:
        """Forget all leases: a run has ended in all processes, and the heap has been cleared."""
        self.held.clear()
        self._send_buffers.clear()
        self._close_staging_buffer()

    def _close_staging_buffer(self) -> None:
        self._open = None
        self._members.meeting.has_staged = False

    def _end_delivered(self, nbytes: int) -> None:
        """End the lease of the last sync, if all processes have delivered that superstep.

        Its memory is still in the cache, since it has just been read, and a large payload is
        copied faster into memory in the cache. Other memory may even be new: clearing its pages
        takes longer than the copy. To wait for the others takes less time.
        """
        last = self._members.superstep - 1

        def is_delivered(lease: Lease) -> bool:
            return lease.last_read == last and not lease.staging_buffer.has_messages

        waits_for_delivery = self._members.meeting.waits_for_delivery
        if any(map(is_delivered, self.held)) and all(
            waits_for_delivery(pid, nbytes) for pid in self._members.others
        ):
            self._end(is_delivered)

    def _end(self, is_over: Callable[[Lease], bool]) -> None:
        still = []
        for lease in self.held:
            if is_over(lease):
                self._context.give_staging_buffer(lease.staging_buffer)
            else:
                still.append(lease)
        self.held[:] = still
