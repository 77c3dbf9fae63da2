"""The engine of a group: collects its transfers, and delivers them at the end of a superstep.

A group has one engine. What it does stands in three files:

============== ==================================================================================
EngineState    has all attributes, and names what is left to the primitives
Collecting     makes entries of puts, gets and messages at their calls
Delivering     delivers at the end of a superstep
Engine         takes the calls that :mod:`bsplib.core.calls` passes on, and ends a superstep
============== ==================================================================================

Every transfer becomes an entry in a :class:`~bsplib.core.send_buffer.SendBuffer`. Where it is
simple, such as contiguous values of the right dtype for an array that has been named before, the
engine makes the entry. It declines everything else: then :mod:`bsplib.primitives` checks the
call, raises all errors, and makes the entry.

A superstep ends by a :class:`~bsplib.core.meeting.Meeting`, after which each process reads the
entries that others have for it, and delivers them in one order: gets, then puts and messages by
source and program. A get whose source this process can reach is read there; any other one is a
entry, too, which asks its receiver for the values, and a second meeting brings the answers.

A recorder, and others that want to know what happens, observe the engine:
:mod:`bsplib.core.observed`.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.delivering import Delivering
from bsplib.core.reading import Reading
from bsplib.errors import BspError
from bsplib.sync_kinds import HAS_ASKS, HAS_GET, Kind

if not cython.compiled:
    from bsplib.core.atomics import prepare, this_thread
prepare()

_SYNC = Kind.SYNC


class Engine(Delivering):
    """Executes the calls of a group; ``bsp`` is the group, for what is declined."""

    # -- calls --------------------------------------------------------------------------------

    def put(self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any) -> int:
        """See :meth:`Calls.put`."""
        try:
            place = dst if at is None else self._view_at(dst, at) if offset is None else None
            if place is None or not self._put_quickly(pid, src, place, offset):
                self.checks.put(bsp, "put", pid, src, dst, offset, at)
        except BspError as error:
            self.checks.fail(bsp, error)
        return 0

    def hpput(self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any) -> int:
        """See :meth:`Calls.hpput`."""
        try:
            place = dst if at is None else self._view_at(dst, at) if offset is None else None
            if place is None or not self._hpput_quickly(pid, src, place, offset):
                self.checks.put(bsp, "hpput", pid, src, dst, offset, at)
        except BspError as error:
            self.checks.fail(bsp, error)
        return 0

    def get(self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any, count: Any) -> Any:
        """See :meth:`Calls.get`."""
        try:
            if count is None:
                place = src if at is None else self._view_at(src, at) if offset is None else None
                into = self._get_into(pid, place, dst, offset, at_any_time=False)
                if into is not None:
                    return into
            return self.checks.get(bsp, "get", pid, src, dst, offset, at, count)
        except BspError as error:
            self.checks.fail(bsp, error)

    def hpget(
        self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any, count: Any
    ) -> Any:
        """See :meth:`Calls.hpget`."""
        try:
            if at is None and count is None and self._hpgets_at_sync():
                into = self._get_into(pid, src, dst, offset, at_any_time=True)
                if into is not None:
                    return into
            return self.checks.get(bsp, "hpget", pid, src, dst, offset, at, count)
        except BspError as error:
            self.checks.fail(bsp, error)

    def put_at(self, bsp: Any, pids: Any, indices: Any, values: Any, dst: Any, op: Any) -> int:
        """See :meth:`Calls.put_at`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "put_at")
        try:
            self.checks.put_at(bsp, pids, indices, values, dst, op)
        except BspError as error:
            self.checks.fail(bsp, error)
        return 0

    def get_at(self, bsp: Any, pids: Any, indices: Any, src: Any, out: Any) -> Any:
        """See :meth:`Calls.get_at`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "get_at")
        try:
            return self.checks.get_at(bsp, pids, indices, src, out)
        except BspError as error:
            self.checks.fail(bsp, error)

    def send(self, bsp: Any, pid: Any, payload: Any, tag: Any) -> int:
        """See :meth:`Calls.send`."""
        try:
            if not self.send_quickly(pid, payload, tag):
                self.checks.send(bsp, pid, payload, tag)
        except BspError as error:
            self.checks.fail(bsp, error)
        return 0

    def messages(self, bsp: Any) -> Any:
        """See :meth:`Calls.messages`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "messages")
        return Reading(self, bsp)

    def move(self, bsp: Any) -> Any:
        """See :meth:`Calls.move`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "move")
        return self.checks.move(bsp)

    def hpmove(self, bsp: Any) -> Any:
        """See :meth:`Calls.hpmove`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "hpmove")
        return self.checks.hpmove(bsp)

    def sync(self, bsp: Any) -> int:
        """See :meth:`Calls.sync`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "sync")
        return self.end(bsp, _SYNC, 0)

    def oblsync(self, bsp: Any, n: Any) -> int:
        """See :meth:`Calls.oblsync`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "oblsync")
        self.checks.oblsync(bsp, self.checks.check_oblsync(bsp, n), 0)
        return 0

    # -- the end of a superstep ---------------------------------------------------------------

    def end(self, bsp: Any, kind: int, stamp: int) -> int:
        """End the superstep together with all processes of the group, whatever it has.

        Args:
            bsp: the group.
            kind: the way in which it ends.
            stamp: time of arrival in ns; 0 where nobody asks for it.
        """
        meeting, send_buffer = self.meeting, self.send_buffer
        try:
            flags, head = kind, 0
            if self.changes or self.unresolved:
                flags |= self.rare.announce(self)
            if self.gets:
                flags |= HAS_GET | HAS_ASKS if self.asks else HAS_GET
            if send_buffer.holds_inline or send_buffer.holds_more:
                head = send_buffer.complete(meeting.inline_address())
            nothing_new = meeting.meet(flags, head, stamp)
            if head:
                send_buffer.turn()
            if self.queue.messages:
                self.queue.clear()
            if not nothing_new or flags & HAS_GET:
                self._deliver(flags)
            if meeting.has_staged:
                self.rare.end_port()
            else:
                meeting.end_superstep()
        except BspError as error:
            self.checks.fail_for_good(bsp, error)
        return self.next_superstep()
