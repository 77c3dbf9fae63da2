"""The quick way of the primitives: put, hpput, get, send and sync, in one class.

A group inherits them from :class:`Core`. Each of them tries the quick way first: it takes
what is frequent and simple, such as contiguous values of the right dtype, and declines
everything else by returning False. Then the long way (:mod:`bsplib.primitives`) decides and
explains: it has all checks, and raises all errors.

The quick transfers of a superstep are collected in a :class:`~bsplib.core.box.Box`. A superstep
with quick transfers alone ends by a :class:`~bsplib.core.meeting.Meeting`, after which each
process reads its records in the boxes of the others. As soon as anything took the long way,
:meth:`Core._spill` moves the records of this process there, in program order. What one process
does needs no agreement: a process that ends the superstep by the long way reads records of
others, and one that takes the quick way finds parcels, and then delivers by the long way.
"""

from __future__ import annotations

import marshal
from array import array as numbers
from typing import Any, NoReturn

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.box import Box
from bsplib.core.lanes import Lane
from bsplib.core.log import IN, OUT
from bsplib.core.meeting import Meeting
from bsplib.core.queue import CollectiveTag, Queue
from bsplib.errors import BspError
from bsplib.sync_kinds import Kind

if not cython.compiled:
    from bsplib.core.atomics import (
        address_of,
        base_of,
        bytes_at,
        copy,
        fits,
        is_array,
        is_of,
        is_packed,
        is_writable,
        length_of,
        nbytes_of,
        ndim_of,
        new_array,
        new_like,
        now_ns,
        owns_memory,
        packed,
        peek,
        poke,
        prepare,
        same_shape,
        small_integer,
        write_bytes,
        write_number,
    )
    from bsplib.core.box import (
        BYTE_MASK,
        HEAD_BYTES,
        IN_BOX,
        KIND_SHIFT,
        MESSAGE,
        MOST_SLOTS,
        ON_CARD,
        PUT,
        RECEIVER_SHIFT,
        SIZE_MASK,
        SLOT_SHIFT,
        STAGED_MESSAGE,
        STAGED_PUT,
    )
prepare()

_MOST_SHARED, _MOST_PRIVATE = 8192, 1024
"""Bytes up to which values are copied into the box, where processes share memory and where
they do not; larger ones are staged."""
_MANY_PAGES = 1 << 16
"""Bytes of an hpput from which on the pages there are mapped at once, the first time."""
_SYNC = Kind.SYNC
_KIND = 3
_HAS_GET = 4
_UNRESOLVED = 8
_HAS_MESSAGES = 16
_LOW = 0xFFFFFFFF
_CARD_ROOM = 256
_MOST_OFFSET = 1 << 40
_OWN_FRAMES = 0 if cython.compiled else 2
"""Interpreted functions of this module between the program and the search for its stack."""
_MOST_HEADS = 4096
"""Heads of messages that are remembered, to encode and decode them once."""

Record = tuple[bool, int, int, Any, Any]
"""A record, read: whether it is a message, its slot, its first byte, its head, and its data or
where they are staged."""


class Core:
    """The quick way of one process in one group.

    Args:
        pid: this process.
        nprocs: number of processes of the group.
        meeting: the meetings of the group.
        box: for the records of this process.
    """

    def __init__(self, pid: int, nprocs: int, meeting: Meeting, box: Box) -> None:
        self._pid = pid
        self._nprocs = nprocs
        self._meeting = meeting
        self._box = box
        self._most_in_box = _MOST_SHARED if meeting.is_quick else _MOST_PRIVATE
        self._superstep = 0
        self._unusable: str | None = None
        self._long = False
        self._timed = False
        """Something has to be done at the beginning and the end of every call."""
        self._clock: Any = None
        """The clock of the process where its time is virtual: it stands still inside a call."""
        self._recorded = False
        self._log: Any = None
        self._stack_keys: Any = None
        self._comm_ns = 0
        # What the long way has of this superstep.
        self._out: Any = {}
        self._early: Any = {}
        self._changes: list[Any] = []
        self._unresolved: list[Any] = []
        # Arrays.
        self._lanes: dict[int, Lane] = {}
        self._last_array: Any = None
        self._last_lane: Any = None
        self._lane: Any = None
        self._here = numbers("Q", bytes(8 * 16))
        # Gets.
        self._quick_gets: list[Any] = meeting.gets
        self._gets_are_direct = True
        self._long_gets = False
        self._read = np.empty(0, np.uint8)
        # Messages.
        self._queue = Queue()
        self._tag_size: int | None = None
        self._sends_messages = False
        self._heads_out: dict[Any, bytes] = {}
        self._heads_in: dict[bytes, Any] = {}
        self._dtypes: dict[Any, Any] = {}
        # How much this process has transferred in this superstep, by partner.
        # The arrays are made when they are needed: there may be thousands of processes.
        self._counts = self._has_counts = False
        self._sent_bytes = self._sent = numbers("Q", [0])
        self._got_bytes = self._got = numbers("Q", [0])
        self._has_early = False
        self._early_bytes = self._early_puts = numbers("Q", [0])
        # What a meeting has brought, by source: where records begin, and where those of a card end.
        self._first = self._stop = numbers("Q", [0])
        self._delivers = False
        self._cards: Any = None

    # -- puts -------------------------------------------------------------------------------

    def put(self, pid: int, src: Any, dst: Any, *, offset: Any = None, at: Any = None) -> None:
        """Write ``src`` into ``dst`` on process ``pid`` at the end of the superstep.

        The values are copied before the call returns. Gets of the same superstep
        read before any put writes; puts are written in the order (source, program).

        Args:
            pid: receiving process, ``0 <= pid < nprocs``; may be this one.
            src: values, cast (same_kind) to the dtype of ``dst``; broadcast to a view.
            dst: registered array or a basic-slice view of one; names the same
                indices on ``pid``.
            offset: first element there, in C order of the whole array; as many as
                ``src`` has.
            at: basic index against the shape of the array on ``pid``, such as
                ``numpy.s_[:, -1]``.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``dst`` is not registered, not yet effective, or None
                on ``pid``.
            PlaceError: ``dst`` is a number, ``at`` is no basic index, or both
                ``offset`` and ``at`` are given.
            BoundsError: the write would leave the array on ``pid``; raised at the
                sync where that array was made in this superstep.
            DtypeError: ``src`` cannot be cast, or the array has another dtype on ``pid``.
            OverlapError: with ``check=True``, ``src`` is read before a get has filled it.
            OutOfSharedMemoryError: there is no room for the copy of ``src``.
            PartitionError: the group cannot be used now.

        Cost: the bytes that are written to h_out here and to h_in on ``pid``.
        Source: Hill et al. 1998, bsp_put; offsets are elements, not bytes.
        """
        began = self._begin_call() if self._timed else 0
        try:
            if at is not None or not self._put_quickly(pid, src, dst, offset):
                self._put_slowly("put", pid, src, dst, offset, at)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

    def hpput(self, pid: int, src: Any, dst: Any, *, offset: Any = None, at: Any = None) -> None:
        """Write ``src`` into ``dst`` on process ``pid`` at any time in the superstep.

        This saves copies of large values: they may be read, and written on ``pid``, at any
        moment from the call to the end of the superstep. Until the sync, therefore, ``src``
        may not be changed, and what is named on ``pid`` may be neither read nor written by
        anything else. What a program that breaks this finds there is undefined.

        Args:
            pid: receiving process, ``0 <= pid < nprocs``; may be this one.
            src: values, cast (same_kind) to the dtype of ``dst``; broadcast to a view.
            dst: registered array or a basic-slice view of one; names the same
                indices on ``pid``.
            offset: first element there, in C order of the whole array; as many as
                ``src`` has.
            at: basic index against the shape of the array on ``pid``.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``dst`` is not registered, not yet effective, or None
                on ``pid``.
            PlaceError: ``dst`` is a number, ``at`` is no basic index, or both
                ``offset`` and ``at`` are given.
            BoundsError: the write would leave the array on ``pid``; raised at the
                sync where that array was made in this superstep.
            DtypeError: ``src`` cannot be cast, or the array has another dtype on ``pid``.
            OverlapError: with ``check=True``, ``src`` is read before a get has filled it;
                the sync raises it where ``src`` was changed or another transfer overlaps.
            OutOfSharedMemoryError: ``src`` has to be copied, and there is no room for it.
            PartitionError: the group cannot be used now.

        Cost: the bytes that are written to h_out here and to h_in on ``pid``.
        Source: Hill et al. 1998, bsp_hpput.
        """
        began = self._begin_call() if self._timed else 0
        try:
            if at is not None or not self._hpput_quickly(pid, src, dst, offset):
                self._put_slowly("hpput", pid, src, dst, offset, at)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

    def get(
        self, pid: int, src: Any, dst: Any = None, *, offset: Any = None, at: Any = None
    ) -> Any:
        """Read ``src`` on process ``pid`` into ``dst`` at the end of the superstep.

        The values are those that ``src`` has when the superstep ends, before any put of
        the superstep is written. Destinations are written in program order.

        Args:
            pid: process to read from, ``0 <= pid < nprocs``; may be this one.
            src: registered array or a basic-slice view of one; names the same
                indices on ``pid``.
            dst: writable array or view, registered or not, of the shape of what is
                named; a new array if None.
            offset: first element there, in C order of the whole array; as many as
                ``dst`` has, which must be given.
            at: basic index against the shape of the array on ``pid``.

        Returns:
            ``dst``, whose content is valid after the sync.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``src`` is not registered, not yet effective, or None
                on ``pid``.
            PlaceError: ``src`` is a number, ``at`` is no basic index, both ``offset`` and
                ``at`` are given, or ``dst`` is missing beside ``offset``, cannot be
                written or has another shape.
            BoundsError: the read would leave the array on ``pid``; raised at the sync
                where that array was made in this superstep.
            DtypeError: ``dst`` cannot take the values, or the array has another dtype
                on ``pid``.
            PartitionError: the group cannot be used now.

        Cost: the bytes that are read to h_in here and to h_out on ``pid``.
        Source: Hill et al. 1998, bsp_get.
        """
        began = self._begin_call() if self._timed else 0
        try:
            if at is None:
                into = dst
                if dst is None and offset is None and is_array(src):
                    into = new_like(src)
                if into is not None and self._get_quickly(pid, src, into, offset):
                    return into
            return self._get_slowly("get", pid, src, dst, offset, at)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

    def send(self, pid: int, payload: Any, tag: Any = None) -> None:
        """Send a message that process ``pid`` can read in the next superstep.

        The payload is copied before the call returns.

        Args:
            pid: receiving process, ``0 <= pid < nprocs``; may be this one.
            payload: array (shape and dtype are kept), bytes, or any picklable object.
            tag: small picklable object; bytes of the size that :meth:`set_tagsize`
                set, where it did. None stands for the tag of size 0.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            MessageError: the payload or the tag cannot be pickled, or the tag has
                another size.
            OverlapError: with ``check=True``, the payload is read before a get has filled it.
            OutOfSharedMemoryError: there is no room for the copy of the payload.
            PartitionError: the group cannot be used now.

        Cost: the payload's bytes to h_out here and to h_in on ``pid``; a tag is free.
        Source: Hill et al. 1998, bsp_send.
        """
        began = self._begin_call() if self._timed else 0
        try:
            if not self._send_quickly(pid, payload, tag):
                self._send_slowly(pid, payload, tag)
        except BspError as error:
            self._fail(error)
        finally:
            if began:
                self._end_call(began)

    def sync(self) -> None:
        """End the superstep: wait for all processes of the group, deliver everything.

        Gets read and write first, then puts write, then messages become readable.
        Messages of the superstep before that were not read are gone.

        Raises:
            SyncMismatchError: another process ends this superstep in another way, or
                made other registrations in it.
            RegistrationError: a transfer named an array made in this superstep, which is
                None on the other process.
            BoundsError: a transfer named an array made in this superstep, and would
                leave it.
            DtypeError: a transfer named an array made in this superstep, which has
                another dtype on the other process.
            OverlapError: with ``check=True``, transfers overlap, or an array that belongs
                to a transfer was changed before its time.
            OutOfSharedMemoryError: there is no room for the values of a get.
            PartitionError: the group cannot be used now.

        Cost: g h + l, where h is the greatest of h_in and h_out of all processes.
        Source: Hill et al. 1998, bsp_sync.
        """
        clock = self._clock
        if clock is not None:
            clock.enter()
            clock.settle()  # others wait for this process
        try:
            if self._unusable is not None:
                self._check_usable("sync")
            if self._recorded:
                self._sync_recorded()
            elif not self._sync_quickly(0):
                self._end_superstep(_SYNC, 0)
        finally:
            if clock is not None:
                clock.leave()

    def messages(self) -> Any:
        """Take the messages one after the other, as (source, tag, payload).

        They come in the order (source, program); each payload is the caller's own. A
        message is taken when the iteration reaches it: the others stay in the queue.

        Raises:
            PartitionError: the group cannot be used now.

        Cost: nothing beyond what sending cost; one copy of each payload.
        Source: Hill et al. 1998, bsp_get_tag and bsp_move.
        """
        began = self._begin_call() if self._clock is not None else 0
        try:
            if self._unusable is not None:
                self._check_usable("messages")
            return Reading(self, self._queue)
        finally:
            if began:
                self._end_call(began)

    # -- the time of calls --------------------------------------------------------------------

    def _begin_call(self) -> int:
        """Stop virtual time, or note the real time; return what :meth:`_end_call` needs."""
        if self._clock is not None:
            self._clock.enter()
            return 1
        return now_ns()

    def _time_ns(self) -> int:
        """Return the time of this process, which may be virtual."""
        return now_ns() if self._clock is None else self._clock.now()

    def _end_call(self, began: int) -> None:
        """Let virtual time go on, or count the time of a call as communication."""
        if self._clock is not None:
            self._clock.leave()
        else:
            self._comm_ns += now_ns() - began

    # -- the place of a transfer --------------------------------------------------------------

    def _lane_of(self, array: Any) -> bool:
        """Find the lane of an array; return whether it has one."""
        if array is self._last_array and array is not None:
            self._lane = self._last_lane
            return True
        lane = self._lanes.get(id(array))
        if lane is None:
            return False
        self._last_array, self._last_lane = array, lane
        self._lane = lane
        return True

    def _forget_lanes(self) -> None:
        """Let every transfer go the long way until it has opened a lane again."""
        self._lanes.clear()
        self._last_array = self._last_lane = self._lane = None

    def _first_byte(self, to: int, array: Any, values: Any, offset: Any) -> int:
        """Return the byte at which a transfer begins; -1 where it has to go the long way.

        As a side effect the lane is found.

        Args:
            to: the other process.
            array: names the place.
            values: an array, or a number.
            offset: of the first element, or None.
        """
        if self._lane_of(array):
            lane = self._lane
            if offset is not None:
                first = small_integer(offset)
                return first if first < 0 or first > _MOST_OFFSET else first * lane.itemsize
            # All of it, if the array there has the same shape.
            if not is_array(values) or not same_shape(values, lane.array):
                return -1
            alike = lane.alike or (
                ndim_of(lane.array) == 1 and lane.sizes[to] == nbytes_of(lane.array)
            )
            return 0 if alike else -1
        # Perhaps a view of an array that has a lane.
        if offset is not None or not is_array(array) or not self._lane_of(base_of(array)):
            return -1
        if is_array(values):
            if not same_shape(values, array):
                return -1
        elif ndim_of(array) != 1 or length_of(array, 0) != 1:
            return -1
        found: Lane = self._lane
        return found.first_of(array)

    def _put_quickly(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        to = small_integer(pid)
        if to < 0 or to >= self._nprocs:
            return False
        start = self._first_byte(to, dst, src, offset)
        if start < 0:
            return False
        lane, first = self._lane, start
        if not is_array(src):
            if first + 8 > lane.sizes[to] or not fits(lane.number, src):
                return False
            write_number(self._room(to, lane, first, 8), lane.number, src)
            return True
        nbytes = nbytes_of(src)
        if not is_of(src, lane.dtype) or nbytes == 0 or first + nbytes > lane.sizes[to]:
            return False
        if not is_packed(src):
            src = packed(src)
        return self._put_bytes(to, lane, first, src, nbytes)

    def _put_bytes(self, to: int, lane: Lane, first: int, values: Any, nbytes: int) -> bool:
        """Copy contiguous values into the box, or stage them where they are large."""
        if nbytes <= self._most_in_box:
            copy(self._room(to, lane, first, nbytes), address_of(values), nbytes)
            return True
        if self._meeting.is_quick:
            staged = self._room_staged(nbytes, to)
            if staged >= 0:
                copy(self._meeting.address_of(staged), address_of(values), nbytes)
        else:
            staged = self._stage(values, nbytes, to)
        if staged < 0:
            return False
        head = STAGED_PUT << KIND_SHIFT | lane.slot << SLOT_SHIFT | nbytes
        poke(self._box.room(to, head, first, 8), staged)
        self._count(to, nbytes)
        return True

    def _room(self, to: int, lane: Lane, first: int, nbytes: int) -> int:
        """Begin a record of a put; return the address of its values."""
        head = PUT << KIND_SHIFT | lane.slot << SLOT_SHIFT | nbytes
        at = self._box.room(to, head, first, nbytes)
        self._count(to, nbytes)  # now that there was room for it
        return at

    def _count(self, to: int, nbytes: int) -> None:
        if self._counts:
            self._has_counts = True
            self._sent_bytes[to] += nbytes
            self._sent[to] += 1

    def _hpput_quickly(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        to = small_integer(pid)
        if to < 0 or to >= self._nprocs or not is_array(src):
            return False
        start = self._first_byte(to, dst, src, offset)
        if start < 0:
            return False
        lane, first, nbytes = self._lane, start, nbytes_of(src)
        if not is_of(src, lane.dtype) or nbytes == 0 or first + nbytes > lane.sizes[to]:
            return False
        there = lane.addresses[to]
        if there < 2:
            there = self._find_there(lane, to)
            if there > 1 and nbytes >= _MANY_PAGES:
                self._map_there(there + first, nbytes)
        if there < 2 or not is_packed(src):
            return False
        if not self._meeting.settles(to, nbytes):
            return self._meeting.is_quick and self._put_bytes(to, lane, first, src, nbytes)
        copy(there + first, address_of(src), nbytes)
        if not self._has_early:
            self._begin_early()
        self._early_bytes[to] += nbytes
        self._early_puts[to] += 1
        return True

    # -- gets -------------------------------------------------------------------------------

    def _get_quickly(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        sender = small_integer(pid)
        if sender < 0 or sender >= self._nprocs or not is_array(dst) or self._long_gets:
            return False
        start = self._first_byte(sender, src, dst, offset)
        if start < 0:
            return False
        lane, first, nbytes = self._lane, start, nbytes_of(dst)
        if not is_of(dst, lane.dtype) or nbytes == 0 or first + nbytes > lane.sizes[sender]:
            return False
        there = lane.addresses[sender]
        if there < 2:
            there = self._find_there(lane, sender)
        if there < 2 or not is_packed(dst) or not is_writable(dst):
            return False
        self._quick_gets.append((dst, there + first, nbytes, sender, lane.slot, first))
        if not owns_memory(dst):
            self._gets_are_direct = False
        if self._counts:
            self._has_counts = True
            self._got_bytes[sender] += nbytes
            self._got[sender] += 1
        return True

    def _read_gets(self) -> None:
        """Read what this process gets, before any process writes a put.

        The values go to their destinations at once where no other process can read these.
        """
        if self._gets_are_direct:
            for dst, there, nbytes, _pid, _slot, _first in self._quick_gets:
                copy(address_of(dst), there, nbytes)
            return
        size = 0
        for _dst, _there, nbytes, _pid, _slot, _first in self._quick_gets:
            size += nbytes
        if size > len(self._read):
            self._read = np.empty(size, np.uint8)
        at = address_of(self._read)
        for _dst, there, nbytes, _pid, _slot, _first in self._quick_gets:
            copy(at, there, nbytes)
            at += nbytes

    def _write_gets(self) -> None:
        """Write the destinations of this process's gets, in program order."""
        if not self._gets_are_direct:
            at = address_of(self._read)
            for dst, _there, nbytes, _pid, _slot, _first in self._quick_gets:
                copy(address_of(dst), at, nbytes)
                at += nbytes
        self._quick_gets.clear()
        self._gets_are_direct = True

    # -- messages -----------------------------------------------------------------------------

    def _send_quickly(self, pid: Any, payload: Any, tag: Any) -> bool:
        if self._unusable is not None or self._tag_size is not None or self._long:
            return False
        to = small_integer(pid)
        if to < 0 or to >= self._nprocs:
            return False
        if not (tag is None or type(tag) is int or type(tag) is str or type(tag) is CollectiveTag):
            return False
        if type(payload) is bytes:
            if len(payload) > self._most_in_box:
                return False
            head = self._heads_out.get(tag)
            if head is None:
                return False
            write_bytes(self._message_room(to, head, len(payload)), payload)
            return True
        if not is_array(payload) or not is_packed(payload):
            return False
        nbytes = nbytes_of(payload)
        if nbytes > self._most_in_box:
            return False
        head = self._heads_out.get((id(payload.dtype), payload.shape, tag))
        if head is None:
            return False
        copy(self._message_room(to, head, nbytes), address_of(payload), nbytes)
        return True

    def _message_room(self, to: int, head: bytes, nbytes: int) -> int:
        """Begin a record of a message; return the address of its payload."""
        size = len(head)
        padded = size + 7 & ~7
        at = self._box.room(to, MESSAGE << KIND_SHIFT | nbytes, size, padded + nbytes)
        write_bytes(at, head)
        self._sends_messages = True
        self._count(to, nbytes)
        return at + padded

    def _add_message(self, to: int, head: bytes, content: Any, nbytes: int) -> None:
        """Add a message that the long way has encoded.

        Args:
            to: the receiver.
            head: of the message, encoded.
            content: the payload, or the number that says where it is staged.
            nbytes: bytes of the payload.
        """
        if type(content) is bytes:
            write_bytes(self._message_room(to, head, nbytes), content)
            return
        size = len(head)
        padded = size + 7 & ~7
        at = self._box.room(to, STAGED_MESSAGE << KIND_SHIFT | nbytes, size, padded + 8)
        write_bytes(at, head)
        poke(at + padded, content)
        self._sends_messages = True
        self._count(to, nbytes)

    # -- the end of a superstep -----------------------------------------------------------------

    def _sync_quickly(self, stamp: int) -> bool:
        """End the superstep if all that it has here is quick; return whether it has ended."""
        if self._long or not self._meeting.is_quick:
            return False
        if self._changes or self._out or self._unresolved or self._early:
            return False
        meeting, box = self._meeting, self._box
        try:
            note, head = 0, 0
            if box.holds_card or box.holds_more:
                head = box.complete(meeting.room_for_card())
                if self._sends_messages:
                    note = _HAS_MESSAGES
                    self._sends_messages = False
            if self._quick_gets:
                note |= _HAS_GET
            nothing_new = meeting.meet(note, head, stamp)
            if head:
                box.turn()
            if self._queue.messages:
                self._queue.clear()
            if not nothing_new or note & _HAS_GET:
                self._deliver(note)
            if meeting.has_outbox:
                self._port_end_superstep()
            else:
                meeting.end_superstep()
        except BspError as error:
            self._fail_for_good(error)
        self._superstep += 1
        if self._has_early and not self._counts:
            self._forget_counts()
        return True

    def _sync_recorded(self) -> None:
        """End the superstep, and write its record."""
        log: Any = self._log
        arrive = self._time_ns()
        log.arrive()
        superstep = self._superstep
        if not self._sync_quickly(arrive):
            self._sync_recorded_slowly(arrive)
            return
        end = self._time_ns()
        if self._has_counts or self._has_early:
            self._log_counts()
        stack = self._stack_keys.number(_OWN_FRAMES)
        log.add_superstep(superstep, 0, stack, arrive, self._meeting.released, end, self._comm_ns)
        self._comm_ns = 0
        log.begin_cpu_time()
        log.begin(self._time_ns())

    def _log_counts(self) -> None:
        """Write the traffic of this superstep, and begin to count anew."""
        log = self._log
        for pid in range(self._nprocs):
            nbytes, messages = self._sent_bytes[pid], self._sent[pid]
            if self._has_early:
                nbytes += self._early_bytes[pid]
                messages += self._early_puts[pid]
            log.add_traffic(pid, OUT, nbytes, messages)
            log.add_traffic(pid, IN, self._got_bytes[pid], self._got[pid])
        self._forget_counts()

    def _deliver(self, note: int) -> None:
        """Deliver what a meeting has brought, in the order of the contract."""
        if not self._delivers:
            self._delivers = True
            self._first, self._stop = self._zeros(), self._zeros()
        meeting, me = self._meeting, self._pid
        foreign, held, any_card = False, note, False
        for source in range(self._nprocs):
            theirs = meeting.note_of(source)
            held |= theirs
            if (theirs ^ note) & _KIND:
                foreign = True
            self._first[source] = self._stop[source] = 0
            head = meeting.head_of(source)
            if head:
                kind = head >> KIND_SHIFT
                if kind == ON_CARD:
                    if (head & BYTE_MASK) >> RECEIVER_SHIFT == me:
                        self._first[source] = meeting.card_of(source)
                        self._stop[source] = self._first[source] + (head & _LOW)
                        any_card = True
                elif kind == IN_BOX:
                    self._first[source] = peek(meeting.address_of(head & BYTE_MASK) + 8 * me)
                else:
                    foreign = True
        if foreign or held & _UNRESOLVED:
            self._deliver_with_parcels(note)
            return
        if held & _HAS_GET:
            if any_card:
                self._keep_cards()
            self._read_gets()
            meeting.meet(0, 0, 0)
            self._write_gets()
        for source in range(self._nprocs):
            first = self._first[source]
            if self._stop[source]:
                self._apply(source, first, self._stop[source])
                continue
            while first:
                chunk = meeting.address_of(first)
                self._apply(source, chunk + HEAD_BYTES, chunk + peek(chunk + 8))
                first = peek(chunk)

    def _keep_cards(self) -> None:
        """Copy the cards for this process: their slots are written again after another meeting."""
        if self._cards is None:
            self._cards = np.empty(_CARD_ROOM * self._nprocs, np.uint8)
        at = address_of(self._cards)
        for source in range(self._nprocs):
            nbytes = self._stop[source] - self._first[source]
            if self._stop[source]:
                copy(at, self._first[source], nbytes)
                self._first[source] = at
                self._stop[source] = at + nbytes
                at += _CARD_ROOM

    def _apply(self, source: int, at: int, stop: int) -> None:
        """Do what the records between two addresses say."""
        while at < stop:
            head, first = peek(at), peek(at + 8)
            at += HEAD_BYTES
            kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
            if kind == PUT:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    self._write_slowly(slot, first, bytes_at(at, nbytes))
                elif nbytes == 8:
                    copy(here + first, at, 8)  # a single instruction
                else:
                    copy(here + first, at, nbytes)
                at += (nbytes + 7) & ~7
            elif kind == STAGED_PUT:
                slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
                here = self._here[slot]
                if here == 0:
                    self._write_slowly(
                        slot, first, bytes_at(self._meeting.address_of(peek(at)), nbytes)
                    )
                else:
                    copy(here + first, self._meeting.address_of(peek(at)), nbytes)
                at += 8
            else:
                at = self._receive(source, kind, at, first, nbytes)

    def _receive(self, source: int, kind: int, at: int, size: int, nbytes: int) -> int:
        """Add a message to the queue; return the address behind its record."""
        head = self._head_in(bytes_at(at, size))
        at += (size + 7) & ~7
        if kind == MESSAGE:
            self._queue.messages.append((source, head, bytes_at(at, nbytes)))
            return at + ((nbytes + 7) & ~7)
        self._queue.messages.append((source, head, (source, peek(at), nbytes)))
        return at + 8

    def _head_in(self, encoded: bytes) -> Any:
        """Return the head of a message."""
        head = self._heads_in.get(encoded)
        if head is None:
            head = marshal.loads(encoded)
            if len(self._heads_in) > _MOST_HEADS:
                self._heads_in.clear()
            self._heads_in[encoded] = head
        return head

    def _zeros(self) -> Any:
        """Return a number for each process."""
        return numbers("Q", bytes(8 * self._nprocs))

    def _begin_counts(self) -> None:
        """Count from now on what this process transfers, by partner."""
        self._counts = True
        self._sent_bytes, self._sent = self._zeros(), self._zeros()
        self._got_bytes, self._got = self._zeros(), self._zeros()

    def _begin_early(self) -> None:
        """Count what hpput has written in this superstep."""
        self._has_early = True
        if len(self._early_puts) < self._nprocs or self._nprocs == 1:
            self._early_bytes, self._early_puts = self._zeros(), self._zeros()

    def _forget_counts(self) -> None:
        """Begin to count anew what this process transfers."""
        if self._has_early:
            self._has_early = False
            for pid in range(self._nprocs):
                self._early_bytes[pid] = self._early_puts[pid] = 0
        if self._has_counts:
            self._has_counts = False
            for pid in range(self._nprocs):
                self._sent_bytes[pid] = self._sent[pid] = 0
                self._got_bytes[pid] = self._got[pid] = 0

    def _define(self, slot: int, address: int) -> None:
        """Note where the elements of a registered array lie here; 0 if they have gaps."""
        size = len(self._here)
        if slot >= size:
            longer = numbers("Q", bytes(16 * max(size, slot + 1)))
            longer[:size] = numbers("Q", self._here)
            self._here = longer
        self._here[slot] = address

    # -- what the long way asks of the quick one ---------------------------------------------------

    def _try_put(self, operation: str, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        """Try the quick way of a put or hpput once more, with another pid."""
        if operation == "put":
            return self._put_quickly(pid, src, dst, offset)
        return self._hpput_quickly(pid, src, dst, offset)

    def _try_get(self, pid: int, src: Any, dst: Any, offset: Any) -> bool:
        """Try the quick way of a get once more."""
        return self._get_quickly(pid, src, dst, offset)

    def _try_sync(self, stamp: int) -> bool:
        """Try to end the superstep by the quick way; return whether it has ended."""
        return self._sync_quickly(stamp)

    def _takes(self, slot: int) -> bool:
        """Tell whether a record can name a registration."""
        return slot < MOST_SLOTS

    def _is_small(self, nbytes: int) -> bool:
        """Tell whether values are copied into the box, and not staged."""
        return nbytes <= self._most_in_box

    def _add_put(self, to: int, slot: int, first: int, values: Any) -> None:
        """Add a put of contiguous values that are small."""
        nbytes = nbytes_of(values)
        head = PUT << KIND_SHIFT | slot << SLOT_SHIFT | nbytes
        copy(self._box.room(to, head, first, nbytes), address_of(values), nbytes)
        self._count(to, nbytes)

    def _add_staged(self, to: int, slot: int, first: int, staged: int, nbytes: int) -> None:
        """Add a put of staged values."""
        head = STAGED_PUT << KIND_SHIFT | slot << SLOT_SHIFT | nbytes
        poke(self._box.room(to, head, first, 8), staged)
        self._count(to, nbytes)

    def _serve_own_gets(self, first_half: bool) -> None:
        """Read what this process gets, or write it to its destinations."""
        if first_half:
            self._read_gets()
        else:
            self._write_gets()

    def _has_records(self) -> bool:
        """Tell whether this process has records that are not posted."""
        return self._box.holds_card or self._box.holds_more

    def _drop_records(self) -> None:
        """Drop the records that are not posted."""
        self._box.clear()
        self._sends_messages = False

    # -- from the quick way to the long one -------------------------------------------------------

    def _records_at(self, byte: int) -> list[Record]:
        """Read the records that begin with the chunk at a byte."""
        records: list[Record] = []
        while byte:
            chunk = self._meeting.address_of(byte)
            self._list(records, chunk + HEAD_BYTES, chunk + peek(chunk + 8))
            byte = peek(chunk)
        return records

    def _list(self, records: list[Record], at: int, stop: int) -> None:
        """List the records between two addresses."""
        while at < stop:
            head, first = peek(at), peek(at + 8)
            at += HEAD_BYTES
            kind, nbytes = head >> KIND_SHIFT, head & SIZE_MASK
            slot = (head >> SLOT_SHIFT) & (MOST_SLOTS - 1)
            encoded: Any = None
            if kind in (MESSAGE, STAGED_MESSAGE):
                encoded = bytes_at(at, first)
                at += (first + 7) & ~7
            if kind in (PUT, MESSAGE):
                data: Any = bytes_at(at, nbytes)
                at += (nbytes + 7) & ~7
            else:
                data = (peek(at), nbytes)
                at += 8
            records.append((kind in (MESSAGE, STAGED_MESSAGE), slot, first, encoded, data))

    def _records_from(self, source: int) -> list[Record]:
        """Read the records of a process for this one, after a meeting."""
        head = self._meeting.head_of(source)
        kind = head >> KIND_SHIFT
        if kind == IN_BOX:
            table = self._meeting.address_of(head & BYTE_MASK)
            return self._records_at(peek(table + 8 * self._pid))
        records: list[Record] = []
        if kind == ON_CARD and (head & BYTE_MASK) >> RECEIVER_SHIFT == self._pid:
            at = self._meeting.card_of(source)
            self._list(records, at, at + (head & _LOW))
        return records

    def _own_records(self, to: int) -> list[Record]:
        """Read the records of this process for another one, before the end of the superstep."""
        self._box.unfold()
        return self._records_at(self._box.first_byte(to))

    # -- what a subclass does ------------------------------------------------------------------

    def _check_usable(self, operation: str | None = None) -> None:
        raise NotImplementedError

    def _put_slowly(
        self, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any
    ) -> None:
        raise NotImplementedError

    def _get_slowly(
        self, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any
    ) -> Any:
        raise NotImplementedError

    def _send_slowly(self, pid: Any, payload: Any, tag: Any) -> None:
        raise NotImplementedError

    def _room_staged(self, nbytes: int, to: int) -> int:
        raise NotImplementedError

    def _stage(self, values: Any, nbytes: int, to: int) -> int:
        raise NotImplementedError

    def _map_there(self, address: int, nbytes: int) -> None:
        raise NotImplementedError

    def _find_there(self, lane: Lane, pid: int) -> int:
        raise NotImplementedError

    def _now(self) -> int:
        raise NotImplementedError

    def _sync_recorded_slowly(self, arrive: int) -> None:
        raise NotImplementedError

    def _end_superstep(self, kind: Any, stamp: int) -> None:
        raise NotImplementedError

    def _port_end_superstep(self) -> None:
        raise NotImplementedError

    def _deliver_with_parcels(self, note: int) -> None:
        raise NotImplementedError

    def _write_slowly(self, slot: int, first: int, data: bytes) -> None:
        raise NotImplementedError

    def _fail(self, error: BspError) -> NoReturn:
        raise NotImplementedError

    def _fail_for_good(self, error: BspError) -> None:
        raise NotImplementedError

    def _decode(self, message: Any) -> Any:
        raise NotImplementedError


class Reading:
    """Takes messages from the queue of a group, one after the other.

    Args:
        group: whose messages are read.
        queue: of the group.
    """

    def __init__(self, group: Core, queue: Queue) -> None:
        self._group = group
        self._queue = queue
        self._dtypes: dict[Any, Any] = group._dtypes

    def __iter__(self) -> Reading:
        return self

    def __next__(self) -> tuple[int, Any, Any]:
        queue = self._queue
        if queue.next >= len(queue.messages):
            raise StopIteration
        group = self._group
        began = group._begin_call() if group._timed else 0
        try:
            message: tuple[int, Any, Any] = self._decoded(queue.take())
            return message
        finally:
            if began:
                group._end_call(began)

    def _decoded(self, message: Any) -> Any:
        """Return a message as a program reads it."""
        group = self._group
        source, head, content = message
        form = head[2]
        if head[1] or type(content) is not bytes:
            message = group._decode(message)
        elif form[0] == "bytes":
            message = source, head[0], content
        elif form[0] == "array":
            dtype = self._dtypes.get(form[2])
            if dtype is None:
                message = group._decode(message)
            else:
                message = source, head[0], new_array(form[1], dtype, content)
        else:
            message = group._decode(message)
        return message
