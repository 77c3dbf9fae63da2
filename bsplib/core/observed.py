"""An engine that tells observers of its events, and the observer that records supersteps.

An :class:`ObservedEngine` takes the place of an :class:`~bsplib.core.engine.Engine` where a run is
recorded or checked, or its time is virtual. A run without all of that has the engine as it is,
which does not ask whether anybody observes it.

A :class:`RecordingObserver` writes each superstep into a :class:`~bsplib.core.log.Log`, with the
number of the call stack of its sync, which is found anew at every sync. The **key** of a stack is
the exact sequence of its frames, each by its code object and the instruction at which it stands. It
contains every interpreted function: the compiled core has no frames. Which of them are the
program's is decided once for each key, by a function that is handed in.
"""

from __future__ import annotations

import sys
from array import array as numbers
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.clock import Clock
from bsplib.core.engine import Engine
from bsplib.core.log import Log
from bsplib.directions import Direction
from bsplib.sync_kinds import Kind

if not cython.compiled:
    from bsplib.core.atomics import now_ns, prepare

    RECENT = 0  # there is no faster way than the dictionary

    def key_of(keys: StackKeys, depth: int) -> Any:
        """Return the key of the stack from the frame at this depth; 0 is this function's own."""
        frame: FrameType | None = sys._getframe(depth)
        key: list[int] = []
        outermost = keys._outermost
        while frame is not None and (code := frame.f_code) is not outermost:
            key += id(code), frame.f_lasti
            frame = frame.f_back
        return tuple(key)

    def known_number(keys: StackKeys, depth: int) -> int:
        """Return the number of the stack from the frame at this depth, or -1 if it is new."""
        return keys._numbers.get(key_of(keys, depth + 1), -1)


prepare()

_SYNC, _END = Kind.SYNC, Kind.END
_DIRECTIONS = len(Direction)
_OWN = 0 if cython.compiled else 1
"""Frames of each function that looks for a stack."""


class StackKeys:
    """The numbers of the call stacks of one process.

    Args:
        outermost: code of the function above which stacks begin.
        define: returns the number of a stack whose key is new. It is given the innermost frame
            of the stack.
    """

    def __init__(self, outermost: CodeType, define: Callable[[FrameType], int]) -> None:
        self._outermost = outermost
        self._define = define
        self._numbers: dict[Any, int] = {}
        self._codes: dict[int, CodeType] = {}  # kept alive: their addresses are part of the keys
        self._recent: list[bytes | None] = [None] * RECENT

    def number(self, depth: int = 0) -> int:
        """Return the number of the caller's stack.

        Args:
            depth: how many interpreted functions are left out, counted from the caller.
        """
        number = known_number(self, depth + 2 * _OWN)
        return self._number_new(depth) if number < 0 else number

    def _number_new(self, depth: int) -> int:
        key = key_of(self, depth + 3 * _OWN)
        innermost = sys._getframe(depth + 2 * _OWN)
        frame: FrameType | None = innermost
        while frame is not None and frame.f_code is not self._outermost:
            self._codes[id(frame.f_code)] = frame.f_code
            frame = frame.f_back
        number = self._numbers[key] = self._define(innermost)
        return number


class Traffic:
    """Counts the bytes and the transfers of one process in a superstep, by partner.

    Args:
        nprocs: number of processes of the group.
    """

    def __init__(self, nprocs: int) -> None:
        self._nprocs = nprocs
        self._is_empty = True
        self._directions = numbers("Q", bytes(8 * nprocs))
        """By partner: a bit for each direction in which something was transferred."""
        self._bytes = numbers("Q", bytes(8 * nprocs * _DIRECTIONS))
        """By partner and direction, as the same below."""
        self._count = numbers("Q", bytes(8 * nprocs * _DIRECTIONS))

    def add(self, direction: int, partner: int, nbytes: int, count: int) -> int:
        """Count transfers.

        Args:
            direction: a ``Direction``.
            partner: the other process.
            nbytes: of the payload.
            count: how many transfers.
        """
        place = _DIRECTIONS * partner + direction
        self._is_empty = False
        self._directions[partner] |= 1 << direction
        self._bytes[place] += nbytes
        self._count[place] += count
        return 0

    def write(self, log: Log) -> int:
        """Write the sums into a log, and begin to count anew."""
        if self._is_empty:
            return 0
        self._is_empty = True
        for pid in range(self._nprocs):
            directions = self._directions[pid]
            first = place = _DIRECTIONS * pid
            while directions:
                if directions & 1:
                    log.add_traffic(pid, place - first, self._bytes[place], self._count[place])
                    self._bytes[place] = self._count[place] = 0
                directions >>= 1
                place += 1
            self._directions[pid] = 0
        return 0


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

    def close(self, engine: ObservedEngine) -> int:  # noqa: ARG002
        """Take notice that a collective has nothing more to do for the superstep that it ended."""
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
        self.is_observed = True
        self.clock: Any = clock
        self._traffic: Any = traffic
        self._recorder: Any = recorder
        self._checker: Any = checker
        self.comm_ns = 0
        """Time spent inside calls in this superstep; it stays 0 where time is virtual."""
        self.pickling_ns = self.pickled_bytes = 0
        """What of it was spent on pickles, and the bytes of those that were made."""
        self._inside = 0  # calls that are being executed, one inside the other
        self._since_ns = 0  # when the outermost one began, or went on
        self._is_open = False  # a superstep has ended, and its record is not written yet

    # -- the time of calls --------------------------------------------------------------------

    def begin_call(self) -> int:
        """Stop the virtual clock, or read the real one if this is the outermost call."""
        if self.clock is not None:
            self.clock.enter()
            return 0
        self._inside += 1
        if self._inside == 1:
            self._since_ns = now_ns()
        return 0

    def end_call(self) -> int:
        """Let the virtual clock run on, or add the time of the outermost call to communication."""
        if self.clock is not None:
            self.clock.leave()
            return 0
        if self._inside == 1:
            self.begin_computing()
        self._inside -= 1
        return 0

    def begin_computing(self) -> int:
        """Add the time of a call so far to communication, before a sync or computation in it."""
        if self._is_open:
            self._recorder.close(self)
            self._since_ns = now_ns()
        elif self._inside:
            now = now_ns()
            self.comm_ns += now - self._since_ns
            self._since_ns = now  # what is not continued, because of an error, counts once
        return 0

    def end_computing(self) -> int:
        """Go on with a call that was interrupted."""
        if self._inside and not self._is_open:
            self._since_ns = now_ns()
        return 0

    # -- what calls transfer --------------------------------------------------------------------

    def _count(self, direction: int, partner: int, nbytes: int) -> int:
        """See :meth:`Engine._count`."""
        traffic = self._traffic
        return 0 if traffic is None else traffic.add(direction, partner, nbytes, 1)

    def note_pickling(self, took_ns: int, nbytes: int) -> int:
        """See :meth:`Engine.note_pickling`. Where time is virtual, it takes none."""
        if self.clock is None:
            self.pickling_ns += took_ns
            self.pickled_bytes += nbytes
        return 0

    # -- the end of a superstep ---------------------------------------------------------------

    def sync(self, bsp: Any) -> int:
        """See :meth:`Engine.sync`."""
        clock = self.clock
        if clock is None:
            return Engine.sync(self, bsp)
        clock.enter()
        clock.settle()  # others wait for this process
        try:
            return Engine.sync(self, bsp)
        finally:
            clock.leave()

    def oblsync(self, bsp: Any, n: Any) -> int:
        """See :meth:`Engine.oblsync`."""
        clock = self.clock
        if clock is None:
            return Engine.oblsync(self, bsp, n)
        clock.enter()
        clock.settle()
        try:
            return Engine.oblsync(self, bsp, n)
        finally:
            clock.leave()

    def _arrive(self) -> int:
        """See :meth:`Engine._arrive`."""
        stamp = 0
        self.begin_computing()
        if self._recorder is not None:
            stamp = self._recorder.meet(self)
        if self._checker is not None:
            self._checker.meet(self)
        return stamp

    def _arrived(self) -> int:
        """See :meth:`Engine._arrived`."""
        if self._checker is not None:
            self._checker.arrived(self)
        return 0

    def _delivered(self, kind: int, superstep: int) -> int:
        """See :meth:`Engine._delivered`."""
        if self._checker is not None:
            self._checker.delivered(self, kind, superstep)
        if self._recorder is not None:
            self._recorder.delivered(self, kind, superstep)
        return self.end_computing()

    def leave(self) -> None:
        """See :meth:`Engine.leave`."""
        if self._recorder is not None:
            self._recorder.leave(self)

    def left(self) -> None:
        """See :meth:`Engine.left`."""
        if self._recorder is not None:
            self._recorder.left(self)


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
        self._open = (0, 0, 0, 0)
        """Number, kind, stack and release of a superstep whose record is not written yet."""

    def meet(self, engine: ObservedEngine) -> int:
        """See :meth:`EngineObserver.meet`."""
        self.log.arrive(_time_of(engine), engine.comm_ns)
        self._arrive = self.log.arrived_ns
        return self._arrive

    def delivered(self, engine: ObservedEngine, kind: int, superstep: int) -> int:
        """See :meth:`EngineObserver.delivered`.

        A superstep that ends in a collective ends with it: the values that came are taken out then.
        """
        end = released = self._arrive
        if kind == _END:
            stack = self._stack_of_end()
        else:
            end = _time_of(engine)
            released = engine.meeting.released
            stack = self._stack_keys.number(0)
        released = min(released, end)
        if engine._inside and kind != _END:
            self._open = (superstep, kind, stack, released)
            engine._is_open = True
            return self.traffic.write(self.log)
        self.traffic.write(self.log)
        return self._write_record(engine, superstep, kind, stack, released, end)

    def close(self, engine: ObservedEngine) -> int:
        """See :meth:`EngineObserver.close`."""
        superstep, kind, stack, released = self._open
        engine._is_open = False
        return self._write_record(engine, superstep, kind, stack, released, _time_of(engine))

    def leave(self, engine: ObservedEngine) -> None:
        """See :meth:`EngineObserver.leave`. To leave is a call of the last superstep."""
        engine.begin_call()

    def left(self, engine: ObservedEngine) -> None:
        """See :meth:`EngineObserver.left`."""
        engine.end_call()
        self.meet(engine)
        stack = self._stack_keys.number(0)
        self.traffic.write(self.log)
        self._write_record(engine, engine.superstep, _END, stack, self._arrive, self._arrive)
        if self._above is not None:
            self.log.leave(self._above)

    def _write_record(
        self,
        engine: ObservedEngine,
        superstep: int,
        kind: int,
        stack: int,
        released: int,
        end: int,
    ) -> int:
        """Write a record, and begin the next superstep.

        A virtual time that is too great for a record is reported; in a sync it is an error.
        """
        log: Any = self.log
        try:
            log.add_superstep(
                superstep,
                kind,
                stack,
                self._arrive,
                released,
                end,
                engine.comm_ns,
                engine.pickling_ns,
                engine.pickled_bytes,
            )
            engine.comm_ns = engine.pickling_ns = engine.pickled_bytes = 0
            now = _time_of(engine)
            if log.rest(now):
                now = _time_of(engine)
            log.begin(now)
        except OverflowError:
            if kind == _SYNC:
                raise
            self._overflow()
        return 0


def _time_of(engine: ObservedEngine) -> int:
    """Return the time of this process, which may be virtual."""
    return now_ns() if engine.clock is None else engine.clock.now()
