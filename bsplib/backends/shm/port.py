"""Meetings of a group over shared memory.

One meeting is one post and one look at everybody: a process lays out its parcels
in an outbox of its own, stores their index and then a word in its block, and
waits until the words of all others have come that far. Two slots and at least two
outboxes take turns, so that what a process reads after a meeting stands still
until it comes to the next one; no second barrier is needed.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Arrivals, Arrived, Port, Room
from bsplib.backends.parcels import Parcel, SmallPut, Ticket
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import (
    BLOCKS,
    INDEX,
    MEETING_SHIFT,
    SLOTS,
    STAMP,
    SUPERSTEP_SHIFT,
    TURNED,
)
from bsplib.backends.shm.layout import (
    RECEIVER_SHIFT,
    inline_to,
    is_inline,
    lay_out,
    open_row,
    read_inline,
    read_small_put,
    small_put_to,
    write_inline,
    write_small_put,
)
from bsplib.backends.shm.membership import Membership
from bsplib.backends.shm.oblivious import Oblivious
from bsplib.backends.shm.outbox import Outbox
from bsplib.errors import PartitionError, SyncMismatchError

_NOT_YET = 1 << 62
_LARGE = 1 << 18
"""Bytes of a payload that are too many for the cache next to a core, with others."""
_NEXT_MEETING = 1 << MEETING_SHIFT
_NEXT_SUPERSTEP = 1 << SUPERSTEP_SHIFT


class _Laid(NamedTuple):
    """An outbox that others may still read."""

    last_read: int  # superstep by whose sync all have read it
    oblivious: int  # posts that all have to consume, if that comes first
    outbox: Outbox


_Slots = tuple[list[int], list[int]]
_Outgoing = tuple[Mapping[int, Parcel], Any]


class ShmPort(Port):
    """A process's door to its group in shared memory."""

    def __init__(
        self, context: ProcessContext, members: Membership, parent: ShmPort | None = None
    ) -> None:
        self.pid = members.pid
        self.nprocs = members.nprocs
        self.members = members.roots
        self.released = 0
        self.now = time.perf_counter_ns  # type: ignore[method-assign]  # one call less
        self._context = context
        self._segment = context.segment
        self._control = context.control
        self._waiting = context.waiting
        self._waited = context.waiting.waited
        self._fences = context.fences
        self._is_fenced = context.fences.weak or context.fences.posts_need_fence
        self._members = members
        self._inline_to_me = inline_to(self.pid) >> RECEIVER_SHIFT
        self._small_put_to_me = small_put_to(self.pid) >> RECEIVER_SHIFT
        self._mine: list[int] = []  # words of this process's slots, once it has entered
        self._turned = 0
        self._oblivious = Oblivious(members)
        self._parent = parent
        self._left_over = context.left_over
        self._has_to_prepare = True  # before a meeting: to enter, or to look back at posts
        self._oblivious_at = 0  # the last superstep that ended so
        self._parity = 0
        self._floor = members.superstep << SUPERSTEP_SHIFT
        self._slots: _Slots | None = None  # of others, once all are found
        self._outbox: Outbox | None = None
        self._laid: list[_Laid] = []

    @classmethod
    def of_root(cls, context: ProcessContext) -> ShmPort:
        """Return a process's door to the whole run."""
        root = cls(context, Membership(context, range(context.nprocs), context.pid))
        root._take_block()
        return root

    # -- memory ---------------------------------------------------------------------

    def allocate(self, nbytes: int, *, zero: bool) -> memoryview:
        """See :meth:`Port.allocate`."""
        start, is_zero = self._context.heap.allocate(nbytes)
        memory = self._segment.view(start, nbytes)
        if zero and not is_zero:
            np.frombuffer(memory, np.uint8)[:] = 0
        return memory

    def release(self, memory: memoryview) -> None:
        """See :meth:`Port.release`."""
        start = self._segment.byte_of(np.frombuffer(memory, np.uint8))
        assert start is not None  # it was given out
        self._context.heap.release(start)

    def shared_address_of(self, array: NDArray[Any]) -> int | None:
        """See :meth:`Port.shared_address_of`."""
        return self._segment.byte_of(array) if array.flags.c_contiguous else None

    def reach(self, pid: int, shared_address: int, nbytes: int) -> memoryview:  # noqa: ARG002  # all lie in one segment
        """See :meth:`Port.reach`."""
        return self._segment.view(shared_address, nbytes)

    def is_settled(self, pid: int) -> bool:
        """See :meth:`Port.is_settled`."""
        last = self._members.superstep - 1
        if self._oblivious_at == last:
            return False
        turned = self._members.find(pid) + TURNED
        # It may need a moment to write what it got at the last sync.
        control = self._control
        if control[turned] != last and not (
            self._waiting.arrives(turned, last) and control[turned] == last
        ):
            return False
        if self._is_fenced:
            self._fences.order()  # acquire: TURNED, before others write into its memory
        return True

    def stage(self, nbytes: int, to: int) -> tuple[Ticket, Room]:  # noqa: ARG002  # all can fetch it
        """See :meth:`Port.stage`."""
        if nbytes >= _LARGE and self._outbox is None:
            self._reclaim_delivered(nbytes)
        start = self._get_outbox().room(nbytes)
        return (self.pid, start, nbytes), self._segment.view_array(start, nbytes)

    def stage_message(self, nbytes: int, to: int) -> tuple[Ticket, Room]:
        """See :meth:`Port.stage_message`."""
        staged = self.stage(nbytes, to)
        self._get_outbox().has_messages = True
        return staged

    def fetch(self, ticket: Ticket) -> memoryview:
        """See :meth:`Port.fetch`."""
        _, start, nbytes = ticket
        return self._segment.view(start, nbytes)

    def _get_outbox(self) -> Outbox:
        if self._outbox is None:
            self._outbox = self._context.take_outbox()
        return self._outbox

    # -- meetings of all ------------------------------------------------------------

    def exchange(
        self, parcels: Mapping[int, Parcel], note: int, common: Any = None, stamp: int = 0
    ) -> Arrivals | None:
        """See :meth:`Port.exchange`."""
        return self._meet(note, stamp, outgoing=(parcels, common))  # type: ignore[return-value]

    def _meet(
        self,
        note: int,
        stamp: int = 0,
        to: int = 0,
        small_put: SmallPut | None = None,
        outgoing: _Outgoing | None = None,
    ) -> Arrivals | list[SmallPut] | None:
        """Post what this process has, look at what everybody has posted.

        It is one function for three, since a call takes a noticeable part of the time of an
        empty superstep.

        Args:
            note: see :meth:`Port.exchange`.
            stamp: likewise.
            to: see :meth:`Port.sync_one_put`.
            small_put: likewise.
            outgoing: parcels and announcement, of :meth:`exchange`; None otherwise.
        """
        if self._has_to_prepare:
            self._prepare()
        control, parity, floor = self._control, self._parity, self._floor
        mine, word = self._mine[parity], floor | note << 1
        if stamp or small_put is not None or outgoing is not None:
            word |= self._write(mine, stamp, to, small_put, outgoing)
        if self._is_fenced:
            self._store_fenced(mine, word)
        else:
            control[mine] = word
        if control[self._waited]:
            self._waiting.wake()
        nothing_new = not word & 1
        slots = (self._slots or self._find_all())[parity]
        for slot in slots:
            if control[slot] != word and self._look_at(slot, floor) != word:
                nothing_new = False
        self._parity = 1 - parity
        self._floor = floor + _NEXT_MEETING
        if stamp or self._laid or self._left_over or self._has_to_prepare or self._is_fenced:
            self._look_around(stamp, slots)
        if not nothing_new:
            return self._small_puts(mine, slots) if outgoing is None else self._collect(mine, slots)
        if outgoing is None:  # the superstep ends here, since nothing has to be delivered
            members = self._members
            control[self._turned] = superstep = members.superstep
            members.superstep = superstep + 1
            self._floor = superstep + 1 << SUPERSTEP_SHIFT
        return None

    sync_empty = sync_one_put = _meet

    def _write(
        self,
        mine: int,
        stamp: int,
        to: int,
        small_put: SmallPut | None,
        outgoing: _Outgoing | None,
    ) -> bool:
        """Write into a slot what a post announces; return whether there is any transfer."""
        if stamp:
            self._control[mine + STAMP] = stamp
        if small_put is not None:
            write_small_put(self._segment, mine, to, small_put)
            return True
        return outgoing is not None and self._write_parcels(mine, *outgoing)

    def _store_fenced(self, mine: int, word: int) -> None:
        """Store the word of a post where the machine or the system asks for fences."""
        self._fences.order()  # release: what the word announces, before it
        self._control[mine] = word
        if self._fences.posts_need_fence:
            self._fences.full()  # the word, before the look at WAITED

    def _look_around(self, stamp: int, slots: list[int]) -> None:
        """Do what few meetings need once everybody has posted."""
        self._fences.order()  # acquire: the words, before what they announce
        if stamp:
            self._note_release(stamp, slots)
        if self._laid or self._left_over or self._has_to_prepare:
            self._reclaim()

    def _note_release(self, stamp: int, slots: list[int]) -> None:
        control = self._control
        for slot in slots:
            its = control[slot + STAMP]
            if its > stamp:  # noqa: PLR1730  # without a call
                stamp = its
        self.released = stamp

    def _write_parcels(self, mine: int, parcels: Mapping[int, Parcel], common: Any) -> bool:
        """Write what others are to read of this post; return whether there is anything."""
        if common is None:
            if not parcels:
                return False
            if len(parcels) == 1:
                [(pid, parcel)] = parcels.items()
                if write_inline(self._segment, mine, pid, parcel):
                    return True
        rows = [(pid, 0, parcel.plain()) for pid, parcel in parcels.items()]
        if common is not None:
            rows.append((self.nprocs, 0, common))
        index = lay_out(self._segment, self._get_outbox(), self.nprocs + 1, rows)
        self._control[mine + INDEX] = index
        return True

    def _look_at(self, slot: int, floor: int) -> int:
        """Wait for another process's post; return its word."""
        control = self._control
        if control[slot] < floor and not self._waiting.arrives(slot, floor):
            self._wait_until(lambda: control[slot] >= floor, self._whose(slot), spun=True)
        seen = control[slot]
        if seen >> MEETING_SHIFT != floor >> MEETING_SHIFT:
            self._fail_ahead(self._whose(slot))
        return seen

    def _whose(self, slot: int) -> int:
        return self._members.others[self._find_all()[self._parity].index(slot)]

    def _find_all(self) -> _Slots:
        """Return the words of all others' slots; wait until they have entered the group."""
        members = self._members
        for pid in reversed(members.others):  # who was started last comes last: one wait, not many
            self._wait_until(functools.partial(members.find, pid), pid)
        blocks = [members.find(pid) for pid in members.others]
        first, second = SLOTS
        self._slots = [block + first for block in blocks], [block + second for block in blocks]
        return self._slots

    def _fail_ahead(self, pid: int) -> None:
        """A process is at a later sync: it ended this superstep otherwise."""
        root = self._members.root
        raise SyncMismatchError(
            f"sync: process {root(pid)} is at a later sync than process {root(self.pid)}; one of "
            f"them has ended a superstep by oblsync"
        )

    def _wait_until(self, arrived: Callable[[], object], pid: int, *, spun: bool = False) -> None:
        members = self._members

        def suspect() -> None:
            self._oblivious.read_everything()
            why = members.why_absent(pid)
            if self._oblivious.is_ahead(pid):
                why = "has ended this superstep by oblsync"
            self._fences.order()  # acquire: what it did last, before what it posted
            if why and not arrived():  # it may have come, and gone on, since it was looked for
                raise SyncMismatchError(
                    f"sync: process {members.root(self.pid)} waits for process "
                    f"{members.root(pid)}, which {why}"
                )

        self._waiting.wait(arrived, [members.root(pid)], suspect, spun=spun)

    def _small_puts(self, mine: int, slots: list[int]) -> list[SmallPut] | Arrivals | None:
        """Read the small puts for this process, or all there is if that is more.

        Where nothing is for this process it ends the superstep and returns None.
        """
        control, small_put_to_me = self._control, self._small_put_to_me
        note, small_puts = control[mine] | 1, []
        for slot in slots:
            if control[slot] | 1 != note:
                return self._collect(mine, slots)
            if control[slot] & 1:
                receiver = control[slot + INDEX] >> RECEIVER_SHIFT
                if receiver == small_put_to_me:
                    small_puts.append(read_small_put(self._segment, slot))
                elif receiver == self._inline_to_me or not is_inline(control[slot + INDEX]):
                    return self._collect(mine, slots)
        if small_puts:
            return small_puts
        self.end_superstep()
        return None

    def _collect(self, mine: int, slots: list[int]) -> Arrivals:
        """Read what the slots of a meeting point at."""
        control, segment, pid = self._control, self._segment, self.pid
        notes: list[int] = []
        parcels: list[Arrived] = []
        commons: list[Any] | None = None
        for source, slot in enumerate([*slots[:pid], mine, *slots[pid:]]):
            word = control[slot]
            notes.append(word >> 1 & 0x7F)
            if not word & 1:
                continue
            index = control[slot + INDEX]
            if is_inline(index):
                parcel = read_inline(segment, slot, pid)
            else:
                _, plain = open_row(segment, index, pid)
                parcel = None if plain is None else Parcel.of_plain(plain)
                _, common = open_row(segment, index, self.nprocs)
                if common is not None:
                    commons = commons or [None] * self.nprocs
                    commons[source] = common
            if parcel is not None:
                parcels.append((source, parcel))
        return notes, parcels, commons

    # -- oblivious meetings -----------------------------------------------------------

    def exchange_oblivious(
        self, parcels: Mapping[int, tuple[int, Parcel]], expected: int, stamp: int = 0
    ) -> list[Arrived]:
        """See :meth:`Port.exchange_oblivious`."""
        rows = [(pid, count, parcel.plain()) for pid, (count, parcel) in parcels.items()]

        def write() -> int:
            if not rows:
                return 0
            return lay_out(self._segment, self._get_outbox(), self.nprocs + 1, rows)

        self._prepare()
        self._has_to_prepare = True  # from now on: there are posts to look back at
        self._oblivious_at = self._members.superstep
        self._oblivious.post(write, stamp)
        arrived = self._oblivious.collect(expected)
        self.released = self._oblivious.released
        return arrived

    # -- supersteps and sub-groups ------------------------------------------------------

    def end_superstep(self) -> None:
        """See :meth:`Port.end_superstep`."""
        if self._outbox is not None:
            self._put_aside(self._outbox)
        if self._is_fenced:
            self._fences.order()  # release: what was delivered, before TURNED
        members = self._members
        superstep = members.superstep
        self._control[self._turned] = superstep
        members.superstep = superstep + 1
        self._floor = superstep + 1 << SUPERSTEP_SHIFT

    def _put_aside(self, outbox: Outbox) -> None:
        """Keep what was laid out until all have read it.

        What was laid out at a sync has been read when all come to the next one. A post
        may be looked at until then, by those who did not wait for it.

        What others have consumed is freed before this superstep's outbox is added: the
        messages in it that this process sent to itself are in its queue now, and are
        read until it ends the next superstep. Those of the supersteps before are gone.
        """
        if len(self._laid) > 1:
            self._reclaim_consumed()
        synced = self._oblivious_at != self._members.superstep
        last_read = self._members.superstep if synced else _NOT_YET
        self._laid.append(_Laid(last_read, self._oblivious.ended + synced, outbox))
        self._outbox = None

    def _reclaim(self) -> None:
        """Everybody has come to this superstep: what was laid out earlier has been read."""
        self._oblivious.read_everything()  # all that was posted before is there now
        superstep = self._members.superstep
        self._free(lambda laid: laid.last_read < superstep)
        self._laid = [
            laid._replace(last_read=superstep) if laid.last_read == _NOT_YET else laid
            for laid in self._laid
        ]
        if self._context.left_over:
            self._context.reclaim_left_groups()

    def _reclaim_consumed(self) -> None:
        """Between oblivious supersteps: free what all have consumed."""
        consumed = self._oblivious.least_consumed()
        self._free(lambda laid: laid.oblivious <= consumed)

    def _reclaim_delivered(self, nbytes: int) -> None:
        """Free what was laid out at the last sync, if it has been delivered everywhere.

        What is large is copied faster into memory that has just been read than into
        memory that nobody remembers: it is worth to ask, and to wait a moment.
        """
        last = self._members.superstep - 1

        def is_delivered(laid: _Laid) -> bool:
            return laid.last_read == last and not laid.outbox.has_messages

        patience = range(nbytes // _LARGE)
        if any(map(is_delivered, self._laid)) and all(
            any(self.is_settled(pid) for _ in patience) for pid in self._members.others
        ):
            self._free(is_delivered)

    def _free(self, is_read: Callable[[_Laid], bool]) -> None:
        still = []
        for laid in self._laid:
            if is_read(laid):
                self._context.give_outbox(laid.outbox)
            else:
                still.append(laid)
        self._laid = still

    def split(self, ordinal: int, index: int, pids: Sequence[int]) -> ShmPort:
        """See :meth:`Port.split`."""
        pid = pids.index(self.pid)
        members = Membership(self._context, pids, pid, self._members, ordinal, index)
        return ShmPort(self._context, members, self)

    def _prepare(self) -> None:
        """Do what has to precede a post."""
        if not self._mine:
            self._enter()
        self._has_to_prepare = self._oblivious.ended > 0
        self._oblivious.read_everything()

    def _enter(self) -> None:
        """Let the others find this process in the group, before its first post."""
        if self._parent is not None and not self._parent._mine:
            self._parent._enter()
        self._context.reclaim_left_groups()
        if not self._context.has_block():
            self._wait_for_block()
        self._take_block()

    def _take_block(self) -> None:
        self._members.enter()
        block = self._members.block
        self._mine = [block + slot for slot in SLOTS]
        self._turned = block + TURNED

    def _wait_for_block(self) -> None:
        """Wait until everybody has left one of the groups that this process has left."""
        context = self._context
        if not context.left_over:
            raise PartitionError(f"partition: groups nest at most {BLOCKS} deep")
        others = [pid for pid in range(context.nprocs) if pid != context.pid]

        def has_block() -> bool:
            context.reclaim_left_groups()
            return context.has_block()

        context.waiting.wait(has_block, others, lambda: None)

    def close(self) -> None:
        """See :meth:`Port.close`."""
        if self._outbox is not None:
            self._context.give_outbox(self._outbox)
            self._outbox = None
        self._try_to_leave()
        if self._parent is not None and self._mine:
            self._context.left_over.append(self)

    def _try_to_leave(self) -> None:
        """Leave once this process has seen that nobody sent it a message too many."""
        if not self._members.open_inside and self._oblivious.has_read_all():
            self._oblivious.leave()
            self._members.leave()

    def let_go(self) -> bool:
        """Give blocks and outboxes back if everybody has left; return whether so."""
        if not self._members.closed:
            self._try_to_leave()
        if not self._members.closed or not self._members.all_have_left():
            return False
        self._free(lambda _: True)
        self._members.give_block()
        return True
