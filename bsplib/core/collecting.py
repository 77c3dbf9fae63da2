"""From the call of a transfer to its entry in the send buffer.

The methods named ``_..._quickly`` return whether they have taken a transfer. They do so where what
is known of the array says that nothing can be wrong with it. If not, they have collected nothing:
the primitives check the call, and add the same kind of entry.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.engine_state import EngineState
from bsplib.core.kinds import INDICES_SHIFT, MESSAGE, PUT, STAGED_MESSAGE, STAGED_PUT, STRIDED
from bsplib.core.known_arrays import KnownArray
from bsplib.core.queue import CollectiveTag
from bsplib.core.send_buffer import SendBuffer
from bsplib.core.strided import StridedView

if not cython.compiled:
    from bsplib.core.atomics import (
        address_of,
        base_of,
        copy,
        dtype_id,
        fill_new,
        fits,
        is_array,
        is_of,
        is_packed,
        is_writable,
        length_of,
        nbytes_of,
        ndim_of,
        new_like,
        owns_memory,
        packed,
        poke,
        prepare,
        same_shape,
        small_integer,
        this_thread,
        write_bytes,
        write_number,
    )
    from bsplib.core.kinds import KIND_SHIFT
    from bsplib.core.send_buffer import (
        MOST_SLOTS,
        SLOT_SHIFT,
    )
prepare()

_MANY_PAGES = 1 << 16
"""Least number of bytes of an hpput that maps all pages that it writes at once, if it is the first
transfer to that array. This is faster than one page fault for each of them."""
_MOST_OFFSET = 1 << 40
"""The greatest offset that is taken here: its byte is sure to have less than 63 bits."""


class Collecting(EngineState):
    """Collects the puts, gets and messages of a superstep."""

    # -- the place of a transfer --------------------------------------------------------------

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

        As a side effect ``_known`` and ``_to`` are those of the transfer.

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
        self._to = to
        return first

    def _first_of_whole(self, to: int, values: Any) -> int:
        """Return 0, where a whole array begins; -1 if it may not have the shape of the values."""
        known: KnownArray = self._known
        if not is_array(values) or not same_shape(values, known.array):
            return -1
        if known.alike or (ndim_of(values) == 1 and known.sizes[to] == nbytes_of(known.array)):
            return 0
        return -1

    def _first_of_view(self, view: Any, values: Any, offset: Any) -> int:
        """Return the byte at which a view begins in its array; -1 if nothing is known of it.

        As a side effect ``_known`` is that of the array.
        """
        if offset is not None or not is_array(view) or not self._find_known(base_of(view)):
            return -1
        if is_array(values):
            if not same_shape(values, view):
                return -1
        elif ndim_of(view) != 1 or length_of(view, 0) != 1:
            return -1
        known: KnownArray = self._known
        return known.first_of(view)

    def _address_there(
        self, pid: Any, array: Any, values: Any, offset: Any, *, writes: bool
    ) -> int:
        """Return the address at which a transfer begins in the memory of the other process.

        The result is 0 if this process cannot reach that memory, or if the transfer has to be
        checked. As a side effect ``_known`` and ``_to`` are those of the transfer.

        Args:
            pid: the other process.
            array: names the place.
            values: the array that is transferred.
            offset: of the first element, or None.
            writes: this process writes there.
        """
        first = self._first_byte(pid, array, values, offset)
        if first < 0:
            return 0
        known, to = self._known, self._to
        is_known = known.addresses[to] > 1
        start = self._start_there(to)
        if start == 0:
            return 0
        if writes and not is_known and nbytes_of(values) >= _MANY_PAGES:
            self.rare.map_there(start + first, nbytes_of(values))
        return start + first

    def _start_there(self, to: int) -> int:
        """Return the address of the array of another process; 0 if this one cannot reach it."""
        start: int = self._known.addresses[to]
        if start < 2:
            start = self.rare.find_there(self._known, to)
        return start if start > 1 else 0

    # -- puts ---------------------------------------------------------------------------------

    def _put_quickly(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        """Try to add a put to the entries."""
        if type(src) is list:
            return self._put_list(pid, src, dst, offset)
        first = self._first_byte(pid, dst, src, offset)
        if first < 0:
            return self._put_strided(pid, src, dst, offset)
        if not is_array(src):
            write_number(
                self._reserve(self._to, self._known.slot, first, 8), self._known.number, src
            )
            return True
        return self._put_bytes(first, src if is_packed(src) else packed(src))

    def _hpput_quickly(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        """Try to write an hpput at once, or else to add it to the entries."""
        if not is_array(src) or not is_packed(src):
            return False
        there = self._address_there(pid, dst, src, offset, writes=True)
        if there == 0:
            return self._put_strided(pid, src, dst, offset)
        nbytes, to = nbytes_of(src), self._to
        if not self.meeting.waits_for_delivery(to, nbytes):
            first = there - self._known.addresses[to]
            return self.meeting.shares_memory and self._put_bytes(first, src)
        copy(there, address_of(src), nbytes)
        self.count_early(to, nbytes)
        return True

    def _put_bytes(self, first: int, values: Any) -> bool:
        """Copy contiguous values into the send buffer, or stage them where they are large."""
        nbytes, slot, to = nbytes_of(values), self._known.slot, self._to
        if nbytes <= self.most_in_buffer or self.buffer_takes(nbytes):
            copy(self._reserve(to, slot, first, nbytes), address_of(values), nbytes)
            return True
        if self.meeting.shares_memory:
            staged = self.rare.stage_room(nbytes, to, False)
            if staged >= 0:
                copy(self.meeting.address_of(staged), address_of(values), nbytes)
        else:
            staged = self.rare.stage(values, nbytes, to)
        if staged < 0:
            return False
        self.add_staged(to, slot, first, staged, nbytes)
        return True

    def buffer_takes(self, nbytes: int) -> bool:
        """Tell whether the send buffer takes a value that is not small, and count it if it does.

        It does not where the entries are sent, and would be copied once more.
        """
        return self.meeting.shares_memory and self.send_buffer.takes(nbytes)

    def _reserve(self, to: int, slot: int, first: int, nbytes: int) -> int:
        """Begin an entry of a put; return the address of its values."""
        return self.send_buffer.reserve(
            to, PUT << KIND_SHIFT | slot << SLOT_SHIFT | nbytes, first, nbytes
        )

    def add_staged(self, to: int, slot: int, first: int, staged: int, nbytes: int) -> None:
        """Add a put of staged values."""
        head = STAGED_PUT << KIND_SHIFT | slot << SLOT_SHIFT | nbytes
        poke(self.send_buffer.reserve(to, head, first, 8), staged)

    def add_put(self, to: int, slot: int, first: int, values: Any) -> None:
        """Add a put of contiguous values that are small."""
        nbytes = nbytes_of(values)
        copy(self._reserve(to, slot, first, nbytes), address_of(values), nbytes)

    def _put_list(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        """Try to add a put of a list of numbers, all of the type of the elements there."""
        to, count = small_integer(pid), len(src)
        if to < 0 or to >= self.nprocs or this_thread() != self.quick or count == 0:
            return False
        first = self._first_of_list(to, count, dst, offset)
        known, nbytes = self._known, 8 * count
        if first < 0 or known.number == 0 or first + nbytes > known.sizes[to]:
            return False
        if nbytes > self.most_in_buffer:
            return False
        for value in src:
            if not fits(known.number, value):
                return False
        at = self._reserve(to, known.slot, first, nbytes)
        for value in src:
            write_number(at, known.number, value)
            at += 8
        return True

    def _first_of_list(self, to: int, count: int, dst: Any, offset: Any) -> int:
        """Return the byte at which a list of numbers begins; -1 if it has to be checked."""
        if self._find_known(dst):
            if offset is not None:
                first = small_integer(offset)
                return first * self._known.itemsize if 0 <= first <= _MOST_OFFSET else -1
            known: KnownArray = self._known
            if not is_array(dst) or ndim_of(dst) != 1 or length_of(dst, 0) != count:
                return -1
            return 0 if known.alike or known.sizes[to] == nbytes_of(dst) else -1
        if offset is not None or not is_array(dst) or not self._find_known(base_of(dst)):
            return -1
        if ndim_of(dst) != 1 or length_of(dst, 0) != count:
            return -1
        found: int = self._known.first_of(dst)
        return found

    def _put_strided(self, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        """Try to add a put to a view with gaps."""
        size = self._strided_on(pid, dst, src, offset)
        if size == 0:
            return False
        known, to, nbytes = self._known, self._to, nbytes_of(src)
        if nbytes > self.most_in_buffer and not self.buffer_takes(nbytes):
            return False
        values = src if is_packed(src) else packed(src)
        at = self._reserve_strided(to, known.slot, size, nbytes)
        copy(at, known.strided, size)
        copy(at + size, address_of(values), nbytes)
        return True

    def _reserve_strided(self, to: int, slot: int, size: int, nbytes: int) -> int:
        """Begin an entry of a put to a strided view; return the address of what follows."""
        head = STRIDED << KIND_SHIFT | slot << SLOT_SHIFT | nbytes
        return self.send_buffer.reserve(to, head, size, size + nbytes)

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

    def _view_at(self, array: Any, at: Any) -> Any:
        """Return what an index names of an array that is alike on all processes, or None."""
        if not (type(at) is slice or type(at) is tuple or type(at) is int):
            return None
        if not self._find_known(array) or not self._known.alike or not ndim_of(array):
            return None
        try:
            view = array[at]
        except IndexError:  # the call is checked, which names it
            return None
        return view if is_array(view) else None

    # -- gets ---------------------------------------------------------------------------------

    def _get_into(self, pid: Any, src: Any, dst: Any, offset: Any, *, at_any_time: bool) -> Any:
        """Try to add a get or hpget; return its destination, or None if it has to be checked.

        Args:
            pid: process to read from.
            src: names the place there.
            dst: destination; a new array if None.
            offset: of the first element, or None.
            at_any_time: it is an hpget.
        """
        into = dst
        if dst is None and offset is None and is_array(src):
            into = new_like(src)
            fill_new(into)
        if into is not None and self._get_quickly(pid, src, into, offset, at_any_time=at_any_time):
            return into
        return None

    def _get_quickly(self, pid: Any, src: Any, dst: Any, offset: Any, *, at_any_time: bool) -> bool:
        """Try to add a get or hpget to those that read the memory of others at the sync."""
        if not is_array(dst) or not is_packed(dst) or not is_writable(dst):
            return False
        there = self._address_there(pid, src, dst, offset, writes=False)
        strided = None
        if there == 0:
            size = self._strided_on(pid, src, dst, offset)
            there = self._start_there(self._to) if size else 0
            if there == 0:
                return False
            strided = StridedView(self._known.strided, size)
        sender, nbytes = self._to, nbytes_of(dst)
        self.gets.append((dst, there, nbytes, sender, strided))
        if not at_any_time and not owns_memory(dst):
            self.gets_are_direct = False
        return True

    # -- messages -----------------------------------------------------------------------------

    def send_quickly(self, pid: Any, payload: Any, tag: Any) -> bool:
        """Try to add a message whose form and tag were sent before to the entries."""
        to = small_integer(pid)
        if to < 0 or to >= self.nprocs or this_thread() != self.quick:
            return False
        if not (tag is None or type(tag) is int or type(tag) is str or type(tag) is CollectiveTag):
            return False
        if type(payload) is bytes:
            head = self.heads_out.get(tag)
            if head is None or not self._takes_payload(len(payload), tag):
                return False
            write_bytes(self.message_room(to, head, len(payload)), payload)
            return True
        if not is_array(payload) or not is_packed(payload):
            return False
        nbytes = nbytes_of(payload)
        head = self.heads_out.get((dtype_id(payload), payload.shape, tag))
        if head is None or not self._takes_payload(nbytes, tag):
            return False
        copy(self.message_room(to, head, nbytes), address_of(payload), nbytes)
        return True

    def _takes_payload(self, nbytes: int, tag: Any) -> bool:
        """Tell whether a payload goes into the send buffer; if not, it is staged.

        A large one of a collective is staged: the collective reads it there.
        """
        if nbytes <= self.most_in_buffer:
            return True
        return type(tag) is not CollectiveTag and self.buffer_takes(nbytes)

    def message_room(self, to: int, head: bytes, nbytes: int) -> int:
        """Begin an entry of a message; return the address of its payload."""
        return self._reserve_described(self.send_buffer, to, MESSAGE, head, 0, nbytes, nbytes)

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
        self.describe_staged(self.send_buffer, to, STAGED_MESSAGE, head, 0, content, nbytes)

    # -- entries with a description -----------------------------------------------------------

    def describe(
        self,
        send_buffer: SendBuffer,
        to: int,
        kind: int,
        description: bytes,
        indices: int,
        data: Any,
    ) -> None:
        """Add an entry with a description; its data are those of a contiguous array.

        Args:
            send_buffer: takes the entry.
            to: the receiver.
            kind: of the entry, an odd number.
            description: says what it is.
            indices: how many indices the data begin with.
            data: the array.
        """
        nbytes = nbytes_of(data)
        at = self._reserve_described(send_buffer, to, kind, description, indices, nbytes, nbytes)
        copy(at, address_of(data), nbytes)

    def describe_staged(
        self,
        send_buffer: SendBuffer,
        to: int,
        kind: int,
        description: bytes,
        indices: int,
        where: int,
        nbytes: int,
    ) -> None:
        """Do as :meth:`describe` for staged data.

        Args:
            send_buffer: takes the entry.
            to: the receiver.
            kind: of the entry, an even number.
            description: says what it is.
            indices: how many indices the data begin with.
            where: the number that says where the data are.
            nbytes: of the data.
        """
        poke(self._reserve_described(send_buffer, to, kind, description, indices, nbytes, 8), where)

    def _reserve_described(
        self,
        send_buffer: SendBuffer,
        to: int,
        kind: int,
        description: bytes,
        indices: int,
        nbytes: int,
        behind: int,
    ) -> int:
        """Begin an entry with a description; return the address at which its data are written.

        Args:
            send_buffer: takes the entry.
            to: the receiver.
            kind: of the entry.
            description: says what it is.
            indices: how many indices the data begin with.
            nbytes: of the data.
            behind: bytes that the entry has behind the description.
        """
        size = len(description)
        padded = size + 7 & ~7
        first = indices << INDICES_SHIFT | size
        at = send_buffer.reserve(to, kind << KIND_SHIFT | nbytes, first, padded + behind)
        write_bytes(at, description)
        return at + padded

    def add_ask(self, sender: int, nbytes: int, pending: Any) -> None:
        """Note a get that another process has to answer; its entry has been added.

        Args:
            sender: that process.
            nbytes: of the values.
            pending: says how to write the values.
        """
        self.gets.append((pending, 0, nbytes, sender, None))
        self.asks = True
        self.gets_are_direct = False

    # -- what the primitives ask --------------------------------------------------------------

    def note_put(self, to: int, nbytes: int) -> None:
        """Take notice of a put that a primitive has added, for those that observe the engine."""

    def note_early_get(self, sender: int, nbytes: int) -> None:  # noqa: ARG002  # as above
        """Count an hpget that has read at its call."""
        self.early_gets[sender] = self.early_gets.get(sender, 0) + 1

    def fill_destination(self, array: Any) -> None:
        """Fill both ends of the new destination of a get; compiled where the core is."""
        fill_new(array)

    def try_put(self, operation: str, pid: Any, src: Any, dst: Any, offset: Any) -> bool:
        """Try to add a put or hpput once more, with another pid."""
        if operation == "put":
            return self._put_quickly(pid, src, dst, offset)
        return self._hpput_quickly(pid, src, dst, offset)

    def try_get(self, operation: str, pid: Any, src: Any, dst: Any, offset: Any, at: Any) -> bool:
        """Try to add a get or hpget once more, with another pid or a new destination."""
        if at is not None:
            src = self._view_at(src, at) if offset is None else None
            if src is None:
                return False
        if operation == "get":
            return self._get_quickly(pid, src, dst, offset, at_any_time=False)
        return self._hpgets_at_sync() and self._get_quickly(pid, src, dst, offset, at_any_time=True)

    def _try_hpget(self, pid: Any, src: Any, dst: Any, offset: Any) -> Any:
        """Try to add an hpget; return its destination, or None if it has to be checked."""
        if not self._hpgets_at_sync():
            return None
        return self._get_into(pid, src, dst, offset, at_any_time=True)

    def _hpgets_at_sync(self) -> bool:
        """Tell whether an hpget is read at the sync, as a get is.

        Where entries are sent, the owner would send the values, too. So what lies in memory that is
        shared all the same is read at the call.
        """
        return self.meeting.shares_memory

    def takes(self, slot: int) -> bool:
        """Tell whether an entry can name a registration."""
        return slot < MOST_SLOTS

    def is_small(self, nbytes: int) -> bool:
        """Tell whether values are copied into the send buffer, and not staged."""
        return nbytes <= self.most_in_buffer
