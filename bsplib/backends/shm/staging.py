"""The memory of one process in one group that others may read, and how long they may.

What others fetch from it in a superstep lies in blocks of the heap, its **staging buffer**.
:class:`Leases` is the only owner of this memory. Whoever needs some asks it for a block; whoever
ends a superstep tells it so. What was written in a superstep then becomes a :class:`Lease`, which
ends when all processes have passed the next meeting of the group, or have left the group. No other
code gives such memory back. So a lease that is forgotten keeps memory for too long, and can do no
other harm.

PROTOCOL.md, section *Memory that is used again*, argues when a lease may end.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bsplib.backends.base import AFTER_ALL
from bsplib.backends.shm.heap import Heap, word_behind
from bsplib.backends.shm.segment import Segment
from bsplib.core import atomics
from bsplib.core.entries import Block
from bsplib.core.meeting import LARGE

if TYPE_CHECKING:
    from bsplib.backends.shm.membership import Membership
    from bsplib.backends.shm.oblivious import Oblivious


class Lease(NamedTuple):
    """The staging buffer of a superstep, which others may still read."""

    last_read: int
    """Last superstep in which it may be read."""
    oblivious: int
    """It ends, too, as soon as all have consumed this number of posts."""
    blocks: list[int]
    """The bytes at which they begin."""
    has_messages: bool
    """It has messages, which are read after the end of the superstep, too."""


class Leases:
    """What one process has written for the others of a group to read.

    Args:
        heap: of this process.
        segment: that the heap is in.
        members: processes of the group, with the group's meeting, which is told while the staging
            buffer has blocks.
        oblivious: oblivious supersteps of the group.
    """

    def __init__(
        self, heap: Heap, segment: Segment, members: Membership, oblivious: Oblivious
    ) -> None:
        self.leases: list[Lease] = []
        """The leases of earlier supersteps. The meeting has the list, too: it calls back while
        there are any."""
        self._blocks: list[int] = []  # of the staging buffer of this superstep
        self._has_messages = False
        self._send_buffers: list[int] = []
        self._heap = heap
        self._segment = segment
        self._members = members
        self._meeting = members.meeting
        self._oblivious = oblivious

    # -- memory for others ------------------------------------------------------------------

    def reserve(self, nbytes: int, *, message: bool = False) -> int:
        """Return the byte at which a value of this superstep can be staged.

        Args:
            nbytes: size of the value.
            message: it is fetched after the superstep, too.

        Raises:
            OutOfSharedMemoryError: there is no memory.
        """
        if not self._blocks and nbytes >= LARGE:
            self._end_delivered(nbytes)
        can_be_kept = message and nbytes >= LARGE
        byte = self._heap.lend(nbytes) if can_be_kept else self._heap.allocate(nbytes)[0]
        self._blocks.append(byte)
        self._has_messages = self._has_messages or message
        # However the superstep ends, the core has to tell that it does.
        self._meeting.has_staged = True
        return byte

    def block_of_send_buffer(self, nbytes: int) -> Block:
        """Return memory for a send buffer: its lease ends when all have left the group."""
        byte, _ = self._heap.allocate(nbytes)
        self._send_buffers.append(byte)
        return byte, self._segment.address_of(byte), nbytes

    # -- how long others may read it --------------------------------------------------------

    def end_superstep(self) -> None:
        """End the superstep; see :meth:`Port.end_superstep`."""
        self._lend()
        self._meeting.end_superstep()

    def _lend(self) -> None:
        """Let what was written in this superstep be read until all have read it.

        What a sync brings has been read when all come to the next sync. So has that of an
        oblsync, which late readers may look at until then; its lease ends earlier if all have
        consumed the post.

        Consumed leases end before that of this superstep begins. It may have messages that this
        process has sent to itself: they are in its queue now, and are read until it ends the next
        superstep. Those of earlier supersteps are no longer in the queue.
        """
        if not self._blocks:
            return
        if len(self.leases) > 1:
            consumed = self._oblivious.least_consumed()
            self._end(lambda lease: lease.oblivious <= consumed)
        superstep = self._meeting.superstep
        synced = self._oblivious.latest != superstep
        last_read = superstep if synced else AFTER_ALL
        until = self._oblivious.collector.ended + synced
        self.leases.append(Lease(last_read, until, self._blocks, self._has_messages))
        self._begin_staging_buffer()

    def all_have_met(self) -> None:
        """End the leases of earlier supersteps: all processes have come to this sync."""
        superstep = self._meeting.superstep
        self._end(lambda lease: lease.last_read < superstep)
        self.leases[:] = [
            lease._replace(last_read=min(lease.last_read, superstep)) for lease in self.leases
        ]

    def close(self) -> None:
        """Leave the group: the others may read what this process has posted until they leave.

        A process that has no block has posted nothing, so that no other process knows of its
        memory. It may have written some in a superstep that an exception has ended.
        """
        self._lend()
        if not self._members.block:
            self.all_have_left()

    def all_have_left(self) -> None:
        """End all leases: no process reads any memory of the group."""
        if self.leases:
            self._end(lambda _: True)
        self._give_back(self._send_buffers)
        self._send_buffers.clear()

    def begin_anew(self) -> None:
        """Forget all leases: a run has ended in all processes, and the heap has been cleared."""
        self.leases.clear()
        self._send_buffers.clear()
        self._begin_staging_buffer()

    def _begin_staging_buffer(self) -> None:
        self._blocks, self._has_messages = [], False
        self._meeting.has_staged = False

    def _give_back(self, blocks: list[int]) -> None:
        for byte in blocks:
            self._heap.release(byte)

    def _end_delivered(self, nbytes: int) -> None:
        """End the lease of the last sync, if all processes have delivered that superstep.

        Its memory is still in the cache, since it has just been read, and a large payload is
        copied faster into memory in the cache. Other memory may even be new: clearing its pages
        takes longer than the copy. To wait for the others takes less time.
        """
        last = self._meeting.superstep - 1

        def is_delivered(lease: Lease) -> bool:
            return lease.last_read == last and not lease.has_messages

        waits_for_delivery = self._meeting.waits_for_delivery
        if any(map(is_delivered, self.leases)) and all(
            waits_for_delivery(pid, nbytes) for pid in self._members.others
        ):
            self._end(is_delivered)

    def _end(self, is_over: Callable[[Lease], bool]) -> None:
        still = []
        for lease in self.leases:
            if is_over(lease):
                self._give_back(lease.blocks)
            else:
                still.append(lease)
        self.leases[:] = still


_forks: list[None] = []
"""It has an entry for each time that this process has forked."""
os.register_at_fork(before=partial(_forks.append, None))


class Kept:
    """The payload of a message that its receiver keeps in place of a copy: the base of its arrays.

    Args:
        address: of the payload.
        nbytes: of the payload.
    """

    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
        }
        self._word = word_behind(address, nbytes)
        self._forks = len(_forks)
        atomics.store(self._word, 1)

    def __del__(self) -> None:
        # A child that the program has forked has the array, too, and may have it for longer.
        if self._forks == len(_forks):
            atomics.store(self._word, 0)
