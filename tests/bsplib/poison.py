"""A mode for tests in which memory that is read too late, or given back too early, is an error.

The environment variable BSP_POISON, which names this module, chooses it when a run starts. Memory
that is given back is filled with a pattern, and stays out of use for a while. Each 64 bytes of the
areas have a **generation**, a word that all processes see: it is odd while the bytes belong to a
block, and changes whenever they are given back, or used for something else. A process notes the
generation of what it reads from another one, and verifies it at the last moment at which the bytes
may be read. Before that moment it **lingers** until the processes that it reads from sleep: each of
them has then done all that it can do without this process, and an error of the protocol shows in
every run. What is verified in which way:

============================ =====================================================================
send buffers, staged values  noted when they are read, verified before DELIVERED is stored
payloads of messages         noted when they are fetched, verified before the next post
what was kept of them        noted when it is kept, verified before each post in any group while
                             it lives
oblivious entries            noted when they are read, verified before CONSUMED is stored
sources of gets              verified when they have been read
cells (inline entries)       verified before the next post: the word of a cell is its generation
blocks of control words      verified before each post: the label of a block is its generation
all memory of a heap         verified to hold the pattern still when it is used again
============================ =====================================================================

All hooks are subclasses, so that a run without the mode executes nothing of this module.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from bsplib.backends.base import Arrived, Buffer, Handle, Sent
from bsplib.backends.oblivious import Post
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import (
    ASLEEP,
    BLOCK_WORDS,
    CELLS,
    DELIVERED,
    PAGE,
    POSTED,
    RING,
    STAMP,
    WORD,
)
from bsplib.backends.shm.heap import ALIGNMENT, Heap
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.port import ShmPort
from bsplib.backends.shm.segment import Segment
from bsplib.core.entries import Block
from bsplib.core.kinds import CHUNK_SHIFT, MEETING_SHIFT
from bsplib.core.meeting import SharedMeeting

PATTERN = 0xDB
"""Each byte of memory that was given back; 0xDBDBDBDBDBDBDBDB is no byte of the segment."""
_MOST_DELAYED = 1 << 21
"""Bytes of memory that stay out of use after they were given back."""
_LINGER_NS = 500_000_000
"""The longest time for which a process lingers: one that it reads from may compute."""
_PAUSE_S = 0.0001
_KIND_SHIFT, _IN_BUFFER = 60, 2
"""Of the head word of a post with a send buffer; :mod:`bsplib.core.entries` has the others."""
_BYTE_MASK = (1 << _KIND_SHIFT) - 1
_AREA_SHIFT = 44
_AREA_MASK = (1 << _AREA_SHIFT) - 1
_CELL_WORDS = CELLS[1] - CELLS[0]
_T = TypeVar("_T")


class PoisonError(AssertionError):
    """A process has read, or written, memory that was given back, or used for something else."""


class Generations:
    """A word for each 64 bytes of the areas of all processes.

    The words lie in the file of the segment, too: behind the last area there is one for the
    words of each area, and one with a word for each process, which is 1 while it lingers.

    Args:
        segment: memory of the run.
        nprocs: number of processes of the run.
    """

    def __init__(self, segment: Segment, nprocs: int) -> None:
        self._segment = segment
        self._nprocs = nprocs
        self._reserved: set[int] = set()
        self._lingers = 2 * nprocs + 1 << _AREA_SHIFT

    def write(self, start: int, nbytes: int, generation: int) -> None:
        """Give bytes of a block of this process, which begin a line, another generation."""
        first = self._word_of(start)
        stop = first + nbytes // ALIGNMENT * WORD
        self._reserve(first, stop)
        while first < stop:  # no longer than a window, which ends with a chunk
            end = min(stop, (first >> CHUNK_SHIFT) + 1 << CHUNK_SHIFT)
            self._segment.view_array(first, end - first).view(np.uint64)[:] = generation
            first = end

    def of(self, byte: int) -> int:
        """Return the generation of a byte; 0 where there never was a block."""
        if not 1 <= byte >> _AREA_SHIFT <= self._nprocs:
            message = f"{byte:#x}, which was read from another process, is no byte of the segment"
            raise PoisonError(message)
        return int.from_bytes(self._segment.view(self._word_of(byte), WORD), sys.byteorder)

    def linger(self, pid: int, word: int) -> None:
        """Note whether a process lingers."""
        start = self._lingers + WORD * pid
        self._reserve(start, start + WORD)
        self._segment.view(start, WORD).cast("Q")[0] = word

    def lingers(self, pid: int) -> bool:
        """Tell whether a process lingers."""
        return self._segment.view(self._lingers + WORD * pid, WORD).cast("Q")[0] != 0

    def _word_of(self, byte: int) -> int:
        area, within = (byte >> _AREA_SHIFT) + self._nprocs, byte & _AREA_MASK
        return area << _AREA_SHIFT | within // ALIGNMENT * WORD

    def _reserve(self, first: int, stop: int) -> None:
        for page in range(first & -PAGE, stop, PAGE):
            if page not in self._reserved:
                self._reserved.add(page)
                self._segment.reserve(page, PAGE)


class PoisonedHeap(Heap):
    """A heap whose memory holds the pattern whenever it is given out or given back.

    Args:
        segment: see :class:`Heap`.
        windows: see :class:`Heap`.
        generations: of the run.
    """

    def __init__(
        self, segment: Segment, windows: Iterable[tuple[int, int]], generations: Generations
    ) -> None:
        super().__init__(segment, windows)
        self._generations = generations
        self._numbers = itertools.count(1)
        self._delayed: deque[int] = deque()
        self._delayed_bytes = 0
        self._left: dict[int, int] = {}
        self._is_clearing = False

    def allocate(self, nbytes: int) -> tuple[int, bool]:
        """See :meth:`Heap.allocate`: nothing is known to be zero."""
        if self._left:
            self._begin_run()
        start, _ = super().allocate(nbytes)
        self.use_anew(start, self._used[start])
        return start, False

    def use_anew(self, start: int, nbytes: int) -> None:
        """Fill memory of a block with the pattern: it is used for something else from now on."""
        self._fill(start, nbytes, 2 * next(self._numbers) + 1)

    def clear(self) -> None:
        """See :meth:`Heap.clear`: others may still read until the next run begins."""
        self._is_clearing = True
        super().clear()
        self._is_clearing = False

    def _free_block(self, start: int) -> None:
        """See :meth:`Heap._free_block`: it is given out again only after a while."""
        nbytes = self._used[start]
        if self._is_clearing:
            self._left[start] = nbytes
            super()._free_block(start)
            return
        if self._left:
            self._begin_run()
        self._fill(start, nbytes, 2 * next(self._numbers))
        self._delayed.append(start)
        self._delayed_bytes += nbytes
        while self._delayed_bytes > _MOST_DELAYED:
            oldest = self._delayed.popleft()
            self._delayed_bytes -= self._used[oldest]
            self._check_untouched(oldest, self._used[oldest])
            super()._free_block(oldest)

    def _begin_run(self) -> None:
        """Fill what the last run has left, with the first block of the next one."""
        for start in self._delayed:
            self._check_untouched(start, self._left.pop(start))
        for start, nbytes in self._left.items():
            self._fill(start, nbytes, 2 * next(self._numbers))
        self._delayed.clear()
        self._left.clear()
        self._delayed_bytes = 0

    def _fill(self, start: int, nbytes: int, generation: int) -> None:
        """Change the generation first: who finds the pattern must not find the old generation."""
        self._generations.write(start, nbytes, generation)
        self._segment.view_array(start, nbytes)[:] = PATTERN

    def _check_untouched(self, start: int, nbytes: int) -> None:
        memory = self._segment.view_array(start, nbytes)
        (changed,) = np.nonzero(memory != PATTERN)
        if len(changed):
            message = (
                f"{len(changed)} bytes of a block of {len(memory)} bytes at {start:#x} were "
                f"written after it was given back (generation {self._generations.of(start)}); the "
                f"first is byte {changed[0]} of the block"
            )
            raise PoisonError(message)


class PoisonedContext(ProcessContext):
    """A process of a run in this mode; see :class:`ProcessContext`."""

    def __init__(
        self,
        segment: Segment,
        pid: int,
        wait_by: str = "auto",
        has_core: bool | None = None,
    ) -> None:
        super().__init__(segment, pid, wait_by, has_core)
        self.generations = Generations(segment, self.nprocs)
        self.heap = PoisonedHeap(segment, segment.area(pid), self.generations)
        self.kept: list[tuple[weakref.ref[Any], int, int]] = []
        """Objects whose memory is that of others, its first byte, and its generation: they may
        outlive the group in which they came, and the run."""

    def begin(self) -> None:
        """See :meth:`ProcessContext.begin`."""
        super().begin()
        self.generations.linger(self.pid, 0)

    def port_class(self, kind: type[Any]) -> type[Any]:
        """See :meth:`ProcessContext.port_class`."""
        return _watched(kind)


class _SendBufferBlocks:
    """The blocks of one send buffer of this process, in two halves that are posted in turn.

    Args:
        allocate: returns a new block.
    """

    def __init__(self, allocate: Callable[[int], Block]) -> None:
        self._allocate = allocate
        self._new: list[Block] = []
        self._halves: dict[int, list[Block]] = {}

    def allocate(self, nbytes: int) -> Block:
        """Return a new block of the half that is posted next, if not by the next post."""
        block = self._allocate(nbytes)
        self._new.append(block)
        return block

    def posted(self, byte: int) -> list[Block]:
        """Return the blocks of the half that begins at a byte; none if it is of another buffer."""
        if byte in self._halves or any(start == byte for start, *_ in self._new):
            self._halves.setdefault(byte, []).extend(self._new)
            self._new.clear()
        return self._halves.get(byte, [])


class Watch:
    """What one process has read from the others of a group, and may read no longer than it may.

    Args:
        context: of this process.
        members: processes of the group.
    """

    def __init__(self, context: PoisonedContext, members: Membership) -> None:
        self._context = context
        self._members = members
        self._generations = context.generations
        self._noted: dict[int, tuple[int, str]] = {}
        self._has_met = False
        """Notes are of a sync that this process has not delivered yet."""
        self._follows_sync = False
        self._met = 0, 0
        """The cell of the last meeting that this process has passed, and its generation."""
        self._failure: PoisonError | None = None
        self._send_buffers: list[_SendBufferBlocks] = []
        self._posted: list[Block] = []
        """The blocks that this process has posted since the superstep before."""

    def forget(self) -> None:
        """Begin another run: all memory has been given back."""
        self._noted.clear()
        self._send_buffers.clear()
        self._posted.clear()

    # -- what this process reads ------------------------------------------------------------

    def note(self, byte: int, what: str) -> None:
        """Note the generation of memory that this process is about to read."""
        if byte >> _AREA_SHIFT == self._context.pid + 1:
            return
        generation = self._generations.of(byte)
        if not generation & 1:
            raise self._error(what, byte, generation, "when it was read")
        self._noted.setdefault(byte, (generation, what))

    def note_kept(self, base: Any, byte: int) -> None:
        """Note the generation of memory that this process uses as long as an object lives."""
        self._context.kept.append((weakref.ref(base), byte, self._generations.of(byte)))

    def _check_kept(self) -> None:
        kept = self._context.kept = [each for each in self._context.kept if each[0]() is not None]
        for base, byte, generation in kept:
            now = self._generations.of(byte)
            if now != generation and base() is not None:
                when = f"while an array uses it; it had generation {generation}"
                raise self._error("a payload that was kept", byte, now, when)

    def check_alive(self, byte: int, what: str) -> None:
        """Raise if memory was given back."""
        generation = self._generations.of(byte)
        if not generation & 1:
            raise self._error(what, byte, generation, "when it was used")

    def verify(self) -> None:
        """Verify all that was noted: this process will not read it again."""
        noted, self._noted = self._noted, {}
        for byte, (generation, what) in noted.items():
            now = self._generations.of(byte)
            if now != generation:
                when = f"while it may be read; it had generation {generation}"
                raise self._error(what, byte, now, when)

    def _error(self, what: str, byte: int, generation: int, when: str) -> PoisonError:
        members = self._members
        state = "given back, or used for something else," if generation & 1 else "given back"
        return PoisonError(
            f"{what} of process {(byte >> _AREA_SHIFT) - 1} at {byte:#x} was {state} "
            f"(generation {generation}) {when}. [process {members.root(members.pid)}, "
            f"superstep {members.superstep} of its group]"
        )

    # -- the moments at which a right to read ends ----------------------------------------------

    def before_post(self, gets: Sequence[Any]) -> None:
        """Verify what may not be read after the next post."""
        if self._failure is not None:
            raise self._failure
        if self._noted and not self._has_met:
            if self._follows_sync:
                self._linger(self._members.superstep - 1, self._sources())
            self.verify()
        for _, address, *_ in gets:
            if not address:
                continue  # its owner answers it
            byte = self._context.segment.byte_at(address)
            assert byte is not None  # it is read where another process allocated
            self.check_alive(byte, "the source of a get")
        self._check_kept()
        self._check_blocks()

    def end_superstep(self) -> None:
        """Verify what may not be read after DELIVERED; an error is raised by the next post."""
        if self._noted and self._has_met:
            self._linger(self._members.superstep, self._sources())
        self._follows_sync, self._has_met = self._has_met, False
        try:
            self.verify()
        except PoisonError as error:
            self._failure = self._failure or error

    def close(self) -> None:
        """Verify what may not be read after this process has left."""
        if self._follows_sync:
            self._linger(self._members.superstep - 1, self._members.others)
        self.before_post(())

    def _check_blocks(self) -> None:
        """Verify that the blocks of the others, and the cells of the last meeting, are theirs."""
        members, control = self._members, self._context.control
        cell, last = self._met
        for pid in members.others if last else ():
            block = members.find(pid)
            found = control[block + cell] >> MEETING_SHIFT
            is_theirs = members.is_block_of(pid)
            what = "the cell" if is_theirs else "the block"
            if not is_theirs or found != last:
                message = (
                    f"{what} of process {members.root(pid)} was used again while it may be read "
                    f"(generation {found}); it had generation {last}. [process "
                    f"{members.root(members.pid)}, superstep {members.superstep} of its group]"
                )
                raise PoisonError(message)

    def _sources(self) -> list[int]:
        """Return the processes whose memory this one has noted."""
        roots = {(byte >> _AREA_SHIFT) - 1 for byte in self._noted}
        return [pid for pid in self._members.others if self._members.root(pid) in roots]

    def _linger(self, superstep: int, pids: Sequence[int]) -> None:
        """Wait until other processes, which may have ended a superstep, need this one to go on.

        Of processes that linger the one with the lowest pid goes on first.
        """
        me, deadline = self._context.pid, time.perf_counter_ns() + _LINGER_NS
        self._generations.linger(me, 1)
        while time.perf_counter_ns() < deadline and not self._context.waiting.has_to_stop():
            if all(self._rests(pid, superstep) for pid in pids):
                break
            time.sleep(_PAUSE_S)
        self._generations.linger(me, 0)

    def _rests(self, pid: int, superstep: int) -> bool:
        members, context = self._members, self._context
        root = members.root(pid)
        if root > context.pid and self._generations.lingers(root):
            return True
        if not context.control[context.start_of(root) + ASLEEP]:
            return False
        delivered = context.control[members.find(pid) + DELIVERED]
        return members.has_left(pid) or delivered >= superstep

    # -- what others may read of this process -----------------------------------------------------

    def send_buffer_memory(self, allocate: Callable[[int], Block]) -> Callable[[int], Block]:
        """Return what allocates for one more buffer of this process, whose blocks are watched."""
        send_buffer = _SendBufferBlocks(allocate)
        self._send_buffers.append(send_buffer)
        return send_buffer.allocate

    def after_posts(self, head: int) -> None:
        """Note what all have posted, and use memory anew that nobody reads from now on."""
        self._poison_other_cell()
        if not self._has_met:
            for byte, _, nbytes in self._posted:
                self._context.heap.use_anew(byte, nbytes)
            self._posted.clear()
        if head >> _KIND_SHIFT == _IN_BUFFER:
            for send_buffer in self._send_buffers:
                self._posted += send_buffer.posted(head & _BYTE_MASK)
        self._has_met = True

    def _poison_other_cell(self) -> None:
        """Fill the cell of the meeting before this one: all others have posted since."""
        control, block = self._context.control, self._members.block
        older, latest = sorted(CELLS, key=lambda each: control[block + each])
        self._met = latest, control[block + latest] >> MEETING_SHIFT
        cell = block + older
        nbytes = (_CELL_WORDS - STAMP) * WORD
        control[cell + STAMP : cell + _CELL_WORDS] = memoryview(bytes([PATTERN]) * nbytes).cast("Q")

    def give_block(self, give: Callable[[], None]) -> None:
        """Fill the block of this process, and give it back."""
        pattern = memoryview(bytes([PATTERN]) * (BLOCK_WORDS * WORD)).cast("Q")
        block = self._members.block
        self._context.control[block : block + BLOCK_WORDS] = pattern
        give()


class WatchedMeeting(SharedMeeting):
    """The meetings of a group in this mode."""

    def __init__(self, pid: int, nprocs: int, nareas: int, hooks: Any, waiter: Any) -> None:
        super().__init__(pid, nprocs, nareas, hooks, waiter)
        self._watch: Watch = hooks.watch

    def address_of(self, byte: int) -> int:
        """See :meth:`Meeting.address_of`."""
        self._watch.note(byte, "a send buffer, or a staged value,")
        return super().address_of(byte)

    def meet(self, flags: int, head: int, stamp: int) -> bool:
        """See :meth:`Meeting.meet`."""
        self._watch.before_post(self.gets)
        nothing_new = super().meet(flags, head, stamp)
        self._watch.after_posts(head)
        return nothing_new

    def end_superstep(self) -> None:
        """See :meth:`Meeting.end_superstep`."""
        self._watch.end_superstep()
        super().end_superstep()


class WatchedOblivious(Oblivious):
    """The oblivious supersteps of a group in this mode."""

    watch: Watch

    def _consume(self, number: int) -> None:
        self.watch.verify()
        super()._consume(number)

    def _read(self, pid: int, number: int) -> Post:
        members, control = self._members, self._control
        block = members.find(pid)
        index = control[self._element(block, number)]
        if index:
            self.watch.note(index, "the index of an oblivious post")
        post = super()._read(pid, number)
        posted = control[block + POSTED]
        if posted > number + RING:
            message = (
                f"the ring element of post {number} of process {members.root(pid)} was used again "
                f"while it may be read (generation {posted}). [process "
                f"{members.root(members.pid)}, superstep {members.superstep} of its group]"
            )
            raise PoisonError(message)
        return post


class WatchedPort(ShmPort):
    """The connection of one process to the others of a group in this mode."""

    MEETING = WatchedMeeting
    OBLIVIOUS = WatchedOblivious

    def __init__(self, context: ProcessContext, members: Membership) -> None:
        assert isinstance(context, PoisonedContext)  # only its port_class names this class
        self.watch = Watch(context, members)
        super().__init__(context, members)
        assert isinstance(self._oblivious, WatchedOblivious)  # see OBLIVIOUS
        self._oblivious.watch = self.watch
        give = functools.partial(self.watch.give_block, members.give_block)
        members.give_block = give  # type: ignore[method-assign]  # the block is filled first

    def fetch(self, handle: Handle) -> memoryview:
        """See :meth:`Port.fetch`."""
        self.watch.note(handle[1], "a payload")
        return super().fetch(handle)

    def keep(self, handle: Handle) -> Buffer | None:
        """See :meth:`Port.keep`."""
        self.watch.check_alive(handle[1], "a payload")
        kept = super().keep(handle)
        if kept is not None:
            self.watch.note_kept(kept.base, handle[1])
        return kept

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview:
        """See :meth:`Port.reach`."""
        self.watch.check_alive(shared_address, "an array")
        return super().reach(pid, shared_address, nbytes)

    def send_buffer_memory(self) -> Callable[[int], Block]:
        """See :meth:`Port.send_buffer_memory`."""
        return self.watch.send_buffer_memory(super().send_buffer_memory())

    def exchange_oblivious(
        self, entries: Mapping[int, tuple[int, Sent]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        self.watch.before_post(())
        return self._reading(lambda: ShmPort.exchange_oblivious(self, entries, expected, stamp))

    def _reading(self, read: Callable[[], _T]) -> _T:
        """Read what others have posted; of memory that was given back any error may come."""
        try:
            return read()
        except Exception:
            self.watch.verify()
            raise

    def begin_anew(self) -> bool:
        """See :meth:`ShmPort.begin_anew`."""
        self.watch.forget()
        return super().begin_anew()

    def close(self) -> None:
        """See :meth:`Port.close`."""
        self.watch.close()
        super().close()


def _watched(kind: type[ShmPort]) -> type[ShmPort]:
    """Return the form of a class of ports that watches what it reads."""
    if kind is ShmPort:
        return WatchedPort
    return type(f"Watched{kind.__name__}", (WatchedPort, kind), {})
