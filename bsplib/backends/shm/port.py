"""Meetings of a group over shared memory.

One meeting is one post and one look at everybody: a process lays out its parcels
in an outbox of its own, stores their index and then a word in its block, and
waits until the words of all others have come that far. Two slots and at least two
outboxes take turns, so that what a process reads after a meeting stands still
until it comes to the next one; no second barrier is needed.
"""

from __future__ import annotations

import marshal
from array import array
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Arrivals, Parcel, Port, Ticket
from bsplib.backends.shm.control import (
    BLOCK_WORDS,
    BLOCKS,
    CLOSED,
    CONSUMED,
    FIRST_BLOCK,
    LATEST,
    MEETING_SHIFT,
    POSTED,
    RING,
    RING_START,
    ROOT_KEY,
    SLOTS,
    SUPERSTEP_SHIFT,
    WORD,
)
from bsplib.backends.shm.outbox import Outbox
from bsplib.backends.shm.seat import Seat
from bsplib.errors import PartitionError, SyncMismatchError

_KEY_MASK = (1 << 62) - 1
_GONE = 1 << 62
"""CONSUMED of a process that has left: it holds nobody up."""


class _Laid(NamedTuple):
    """An outbox that others may still read."""

    superstep: int
    oblivious: int  # oblivious supersteps that had to be consumed before it is free
    outbox: Outbox


class ShmPort(Port):
    """A process's door to its group in shared memory."""

    def __init__(
        self,
        seat: Seat,
        key: int,
        first: int,
        pid: int,
        nprocs: int,
        parent: ShmPort | None = None,
        ordinal: int = 0,
    ) -> None:
        self.pid = pid
        self.nprocs = nprocs
        self.first = first
        self.released = 0
        self._seat = seat
        self._words = seat.words
        self._buffer = seat.segment.buffer
        self._key = key
        self._parent = parent
        self._ordinal = ordinal  # which partition of the parent this is
        self._superstep = 1  # a word of 0 has never been posted
        self._meeting = 0
        self._slot = 0
        self._oblivious = 0  # oblivious supersteps ended
        self._unseen: list[tuple[int, list[int]]] = []  # (oblivious superstep, pids not there yet)
        self._outbox: Outbox | None = None
        self._laid: deque[_Laid] = deque()
        self._closed = False
        self._left_over: list[ShmPort] = []  # sub-groups that others may still be in
        self._blocks = [0] * nprocs  # words at which everybody's blocks begin, 0 if not found yet
        self._block = self._blocks[pid] = self._take_block()
        self._others = [other for other in range(nprocs) if other != pid]

    # -- memory ---------------------------------------------------------------------

    def allocate(self, nbytes: int) -> memoryview:
        """See :meth:`Port.allocate`."""
        start, zero = self._seat.heap.allocate(nbytes)
        memory = self._buffer[start : start + nbytes]
        if not zero:
            np.frombuffer(memory, np.uint8)[:] = 0
        return memory

    def release(self, memory: memoryview) -> None:
        """See :meth:`Port.release`."""
        base = self._seat.segment.bytes.ctypes.data
        self._seat.heap.release(np.frombuffer(memory, np.uint8).ctypes.data - base)

    def stage(self, nbytes: int) -> tuple[Ticket, NDArray[np.uint8]]:
        """See :meth:`Port.stage`."""
        if self._outbox is None:
            self._outbox = self._seat.take_outbox()
        start = self._outbox.room(nbytes)
        return (start, nbytes), self._seat.segment.bytes[start : start + nbytes]

    def fetch(self, ticket: Ticket) -> memoryview:
        """See :meth:`Port.fetch`."""
        start, nbytes = ticket
        return self._buffer[start : start + nbytes]

    # -- meetings of all ------------------------------------------------------------

    def meet(
        self, parcels: Mapping[int, Parcel], note: int, common: Parcel | None = None, stamp: int = 0
    ) -> Arrivals:
        """See :meth:`Port.meet`."""
        self._read_everything()
        words = self._words
        index = 0
        if parcels or common is not None:
            index = self._lay_out({pid: (0, parcel) for pid, parcel in parcels.items()}, common)
        floor = self._superstep << SUPERSTEP_SHIFT | self._meeting << MEETING_SHIFT
        slot = SLOTS[self._slot]
        mine = self._block + slot
        words[mine + 1] = index
        if stamp:
            words[mine + 2] = stamp
        self._seat.fence()
        words[mine] = floor | note << 1 | (index != 0)
        if words[self._seat.waited]:
            self._seat.ring()
        seen = self._wait_for_all(slot, floor)
        self._meeting += 1
        self._slot ^= 1
        if stamp:
            self.released = max(words[block + slot + 2] for block in self._blocks)
        self._reclaim_all_before(self._superstep)
        return self._collect(seen, slot)

    def _wait_for_all(self, slot: int, floor: int) -> list[int]:
        """Return the words of this meeting, by pid."""
        words, blocks = self._words, self._blocks
        seen = []
        for pid in range(self.nprocs):
            block = blocks[pid]
            word = words[block + slot] if block else 0
            if word < floor or not block:
                self._wait_for(pid, slot, floor)
                word = words[blocks[pid] + slot]
            seen.append(word)
        return seen

    def _wait_for(self, pid: int, slot: int, floor: int) -> None:
        words, blocks = self._words, self._blocks

        def arrived() -> bool:
            block = blocks[pid] or self._find_block(pid)
            return block != 0 and words[block + slot] >= floor

        def suspect() -> None:
            self._read_everything()
            why = self._why_absent(pid)
            block = blocks[pid]
            if block and words[block + POSTED] > self._oblivious:
                why = "has ended this superstep by oblsync"
            if why and not arrived():
                raise SyncMismatchError(
                    f"sync: process {self._root(self.pid)} waits for process "
                    f"{self._root(pid)}, which {why}"
                )

        self._seat.wait(arrived, [self._root(pid)], suspect)

    def _collect(self, seen: list[int], slot: int) -> Arrivals:
        """Read what the slots of a meeting point at."""
        notes = [word >> 1 & 0x7F for word in seen]
        parcels: list[tuple[int, Any]] = []
        commons: list[Any] | None = None
        for pid, word in enumerate(seen):
            if not word & 1:
                continue
            index = self._words[self._blocks[pid] + slot + 1]
            if pid != self.pid:
                _, parcel = self._open(index, self.pid)
                if parcel is not None:
                    parcels.append((pid, parcel))
            _, common = self._open(index, self.nprocs)
            if common is not None:
                commons = commons or [None] * self.nprocs
                commons[pid] = common
        return Arrivals(notes, parcels, commons)

    # -- oblivious meetings -----------------------------------------------------------

    def meet_some(
        self, parcels: Mapping[int, tuple[int, Parcel]], expected: int, stamp: int = 0
    ) -> list[tuple[int, Any]]:
        """See :meth:`Port.meet_some`."""
        self._read_everything()
        self._wait_for_ring()
        number = self._oblivious
        index = self._lay_out(parcels, None) if parcels else 0
        entry = self._block + RING_START + number % RING * 2
        self._words[entry] = index
        self._words[entry + 1] = stamp
        self._seat.fence()
        self._words[self._block + LATEST] = self._superstep
        self._words[self._block + POSTED] = number + 1
        if self._words[self._seat.waited]:
            self._seat.ring()
        self._oblivious += 1
        self.released = stamp
        return self._wait_for_messages(number, expected)

    def _wait_for_messages(self, number: int, expected: int) -> list[tuple[int, Any]]:
        """Wait for messages of one oblivious superstep; return parcels by source."""
        unseen = list(self._others)
        arrived: list[tuple[int, Any]] = []
        count = self._look(number, unseen, arrived)
        while count < expected:
            if not unseen:
                raise SyncMismatchError(
                    f"oblsync({expected}) waits for {expected} messages from others and all "
                    f"processes have sent theirs: there are {count}"
                )
            self._wait_for_any(number, unseen)
            count += self._look(number, unseen, arrived)
        if count > expected:
            raise SyncMismatchError(
                f"oblsync: {count} messages have come from processes "
                f"{[self._root(source) for source, _ in arrived]} and {expected} were "
                f"expected from others"
            )
        if unseen:
            self._unseen.append((number, unseen))
        arrived.sort(key=lambda entry: entry[0])
        return arrived

    def _look(self, number: int, unseen: list[int], arrived: list[tuple[int, Any]]) -> int:
        """Move those who have posted from ``unseen`` to ``arrived``; count messages."""
        words, total = self._words, 0
        for pid in list(unseen):
            block = self._blocks[pid] or self._find_block(pid)
            if not block or words[block + POSTED] <= number:
                continue
            unseen.remove(pid)
            entry = block + RING_START + number % RING * 2
            messages, parcel = self._open(words[entry], self.pid)
            if messages:
                total += messages
                arrived.append((pid, parcel))
                self.released = max(self.released, words[entry + 1])
        return total

    def _wait_for_any(self, number: int, unseen: list[int]) -> None:
        words, blocks = self._words, self._blocks

        def posted(pid: int) -> bool:
            block = blocks[pid] or self._find_block(pid)
            return block != 0 and words[block + POSTED] > number

        def suspect() -> None:
            self._read_everything()
            for pid in unseen:
                why = self._why_absent(pid)
                if self._ended(pid) >= self._superstep:
                    why = "has ended this superstep by sync or the end of main"
                if why and not posted(pid):
                    raise SyncMismatchError(
                        f"oblsync: process {self._root(self.pid)} waits for process "
                        f"{self._root(pid)}, which {why}"
                    )

        self._seat.wait(
            lambda: any(posted(pid) for pid in unseen), map(self._root, unseen), suspect
        )

    def _wait_for_ring(self) -> None:
        """Stay at most RING oblivious supersteps ahead of the slowest process."""
        floor = self._oblivious - RING + 1
        if floor <= 0 or self._least_consumed() >= floor:
            return
        self._seat.wait(
            lambda: self._least_consumed() >= floor,
            map(self._root, self._others),
            self._read_everything,
        )

    def _least_consumed(self) -> int:
        words = self._words
        least = self._oblivious
        for pid in self._others:
            block = self._blocks[pid] or self._find_block(pid)
            least = min(least, words[block + CONSUMED] if block else 0)
        return least

    def _read_everything(self) -> None:
        """Publish which oblivious supersteps this process will not read again.

        Those who had not posted when enough messages were there are looked at now:
        a message from them would be one too many.
        """
        if not self._oblivious:
            return
        for number, pids in self._unseen:
            late: list[tuple[int, Any]] = []
            if self._look(number, pids, late):
                raise SyncMismatchError(
                    f"oblsync: process {self._root(late[0][0])} sent process "
                    f"{self._root(self.pid)} more messages than it had waited for"
                )
        self._unseen = [(number, pids) for number, pids in self._unseen if pids]
        consumed = self._unseen[0][0] if self._unseen else self._oblivious
        self._words[self._block + CONSUMED] = consumed
        if self._words[self._seat.waited]:
            self._seat.ring()

    # -- parcels ----------------------------------------------------------------------

    def _lay_out(self, parcels: Mapping[int, tuple[int, Parcel]], common: Parcel | None) -> int:
        """Write parcels and their index into the outbox; return where the index is."""
        if self._outbox is None:
            self._outbox = self._seat.take_outbox()
        outbox, buffer = self._outbox, self._buffer
        index = array("Q", bytes(3 * WORD * (self.nprocs + 1)))
        entries = list(parcels.items())
        if common is not None:
            entries.append((self.nprocs, (0, common)))
        for pid, (messages, parcel) in entries:
            blob = marshal.dumps(parcel)  # type: ignore[arg-type]  # plain values, see base
            start = outbox.room(len(blob))
            buffer[start : start + len(blob)] = blob
            index[3 * pid : 3 * pid + 3] = array("Q", (start, len(blob), messages))
        raw = index.tobytes()
        start = outbox.room(len(raw))
        buffer[start : start + len(raw)] = raw
        return start

    def _open(self, index: int, pid: int) -> tuple[int, Any]:
        """Return how many messages a parcel has, and the parcel; (0, None) if there is none."""
        if not index:
            return 0, None
        at = index // WORD + 3 * pid
        start, nbytes, messages = self._words[at : at + 3]
        return messages, marshal.loads(self._buffer[start : start + nbytes]) if nbytes else None

    # -- supersteps and sub-groups ------------------------------------------------------

    def turn(self) -> None:
        """See :meth:`Port.turn`."""
        if self._outbox is not None:
            # After a global sync all has been read once everybody comes to the next one.
            ended = self._oblivious if self._meeting else self._oblivious - 1
            self._laid.append(_Laid(self._superstep, ended + 1, self._outbox))
            self._outbox = None
            self._reclaim_consumed()
        self._superstep += 1
        self._meeting = 0

    def _reclaim_all_before(self, superstep: int) -> None:
        """Everybody has come to ``superstep``: what was laid out earlier has been read."""
        laid = self._laid
        while laid and laid[0].superstep < superstep:
            self._seat.give_outbox(laid.popleft().outbox)
        if self._left_over:
            self._sweep()

    def _reclaim_consumed(self) -> None:
        """Between oblivious supersteps: free what all have consumed."""
        if len(self._laid) > 2:
            consumed = self._least_consumed()
            while self._laid and self._laid[0].oblivious <= consumed:
                self._seat.give_outbox(self._laid.popleft().outbox)

    def split(self, ordinal: int, index: int, first: int, size: int) -> ShmPort:
        """See :meth:`Port.split`."""
        self._sweep()
        # Equal on all members without asking: they came here by the same partitions.
        key = hash((self._key, ordinal, index)) & _KEY_MASK | 2
        return ShmPort(self._seat, key, self.first + first, self.pid - first, size, self, ordinal)

    def close(self) -> None:
        """See :meth:`Port.close`."""
        self._read_everything()
        self._words[self._block + CONSUMED] = _GONE
        if self._outbox is not None:
            self._seat.give_outbox(self._outbox)
            self._outbox = None
        self._closed = True
        if self._parent is not None:
            self._words[self._parent._block + CLOSED] = self._ordinal + 1
            self._parent._left_over += [*self._left_over, self]
            self._left_over = []
        if self._words[self._seat.waited]:
            self._seat.ring()

    def _sweep(self) -> None:
        """Reclaim blocks and outboxes of sub-groups that everybody has left."""
        still = []
        for port in self._left_over:
            if all(port._has_left(pid) for pid in port._others):
                for laid in port._laid:
                    self._seat.give_outbox(laid.outbox)
                self._words[self._seat.control(self._seat.pid) + port._label()] = 0
            else:
                still.append(port)
        self._left_over = still

    def _has_left(self, pid: int) -> bool:
        """Tell whether a process will never again look at this group's blocks."""
        parent = self._parent
        if parent is None:
            return False
        above = pid + self.first - parent.first
        if parent._closed:  # its blocks there may serve another group by now
            return parent._has_left(above)
        block = parent._blocks[above] or parent._find_block(above)
        return block != 0 and self._words[block + CLOSED] > self._ordinal

    def _why_absent(self, pid: int) -> str | None:
        """Say where a process is, if it is not on its way to a sync of this group."""
        if self._has_left(pid):
            return f"has left the sub-group of processes {self._span()}"
        port, parent = self, self._parent
        while parent is not None:
            above = self._root(pid) - parent.first
            if parent._ended(above) >= parent._superstep:
                return f"is at a sync outside the sub-group of processes {port._span()}"
            port, parent = parent, parent._parent
        return None

    def _ended(self, pid: int) -> int:
        """Return the latest superstep that a process has come to the end of."""
        block = self._blocks[pid] or self._find_block(pid)
        if not block:
            return 0
        words = self._words
        slots = max(words[block + slot] for slot in SLOTS)
        return max(slots >> SUPERSTEP_SHIFT, words[block + LATEST])

    def _span(self) -> str:
        return f"{self.first} to {self.first + self.nprocs - 1}"

    # -- blocks -------------------------------------------------------------------------

    def _root(self, pid: int) -> int:
        return self.first + pid

    def _label(self) -> int:
        mine = self._seat.control(self._seat.pid) + FIRST_BLOCK
        return (self._block - mine) // BLOCK_WORDS

    def _take_block(self) -> int:
        """Clear a free block, label it with the key, return the word it begins at."""
        control = self._seat.control(self._seat.pid)
        labels = self._words[control : control + BLOCKS].tolist()
        if 0 not in labels:
            raise PartitionError(
                f"process {self._seat.pid} is in, or others have not yet left, {BLOCKS} groups "
                f"at a time, which is the most there can be; sync the parent now and then"
            )
        number = labels.index(0)
        block = control + FIRST_BLOCK + number * BLOCK_WORDS
        if self._parent is not None:  # the root's was reserved before the start
            self._seat.segment.reserve(block * WORD, BLOCK_WORDS * WORD)
        self._words[block : block + BLOCK_WORDS] = memoryview(bytes(BLOCK_WORDS * WORD)).cast("Q")
        self._seat.fence()
        self._words[control + number] = self._key
        return block

    def _find_block(self, pid: int) -> int:
        """Return where the block of a process for this group begins, 0 if it has none yet."""
        control = self._seat.control(self._root(pid))
        if self._key == ROOT_KEY:
            labels = [self._words[control]]
        else:
            labels = self._words[control : control + BLOCKS].tolist()
        if self._key not in labels:
            return 0
        self._seat.fence()
        block = control + FIRST_BLOCK + labels.index(self._key) * BLOCK_WORDS
        self._blocks[pid] = block
        return block
