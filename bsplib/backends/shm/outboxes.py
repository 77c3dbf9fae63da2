"""The outboxes of one process in one group: that of this superstep, and earlier ones.

PROTOCOL.md, section *Memory that is used again*, argues when no process reads an outbox.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.outbox import Outbox
from bsplib.core.box import Block
from bsplib.core.meeting import LARGE

_NOT_YET = 1 << 62


class _Laid(NamedTuple):
    """An outbox that others may still read."""

    last_read: int  # last superstep in which it may be read
    oblivious: int  # it is free, too, as soon as all have consumed so many posts
    outbox: Outbox


class Outboxes:
    """Memory for what others fetch at the end of a superstep.

    Args:
        context: context of this process.
        members: processes of the group.
        oblivious: oblivious supersteps of the group.
    """

    def __init__(
        self,
        context: ProcessContext,
        members: Membership,
        oblivious: Oblivious,
    ) -> None:
        self.current: Outbox | None = None
        """The outbox of this superstep; None while it is empty."""
        self.laid: list[_Laid] = []
        self._of_box: list[int] = []
        self._context = context
        self._members = members
        self._oblivious = oblivious

    def room(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` of this superstep may be written."""
        if self.current is None:
            if nbytes >= LARGE:
                self._free_delivered(nbytes)
            self.current = self._context.take_outbox()
        return self.current.room(nbytes)

    def block_of_box(self, nbytes: int) -> Block:
        """Return memory for the box of the group, which is free when all have left it."""
        byte, _ = self._context.heap.allocate(nbytes)
        self._of_box.append(byte)
        return byte, self._context.segment.address_of(byte), nbytes

    def keep_messages(self) -> None:
        """Note that the outbox of this superstep has messages, which are read after its end."""
        assert self.current is not None  # the message is in it
        self.current.has_messages = True

    def put_aside(self, outbox: Outbox) -> None:
        """End the superstep: keep its outbox until all have read it.

        An outbox of a sync has been read when all come to the next sync. So has that of an
        oblsync, which late readers may look at until then; it is free earlier if all have
        consumed the post.

        Consumed outboxes are freed before that of this superstep is added. It may have
        messages that this process has sent to itself: they are in its queue now, and are read
        until it ends the next superstep. Those of earlier supersteps are no longer in the queue.
        """
        if len(self.laid) > 1:
            consumed = self._oblivious.least_consumed()
            self._free(lambda laid: laid.oblivious <= consumed)
        superstep = self._members.superstep
        synced = self._oblivious.latest != superstep
        last_read = superstep if synced else _NOT_YET
        self.laid.append(_Laid(last_read, self._oblivious.ended + synced, outbox))
        self.current = None

    def reclaim(self) -> None:
        """Free outboxes of earlier supersteps: all processes have come to this sync."""
        superstep = self._members.superstep
        self._free(lambda laid: laid.last_read < superstep)
        self.laid[:] = [
            laid._replace(last_read=superstep) if laid.last_read == _NOT_YET else laid
            for laid in self.laid
        ]

    def begin_anew(self) -> None:
        """Forget all outboxes and the memory of the box: the heap has been cleared."""
        self.current = None
        self.laid.clear()
        self._of_box.clear()

    def free_current(self) -> None:
        """Free the outbox of a superstep that will not end."""
        if self.current is not None:
            self._context.give_outbox(self.current)
            self.current = None

    def free_all(self) -> None:
        """Free all outboxes: every process has left the group."""
        self._free(lambda _: True)
        for byte in self._of_box:
            self._context.heap.release(byte)
        self._of_box.clear()

    def _free_delivered(self, nbytes: int) -> None:
        """Free the outbox of the last sync, if all processes have delivered that superstep.

        It is still in the cache, since it has just been read, and a large payload is copied
        faster into memory in the cache. Other memory may even be new: clearing its pages takes
        longer than the copy. To wait for the others takes less time.
        """
        last = self._members.superstep - 1

        def is_delivered(laid: _Laid) -> bool:
            return laid.last_read == last and not laid.outbox.has_messages

        settles = self._members.meeting.settles
        if any(map(is_delivered, self.laid)) and all(
            settles(pid, nbytes) for pid in self._members.others
        ):
            self._free(is_delivered)

    def _free(self, is_read: Callable[[_Laid], bool]) -> None:
        still = []
        for laid in self.laid:
            if is_read(laid):
                self._context.give_outbox(laid.outbox)
            else:
                still.append(laid)
        self.laid[:] = still
