"""Reading and writing arrays of other processes: put, get and their kin."""

from __future__ import annotations

from threading import get_ident
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from bsplib.core.kinds import ASK, PLACED, STAGED_ASK, STAGED_PLACED
from bsplib.core.lanes import Lane
from bsplib.core.records import index_bytes
from bsplib.errors import (
    BspError,
)
from bsplib.primitives.arrays import Arrays
from bsplib.primitives.contracts import shares
from bsplib.primitives.remote_array import RemoteArray
from bsplib.transfers.casting import as_plain_array, cast_values, check_out
from bsplib.transfers.coordinates import check_axes, elements
from bsplib.transfers.delivery import PendingGet
from bsplib.transfers.descriptions import (
    IndexGet,
    Put,
    Site,
    StretchGet,
    StretchPut,
    WordsGet,
    WordsPut,
    packed,
)
from bsplib.transfers.guard import plain
from bsplib.transfers.irregular import (
    UncheckedWords,
    Words,
    broadcast,
    check_there,
    dtype_there,
    encode_op,
    sort_by_process,
    whole_array,
)
from bsplib.transfers.place import Array
from bsplib.transfers.registry import Registration, encode_dtype
from bsplib.transfers.target import Target, target_of
from bsplib.transfers.watch import here

Offset = int | None
"""Of the first element of a transfer, in C order of the whole array; None to name it
otherwise."""


_NO_DATA = np.empty(0, np.uint8)


class RemoteAccess(Arrays):
    """One process's access to the registered arrays of the others."""

    def _put_slowly(
        self, operation: str, pid: Any, src: ArrayLike, dst: Any, offset: Offset, at: Any
    ) -> None:
        """Add a put, with every check there is, and open a lane for those that follow."""
        if self._unusable is not None or get_ident() != self._thread:
            self._check_usable(operation)
        to = self._check_pid(pid, operation)
        if self._put_again(operation, pid, to, src, dst, offset, at):
            return
        target = target_of(operation, self._registry, to, dst, offset, at, src)
        if self._watch is not None:
            src = self._watch.source(src, operation)
        values = cast_values(operation, src, target.dtype, exact=self._watch is not None)
        if values.size == 0:
            return
        put, arranged = target.for_put(values)
        if isinstance(put, StretchPut) and self._watch is None and self._takes(put.slot):
            self._open_lane(dst)
            early = operation == "hpput" and at is None  # perhaps it can be written at once
            if early and self._try_put(operation, to, src, dst, offset):
                return
            self._add_stretch(operation, to, put, arranged)
        else:
            if self._watch is None and target.resolved:
                self._open_lane(dst)
            self._add_placed(to, put, arranged, None if self._watch is None else here(operation))
        if not target.resolved:
            self._unresolved.append(target)

    def _put_again(
        self, operation: str, pid: Any, to: int, src: Any, dst: Any, offset: Offset, at: Any
    ) -> bool:
        """Convert the pid, or a list of numbers, and let the core try once more."""
        if at is not None or not self._lanes:
            return False
        listed = as_plain_array(src)
        if listed is None and pid.__class__ is int:
            return False
        return self._try_put(operation, to, src if listed is None else listed, dst, offset)

    def _add_stretch(self, operation: str, to: int, put: StretchPut, values: Array) -> None:
        """Add a put of elements that follow each other, which has been checked."""
        first = put.first * values.itemsize
        if self._is_small(values.nbytes):
            self._add_put(to, put.slot, first, np.ascontiguousarray(values))
            return
        ticket = None
        if operation == "hpput" and values.flags.c_contiguous:
            ticket = self._port.lend(values, to)
        if ticket is None:
            ticket, room = self._port.stage(values.nbytes, to)
            np.copyto(room.view(values.dtype).reshape(values.shape), values)
        self._add_staged(to, put.slot, first, ticket[1], values.nbytes)

    def _add_placed(self, to: int, put: Put, values: Array, site: Site | None) -> None:
        """Add a put that has been checked, with a description of its place."""
        nbytes, box, description = values.nbytes, self._box, packed(put, site)
        if self._is_small(nbytes):
            self._describe(box, to, PLACED, description, 0, np.ascontiguousarray(values))
        else:
            (_, where, _), room = self._port.stage(nbytes, to)
            np.copyto(room.view(values.dtype).reshape(values.shape), values)
            self._describe_staged(box, to, STAGED_PLACED, description, 0, where, nbytes)
        self._note_put(to, nbytes)

    def _open_lane(self, dst: Any) -> None:
        """Open a lane to an array, now that a transfer has been checked.

        A transfer of a view uses the lane of the array that it is a view of.
        """
        registry = self._registry
        for handle in (dst, getattr(dst, "base", None)):
            registration = registry.named_by(handle)
            if registration is None or registration.array is None or id(handle) in self._lanes:
                continue
            if registration.extents is not None and self._takes(registration.slot):
                sizes = _sizes_there(registration, self._nprocs)
                alone = registry.is_alone(registration)
                lane = Lane(handle, registration.slot, sizes, registration.alike, alone)
                self._lanes[id(handle)] = lane

    @shares("Args", "Returns", "Raises", of=Arrays.get)
    def hpget(
        self,
        pid: SupportsIndex,
        src: Array,
        dst: Array | None = None,
        *,
        offset: Offset = None,
        at: Any = None,
        count: int | None = None,
    ) -> Array:
        """Read ``src`` on process ``pid`` into ``dst`` at any time in the superstep.

        This saves copies of large values: they may be read on ``pid``, and written here, at
        any moment from the call to the end of the superstep. Until the sync, therefore, what
        is named on ``pid`` may not be changed, and ``dst`` may be neither read nor written.
        What a program that breaks this finds in ``dst`` is undefined.

        Cost: the bytes that are read to h_in here and to h_out on ``pid``.
        Source: Hill et al. 1998, bsp_hpget.
        """
        try:
            if at is None and count is None:
                into: Array | None = self._try_hpget(pid, src, dst, offset)
                if into is not None:
                    return into
            return self._get_slowly("hpget", pid, src, dst, offset, at, count)
        except BspError as error:
            self._fail(error)

    def _get_slowly(
        self,
        operation: str,
        pid: SupportsIndex,
        src: Any,
        dst: Array | None,
        offset: Offset,
        at: Any,
        count: Any,
    ) -> Array:
        self._check_usable(operation)
        sender = self._check_pid(pid, operation)
        target = target_of(operation, self._registry, sender, src, offset, at, dst)
        destination = target.destination(dst, count)
        if destination.size == 0:
            return destination
        get = target.for_get(destination)
        if not target.resolved:
            self._unresolved.append(target)
        elif self._watch is None:
            self._open_lane(src)
        if dst is None:
            self._fill_new(destination)
        if self._try_get(operation, sender, src, destination, offset, at):
            return destination
        if operation == "hpget" and self._read_now(sender, target, get, destination):
            return destination
        site = None
        if self._watch is not None:
            site = here(operation)
            destination = self._watch.destination(destination, operation, new=dst is None)
        into = destination if type(destination) is np.ndarray else plain(destination)
        self._ask(sender, get, PendingGet(sender, into, target.rearranged, target.dtype, site=site))
        return destination

    def _ask(self, sender: int, get: StretchGet | IndexGet, pending: PendingGet) -> None:
        """Ask another process for the values of a get that has been checked."""
        description = packed(get, pending.site)
        self._describe(self._box, sender, ASK, description, 0, _NO_DATA)
        self._add_ask(sender, get.nbytes, pending)

    def _read_now(
        self, pid: int, target: Target, get: StretchGet | IndexGet, destination: Array
    ) -> bool:
        """Read an hpget at its call, if the memory of the other process can be read then."""
        there = target.extent()
        if self._watch is not None or there is None or there.shared_address is None:
            return False
        if not self._port.is_settled(pid):
            return False
        nbytes = there.size * target.dtype.itemsize
        memory = self._port.reach(pid, there.shared_address, nbytes)
        if memory is None:
            return False
        target.read(memory, get, destination)
        self._early_gets[pid] = self._early_gets.get(pid, 0) + 1
        self._note_get(pid, get.nbytes)
        return True

    # -- the array of another process -----------------------------------------------------------

    def on(self, pid: SupportsIndex, x: Array) -> RemoteArray:
        """Return the array ``x`` of process ``pid`` as a place with indices.

        ``bsp.on(2, x)[3:7] = values`` is ``bsp.put(2, values, x, at=numpy.s_[3:7])``, and
        ``got = bsp.on(2, x)[-1:]`` is ``got = bsp.get(2, x, at=numpy.s_[-1:])``: what is
        written takes effect, and what is read is valid, after the sync. Indices are basic
        ones, taken against the shape of the array on ``pid``. To add to elements there,
        as ``bsp.on(2, x)[i] += v`` might suggest, use :meth:`put_at` with ``op=numpy.add``.

        Args:
            pid: the other process, ``0 <= pid < nprocs``; may be this one.
            x: registered array, as a whole.

        Returns:
            The place, which may be used in later supersteps, too.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            RegistrationError: ``x`` is not registered, or not yet effective.
            PlaceError: ``x`` is a view of a registered array; its uses raise it where the
                result of a get is assigned before the sync. They also raise what
                :meth:`put` and :meth:`get` raise.
            PartitionError: the group cannot be used now.

        Cost: nothing; each use costs what its put or get costs.
        """
        self._check_usable("on")
        there = self._check_pid(pid, "on")
        try:
            whole_array("on", self._registry, x)
        except BspError as error:
            self._fail(error)
        return RemoteArray(self, there, x)

    def put_at(
        self,
        pids: ArrayLike,
        indices: ArrayLike | tuple[ArrayLike, ...],
        values: ArrayLike,
        dst: Array,
        op: np.ufunc | str | None = None,
    ) -> None:
        """Write single words into ``dst`` on many processes at the end of the superstep.

        The values are copied before the call returns. The words are written in the order of
        puts (source, program): of several words for one element the last stays, or with
        ``op`` each of them is combined into what the element holds.

        Args:
            pids: receiving processes, broadcast against the other two.
            indices: elements of the array there in C order, none negative; or a tuple of
                index arrays, one for each axis there. With fewer than axes whole
                sub-arrays are written: ``(rows,)`` names rows of a matrix.
            values: cast (same_kind) to the dtype of ``dst``; for sub-arrays, their axes
                come last.
            dst: registered array, as a whole.
            op: binary ufunc such as ``numpy.add``, or its name, as for ``reduce``;
                None to write.

        Raises:
            ProcessRangeError: a pid is no process of this group.
            RegistrationError: ``dst`` is not registered, not yet effective, or None there.
            PlaceError: shapes do not go together, pids or indices are no integers, or
                ``dst`` is a view.
            BoundsError: an index lies outside the array there; raised at the sync where
                that array was made in this superstep.
            DtypeError: values cannot be cast or are a masked array, or ``op`` cannot combine
                them; with ``check=True``, a value does not fit into the dtype.
            OverlapError: with ``check=True``, ``values`` is read before a get has filled it.
            OutOfSharedMemoryError: there is no room for the copy of the words.
            PartitionError: the group cannot be used now.

        Cost: the bytes of one value for each word, to h_out here and to h_in there. For an
        oblsync it is one message for each destination.
        """
        if self._unusable is not None or get_ident() != self._thread:
            self._check_usable()
        try:
            registration = whole_array("put_at", self._registry, dst, pids, indices, values)
            dtype = dtype_there("put_at", registration)
            code = encode_op("put_at", op, dtype)
            if self._watch is not None:
                values = self._watch.source(values, "put_at")
            check_axes("put_at", registration, pids, indices, values)
            named = elements("put_at", registration, pids, indices, self.nprocs)
            what = cast_values("put_at", values, dtype, exact=self._watch is not None)
            to, at, what = broadcast("put_at", *named[:2], what)
            words = self._words("put_at", registration, to, at, named.inner)
            put = packed(WordsPut(registration.slot, code), self._site("put_at"))
            rooms = self._rooms(
                {
                    pid: (index_bytes(number) + number * dtype.itemsize)
                    for pid, number in words.numbers.items()
                }
            )
            words.deal(what.reshape(-1), {pid: room for pid, (_, room) in rooms.items()})
            for pid, (where, room) in rooms.items():
                number = words.numbers[pid]
                self._add_words(pid, (PLACED, STAGED_PLACED), put, number, where, room)
                self._note_put(pid, number * dtype.itemsize)
        except BspError as error:
            self._fail(error)

    def _site(self, operation: str) -> Site | None:
        """Return the place of the present call, where the run is checked."""
        return None if self._watch is None else here(operation)

    def _rooms(self, sizes: dict[int, int]) -> dict[int, tuple[int | None, Array]]:
        """Return memory for the data of a record for each process.

        Args:
            sizes: bytes, by process.

        Returns:
            By process: where the memory is staged, or None, and the memory.
        """
        rooms: dict[int, tuple[int | None, Array]] = {}
        for pid, nbytes in sizes.items():
            if self._is_small(nbytes):
                rooms[pid] = None, np.empty(nbytes, np.uint8)
            else:
                (_, where, _), room = self._port.stage(nbytes, pid)
                rooms[pid] = where, room
        return rooms

    def _add_words(
        self,
        to: int,
        kinds: tuple[int, int],
        description: bytes,
        number: int,
        where: int | None,
        room: Array,
    ) -> None:
        """Add a record of single words; its kind depends on where its data are."""
        if where is None:
            self._describe(self._box, to, kinds[0], description, number, room)
        else:
            self._describe_staged(self._box, to, kinds[1], description, number, where, len(room))

    def get_at(
        self,
        pids: ArrayLike,
        indices: ArrayLike | tuple[ArrayLike, ...],
        src: Array,
        out: Array | None = None,
    ) -> Array:
        """Read single words of ``src`` on many processes at the end of the superstep.

        As for :meth:`get`, they are read before any put of the superstep is written.

        Args:
            pids: processes to read from, broadcast against ``indices``.
            indices: elements of the array there in C order, none negative; or a tuple of
                index arrays, one for each axis there. With fewer than axes whole
                sub-arrays are read, whose axes come last: ``(rows,)`` names rows.
            src: registered array, as a whole.
            out: writable array of the broadcast shape; a new one if None.

        Returns:
            ``out``, whose content is valid after the sync.

        Raises:
            ProcessRangeError: a pid is no process of this group.
            RegistrationError: ``src`` is not registered, not yet effective, or None there.
            PlaceError: shapes do not go together, pids or indices are no integers, ``out``
                has another shape or cannot be written, or ``src`` is a view.
            BoundsError: an index lies outside the array there; raised at the sync where
                that array was made in this superstep.
            DtypeError: ``out`` cannot take the values; with ``check=True`` the sync raises it
                where a value does not fit.
            OutOfSharedMemoryError: there is no room for the indices.
            PartitionError: the group cannot be used now.

        Cost: the bytes of one value for each word, to h_in here and to h_out there.
        """
        if self._unusable is not None or get_ident() != self._thread:
            self._check_usable()
        try:
            registration = whole_array("get_at", self._registry, src, pids, indices)
            dtype = dtype_there("get_at", registration)
            named = elements("get_at", registration, pids, indices, self.nprocs)
            of, at = broadcast("get_at", *named[:2])
            destination = check_out("get_at", out, at.shape, dtype)
            if out is None:
                self._fill_new(destination)
            words = self._words("get_at", registration, of, at, named.inner)
            site = self._site("get_at")
            rooms = self._rooms({pid: 8 * number for pid, number in words.numbers.items()})
            positions = words.deal_positions({pid: room for pid, (_, room) in rooms.items()})
            for pid, (where, room) in rooms.items():
                number = words.numbers[pid]
                get = WordsGet(registration.slot, number * dtype.itemsize)
                self._add_words(pid, (ASK, STAGED_ASK), packed(get, site), number, where, room)
                pending = PendingGet(pid, plain(destination), None, dtype, positions[pid], site)
                self._add_ask(pid, get.nbytes, pending)
            if self._watch is not None and destination.size:
                destination = self._watch.destination(destination, "get_at", new=out is None)
        except BspError as error:
            self._fail(error)
        return destination

    def _words(
        self,
        operation: str,
        registration: Registration,
        pids: Array,
        indices: Array,
        inner: tuple[int, ...] | None,
    ) -> Words:
        """Sort the words of a call by process, with every check that is possible now."""
        words = sort_by_process(operation, pids, indices, self.nprocs)
        check_there(operation, registration, words)
        if registration.extents is None and words.numbers:
            self._unresolved.append(UncheckedWords(operation, registration, words, inner))
        return words


def _sizes_there(registration: Registration, nprocs: int) -> list[int]:
    """Return the bytes of a registered array on each process; 0 where it cannot be named."""
    assert registration.array is not None  # the caller has checked
    if registration.alike:
        return [registration.array.nbytes] * nprocs
    dtype = encode_dtype(registration.array.dtype)
    extents = [registration.extent_on(pid) for pid in range(nprocs)]
    return [
        0 if there is None or there.dtype != dtype else there.size * registration.itemsize
        for there in extents
    ]
