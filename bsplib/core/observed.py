"""An engine that tells observers of its events: calls, meetings, and deliveries.

It takes the place of an :class:`~bsplib.core.engine.Engine` where a run is recorded or checked, or
its time is virtual. A run without all of that has the engine as it is, which does not ask whether
anybody observes it.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.clock import Clock
from bsplib.core.engine import Engine
from bsplib.core.log import Traffic
from bsplib.sync_kinds import Kind

if not cython.compiled:
    from bsplib.core.atomics import now_ns, prepare, this_thread
prepare()

_SYNC, _OBLSYNC = Kind.SYNC, Kind.OBLSYNC


class EngineObserver:
    """Is told what happens to an engine; this one does nothing."""

    def meet(self, engine: ObservedEngine) -> int:  # noqa: ARG002
        """Take notice that the program ends a superstep.

        Returns:
            The time of arrival in ns, which the others are told; 0 for none.
        """
        return 0

    def arrived(self, engine: ObservedEngine) -> None:
        """Take notice that the transfers of all processes are here, and none is executed yet."""

    def delivered(self, engine: ObservedEngine, kind: int, superstep: int) -> int:  # noqa: ARG002
        """Take notice that a superstep has ended.

        Args:
            engine: that has ended it.
            kind: the way in which it ended.
            superstep: its number.

        Returns:
            0; see :mod:`bsplib.core.engine`.
        """
        return 0

    def leave(self, engine: ObservedEngine) -> None:
        """Take notice that the program leaves the group, a sub-group."""

    def left(self, engine: ObservedEngine) -> None:
        """Take notice that it has been left since."""


class ObservedEngine(Engine):
    """An engine that measures the time of calls, counts what they transfer, and is observed."""

    def observe(
        self,
        clock: Clock | None,
        traffic: Traffic | None,
        recorder: EngineObserver | None,
        checker: EngineObserver | None,
    ) -> None:
        """Begin to observe, before the first call.

        Args:
            clock: of this process where its time is virtual; it stands still in calls.
            traffic: counts what is transferred; None where nobody asks for it.
            recorder: is told first that the program ends a superstep, and last that the superstep
                has ended, so that it measures what the checker does, too.
            checker: is told of the same events.
        """
        self.clock: Any = clock
        self._traffic: Any = traffic
        self._recorder: Any = recorder
        self._checker: Any = checker
        self.comm_ns = 0
        """Time spent inside calls in this superstep; it stays 0 where time is virtual."""

    # -- the time of calls --------------------------------------------------------------------

    def begin_call(self) -> int:
        """Begin a call, or a part of one; return what :meth:`end_call` needs."""
        return _begin(self)

    def end_call(self, began: int) -> int:
        """End a call, or a part of one."""
        return _end(self, began)

    def put(self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any) -> int:
        """See :meth:`Engine.put`."""
        began = _begin(self)
        try:
            return Engine.put(self, bsp, pid, src, dst, offset, at)
        finally:
            _end(self, began)

    def hpput(self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any) -> int:
        """See :meth:`Engine.hpput`."""
        began = _begin(self)
        try:
            return Engine.hpput(self, bsp, pid, src, dst, offset, at)
        finally:
            _end(self, began)

    def get(self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any, count: Any) -> Any:
        """See :meth:`Engine.get`."""
        began, before = _begin(self), len(self.gets)
        try:
            return Engine.get(self, bsp, pid, src, dst, offset, at, count)
        finally:
            self._count_gets(before)
            _end(self, began)

    def hpget(
        self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any, count: Any
    ) -> Any:
        """See :meth:`Engine.hpget`."""
        began, before = _begin(self), len(self.gets)
        try:
            return Engine.hpget(self, bsp, pid, src, dst, offset, at, count)
        finally:
            self._count_gets(before)
            _end(self, began)

    def put_at(self, bsp: Any, pids: Any, indices: Any, values: Any, dst: Any, op: Any) -> int:
        """See :meth:`Engine.put_at`."""
        began = _begin(self)
        try:
            return Engine.put_at(self, bsp, pids, indices, values, dst, op)
        finally:
            _end(self, began)

    def get_at(self, bsp: Any, pids: Any, indices: Any, src: Any, out: Any) -> Any:
        """See :meth:`Engine.get_at`."""
        began, before = _begin(self), len(self.gets)
        try:
            return Engine.get_at(self, bsp, pids, indices, src, out)
        finally:
            self._count_gets(before)
            _end(self, began)

    def send(self, bsp: Any, pid: Any, payload: Any, tag: Any) -> int:
        """See :meth:`Engine.send`."""
        began = _begin(self)
        try:
            return Engine.send(self, bsp, pid, payload, tag)
        finally:
            _end(self, began)

    def messages(self, bsp: Any) -> Any:
        """See :meth:`Engine.messages`."""
        began = _begin(self)
        try:
            return Engine.messages(self, bsp)
        finally:
            _end(self, began)

    def move(self, bsp: Any) -> Any:
        """See :meth:`Engine.move`."""
        began = _begin(self)
        try:
            return Engine.move(self, bsp)
        finally:
            _end(self, began)

    def hpmove(self, bsp: Any) -> Any:
        """See :meth:`Engine.hpmove`."""
        began = _begin(self)
        try:
            return Engine.hpmove(self, bsp)
        finally:
            _end(self, began)

    # -- what calls transfer --------------------------------------------------------------------

    def _count_gets(self, before: int) -> None:
        """Count the gets of a call.

        Args:
            before: how many gets there were before it.
        """
        if self._traffic is not None:
            for number in range(before, len(self.gets)):
                get = self.gets[number]  # of it the bytes, and the other process
                if get[1] == 0 and get[0].by_index:  # asked for, see Engine.add_ask
                    self._traffic.got_by_index(get[3], get[2])
                else:
                    self._traffic.got(get[3], get[2])

    def _reserve(self, to: int, slot: int, first: int, nbytes: int) -> int:
        """See :meth:`Engine._reserve`."""
        at = Engine._reserve(self, to, slot, first, nbytes)
        _count(self, to, nbytes)
        return at

    def _reserve_strided(self, to: int, slot: int, size: int, nbytes: int) -> int:
        """See :meth:`Engine._reserve_strided`."""
        at = Engine._reserve_strided(self, to, slot, size, nbytes)
        _count(self, to, nbytes)
        return at

    def add_staged(self, to: int, slot: int, first: int, staged: int, nbytes: int) -> None:
        """See :meth:`Engine.add_staged`."""
        Engine.add_staged(self, to, slot, first, staged, nbytes)
        _count(self, to, nbytes)

    def message_room(self, to: int, head: bytes, nbytes: int) -> int:
        """See :meth:`Engine.message_room`."""
        at = Engine.message_room(self, to, head, nbytes)
        _count(self, to, nbytes)
        return at

    def add_message(self, to: int, head: bytes, content: Any, nbytes: int) -> None:
        """See :meth:`Engine.add_message`."""
        Engine.add_message(self, to, head, content, nbytes)
        if type(content) is not bytes:  # or message_room has counted it
            _count(self, to, nbytes)

    def count_early(self, to: int, nbytes: int) -> int:
        """See :meth:`Engine.count_early`."""
        _count(self, to, nbytes)
        return Engine.count_early(self, to, nbytes)

    def note_put(self, to: int, nbytes: int) -> None:
        """See :meth:`Engine.note_put`."""
        _count(self, to, nbytes)

    def note_put_by_index(self, to: int, nbytes: int) -> None:
        """See :meth:`Engine.note_put_by_index`."""
        if self._traffic is not None:
            self._traffic.sent_by_index(to, nbytes)

    def note_early_get(self, sender: int, nbytes: int) -> None:
        """See :meth:`Engine.note_early_get`."""
        Engine.note_early_get(self, sender, nbytes)
        if self._traffic is not None:
            self._traffic.got(sender, nbytes)

    # -- the end of a superstep ---------------------------------------------------------------

    def sync(self, bsp: Any) -> int:
        """See :meth:`Engine.sync`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "sync")
        clock = self.clock
        if clock is None:
            return self.end(bsp, _SYNC, 0)
        clock.enter()
        clock.settle()  # others wait for this process
        try:
            return self.end(bsp, _SYNC, 0)
        finally:
            clock.leave()

    def oblsync(self, bsp: Any, n: Any) -> int:
        """See :meth:`Engine.oblsync`."""
        if this_thread() != self.quick:
            self.checks.check_usable(bsp, "oblsync")
        clock = self.clock
        if clock is not None:
            clock.enter()
            clock.settle()
        try:
            number = self.checks.check_oblsync(bsp, n)
            superstep = self.superstep
            stamp = self._arrive()
            self.checks.oblsync(bsp, number, stamp)
            self._delivered(_OBLSYNC, superstep)
        finally:
            if clock is not None:
                clock.leave()
        return 0

    def end(self, bsp: Any, kind: int, stamp: int) -> int:
        """See :meth:`Engine.end`."""
        superstep = self.superstep
        Engine.end(self, bsp, kind, stamp | self._arrive())
        return self._delivered(kind, superstep)

    def _arrive(self) -> int:
        """Tell observers that the program ends a superstep; return the time of arrival."""
        stamp = 0
        if self._recorder is not None:
            stamp = self._recorder.meet(self)
        if self._checker is not None:
            self._checker.meet(self)
        return stamp

    def _distribute(self, held: int) -> int:
        """See :meth:`Engine._distribute`."""
        if self._checker is not None:
            self._checker.arrived(self)
        return Engine._distribute(self, held)

    def _delivered(self, kind: int, superstep: int) -> int:
        """Tell observers that a superstep has ended."""
        if self._checker is not None:
            self._checker.delivered(self, kind, superstep)
        if self._recorder is not None:
            self._recorder.delivered(self, kind, superstep)
        return 0

    def leave(self) -> None:
        """See :meth:`Engine.leave`."""
        if self._recorder is not None:
            self._recorder.leave(self)

    def left(self) -> None:
        """See :meth:`Engine.left`."""
        if self._recorder is not None:
            self._recorder.left(self)


# Functions of the module, which a compiler can insert where they are called.


def _begin(engine: ObservedEngine) -> int:
    """Stop the virtual clock, or read the real one; return what :func:`_end` needs."""
    if engine.clock is not None:
        engine.clock.enter()
        return 0
    return now_ns()


def _end(engine: ObservedEngine, began: int) -> int:
    """Let the virtual clock run again, or add the time of the call to communication."""
    if engine.clock is not None:
        engine.clock.leave()
    else:
        engine.comm_ns += now_ns() - began
    return 0


def _count(engine: ObservedEngine, to: int, nbytes: int) -> int:
    """Count a put or a message."""
    traffic = engine._traffic
    return 0 if traffic is None else traffic.sent(to, nbytes)
