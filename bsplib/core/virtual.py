"""The meetings of virtual processors, which are all inside one process.

What the processes of a group share is a :class:`Gathering`. Each of them posts there, and waits
by letting others run. The last one to come computes the price of the superstep, once for all,
and wakes the others. They find the entries of each other by their addresses.
"""

from __future__ import annotations

from array import array as numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.clock import Clock
from bsplib.core.entries import add_amounts
from bsplib.core.meeting import Meeting
from bsplib.directions import Direction
from bsplib.sync_kinds import HAS_GET, KIND_BITS, Kind

if not cython.compiled:
    from greenlet import getcurrent

    from bsplib.core.atomics import address_of, peek, prepare
    from bsplib.core.entries import HEAD_BYTES
    from bsplib.core.kinds import (
        BYTE_MASK,
        IN_BUFFER,
        INLINE,
        INLINE_BYTES,
        INLINE_SIZE_MASK,
        KIND_SHIFT,
        RECEIVER_SHIFT,
    )

    def switch_to(target: Any) -> Any:
        """Let a greenlet run; return when another one switches back to the caller's."""
        return target.switch()

    def is_running(target: Any) -> bool:
        """Tell whether a greenlet is the current one."""
        return getcurrent() is target

    def has_begun(target: Any) -> bool:
        """Tell whether a greenlet has begun, and has not ended."""
        return bool(target)

    def prepare_switch() -> None:
        """Do what a compiled module needs before it switches."""


prepare()
prepare_switch()

_FLAG_BITS = 8
_FLAGS = (1 << _FLAG_BITS) - 1
_END = Kind.END
_OUT, _IN = Direction.OUT, Direction.IN

Get = tuple[Any, int, int, int, Any]
"""A get: its destination, an address, its bytes, the process it reads from, and its known."""

Transfer = tuple[int, int, int, int, int]
"""Caller, partner, direction, bytes, and how many transfers."""


# -- the order in which virtual processors run, and the switch from one to the next ---------------
# Each of them is a greenlet that runs until it has to wait. Those that can continue run in rounds,
# and a seed determines a permutation for every round: a program must not depend on the order, and
# the same seed gives the same order again. Compiled, a switch is a call of greenlet's C functions.


class Process:
    """One virtual processor, as far as the switch has to know it."""

    def __init__(self, greenlet: Any) -> None:
        self.greenlet = greenlet
        self.doing = "not started"
        """What it does or waits for, as text for errors."""
        self.left: list[Any] = []
        """Groups that it has left before all other processes had posted there."""

    def is_current(self) -> bool:
        """Tell whether this virtual processor is the one that runs."""
        return is_running(self.greenlet)


class Rounds:
    """Decides which virtual processor runs next.

    Args:
        random: a numpy Generator for the permutations.
        hub: the greenlet that starts virtual processors: its stack is empty.
    """

    def __init__(self, random: Any, hub: Any) -> None:
        self._random = random
        self._hub = hub
        self._round: list[Process] = []  # the next one is the last
        self._next_round: list[Process] = []
        self.current: Any = None
        """The virtual processor that runs; None before the first one does."""
        self.is_over = False
        """A process has failed, so that the others run only up to their next sync."""

    def wait(self, process: Process, doing: str) -> None:
        """Let others run until one of them wakes this process."""
        process.doing = doing
        if not self._round and self._next_round:
            self._begin_round()
        if self._round:
            following = self._round.pop()
            if has_begun(following.greenlet):
                self.current = following
                switch_to(following.greenlet)  # without a detour through the hub
                return
            self._round.append(following)
        switch_to(self._hub)  # a greenlet has to be started by the hub

    def wake(self, processes: Sequence[Process]) -> None:
        """Let waiting processes run again, in the next round."""
        self._next_round += processes

    def run(self) -> None:
        """Run until no virtual processor can continue; only the hub calls this."""
        while self._round or self._next_round:
            if not self._round:
                self._begin_round()
            self.current = self._round.pop()
            switch_to(self.current.greenlet)

    def clear(self) -> None:
        """Let no waiting process continue."""
        self._round.clear()
        self._next_round.clear()

    def _begin_round(self) -> None:
        waiting = self._next_round
        self._next_round = []
        order = self._random.permutation(len(waiting)).tolist()
        self._round = [waiting[index] for index in order]


# -- their meetings --------------------------------------------------------------------------------


class Gathering:
    """What the processes of one group share at their meetings.

    Args:
        nprocs: number of processes of the group.
    """

    def __init__(self, nprocs: int) -> None:
        self.nprocs = nprocs
        self._nothing_ns = -1  # price of a superstep in which nothing is transferred
        # The meeting that processes come to.
        self._came = 0
        self._mark = 0  # of the first one to come
        self._alike = True  # nobody has posted more than this mark
        self._together = True
        self._latest_ns = 0
        self._waiting: list[Process] = []
        self._gets: dict[int, list[Get]] = {}
        # The meeting that was complete last. The next one is not before all have seen this.
        self._nothing_new = True
        self._was_together = True
        self._released_ns = 0
        self._end_ns = 0
        # Posts by pid, of two meetings in turn: a process may be at the next one already.
        self._marks = numbers("Q", bytes(16 * nprocs))
        self._heads = numbers("Q", bytes(16 * nprocs))
        self._inline_memory = np.zeros(2 * nprocs * INLINE_BYTES, np.uint8)
        self._inline = address_of(self._inline_memory)


class VirtualMeeting(Meeting):
    """The meetings of a group as one of its virtual processors sees them.

    Args:
        pid: this process in the group.
        gathering: of the group.
        process: this virtual processor.
        clock: its clock, which is paused whenever a method of this class is called.
        rounds: the order in which virtual processors run.
        owner: the ``SimPort`` of the group: does what is rare.
        place: where a process is that waits for this meeting, as text for errors.
    """

    def __init__(
        self,
        pid: int,
        gathering: Gathering,
        process: Process,
        clock: Clock,
        rounds: Rounds,
        owner: Any,
        place: str,
    ) -> None:
        Meeting.__init__(self)
        self.shares_memory = True
        self.looks_back = False
        """Posts of oblivious supersteps have still to be looked at."""
        self.is_before_main = False
        """The next meeting is the barrier before main, which ends at time 0."""
        self._pid = pid
        self._gathering = gathering
        self._process = process
        self._clock = clock
        self._rounds = rounds
        self._owner = owner
        self._place = place
        self._amounts = numbers("Q", bytes(16))
        self._parity = 0
        self._cells = 0  # of the last meeting
        self._is_first = True  # of this superstep; only this one has a price

    def meet(self, flags: int, head: int, stamp: int) -> bool:  # noqa: ARG002  # the clock stands still
        gathering, process = self._gathering, self._process
        if not process.is_current():
            self._owner.check_current()
        if self.looks_back:
            self._owner.prepare()
        self._post(gathering, flags, head)
        if self._rounds.is_over:
            self._rounds.wait(process, "stopped")  # for ever: the world unwinds this process
        if gathering._came < gathering.nprocs:
            gathering._waiting.append(process)
            ends = flags & KIND_BITS == _END
            self._rounds.wait(process, "at the end of main" if ends else self._place)
        else:
            self._complete(gathering)
        self._cells = self._parity * gathering.nprocs
        self._parity = 1 - self._parity
        if process.left:
            self._owner.after_posts()
        if not gathering._was_together:
            self._owner.check_together()
        self._go_on(gathering)
        return gathering._nothing_new

    def _post(self, gathering: Gathering, flags: int, head: int) -> None:
        mark = self.superstep << _FLAG_BITS | flags
        place = self._parity * gathering.nprocs + self._pid
        gathering._marks[place] = mark
        gathering._heads[place] = head
        if gathering._came == 0:
            gathering._mark = mark
            gathering._latest_ns = 0
            gathering._alike = gathering._together = True
        if mark != gathering._mark:
            gathering._alike = False
            if mark >> _FLAG_BITS != gathering._mark >> _FLAG_BITS:
                gathering._together = False
        if head:
            gathering._alike = False
        if flags & HAS_GET:
            gathering._alike = False
            if self.gets:
                gathering._gets[self._pid] = self.gets
        now_ns = self._clock.now()
        if now_ns > gathering._latest_ns:  # noqa: PLR1730  # faster than a call of max
            gathering._latest_ns = now_ns
        gathering._came += 1

    def _complete(self, gathering: Gathering) -> None:
        """End the meeting: this process is the last one to come."""
        self._cells = self._parity * gathering.nprocs
        gathering._nothing_new = gathering._alike
        gathering._was_together = gathering._together
        gathering._released_ns = gathering._end_ns = gathering._latest_ns
        if self._is_first:
            gathering._end_ns += self._price(gathering)
        if gathering._gets:
            gathering._gets.clear()
        gathering._came = 0
        waiting = gathering._waiting
        gathering._waiting = []
        self._rounds.wake(waiting)

    def _price(self, gathering: Gathering) -> int:
        if not gathering._alike:
            price: int = self._owner.price()
            return price
        if gathering._nothing_ns < 0:
            gathering._nothing_ns = self._owner.price_of_nothing()
        return gathering._nothing_ns

    def _go_on(self, gathering: Gathering) -> None:
        """Set the clock forward to the end of the meeting."""
        if self.is_before_main:
            self.is_before_main = False
            self._clock.restart()
            return
        self._clock.advance_to(gathering._end_ns)
        if self._is_first:
            self._is_first = False
            self.released = gathering._released_ns

    # -- what the posts had ------------------------------------------------------------------------

    def inline_address(self) -> int:
        place = self._parity * self._gathering.nprocs + self._pid
        return self._gathering._inline + INLINE_BYTES * place

    def head_of(self, pid: int) -> int:
        return self._gathering._heads[self._cells + pid]

    def inline_of(self, pid: int) -> int:
        return self._gathering._inline + INLINE_BYTES * (self._cells + pid)

    def flags_of(self, pid: int) -> int:
        return self._gathering._marks[self._cells + pid] & _FLAGS

    def superstep_of(self, pid: int) -> int:
        """Return in which superstep a process was at the last meeting."""
        return self._gathering._marks[self._cells + pid] >> _FLAG_BITS

    def end_superstep(self) -> None:
        self.superstep += 1
        self._is_first = True

    # -- what the transfers cost -------------------------------------------------------------------

    def transfers(self) -> list[Transfer]:
        """Return what all processes transfer in this meeting; only its last process can.

        The owner of the values of a get sends them.
        """
        found: list[Transfer] = []
        for caller in range(self._gathering.nprocs):
            head = self.head_of(caller)
            kind = head >> KIND_SHIFT
            if kind == INLINE:
                entry, to = self.inline_of(caller), (head & BYTE_MASK) >> RECEIVER_SHIFT
                add_amounts(entry, entry + (head & INLINE_SIZE_MASK), self._amounts)
                self._take_amounts(found, caller, to)
            elif kind == IN_BUFFER:
                self._add_send_buffer(found, caller, head & BYTE_MASK)
        for caller, gets in self._gathering._gets.items():
            found += [(caller, get[3], _IN, get[2], 1) for get in gets if get[3] != caller]
        return found

    def _add_send_buffer(self, found: list[Transfer], caller: int, table: int) -> None:
        """Add what the send buffer of a process has for others."""
        for to in range(self._gathering.nprocs):
            chunk = peek(table + 8 * to)
            if chunk and to != caller:
                while chunk:
                    stop = chunk + peek(chunk + 8)
                    add_amounts(chunk + HEAD_BYTES, stop, self._amounts)
                    chunk = peek(chunk)
                self._take_amounts(found, caller, to)

    def _take_amounts(self, found: list[Transfer], caller: int, to: int) -> None:
        """Add the amounts to what was found, and set them to 0."""
        nbytes, count = self._amounts[0], self._amounts[1]
        if count:
            found.append((caller, to, _OUT, nbytes, count))
            self._amounts[0] = self._amounts[1] = 0
