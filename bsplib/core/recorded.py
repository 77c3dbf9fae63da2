"""The recorder of a group's supersteps, as an observer of its engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.log import Log, Traffic
from bsplib.core.observed import EngineObserver, ObservedEngine
from bsplib.core.stack_keys import StackKeys
from bsplib.sync_kinds import Kind

if not cython.compiled:
    from bsplib.core.atomics import now_ns, prepare
prepare()

_SYNC, _END = Kind.SYNC, Kind.END


class RecordingObserver(EngineObserver):
    """Writes a record of each superstep into a log.

    Times are taken before and after the engine does its work; a record is written after the
    sync, before the next superstep begins.

    Args:
        log: of the group.
        above: log of the group of which this one is a part; None for the whole run.
        traffic: what the engine counts.
        stack_keys: numbers the call stacks of syncs.
        stack_of_end: returns the number of a stack for the end of ``main``.
        overflow: is called where a virtual time has more than 63 bits.
    """

    def __init__(
        self,
        log: Log,
        above: Log | None,
        traffic: Traffic,
        stack_keys: StackKeys,
        stack_of_end: Callable[[], int],
        overflow: Callable[[], None],
    ) -> None:
        self.log = log
        self._above = above
        self.traffic = traffic
        self._stack_keys = stack_keys
        self._stack_of_end = stack_of_end
        self._overflow = overflow
        self._arrive = 0

    def meet(self, engine: ObservedEngine) -> int:
        """See :meth:`EngineObserver.meet`."""
        self.log.arrive(_time_of(engine), engine.comm_ns)
        self._arrive = self.log.arrived_ns
        return self._arrive

    def delivered(self, engine: ObservedEngine, kind: int, superstep: int) -> int:
        """See :meth:`EngineObserver.delivered`."""
        end = released = self._arrive
        if kind == _END:
            stack = self._stack_of_end()
        else:
            end = _time_of(engine)
            released = engine.meeting.released
            stack = self._stack_keys.number(0)
        released = min(released, end)
        if kind == _SYNC:
            return self._write_record(engine, superstep, kind, stack, released, end)
        return self._write_or_report_overflow(engine, superstep, kind, stack, released, end)

    def leave(self, engine: ObservedEngine) -> None:
        """See :meth:`EngineObserver.leave`."""
        self.meet(engine)

    def left(self, engine: ObservedEngine) -> None:
        """See :meth:`EngineObserver.left`."""
        stack = self._stack_keys.number(0)
        self._write_or_report_overflow(
            engine, engine.superstep, _END, stack, self._arrive, self._arrive
        )
        if self._above is not None:
            self.log.leave(self._above, _time_of(engine))

    def _write_record(
        self,
        engine: ObservedEngine,
        superstep: int,
        kind: int,
        stack: int,
        released: int,
        end: int,
    ) -> int:
        """Write a record, and begin the next superstep."""
        log: Any = self.log
        self.traffic.write(log)
        log.add_superstep(superstep, kind, stack, self._arrive, released, end, engine.comm_ns)
        engine.comm_ns = 0
        log.rest(_time_of(engine))
        log.begin(_time_of(engine))
        return 0

    def _write_or_report_overflow(
        self,
        engine: ObservedEngine,
        superstep: int,
        kind: int,
        stack: int,
        released: int,
        end: int,
    ) -> int:
        """Do as :meth:`_write_record`, and report a virtual time that is too great for a record."""
        try:
            return self._write_record(engine, superstep, kind, stack, released, end)
        except OverflowError:
            self._overflow()
            return 0


def _time_of(engine: ObservedEngine) -> int:
    """Return the time of this process, which may be virtual."""
    return now_ns() if engine.clock is None else engine.clock.now()
