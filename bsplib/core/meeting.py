"""The meetings of a group: in each, every process posts, and looks at the posts of all others.

A post has flags and, where the process has collected entries, a head word that says where they
are. :class:`Meeting` is what all meetings have in common. :class:`SharedMeeting` is for processes
that share memory; PROTOCOL.md argues why it is correct. Where they share none, the backend sends
the entries: :mod:`bsplib.backends.sent`.

A :class:`Waiter` looks for the posts of others, and wakes those that wait for its own. It looks
again and again, first without a pause; then it lets other processes run after each look. What
comes after that is in :mod:`bsplib.backends.shm.waiting`.
"""

from __future__ import annotations

from array import array as numbers
from collections.abc import Callable, Sequence
from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.kinds import AREA_SHIFT, CHUNK_SHIFT, MEETING_SHIFT, SUPERSTEP_SHIFT

if not cython.compiled:
    from bsplib.core.atomics import (
        bit_length,
        compiler_fence,
        full_fence,
        give_way,
        load,
        now_ns,
        peek,
        poke,
        relax,
        store,
        wake_up,
        wrapped,
    )

_STAMP, _HEAD, _BEHIND_HEAD = 8, 16, 24
"""Where the stamp, the head word, and what follows them begin in a cell, in bytes. The word that
announces them comes first. See shm/control.py."""
_SUPERSTEP_SHIFT, _MEETING_SHIFT = SUPERSTEP_SHIFT, MEETING_SHIFT
_NEXT_MEETING = 1 << MEETING_SHIFT
_AREA_SHIFT, _CHUNK_SHIFT = AREA_SHIFT, CHUNK_SHIFT
_AREA_MASK = (1 << AREA_SHIFT) - 1
_WINDOWS = _AREA_SHIFT - _CHUNK_SHIFT
"""The most windows that an area can have; see shm/segment.py."""

LARGE = 1 << 18
"""Least number of bytes of a payload for which a process waits until it can use memory that is
in use now. Otherwise it would have to copy the payload once more, or to use other memory."""
_BYTES_PER_NS = 2
"""Bytes for which it waits 1 ns. Another copy would take longer, since it would go to memory
that is not in the cache, or whose pages have to be cleared first."""

SPINS = 2000 if cython.compiled else 500
"""Number of looks before a process first lets others run. They take about 50 us, more than a
meeting takes if all processes come to it at the same time."""
YIELDS = 64
"""Number of looks that follow, each of which lets others run (``sched_yield``)."""
LONG_GAP_NS = 200_000
"""Looks take so long only where another process had the core between them."""
_PAUSE = 64
"""Waits in which a process gives way no more after that. Without them a put and sync beside other
programs takes ten times as long."""


class Meeting:
    """The meetings of a group, as one of its processes sees them."""

    def __init__(self) -> None:
        self.shares_memory = False
        """The processes read the entries, and the staged values, of each other where they are."""
        self.has_staged = False
        """The end of this superstep is told to ``Port.staging``, which tells the meeting."""
        self.superstep = 1
        self.released = 0
        """When the last process came to the last meeting that had a stamp, in ns on the clock of
        this process."""
        self.gets: list[Any] = []
        """The gets of this process in this superstep; the core changes the list."""

    def address_of(self, byte: int) -> int:
        """Return the address of a byte of a send buffer."""
        return byte

    def has_delivered(self, pid: int) -> bool:  # noqa: ARG002
        """Tell whether a process has delivered what the superstep before this one brought it.

        True only where all ended that superstep together: memory of the process that
        may be written at any time in this superstep can be written now. False is always right.
        """
        return False

    def waits_for_delivery(self, pid: int, nbytes: int) -> bool:  # noqa: ARG002
        """Do as :meth:`has_delivered`, but wait where ``nbytes`` bytes are worth the time."""
        return self.has_delivered(pid)

    def meet(self, flags: int, head: int, stamp: int) -> bool:  # noqa: ARG002
        """Post, and wait for the posts of all others.

        Args:
            flags: number below 128 that every process sees.
            head: head word of the post; 0 where this process has nothing for others.
            stamp: time of arrival in ns; 0 where the run is not recorded.

        Returns:
            Whether nothing is new: all flags are the same, and no process has anything.
        """
        return False

    def inline_address(self) -> int:
        """Return the address behind the head word of the cell of the next post."""
        return 0

    def head_of(self, pid: int) -> int:  # noqa: ARG002
        """Return the head word of the post of a process at the last meeting; 0 for none."""
        return 0

    def inline_of(self, pid: int) -> int:  # noqa: ARG002
        """Return the address of the inline entry of a process, or of those sent here."""
        return 0

    def size_of(self, pid: int) -> int:  # noqa: ARG002
        """Return the bytes of the entries that a process has sent here."""
        return 0

    def flags_of(self, pid: int) -> int:  # noqa: ARG002
        """Return the flags of a process at the last meeting."""
        return 0

    def end_superstep(self) -> None:
        """Begin the next superstep: what the last one brought has been delivered."""
        self.superstep += 1


class Pause:
    """When a process sleeps and does not give way before, since another one needs its core.

    A process that gave way to another program is not woken: it has to wait until the system takes
    the core from that program. One that sleeps gets the core at once when it is woken. So after a
    long gap between two looks a process gives way no more in its next waits.
    """

    def __init__(self) -> None:
        self.waits = 0
        """Waits that are left in which the process does not give way."""

    def begin(self) -> None:
        """Note that another process had the core between two looks."""
        self.waits = _PAUSE


class Waiter:
    """The looks of one process, and its wake-ups.

    Args:
        waited: address of the word that is 1 where another process sleeps until this one posts.
        asleep: by pid, addresses of the words that are 1 while the process sleeps.
        futexes: by pid, addresses of the words that change to wake the process.
        spins: looks without a pause; 0 where processes share cores.
        yields: looks that give way.
        sleeps: this process may sleep in the place of giving way.
        posts_need_fence: this process has to fence after a post for which others may sleep.
        move: moves this process to another core.
    """

    def __init__(
        self,
        waited: int,
        asleep: Sequence[int],
        futexes: Sequence[int],
        spins: int,
        yields: int,
        sleeps: bool,
        posts_need_fence: bool,
        move: Callable[[], None],
    ) -> None:
        self.waited = waited
        self.pause = Pause()
        self._asleep = numbers("Q", asleep)
        self._futexes = numbers("Q", futexes)
        self._count = len(futexes)
        self._posts_need_fence = posts_need_fence
        self._move = move
        self._spins = spins
        self._yields = yields
        self._keeps_core = sleeps and spins > 0
        self._in_vain = 0

    # -- waiting --------------------------------------------------------------------------

    def arrives(self, address: int, floor: int) -> bool:
        """Look until a word has at least some value, but not long; return whether it has."""
        for _look in range(self._spins):
            if load(address) >= floor:
                self._in_vain = 0
                return True
            relax()
        if self._spins:
            self._spun_in_vain()
        if self.pause.waits:  # another program had this core while it gave way
            return load(address) >= floor
        return self._give_way_until(address, floor)

    def _spun_in_vain(self) -> None:
        """Move to another core, at first and then less and less often.

        The system may have left both processes on one core, where each waits for the other one.
        """
        self._in_vain += 1
        if not self._in_vain & (self._in_vain - 1):
            self._move()

    def _give_way_until(self, address: int, floor: int) -> bool:
        began = now_ns()
        found = False
        for _look in range(self._yields):
            if load(address) >= floor:
                found = True
                break
            give_way()
        if self._keeps_core and now_ns() - began > LONG_GAP_NS:
            self.pause.begin()
        return found

    # -- waking ---------------------------------------------------------------------------

    def posted(self) -> None:
        """Wake processes that sleep until this one posts; called after each post."""
        if self._posts_need_fence:
            full_fence()
        else:
            compiler_fence()
        if peek(self.waited):
            self.wake()

    def wake(self) -> None:
        """Wake all sleeping processes."""
        store(self.waited, 0)
        full_fence()  # the cleared WAITED, before the loads of ASLEEP
        for pid in range(self._count):
            if peek(self._asleep[pid]):
                wake_up(self._futexes[pid])


class SharedMeeting(Meeting):
    """The meetings of the processes of a group over shared memory, as one of them sees them.

    Args:
        pid: this process.
        nprocs: number of processes.
        nareas: areas of the segment: processes of the run.
        owner: the ``ShmPort`` of the group: does what is rare.
        waiter: of this process.
    """

    def __init__(self, pid: int, nprocs: int, nareas: int, owner: Any, waiter: Waiter) -> None:
        Meeting.__init__(self)
        self.shares_memory = True
        self.has_to_prepare = True
        self.oblivious = 0
        self.leases: list[Any] = []
        self.left_over: list[Any] = []
        self._pid = pid
        self._nprocs = nprocs
        self._owner = owner
        self._waiter = waiter
        self._knows_others = False
        self._parity = 0
        self._floor = self.superstep << _SUPERSTEP_SHIFT
        self._cells = 0
        # For each parity: the cell of each process, by pid. Then the words DELIVERED.
        self._places = numbers("Q", bytes(8 * 3 * nprocs))
        self._bases = numbers("Q", bytes(8 * _WINDOWS * (nareas + 1)))

    def enter(self, cells: Sequence[int], delivered: int) -> None:
        """Take the addresses of the two cells and of the word DELIVERED of this process."""
        self._set(self._pid, cells, delivered)

    def know(self, pid: int, cells: Sequence[int], delivered: int) -> None:
        """Take these addresses of another process."""
        self._set(pid, cells, delivered)
        self._knows_others = True

    def _set(self, pid: int, cells: Sequence[int], delivered: int) -> None:
        for place, address in enumerate((*cells, delivered)):
            self._places[place * self._nprocs + pid] = address

    def address_of(self, byte: int) -> int:
        area = byte >> _AREA_SHIFT
        number = bit_length(((byte & _AREA_MASK) >> _CHUNK_SHIFT) + 1) - 1
        base = self._bases[area * _WINDOWS + number]
        if base == 0:
            found = self._owner.map_byte(byte)
            base = wrapped(found - byte)
            self._bases[area * _WINDOWS + number] = base
        return wrapped(base + byte)

    def has_delivered(self, pid: int) -> bool:
        last = self.superstep - 1
        if self.oblivious == last or not self._knows_others:
            return False
        delivered = self._places[2 * self._nprocs + pid]
        # It may need a moment to deliver what the last sync brought it.
        return load(delivered) == last or (
            self._waiter.arrives(delivered, last) and load(delivered) == last
        )

    def waits_for_delivery(self, pid: int, nbytes: int) -> bool:
        if self.has_delivered(pid):
            return True
        if nbytes < LARGE or self.oblivious == self.superstep - 1 or not self._knows_others:
            return False
        deadline = now_ns() + nbytes // _BYTES_PER_NS
        while now_ns() < deadline:
            if self.has_delivered(pid):
                return True
        return False

    def meet(self, flags: int, head: int, stamp: int) -> bool:
        if self.has_to_prepare:
            self._owner.prepare()
        # The post.
        nprocs = self._nprocs
        first = self._parity * nprocs
        mine = self._places[first + self._pid]
        floor = self._floor
        mark = floor | flags << 1
        if stamp:
            poke(mine + _STAMP, stamp)
        if head:
            poke(mine + _HEAD, head)
            mark |= 1
        store(mine, mark)
        self._waiter.posted()
        # The look.
        if not self._knows_others and nprocs > 1:
            self._owner.find_others()
        nothing_new = head == 0
        for pid in range(nprocs):
            seen = load(self._places[first + pid])
            if seen != mark:
                if seen < floor:
                    seen = self._await(pid, self._places[first + pid], floor)
                if seen != mark:
                    nothing_new = False
                    if seen >> _MEETING_SHIFT != floor >> _MEETING_SHIFT:
                        raise self._owner.apart(pid)
        self._cells = first
        self._parity = 1 - self._parity
        self._floor = floor + _NEXT_MEETING
        if stamp:
            self.released = self._latest(stamp)
        if self.leases or self.left_over or self.has_to_prepare:
            self._owner.after_posts()
        return nothing_new

    def _await(self, pid: int, cell: int, floor: int) -> int:
        """Wait for a post; return its word."""
        if not self._waiter.arrives(cell, floor):
            self._owner.wait_for(pid, cell, floor)
        return load(cell)

    def _latest(self, stamp: int) -> int:
        """Return the latest of this process's own stamp and those in the cells of others."""
        for pid in range(self._nprocs):
            other = peek(self._places[self._cells + pid] + _STAMP)
            if other > stamp:  # noqa: PLR1730  # faster than a call of max
                stamp = other
        return stamp

    def inline_address(self) -> int:
        if self.has_to_prepare:
            self._owner.prepare()
        return self._places[self._parity * self._nprocs + self._pid] + _BEHIND_HEAD

    def head_of(self, pid: int) -> int:
        cell = self._places[self._cells + pid]
        return peek(cell + _HEAD) if peek(cell) & 1 else 0

    def inline_of(self, pid: int) -> int:
        return self._places[self._cells + pid] + _BEHIND_HEAD

    def flags_of(self, pid: int) -> int:
        return peek(self._places[self._cells + pid]) >> 1 & 0x7F

    def end_superstep(self) -> None:
        store(self._places[2 * self._nprocs + self._pid], self.superstep)
        self.superstep += 1
        self._floor = self.superstep << _SUPERSTEP_SHIFT
