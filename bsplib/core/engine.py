"""The engine of a group: collects its transfers, and delivers them at the end of a superstep.

A group has one engine. :mod:`bsplib.core.calls` passes the calls of a program on to it.

Every transfer becomes an entry in a :class:`~bsplib.core.entries.SendBuffer`. Where it is
simple, such as contiguous values of the right dtype for an array that has been named before, the
engine makes the entry. It declines everything else: then a method of the group checks the call,
raises all errors, and makes the entry (:mod:`bsplib.primitives`). The methods named
``_..._quickly`` return whether they have taken a transfer. If not, they have collected nothing.

The engine does not know the group that has it: each call brings the group. So there is no circle of
references that would keep the arrays of a run alive.

A superstep ends by a :class:`~bsplib.core.meeting.Meeting`, after which each process finds the
entries that others have for it, its :class:`~bsplib.core.entries.Arrivals`, and delivers them in
one order: gets, then puts and messages by source and program. A get whose source this process can
reach is read there; any other one is an entry, too, which asks its receiver for the values, and a
second meeting brings the answers.

Some functions return 0 although nobody reads it: with a result the compiled form finds an error by
a comparison, and without one it would have to ask the interpreter.

Where a run is recorded (:mod:`bsplib.core.observed`) or checked, or its time is virtual, the engine
is observed, by :meth:`Engine.observe`. Otherwise one attribute says at each event that it is not.
"""

from __future__ import annotations

import pickle
from array import array as numbers
from typing import Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.clock import Clock
from bsplib.core.entries import Arrivals, Entry, SendBuffer, entries_at
from bsplib.core.forms import DTYPES
from bsplib.core.known_arrays import KnownArray
from bsplib.core.life import RESTING, USABLE
from bsplib.core.meeting import Meeting
from bsplib.core.observed import RecordingObserver
from bsplib.core.queue import CollectiveTag, Queue
from bsplib.directions import Direction
from bsplib.errors import BspError
from bsplib.sync_kinds import HAS_ASKS, HAS_GET, HAS_NOTICE, UNRESOLVED, Kind

if not cython.compiled:
    from bsplib.core.atomics import (
        address_of,
        base_of,
        copied,
        copy,
        copy_out,
        fill_new,
        fits,
        form_of,
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
        same_form,
        same_shape,
        small_integer,
        this_thread,
        write_bytes,
        write_number,
    )
    from bsplib.core.entries import MOST_HEADS
    from bsplib.core.kinds import (
        KIND_SHIFT,
        MESSAGE,
        MOST_SLOTS,
        PUT,
        SLOT_SHIFT,
        STAGED_MESSAGE,
        STAGED_PUT,
        STRIDED,
    )
    from bsplib.core.known_arrays import DENSE_BYTES, gather
prepare()

_SYNC, _OBLSYNC, _END = Kind.SYNC, Kind.OBLSYNC, Kind.END
_OUT, _IN = Direction.OUT, Direction.IN
_MOST_SHARED, _MOST_PRIVATE = 8192, 1024
"""Bytes up to which values are copied into the send buffer, where processes share memory and where
they do not. Larger ones are staged, but for a few that the buffer takes, see
``SendBuffer.takes``."""
_MOST_OFFSET = 1 << 40
"""The greatest offset that is taken here: its byte is sure to have less than 63 bits."""


class Engine:
    """Executes the calls of a process in a group.

    Args:
        pid: this process.
        nprocs: number of processes of the group.
        meeting: the meetings of the group.
        send_buffer: for the entries of this process.
        slow_path: the ``Supersteps`` of the group: what is needed rarely in a superstep.
        checks_all: every transfer is declined, to be checked.
    """

    def __init__(
        self,
        pid: int,
        nprocs: int,
        meeting: Meeting,
        send_buffer: SendBuffer,
        slow_path: Any,
        checks_all: bool,
    ) -> None:
        self.pid = pid
        self.nprocs = nprocs
        self.meeting = meeting
        self.send_buffer = send_buffer
        self.slow_path = slow_path
        self.staging = slow_path.staging
        self.most_in_buffer = _MOST_SHARED if meeting.shares_memory else _MOST_PRIVATE
        self.superstep = 0
        self.life = USABLE
        """See :mod:`bsplib.core.life`."""
        self.unusable: str | None = None
        """Why it cannot use the group now; None if it can."""
        self.thread = this_thread()
        """The thread that runs ``main``: no other may use the group."""
        self.quick = 0 if checks_all else self.thread
        """The token of life: the thread whose calls need no check of the group; 0 where every call
        needs it."""
        self._quick_if_usable = self.quick
        self.observe(None, None, None)
        self.changes: list[Any] = slow_path.changes
        """Registrations of this superstep, which are announced at its end."""
        self.unresolved: list[Any] = []
        """Transfers that can be checked at the superstep's end only, since they name arrays made
        in this superstep."""
        self.arrivals = Arrivals(pid, nprocs, meeting, slow_path, self.most_in_buffer)
        self.queue = self.arrivals.queue
        """The messages that the program can read."""
        self._declare_transfers()

    def _declare_transfers(self) -> None:
        """Set the attributes for the arrays and messages that this process transfers."""
        self.known_arrays: dict[int, KnownArray] = {}
        """What is known of arrays, by the ``id()`` of their arrays."""
        self._last_array: Any = None
        """What is known of the array that was found last."""
        self._known: Any = None
        """What is known of the array of the transfer that is being collected."""
        self._to = 0
        """The other process of that transfer."""
        self._nbytes = 0
        """The bytes of its values."""
        self.gets: list[Any] = self.meeting.gets
        """The gets of this superstep, each as (destination, address on the other process, bytes,
        other process, strided view or None). With a strided view the address is that of the array.
        Where the other process has to answer, it is 0, and in place of the destination there is
        what says how to write the values."""
        self.asks = False
        """Another process has to answer one of these gets."""
        self.replies: Any = None
        """A buffer for the answers to the gets of others; None until this process gives one."""
        self.gets_are_direct = True
        """The gets may be written as soon as they are read: none is answered, and no other process
        reads their destinations in this superstep, which own their memory or are of hpgets."""
        self._read = np.empty(0, np.uint8)
        """Memory for the values of gets that are not direct, until they are written."""
        self.heads_out: dict[Any, bytes] = {}
        """The encoded heads of messages that were sent before, by the tag, and for arrays of
        numbers by :func:`~bsplib.core.atomics.form_of`, shape and tag: all that a head depends on.
        A message whose head is not here is encoded by the mailbox."""
        self.has_early = False
        """An hpput has been executed at its call."""
        self.early_puts = numbers("Q", [0])
        """The number of such hpputs by process, for ``oblsync``. The array is made when it is
        needed: there may be thousands of processes."""

    # -- calls ------------------------------------------------------------------------------------

    def put(
        self, bsp: Any, pid: Any, src: Any, dst: Any, offset: Any, at: Any, at_any_time: bool
    ) -> int:
        self.begin_call()
        try:
            place = self._place(dst, offset, at)
            if place is None or not self.put_quickly(pid, src, place, offset, at_any_time):
                bsp._put("hpput" if at_any_time else "put", pid, src, dst, offset, at)
        except BspError as error:
            bsp._fail(error)
        finally:
            self.end_call()
        return 0

    def get(
        self,
        bsp: Any,
        pid: Any,
        src: Any,
        dst: Any,
        offset: Any,
        at: Any,
        count: Any,
        at_any_time: bool,
    ) -> Any:
        self.begin_call()
        try:
            if count is None:
                place, into = self._place(src, offset, at), dst
                if dst is None and offset is None and is_array(place):
                    into = new_like(place)
                    fill_new(into)
                if self.get_quickly(pid, place, into, offset, at_any_time):
                    return into
            return bsp._get("hpget" if at_any_time else "get", pid, src, dst, offset, at, count)
        except BspError as error:
            bsp._fail(error)
        finally:
            self.end_call()

    def put_at(self, bsp: Any, pids: Any, indices: Any, values: Any, dst: Any, op: Any) -> int:
        if this_thread() != self.quick:
            bsp._check_usable("put_at")
        self.begin_call()
        try:
            bsp._put_at(pids, indices, values, dst, op)
        except BspError as error:
            bsp._fail(error)
        finally:
            self.end_call()
        return 0

    def get_at(self, bsp: Any, pids: Any, indices: Any, src: Any, out: Any) -> Any:
        if this_thread() != self.quick:
            bsp._check_usable("get_at")
        self.begin_call()
        try:
            return bsp._get_at(pids, indices, src, out)
        except BspError as error:
            bsp._fail(error)
        finally:
            self.end_call()

    def send(self, bsp: Any, pid: Any, payload: Any, tag: Any) -> int:
        self.begin_call()
        try:
            if not self.send_quickly(pid, payload, tag):
                bsp._send(pid, payload, tag)
        except BspError as error:
            bsp._fail(error)
        finally:
            self.end_call()
        return 0

    def messages(self, bsp: Any) -> Any:
        if this_thread() != self.quick:
            bsp._check_usable("messages")
        self.begin_call()
        try:
            return Reading(self, bsp)
        finally:
            self.end_call()

    def move(self, bsp: Any) -> Any:
        if this_thread() != self.quick:
            bsp._check_usable("move")
        self.begin_call()
        try:
            return bsp._move()
        finally:
            self.end_call()

    def hpmove(self, bsp: Any) -> Any:
        if this_thread() != self.quick:
            bsp._check_usable("hpmove")
        self.begin_call()
        try:
            return bsp._hpmove()
        finally:
            self.end_call()

    def sync(self, bsp: Any) -> int:
        self._stop_clock()
        try:
            if this_thread() != self.quick:
                bsp._check_usable("sync")
            return self.end(bsp, _SYNC)
        finally:
            self._run_clock()

    def oblsync(self, bsp: Any, n: Any) -> int:
        self._stop_clock()
        try:
            if this_thread() != self.quick:
                bsp._check_usable("oblsync")
            number = bsp._check_oblsync(n)
            superstep, stamp = self.superstep, self._arrive()
            bsp._oblsync(number, stamp)
            return self._delivered(_OBLSYNC, superstep)
        finally:
            self._run_clock()

    # -- the place of a transfer ------------------------------------------------------------------

    def _find_known(self, array: Any) -> bool:
        """Find what is known of an array; return whether anything is."""
        if array is self._last_array and array is not None:
            return True
        known = self.known_arrays.get(id(array))
        if known is None:
            return False
        self._last_array, self._known = array, known
        return True

    def _first_byte(self, pid: Any, array: Any, values: Any, offset: Any) -> int:
        """Return the byte of the array at which a transfer begins; -1 if it has to be checked.

        As a side effect ``_known``, ``_to`` and ``_nbytes`` are those of the transfer.

        Args:
            pid: the other process.
            array: names the place.
            values: the array that is transferred, or for a put a number.
            offset: of the first element, or None.
        """
        to = small_integer(pid)
        if to < 0 or to >= self.nprocs or this_thread() != self.quick:
            return -1
        if not self._find_known(array):
            first = self._first_of_view(array, values, offset)
        elif offset is None:
            first = self._first_of_whole(to, values)
        else:
            first = small_integer(offset)
            if first > _MOST_OFFSET:
                return -1
            if first > 0:
                first *= self._known.itemsize
        if first < 0:
            return -1
        known: KnownArray = self._known
        nbytes = 8
        if is_array(values):
            nbytes = nbytes_of(values)
            if nbytes == 0 or not is_of(values, known.dtype):
                return -1
        elif not fits(known.number, values):
            return -1
        if first + nbytes > known.sizes[to]:
            return -1
        self._to, self._nbytes = to, nbytes
        return first

    def _first_of_whole(self, to: int, values: Any) -> int:
        """Return 0, where a whole array begins; -1 if it may not have the shape of the values."""
        known: KnownArray = self._known
        if not is_array(values) or not same_shape(values, known.array):
            return -1
        if not same_form(self._last_array, known.array):
            return -1
        if known.alike or (ndim_of(values) == 1 and known.sizes[to] == nbytes_of(known.array)):
            return 0
        return -1

    def _first_of_view(self, view: Any, values: Any, offset: Any) -> int:
        """Return the byte at which a view begins in its array; -1 if nothing is known of it.

        As a side effect ``_known`` is that of the array.
        """
        if offset is not None or not is_array(view) or not is_packed(view):
            return -1
        if not self._find_known(base_of(view)):
            return -1
        if is_array(values):
            if not same_shape(values, view):
                return -1
        elif ndim_of(view) != 1 or length_of(view, 0) != 1:
            return -1
        known: KnownArray = self._known
        return peek(known.strided) if known.strided_of(view) == DENSE_BYTES else -1

    def _strided_on(self, pid: Any, view: Any, values: Any, offset: Any) -> int:
        """Describe a strided view of a registered array; return the bytes of the description.

        The result is 0 where the transfer has to be checked. As a side effect ``_known`` and
        ``_to`` are those of the transfer.

        Args:
            pid: the other process.
            view: names the place.
            values: the array that is transferred.
            offset: of the first element, or None.
        """
        to = small_integer(pid)
        if to < 0 or to >= self.nprocs or this_thread() != self.quick or offset is not None:
            return 0
        if not (is_array(view) and is_array(values)) or not self._find_known(base_of(view)):
            return 0
        known: KnownArray = self._known
        if not (same_shape(values, view) and is_of(values, known.dtype)) or not nbytes_of(values):
            return 0
        size = known.strided_of(view)
        if size == 0 or known.strided_end > known.sizes[to]:
            return 0
        self._to = to
        return size

    def _place(self, array: Any, offset: Any, at: Any) -> Any:
        """Return what names the place of a transfer: the array, or what an index names of it.

        The result is None where an index has to be checked: an array that is not alike on all
        processes has another shape there.
        """
        if at is None:
            return array
        if offset is not None or not (type(at) is slice or type(at) is tuple or type(at) is int):
            return None
        if not self._find_known(array) or not self._known.alike:
            return None
        whole = self._known.array
        if not ndim_of(whole):
            return None
        try:
            view = whole[at]
        except IndexError:  # the call is checked, which names it
            return None
        return view if is_array(view) else None

    def _address_there(self, pid: Any, array: Any, values: Any, offset: Any) -> int:
        """Return the address at which a transfer begins in the memory of the other process.

        The result is 0 if this process cannot reach that memory, or if the transfer has to be
        checked. As a side effect ``_known`` and ``_to`` are those of the transfer.

        Args:
            pid: the other process.
            array: names the place.
            values: the array that is transferred.
            offset: of the first element, or None.
        """
        first = self._first_byte(pid, array, values, offset)
        if first < 0:
            return 0
        start = self._start_there(self._to)
        return start + first if start else 0

    def _start_there(self, to: int) -> int:
        """Return the address of the array of another process; 0 if this one cannot reach it."""
        start: int = self._known.addresses[to]
        if start < 2:
            start = self.slow_path.find_there(self._known, to)
        return start if start > 1 else 0

    # -- puts -------------------------------------------------------------------------------------

    def put_quickly(self, pid: Any, src: Any, dst: Any, offset: Any, at_any_time: bool) -> bool:
        """Try to add a put to the entries, or to write an hpput at once."""
        if type(src) is list:
            src = _array_of(src)
        first = self._first_byte(pid, dst, src, offset)
        if first < 0:
            return self._put_strided(pid, src, dst, offset)
        if at_any_time and is_array(src) and is_packed(src):
            there = self._start_there(self._to)
            if there and self.meeting.waits_for_delivery(self._to, self._nbytes):
                copy_out(there + first, address_of(src), self._nbytes)
                self._count_early()
                return True
        if not is_array(src):
            write_number(
                self._reserve(PUT, self._to, self._known.slot, first, 8, 8), self._known.number, src
            )
            return True
        return self._put_bytes(first, src if is_packed(src) else packed(src))

    def _put_strided(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        """Try to add a put to a view with gaps."""
        size = self._strided_on(pid, dst, src, offset)
        if size == 0:
            return False
        known, to, nbytes = self._known, self._to, nbytes_of(src)
        if nbytes > self.most_in_buffer and not self.buffer_takes(nbytes):
            return False
        values = src if is_packed(src) else packed(src)
        at = self._reserve(STRIDED, to, known.slot, size, nbytes, size + nbytes)
        copy(at, known.strided, size)
        copy_out(at + size, address_of(values), nbytes)
        return True

    def _put_bytes(self, first: int, values: Any) -> bool:
        """Copy contiguous values into the send buffer, or stage them where they are large."""
        nbytes, slot, to = self._nbytes, self._known.slot, self._to
        if nbytes <= self.most_in_buffer or self.buffer_takes(nbytes):
            copy_out(
                self._reserve(PUT, to, slot, first, nbytes, nbytes), address_of(values), nbytes
            )
            return True
        if self.meeting.shares_memory:
            try:
                staged = self.staging.reserve(nbytes)
            except BspError:  # the call is checked, and tries again: its error names the line
                return False
            copy_out(self.meeting.address_of(staged), address_of(values), nbytes)
        else:
            staged = self.slow_path.stage(values, to)
            if staged < 0:
                return False
        self.add_staged(to, slot, first, staged, nbytes)
        return True

    def buffer_takes(self, nbytes: int) -> bool:
        """Tell whether the send buffer takes a value that is not small, and count it if it does.

        It does not where the entries are sent, and would be copied once more.
        """
        return self.meeting.shares_memory and self.send_buffer.takes(nbytes)

    def _reserve(self, kind: int, to: int, slot: int, first: int, nbytes: int, behind: int) -> int:
        """Begin an entry of a put; return the address of what follows its two words.

        Args:
            kind: of the entry.
            to: the receiver.
            slot: number of the registration.
            first: word 1 of the entry.
            nbytes: of the values.
            behind: bytes that follow.
        """
        head = kind << KIND_SHIFT | slot << SLOT_SHIFT | nbytes
        at = self.send_buffer.reserve(to, head, first, behind)
        self._count(_OUT, to, nbytes)
        return at

    def add_staged(self, to: int, slot: int, first: int, staged: int, nbytes: int) -> None:
        """Add a put of staged values."""
        poke(self._reserve(STAGED_PUT, to, slot, first, nbytes, 8), staged)

    def add_put(self, to: int, slot: int, first: int, values: Any) -> None:
        """Add a put of contiguous values that are small."""
        nbytes = nbytes_of(values)
        copy_out(self._reserve(PUT, to, slot, first, nbytes, nbytes), address_of(values), nbytes)

    def _count_early(self) -> int:
        """Count an hpput that has written already."""
        self._count(_OUT, self._to, self._nbytes)
        if not self.has_early:
            self.has_early = True
            if len(self.early_puts) < self.nprocs:
                self.early_puts = numbers("Q", bytes(8 * self.nprocs))
        self.early_puts[self._to] += 1
        return 0

    # -- gets -------------------------------------------------------------------------------------

    def get_quickly(self, pid: Any, src: Any, dst: Any, offset: Any, at_any_time: bool) -> bool:
        """Try to add a get or hpget to those that read the memory of others at the sync."""
        if not is_array(dst) or not is_packed(dst) or not is_writable(dst):
            return False
        there = self._address_there(pid, src, dst, offset)
        strided = None
        if there == 0:
            size = self._strided_on(pid, src, dst, offset)
            there = self._start_there(self._to) if size else 0
            if there == 0:
                return False
            strided = copied(self._known.words)
        sender, nbytes = self._to, nbytes_of(dst)
        self._count(_IN, sender, nbytes)
        self.gets.append((dst, there, nbytes, sender, strided))
        if not at_any_time and not owns_memory(dst):
            self.gets_are_direct = False
        return True

    def add_ask(self, sender: int, nbytes: int, pending: Any) -> None:
        """Note a get that another process has to answer; its entry has been added.

        Args:
            sender: that process.
            nbytes: of the values.
            pending: says how to write the values.
        """
        self._count(_IN, sender, nbytes)
        self.gets.append((pending, 0, nbytes, sender, None))
        self.asks = True
        self.gets_are_direct = False

    # -- messages ---------------------------------------------------------------------------------

    def send_quickly(self, pid: Any, payload: Any, tag: Any) -> bool:
        """Try to add a message whose form and tag were sent before to the entries."""
        to = small_integer(pid)
        if to < 0 or to >= self.nprocs or this_thread() != self.quick:
            return False
        if not (tag is None or type(tag) is int or type(tag) is str or type(tag) is CollectiveTag):
            return False
        if type(payload) is bytes:
            head, nbytes = self.heads_out.get(tag), len(payload)
            if head is None or not self._takes_payload(nbytes):
                return False
            write_bytes(self.message_room(to, head, nbytes), payload)
            return True
        if not is_array(payload) or not is_packed(payload):
            return False
        form = form_of(payload)
        if form == 0:
            return False
        nbytes = nbytes_of(payload)
        head = self.heads_out.get((form, payload.shape, tag))
        if head is None or not self._takes_payload(nbytes):
            return False
        at = self.message_room(to, head, nbytes)
        copy_out(at, address_of(payload), nbytes)
        return True

    def remember_head(self, key: Any, head: bytes) -> int:
        """Keep an encoded head for messages of the same form and tag; see ``heads_out``."""
        if len(self.heads_out) > MOST_HEADS:
            self.heads_out.clear()
        self.heads_out[key] = head
        return 0

    def _takes_payload(self, nbytes: int) -> bool:
        """Tell whether a payload goes into the send buffer; if not, it is staged."""
        return nbytes <= self.most_in_buffer or self.buffer_takes(nbytes)

    def message_room(self, to: int, head: bytes, nbytes: int) -> int:
        """Begin an entry of a message; return the address of its payload."""
        at = self.send_buffer.reserve_described(to, MESSAGE, head, 0, nbytes, nbytes)
        self._count(_OUT, to, nbytes)
        return at

    def add_message(self, to: int, head: bytes, content: Any, nbytes: int) -> None:
        """Add a message that the mailbox has encoded.

        Args:
            to: the receiver.
            head: of the message, encoded.
            content: the payload, or the number that says where it is staged.
            nbytes: bytes of the payload.
        """
        if type(content) is bytes:
            write_bytes(self.message_room(to, head, nbytes), content)
            return
        self.send_buffer.describe_staged(to, STAGED_MESSAGE, head, 0, content, nbytes)
        self._count(_OUT, to, nbytes)

    # -- the end of a superstep -------------------------------------------------------------------

    def end(self, bsp: Any, kind: int) -> int:
        """End the superstep together with all processes of the group, whatever it has.

        Args:
            bsp: the group.
            kind: the way in which it ends.
        """
        meeting, send_buffer, superstep = self.meeting, self.send_buffer, self.superstep
        stamp = self._arrive() if self.is_observed else 0
        try:
            flags, head = kind, 0
            if self.changes or self.unresolved:
                flags |= self.slow_path.announce(self)
            if self.gets:
                flags |= HAS_GET | HAS_ASKS if self.asks else HAS_GET
            if send_buffer.holds_inline or send_buffer.holds_more:
                head = send_buffer.complete(meeting.inline_address())
            nothing_new = meeting.meet(flags, head, stamp)
            if head:
                send_buffer.change_side()
            lasts = self.queue.clear() if self.queue.messages else False
            if not nothing_new or flags & HAS_GET:
                self._deliver(flags)
            if lasts:
                self.queue.merge()
            if meeting.has_staged:
                self.staging.end_superstep()
            else:
                meeting.end_superstep()
        except BaseException as error:  # noqa: BLE001  # a signal's, too: others may have gone on
            bsp._fail_for_good(error)
        self.next_superstep()
        return self._delivered(kind, superstep) if self.is_observed else 0

    def next_superstep(self) -> int:
        """Count the superstep that has ended, and forget what has been executed in it early."""
        self.superstep += 1
        if self.has_early:
            self.has_early = False
            for pid in range(self.nprocs):
                self.early_puts[pid] = 0
        return 0

    def _deliver(self, flags: int) -> int:
        """Deliver what the meeting has brought: gets, then puts and messages in order of source.

        Args:
            flags: of this process at the meeting.
        """
        arrivals = self.arrivals
        all_flags = arrivals.find(flags)
        if arrivals.kinds_differ:
            self.slow_path.check_kinds(self, flags)
        if all_flags & (HAS_GET | UNRESOLVED):
            arrivals.keep_inline()
        if all_flags & (HAS_NOTICE | UNRESOLVED):
            self.slow_path.prepare(self, all_flags)
        if self._checker is not None:
            self._checker.arrived(self)
        if all_flags & HAS_GET:
            self._exchange_gets(all_flags)
        self.arrivals.apply_all()
        if all_flags & HAS_NOTICE:
            self.slow_path.after_delivery(self)
        return 0

    def _exchange_gets(self, all_flags: int) -> int:
        """Read all gets before any process writes a put, and write their destinations."""
        # What is read at once is also written at once, perhaps to where others ask for values.
        head = self.slow_path.answer(self) if all_flags & HAS_ASKS else 0
        self._read_gets()
        self.meeting.meet(0, head, 0)
        if self.asks:
            self.slow_path.take_answers(self)
        self._write_gets()
        if head:
            self.replies.clear()
        return 0

    def _read_gets(self) -> None:
        """Read the values of this process's gets, as far as it can reach them.

        They are written to their destinations at once if no other process can get from there.
        Otherwise they are kept until all processes have read.
        """
        if self.gets_are_direct:
            for dst, there, nbytes, _pid, strided in self.gets:
                _read(address_of(dst), there, nbytes, strided)
            return
        size = 0
        for _dst, there, nbytes, _pid, _strided in self.gets:
            if there:
                size += nbytes
        if size > len(self._read):
            self._read = np.empty(size, np.uint8)
        at = address_of(self._read)
        for _dst, there, nbytes, _pid, strided in self.gets:
            if there:
                _read(at, there, nbytes, strided)
                at += nbytes

    def _write_gets(self) -> None:
        """Write the destinations of this process's gets, in program order."""
        if not self.gets_are_direct:
            at = address_of(self._read)
            for dst, there, nbytes, _pid, _strided in self.gets:
                if there:
                    copy(address_of(dst), at, nbytes)
                    at += nbytes
                else:
                    self.slow_path.write_answer(dst)
        self.gets.clear()
        self.asks = False
        self.gets_are_direct = True

    # -- what the primitives ask ------------------------------------------------------------------

    def note_put(self, to: int, nbytes: int) -> None:
        """Count a put that a primitive has added."""
        self._count(_OUT, to, nbytes)

    def dumps(self, value: Any, take_buffer: Any = None) -> bytes:
        """Return the pickle of a value that is sent.

        Where the run is recorded, it is counted how long pickles take; in virtual time they take
        none.

        Args:
            value: the value.
            take_buffer: takes the buffers of arrays inside it; None leaves them in the pickle.
        """
        if self._recorder is None or self.clock is not None:
            return pickle.dumps(value, 5, buffer_callback=take_buffer)
        began_ns = now_ns()
        data = pickle.dumps(value, 5, buffer_callback=take_buffer)
        self.pickling_ns += now_ns() - began_ns
        self.pickled_bytes += len(data)
        return data

    def loads(self, data: Any, buffers: Any = ()) -> Any:
        """Return the value of a pickle, which is from a process of the same run."""
        if self._recorder is None or self.clock is not None:
            return pickle.loads(data, buffers=buffers)
        began_ns = now_ns()
        value = pickle.loads(data, buffers=buffers)
        self.pickling_ns += now_ns() - began_ns
        return value

    def fill_destination(self, array: Any) -> None:
        """Fill both ends of the new destination of a get; compiled where the core is."""
        fill_new(array)

    def takes(self, slot: int) -> bool:
        """Tell whether an entry can name a registration."""
        return slot < MOST_SLOTS

    def is_small(self, nbytes: int) -> bool:
        """Tell whether values are copied into the send buffer, and not staged."""
        return nbytes <= self.most_in_buffer

    def own_entries(self, to: int) -> list[Entry]:
        """Return the entries of this process for another one, before the end of the superstep."""
        if not (self.send_buffer.holds_inline or self.send_buffer.holds_more):
            return []
        self.send_buffer.unfold()
        return entries_at(self.meeting, self.send_buffer.first_byte(to))

    # -- whether the group can be used ------------------------------------------------------------

    def suspend(self, life: int, reason: str) -> None:
        """Let every call be declined, for a reason: until the group is resumed, if it is RESTING.

        Args:
            life: the new one; that of the group stays if it is as great.
            reason: says why, in words.
        """
        if life > self.life:
            self.life = life
            self.unusable = reason
            self.quick = 0

    def resume(self) -> None:
        """Let the program use the group again, if it was only resting."""
        if self.life == RESTING:
            self.life = USABLE
            self.unusable = None
            self.quick = self._quick_if_usable

    def is_usable(self) -> bool:
        """Tell whether this thread can use the group now."""
        return self.life == USABLE and this_thread() == self.thread

    def forget_known_arrays(self) -> None:
        """Forget what is known of arrays: the next transfer of each is checked in every way."""
        self.known_arrays.clear()
        self._last_array = self._known = None

    # -- who observes the group -------------------------------------------------------------------

    def observe(
        self, clock: Clock | None, recorder: RecordingObserver | None, checker: Any
    ) -> None:
        """Begin to observe, before the first call.

        Args:
            clock: of this process where its time is virtual; it stands still in calls.
            recorder: is told first that the program ends a superstep, and last that the superstep
                has ended, so that it measures what the checker does, too.
            checker: is told of the same events: a ``Checking``.
        """
        self.is_observed = clock is not None or recorder is not None or checker is not None
        self.clock: Any = clock
        self._recorder: Any = recorder
        self._traffic: Any = None if recorder is None else recorder.traffic
        self._checker: Any = checker
        self.comm_ns = 0
        """Time spent inside calls in this superstep; it stays 0 where time is virtual."""
        self.pickling_ns = self.pickled_bytes = 0
        """What of it was spent on pickles, and the bytes of those that were made."""
        self._inside = 0  # calls that are being executed, one inside the other
        self._since_ns = 0  # when the outermost one began, or went on
        self._is_open = False  # a superstep has ended in a collective; its record is not written

    def begin_call(self) -> int:
        """Begin a call, or a part of one: stop the virtual clock, or read the real one."""
        if not self.is_observed:
            return 0
        if self.clock is not None:
            self.clock.pause()
            return 0
        self._inside += 1
        if self._inside == 1:
            self._since_ns = now_ns()
        return 0

    def end_call(self) -> int:
        """End a call, or a part of one; the time of the outermost one is communication."""
        if not self.is_observed:
            return 0
        if self.clock is not None:
            self.clock.resume()
            return 0
        if self._inside == 1:
            self.begin_computing()
        self._inside -= 1
        return 0

    def begin_computing(self) -> int:
        """Begin to compute for the program inside a call, as a collective that adds values does."""
        if self._is_open:
            # The superstep ends with the collective: the values that came have been taken out.
            self._recorder.extend()
            self._write_record()
            self._since_ns = now_ns()
        elif self._inside:
            now = now_ns()
            self.comm_ns += now - self._since_ns
            self._since_ns = now  # what is not continued, because of an error, counts once
        return 0

    def end_computing(self) -> int:
        """End to compute for the program inside a call."""
        if self._inside and not self._is_open:
            self._since_ns = now_ns()
        return 0

    def _stop_clock(self) -> int:
        """Stop the virtual clock before a sync: others wait for this process."""
        if self.clock is not None:
            self.clock.pause()
            self.clock.settle()
        return 0

    def _run_clock(self) -> int:
        if self.clock is not None:
            self.clock.resume()
        return 0

    def _count(self, direction: int, partner: int, nbytes: int) -> int:
        """Count a transfer.

        Args:
            direction: a ``Direction``.
            partner: the other process.
            nbytes: of the values.
        """
        traffic = self._traffic
        return 0 if traffic is None else traffic.add(direction, partner, nbytes, 1)

    def _arrive(self) -> int:
        """End the computation of a superstep; return the time of arrival in ns, 0 for none."""
        stamp = 0
        self.begin_computing()
        if self._recorder is not None:
            stamp = self._recorder.meet(self.comm_ns)
        if self._checker is not None:
            self._checker.meet(self)
        return stamp

    def _delivered(self, kind: int, superstep: int) -> int:
        """End a superstep, after its transfers.

        Args:
            kind: the way in which it ended.
            superstep: its number.
        """
        if self._checker is not None:
            self._checker.delivered()
        if self._recorder is not None:
            self._recorder.delivered(superstep, kind, self.meeting.released)
            self._is_open = self._inside > 0 and kind != _END
            if not self._is_open:
                self._write_record()
        return self.end_computing()

    def _write_record(self) -> int:
        self._is_open = False
        self._recorder.write_record(self.comm_ns, self.pickling_ns, self.pickled_bytes)
        self.comm_ns = self.pickling_ns = self.pickled_bytes = 0
        return 0

    def leave(self) -> None:
        """Begin to leave the group, a sub-group: a call of its last superstep."""
        if self._recorder is not None:
            self.begin_call()

    def left(self) -> None:
        """End the last superstep of the group, which has been left."""
        if self._recorder is not None:
            self.end_call()
            self._recorder.left(self.superstep, self.comm_ns, self.pickling_ns, self.pickled_bytes)


class Reading:
    """Takes messages from the queue of an engine, one after the other, as a program reads them.

    Args:
        engine: whose messages are read.
        bsp: the group that has the engine.
    """

    def __init__(self, engine: Engine, bsp: Any) -> None:
        self._engine = engine
        self._bsp = bsp
        self._queue: Queue = engine.queue

    def __iter__(self) -> Reading:
        return self

    def __next__(self) -> tuple[int, Any, Any]:
        if not len(self):
            raise StopIteration
        queue, engine = self._queue, self._engine
        engine.begin_call()
        try:
            message: tuple[int, Any, Any] = self._decoded(queue.take())
            return message
        finally:
            engine.end_call()

    def __len__(self) -> int:
        if this_thread() != self._engine.quick:
            # The group has another engine where it was left, and opened again.
            self._bsp._check_usable("messages", self._engine)
        return len(self._queue.messages) - self._queue.next

    def __getitem__(self, position: Any) -> Any:
        raise TypeError(
            "messages are read one after the other: for source, tag, payload in bsp.messages(); "
            "list(bsp.messages()) has them by position"
        )

    def __reduce__(self) -> Any:
        raise TypeError(
            "bsp.messages() reads the messages of one process; list(bsp.messages()) is data"
        )

    def _decoded(self, message: Any) -> Any:
        """Return a message as a program reads it."""
        source, head, content = message
        tag, is_pickled, form = head
        if not isinstance(content, tuple) and not is_pickled:
            if form[0] == "bytes":
                return source, tag, content
            if form[0] == "array":
                dtype = DTYPES.get(form[2])
                if dtype is not None and type(content) is bytearray:
                    return source, tag, np.ndarray(form[1], dtype, content)
                if dtype is not None:
                    return source, tag, new_array(form[1], dtype, content)
        return self._bsp._decode(message)


def _array_of(values: list[Any]) -> Any:
    """Return a list of numbers of Python as an array; None for other lists."""
    if not values or not (type(values[0]) is float or type(values[0]) is int):
        return None
    try:
        return np.asarray(values)
    except ValueError:  # nested, and ragged: the check of the call names it
        return None


def _read(at: int, there: int, nbytes: int, strided: Any) -> None:
    """Copy the values of a get.

    Args:
        at: address of memory for them.
        there: address of the values or, with a strided view, of the array.
        nbytes: of the values.
        strided: describes the elements of the array; None for those that follow each other.
    """
    if strided is None:
        copy(at, there, nbytes)
    else:
        gather(address_of(strided), there, at)
