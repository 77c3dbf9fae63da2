"""The observer of an engine that records its supersteps.

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


class RecordingObserver:
    """Writes a record of each superstep into a log.

    Times are taken before and after the engine does its work; a record is written after the
    sync, before the next superstep begins.

    Args:
        log: of the group.
        above: log of the group of which this one is a part; None for the whole run.
        clock: of this process where its time is virtual.
        traffic: what the engine counts.
        stack_keys: numbers the call stacks of syncs.
        stack_of_end: returns the number of a stack for the end of ``main``.
        overflow: is called where a virtual time has more than 63 bits.
    """

    def __init__(
        self,
        log: Log,
        above: Log | None,
        clock: Clock | None,
        traffic: Traffic,
        stack_keys: StackKeys,
        stack_of_end: Callable[[], int],
        overflow: Callable[[], None],
    ) -> None:
        self.log = log
        self._above = above
        self._clock: Any = clock
        self.traffic = traffic
        self._stack_keys = stack_keys
        self._stack_of_end = stack_of_end
        self._overflow = overflow
        self._arrive = 0
        # Of a superstep that has ended, until its record is written.
        self._superstep = self._kind = self._stack = self._released = self._end = 0

    def _now(self) -> int:
        """Return the time of this process, which may be virtual."""
        return now_ns() if self._clock is None else self._clock.now()

    def meet(self, comm_ns: int) -> int:
        """Take notice that the program ends a superstep; return the time of arrival in ns.

        Args:
            comm_ns: time inside calls in this superstep.
        """
        self.log.arrive(self._now(), comm_ns)
        self._arrive = self.log.arrived_ns
        return self._arrive

    def delivered(self, superstep: int, kind: int, released: int) -> int:
        """Take notice that a superstep has ended; its record is not written yet.

        Args:
            superstep: its number.
            kind: the way in which it ended.
            released: when the last process had come.
        """
        self._superstep, self._kind = superstep, kind
        if kind == _END:
            self._released = self._end = self._arrive
            self._stack = self._stack_of_end()
        else:
            self._end = self._now()
            self._released = min(released, self._end)
            self._stack = self._stack_keys.number(0)
        return self.traffic.write(self.log)

    def extend(self) -> int:
        """Let the superstep end now, with the collective that has ended it."""
        self._end = self._now()
        return 0

    def write_record(self, comm_ns: int, pickling_ns: int, pickled_bytes: int) -> int:
        """Write the record, and begin the next superstep.

        A virtual time that is too great for a record is reported; in a sync it is an error.
        """
        log: Any = self.log
        try:
            log.add_superstep(
                self._superstep,
                self._kind,
                self._stack,
                self._arrive,
                self._released,
                self._end,
                comm_ns,
                pickling_ns,
                pickled_bytes,
            )
            now = self._now()
            if log.rest(now):
                now = self._now()
            log.begin(now)
        except OverflowError:
            if self._kind == _SYNC:
                raise
            self._overflow()
        return 0

    def left(self, superstep: int, comm_ns: int, pickling_ns: int, pickled_bytes: int) -> int:
        """Write the record of the last superstep of a sub-group, which the program has left."""
        self.meet(comm_ns)
        self._superstep, self._kind = superstep, _END
        self._stack = self._stack_keys.number(0)
        self._released = self._end = self._arrive
        self.traffic.write(self.log)
        self.write_record(comm_ns, pickling_ns, pickled_bytes)
        if self._above is not None:
            self.log.leave(self._above)
        return 0
