"""The memory of one process in one group that others may read, and how long they may.

What others fetch is laid out in a :class:`StagingBuffer`, one for each superstep. :class:`Leases`
is the only owner of this memory. Whoever needs some asks it for a part; whoever ends a superstep
tells it so. What was written in a superstep then becomes a :class:`Lease`, which ends when all
processes have passed the next meeting of the group, or have left the group. No other code gives
such memory back. So a lease that is forgotten keeps memory for too long, and can do no other harm.

PROTOCOL.md, section *Memory that is used again*, argues when a lease may end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from bsplib.backends.shm.heap import ALIGNMENT, Heap
from bsplib.backends.shm.segment import Segment
from bsplib.core.entries import Block
from bsplib.core.meeting import LARGE

if TYPE_CHECKING:
    from bsplib.backends.shm.membership import Membership
    from bsplib.backends.shm.oblivious import Oblivious

_FIRST_CHUNK = 1 << 13
_MOST_DOUBLED = 1 << 20
"""Each chunk is twice as large as the largest one before, up to this: what follows a large payload
is often small."""
_SPARE = 8
"""A payload that is longer than the one before it by less than its half gets a chunk that is longer
by this part: their lengths differ by chance, and the next one may be longer still. New memory costs
the writer and the reader as much as to move the payload twice."""
_MOST_UNUSED = 1 << 16
"""Bytes of chunks that a cleared staging buffer may keep although few of them were used."""
_NOT_YET = 1 << 62


class StagingBuffer:
    """Memory of one superstep, taken from one chunk of the heap after the other.

    It grows by whole chunks during the superstep, since laid out data must not move. When it
    is cleared it keeps them: their pages are mapped, and perhaps still in the cache.

    Args:
        heap: of this process.
    """

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._chunks: list[tuple[int, int]] = []  # (start, bytes)
        self._entered = 0  # chunks that were entered since the last clear, the first ones
        self._used = 0  # bytes of those that were left
        self._begin = self._next = self._stop = 0  # of the chunk that was entered last
        self.has_messages = False
        """It has messages, which are read after the end of the superstep, too."""

    def reserve(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` may be written."""
        start = self._next
        if start + nbytes > self._stop:
            start = self._enter_chunk(nbytes)
        self._next = start + -(-nbytes // ALIGNMENT) * ALIGNMENT
        return start

    def clear(self) -> None:
        """Empty the staging buffer, when no process reads it any more.

        It gives its chunks back where most of their bytes were not used in this superstep.
        """
        self.has_messages = False
        used = self._used + self._next - self._begin
        if self.kept_bytes() > 4 * used + _MOST_UNUSED:
            self.discard()
        self._entered = self._used = self._begin = self._next = self._stop = 0

    def kept_bytes(self) -> int:
        """Return the bytes of all chunks."""
        return sum(size for _, size in self._chunks)

    def discard(self) -> None:
        """Give all memory back to the heap."""
        for start, _ in self._chunks:
            self._heap.release(start)
        self._chunks.clear()
        self._entered = self._used = self._begin = self._next = self._stop = 0

    def _enter_chunk(self, nbytes: int) -> int:
        """Return the beginning of the next chunk that has room for ``nbytes`` bytes.

        Those before it that are too short stay behind it, for what follows in this superstep.
        """
        begin, count = self._entered, len(self._chunks)
        number, left_out = begin, 0
        while number < count and self._chunks[number][1] < nbytes:
            left_out = max(left_out, self._chunks[number][1])
            number += 1
        if number < count:
            chunk = self._chunks.pop(number)
        else:
            chunk = self._new_chunk(nbytes + (nbytes // _SPARE if 2 * left_out >= nbytes else 0))
        self._chunks.insert(begin, chunk)
        self._entered = begin + 1
        self._used += self._next - self._begin
        start, size = chunk
        self._begin, self._stop = start, start + size
        return start

    def _new_chunk(self, nbytes: int) -> tuple[int, int]:
        longest = max((size for _, size in self._chunks), default=0)
        size = max(nbytes, min(2 * longest, _MOST_DOUBLED), _FIRST_CHUNK)
        size = -(-size // ALIGNMENT) * ALIGNMENT
        start, _ = self._heap.allocate(size)
        return start, size


class ProcessMemory:
    """The memory of one process that others may read: its heap, and staging buffers made of it.

    Args:
        segment: the memory that the run shares.
        heap: of the process.
    """

    def __init__(self, segment: Segment, heap: Heap) -> None:
        self.segment = segment
        self.heap = heap
        self._free: list[StagingBuffer] = []

    def take(self) -> StagingBuffer:
        """Return an empty staging buffer."""
        return self._free.pop() if self._free else StagingBuffer(self.heap)

    def give(self, staging_buffer: StagingBuffer) -> None:
        """Take back a staging buffer that no process reads any more."""
        staging_buffer.clear()
        self._free.append(staging_buffer)

    def begin_anew(self) -> None:
        """Release all of it: a run has ended in all processes."""
        self.heap.clear()
        self._free.clear()


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
        memory: of this process.
        members: processes of the group, with the group's meeting, which is told while a staging
            buffer is open.
        oblivious: oblivious supersteps of the group.
    """

    def __init__(self, memory: ProcessMemory, members: Membership, oblivious: Oblivious) -> None:
        self.leases: list[Lease] = []
        """The leases of earlier supersteps. The meeting has the list, too: it calls back while
        there are any."""
        self._open: StagingBuffer | None = None
        self._send_buffers: list[int] = []
        self._memory = memory
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
        if self._open is None and nbytes >= LARGE:
            self._end_delivered(nbytes)
        staging_buffer = self._staging_buffer()
        staging_buffer.has_messages = staging_buffer.has_messages or message
        return staging_buffer.reserve(nbytes)

    def _staging_buffer(self) -> StagingBuffer:
        """Return the staging buffer of this superstep."""
        if self._open is None:
            self._open = self._memory.take()
            # However the superstep ends, the core has to tell that it does.
            self._meeting.has_staged = True
        return self._open

    def block_of_send_buffer(self, nbytes: int) -> Block:
        """Return memory for a send buffer: its lease ends when all have left the group."""
        byte, _ = self._memory.heap.allocate(nbytes)
        self._send_buffers.append(byte)
        return byte, self._memory.segment.address_of(byte), nbytes

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
        if self._open is None:
            return
        if len(self.leases) > 1:
            consumed = self._oblivious.least_consumed()
            self._end(lambda lease: lease.oblivious <= consumed)
        superstep = self._meeting.superstep
        synced = self._oblivious.latest != superstep
        last_read = superstep if synced else _NOT_YET
        self.leases.append(Lease(last_read, self._oblivious.collector.ended + synced, self._open))
        self._close_staging_buffer()

    def all_have_met(self) -> None:
        """End the leases of earlier supersteps: all processes have come to this sync."""
        superstep = self._meeting.superstep
        still = []
        for lease in self.leases:  # one pass, since this is part of every long superstep
            if lease.last_read < superstep:
                self._memory.give(lease.staging_buffer)
            elif lease.last_read == _NOT_YET:
                still.append(lease._replace(last_read=superstep))
            else:
                still.append(lease)
        self.leases[:] = still

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
        for byte in self._send_buffers:
            self._memory.heap.release(byte)
        self._send_buffers.clear()

    def begin_anew(self) -> None:
        """Forget all leases: a run has ended in all processes, and the heap has been cleared."""
        self.leases.clear()
        self._send_buffers.clear()
        self._close_staging_buffer()

    def _close_staging_buffer(self) -> None:
        self._open = None
        self._meeting.has_staged = False

    def _end_delivered(self, nbytes: int) -> None:
        """End the lease of the last sync, if all processes have delivered that superstep.

        Its memory is still in the cache, since it has just been read, and a large payload is
        copied faster into memory in the cache. Other memory may even be new: clearing its pages
        takes longer than the copy. To wait for the others takes less time.
        """
        last = self._meeting.superstep - 1

        def is_delivered(lease: Lease) -> bool:
            return lease.last_read == last and not lease.staging_buffer.has_messages

        waits_for_delivery = self._meeting.waits_for_delivery
        if any(map(is_delivered, self.leases)) and all(
            waits_for_delivery(pid, nbytes) for pid in self._members.others
        ):
            self._end(is_delivered)

    def _end(self, is_over: Callable[[Lease], bool]) -> None:
        still = []
        for lease in self.leases:
            if is_over(lease):
                self._memory.give(lease.staging_buffer)
            else:
                still.append(lease)
        self.leases[:] = still
