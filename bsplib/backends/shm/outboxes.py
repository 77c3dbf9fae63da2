"""The outboxes of one process in one group: that of this superstep, and those still read.

PROTOCOL.md, section *Memory that is used again*, says when nobody reads an outbox any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.outbox import Outbox

_NOT_YET = 1 << 62
_LARGE = 1 << 18
"""Bytes of a payload: larger than a core's typical share of the cache."""


class _Laid(NamedTuple):
    """An outbox that others may still read."""

    last_read: int  # superstep by whose sync all have read it
    oblivious: int  # posts that all have to consume, if that comes first
    outbox: Outbox


class Outboxes:
    """Room for what others fetch at the end of a superstep.

    Args:
        context: of this process.
        members: of the group.
        oblivious: its oblivious supersteps.
        is_settled: see :meth:`Port.is_settled`.
    """

    def __init__(
        self,
        context: ProcessContext,
        members: Membership,
        oblivious: Oblivious,
        is_settled: Callable[[int], bool],
    ) -> None:
        self.current: Outbox | None = None
        """That of this superstep, once something is in it."""
        self.laid: list[_Laid] = []
        self._context = context
        self._members = members
        self._oblivious = oblivious
        self._is_settled = is_settled

    def room(self, nbytes: int) -> int:
        """Return the byte at which ``nbytes`` of this superstep may be written."""
        if self.current is None:
            if nbytes >= _LARGE:
                self._free_delivered(nbytes)
            self.current = self._context.take_outbox()
        return self.current.room(nbytes)

    def keep_messages(self) -> None:
        """Note that something of this superstep is read after its end, too."""
        assert self.current is not None  # the message is in it
        self.current.has_messages = True

    def put_aside(self, outbox: Outbox) -> None:
        """End the superstep: keep what was laid out until all have read it.

        What was laid out at a sync has been read when all come to the next one. A post
        may be looked at until then, by those who did not wait for it.

        What others have consumed is freed before this superstep's outbox is added: the
        messages in it that this process sent to itself are in its queue now, and are
        read until it ends the next superstep. Those of the supersteps before are gone.
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
        """Free what was laid out in earlier supersteps: everybody has come to this sync."""
        superstep = self._members.superstep
        self._free(lambda laid: laid.last_read < superstep)
        self.laid[:] = [
            laid._replace(last_read=superstep) if laid.last_read == _NOT_YET else laid
            for laid in self.laid
        ]

    def free_current(self) -> None:
        """Free what was laid out in a superstep that will not end."""
        if self.current is not None:
            self._context.give_outbox(self.current)
            self.current = None

    def free_all(self) -> None:
        """Free all that was laid out: everybody has left the group."""
        self._free(lambda _: True)

    def _free_delivered(self, nbytes: int) -> None:
        """Free what was laid out at the last sync, if it has been delivered everywhere.

        A large payload is copied faster into memory that is still in the cache, since it
        has just been read: that is worth to ask, and to wait a moment.
        """
        last = self._members.superstep - 1

        def is_delivered(laid: _Laid) -> bool:
            return laid.last_read == last and not laid.outbox.has_messages

        patience = range(nbytes // _LARGE)
        if any(map(is_delivered, self.laid)) and all(
            any(self._is_settled(pid) for _ in patience) for pid in self._members.others
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
