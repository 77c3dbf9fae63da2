"""A group of processes as one of them sees it: the primitives.

All argument checks stand here, once for every backend; what lies below is told
plain values that are known to be right.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from bsplib import messages
from bsplib.backends.base import Port
from bsplib.checker import here
from bsplib.collectives import Collectives
from bsplib.delivery import (
    Get,
    Outgoing,
)
from bsplib.errors import (
    AbortError,
    BspError,
    DtypeError,
    MessageError,
    PartitionError,
    ProcessRangeError,
    RegistrationError,
    ShapeError,
    UsageError,
)
from bsplib.irregular import (
    Pending,
    Words,
    broadcast,
    check_there,
    dtype_there,
    encode_op,
    sort_by_process,
    whole_array,
)
from bsplib.place import Array
from bsplib.records import Kind
from bsplib.registry import Registration
from bsplib.transfer import cast_values, check_out, target_of


class Group(Collectives):
    """The group of processes that a program runs in, as process ``pid`` sees it.

    ``main`` is given the whole run as a group; :meth:`partition` makes sub-groups.
    A group belongs to the thread that runs ``main``.

    Attributes:
        pid: this process, ``0 <= pid < nprocs``.
        nprocs: number of processes of the group.
        machine: the Machine that prices the run.
    """

    # -- enquiry ----------------------------------------------------------------------

    def time(self) -> float:
        """Return the seconds since the run began: since the barrier before ``main``.

        Source: Hill et al. 1998, bsp_time.
        """
        return (self._port.now() - self._terms.began_ns) * 1e-9

    def charge(self, seconds: float) -> None:
        """Count computation that a virtual processor is to have done.

        From the first call on the virtual time of this process moves by what is
        charged alone, so that a trace is the same in every run. Where processes are
        real their time is, and this does nothing.

        Args:
            seconds: 0 or more.
        """
        if not seconds >= 0:
            raise self._error(UsageError, f"charge: {seconds} is no time; it is 0 or more seconds")
        if self._port.charge(seconds):
            self._forget_measured()

    def abort(self, message: str) -> NoReturn:
        """Stop every process of the run.

        Args:
            message: why, in words.

        Raises:
            AbortError: always; ``bsplib.run`` raises it too.

        Source: Hill et al. 1998, bsp_abort.
        """
        raise self._error(AbortError, str(message))

    # -- registration -------------------------------------------------------------------

    def push_reg(self, array: Array | None) -> Any:
        """Register an array for transfers from the next superstep on.

        Collective: every process registers an array, or None, in the same order.
        Sizes may differ between processes; dtypes may not. An array may be
        registered again; the latest registration counts.

        Args:
            array: any writable array, in shared memory or not, with gaps or not;
                None where this process has none.

        Returns:
            What names the registration in transfers: ``array`` itself, or a stand-in
            for None.

        Raises:
            RegistrationError: ``array`` is no writable array.
            DtypeError: its dtype holds Python objects.

        Cost: nothing here; an announcement to all at the next sync.
        Source: Hill et al. 1998, bsp_push_reg.
        """
        self._check_usable()
        if array is not None:
            if not isinstance(array, np.ndarray) or not array.flags.writeable:
                kind = "a read-only array" if isinstance(array, np.ndarray) else repr(array)
                raise self._error(RegistrationError, f"push_reg: {kind} cannot be written to")
            self._check_dtype(array.dtype, "push_reg")
        return self._registry.push(array).handle

    def pop_reg(self, array: Any) -> None:
        """Take back the latest registration of an array at the end of the superstep.

        Collective, in the same order on all processes. Memory that ``zeros``,
        ``empty`` or ``array`` allocated is freed at the next sync: the array may
        not be used after it.

        Args:
            array: registered array, or what ``push_reg(None)`` returned.

        Raises:
            RegistrationError: ``array`` is not registered.

        Source: Hill et al. 1998, bsp_pop_reg.
        """
        self._check_usable()
        try:
            self._registry.pop(array)
        except BspError as error:
            self._fail(error)

    def zeros(self, shape: int | Sequence[int], dtype: DTypeLike = float) -> Array:
        """Allocate an array of zeros in shared memory and register it.

        Collective. It may be named in transfers at once, in this superstep too.
        Shapes may differ between processes.

        Args:
            shape: number of elements, or one number for each axis.
            dtype: any dtype without Python objects.

        Returns:
            The array, until ``pop_reg`` frees it at a sync or the group ends.

        Raises:
            ShapeError: a size is negative.
            DtypeError: the dtype holds Python objects.
            OutOfSharedMemoryError: it does not fit into /dev/shm.
        """
        return self._allocate("zeros", shape, np.dtype(dtype))

    def _allocate(self, operation: str, shape: int | Sequence[int], dtype: np.dtype[Any]) -> Array:
        self._check_usable()
        self._check_dtype(dtype, operation)
        size = tuple(
            operator.index(n) for n in (shape if isinstance(shape, Iterable) else (shape,))
        )
        if any(n < 0 for n in size):
            raise self._error(ShapeError, f"{operation}: shape {size} has a negative size")
        try:
            memory = self._port.allocate(prod(size) * dtype.itemsize)
        except BspError as error:
            self._fail(error)
        made: Array = np.ndarray(size, dtype, buffer=memory)
        self._registry.allocate(made, memory)
        return made

    def empty(self, shape: int | Sequence[int], dtype: DTypeLike = float) -> Array:
        """Allocate an array in shared memory and register it, as :meth:`zeros` does.

        Its content is whatever was there; it happens to be zero.
        """
        return self._allocate("empty", shape, np.dtype(dtype))

    def array(self, data: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Copy data into a new array in shared memory and register it.

        Args:
            data: what ``numpy.array`` takes.
            dtype: of the array; that of the data if None.

        Otherwise as :meth:`zeros`.
        """
        values = np.asarray(data, dtype)
        made = self._allocate("array", values.shape, values.dtype)
        made[...] = values
        return made

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Free at its end what was allocated inside, as ``pop_reg`` does.

        Collective: ``with bsp.scope(): x = bsp.zeros(n); ...``. The arrays may not be
        used after the sync that follows the end of the scope.
        """
        self._check_usable()
        before = self._registry.allocated()
        yield
        self._check_usable()
        for registration in self._registry.allocated():
            if registration not in before:
                self._registry.pop(registration.handle)

    # -- transfers ----------------------------------------------------------------------

    def put(
        self, pid: int, src: ArrayLike, dst: Any, *, offset: int | None = None, at: Any = None
    ) -> None:
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
            DtypeError: ``src`` cannot be cast.

        Cost: ``src.nbytes`` to h_out here and to h_in on ``pid``.
        Source: Hill et al. 1998, bsp_put; offsets are elements, not bytes.
        """
        self._put("put", pid, src, dst, offset, at)

    def hpput(
        self, pid: int, src: ArrayLike, dst: Any, *, offset: int | None = None, at: Any = None
    ) -> None:
        """Do as :meth:`put`, at any time in the superstep.

        ``src`` may not be changed before the sync, and what ``dst`` names on ``pid``
        may neither be read nor written otherwise in this superstep.

        Source: Hill et al. 1998, bsp_hpput.
        """
        self._put("hpput", pid, src, dst, offset, at)

    def _put(
        self, operation: str, pid: int, src: ArrayLike, dst: Any, offset: int | None, at: Any
    ) -> None:
        self._check_usable()
        receiver = self._check_pid(pid, operation)
        try:
            target = target_of(operation, self._registry, receiver, dst, offset, at)
            values = cast_values(operation, src, target.dtype)
            if values.size == 0:
                return
            header, arranged = target.for_put(values)
            if not target.resolved:
                self._unresolved.append(target)
            payload = messages.pack(arranged, self._port.stage)
        except BspError as error:
            self._fail(error)
        outgoing = self._to(receiver)
        outgoing.puts.append((*header, payload))
        if self._watch is not None:
            outgoing.sites[0].append(here(operation))
            if operation == "hpput" and isinstance(src, np.ndarray):
                self._watch.add(src, operation)

    def get(
        self,
        pid: int,
        src: Any,
        dst: Array | None = None,
        *,
        offset: int | None = None,
        at: Any = None,
    ) -> Array:
        """Read ``src`` on process ``pid`` into ``dst`` at the end of the superstep.

        What is read is what stands there when the superstep ends, before any put of
        it is written. Destinations are written in program order.

        Args:
            pid: process to read from; may be this one.
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
            PlaceError: ``src`` is a number, ``dst`` cannot be written or has another
                shape, or ``at`` is no basic index.
            BoundsError: the read would leave the array on ``pid``.
            DtypeError: ``dst`` cannot take the values.

        Cost: ``dst.nbytes`` to h_in here and to h_out on ``pid``.
        Source: Hill et al. 1998, bsp_get.
        """
        return self._get("get", pid, src, dst, offset, at)

    def hpget(
        self,
        pid: int,
        src: Any,
        dst: Array | None = None,
        *,
        offset: int | None = None,
        at: Any = None,
    ) -> Array:
        """Do as :meth:`get`, at any time in the superstep.

        What is named on ``pid`` may not be changed before the sync, and ``dst``
        neither read nor written.

        Source: Hill et al. 1998, bsp_hpget.
        """
        return self._get("hpget", pid, src, dst, offset, at)

    def _get(
        self, operation: str, pid: int, src: Any, dst: Array | None, offset: int | None, at: Any
    ) -> Array:
        self._check_usable()
        sender = self._check_pid(pid, operation)
        try:
            target = target_of(operation, self._registry, sender, src, offset, at)
            destination = target.destination(dst)
            if destination.size == 0:
                return destination
            header = target.for_get(destination)
            if not target.resolved:
                self._unresolved.append(target)
        except BspError as error:
            self._fail(error)
        outgoing = self._to(sender)
        outgoing.gets.append(header)
        if self._watch is not None:
            outgoing.sites[1].append(here(operation))
            self._watch.add(destination, operation)
        self._gets.append(Get(sender, destination, target.rearranged, target.dtype, header[-1]))
        return destination

    def put_at(
        self,
        pids: ArrayLike,
        indices: ArrayLike,
        values: ArrayLike,
        dst: Any,
        op: np.ufunc | None = None,
    ) -> None:
        """Write single words into ``dst`` on many processes at the end of the superstep.

        The values are copied before the call returns. The words take their turn
        among the puts: of duplicates the last in (source, program order) stays, or
        with ``op`` each is combined into what is there.

        Args:
            pids: receiving processes, broadcast against the other two.
            indices: elements of the array there in C order, none negative.
            values: cast (same_kind) to the dtype of ``dst``.
            dst: registered array, as a whole.
            op: binary ufunc such as ``numpy.add``.

        Raises:
            ProcessRangeError: a pid is no process of this group.
            RegistrationError: ``dst`` is not registered, or None there.
            PlaceError: shapes do not go together, or ``dst`` is a view.
            BoundsError: an index lies outside the array there.
            DtypeError: values cannot be cast, or ``op`` cannot combine them.

        Cost: one value's size to h for each word; for an oblsync one message for each
        destination.
        """
        self._check_usable()
        try:
            registration = whole_array("put_at", self._registry, dst)
            dtype = dtype_there("put_at", registration)
            code = encode_op("put_at", op, dtype)
            to, at, what = broadcast("put_at", pids, indices, cast_values("put_at", values, dtype))
            words = self._words("put_at", registration, to, at)
            flat = what.reshape(-1)
            for pid, its_indices, positions in words:
                payload = messages.pack(flat[positions], self._port.stage)
                where = messages.pack(its_indices, self._port.stage)
                outgoing = self._to(pid)
                outgoing.puts.append((registration.slot, None, code, where, payload))
                if self._watch is not None:
                    outgoing.sites[0].append(here("put_at"))
        except BspError as error:
            self._fail(error)

    def get_at(
        self, pids: ArrayLike, indices: ArrayLike, src: Any, out: Array | None = None
    ) -> Array:
        """Read single words of ``src`` on many processes at the end of the superstep.

        Args:
            pids: processes to read from, broadcast against ``indices``.
            indices: elements of the array there in C order, none negative.
            src: registered array, as a whole.
            out: writable array of the broadcast shape; a new one if None.

        Returns:
            ``out``, whose content is valid after the sync.

        Raises:
            ProcessRangeError: a pid is no process of this group.
            RegistrationError: ``src`` is not registered, or None there.
            PlaceError: shapes do not go together, ``out`` has another shape or cannot
                be written, or ``src`` is a view.
            BoundsError: an index lies outside the array there.
            DtypeError: ``out`` cannot take the values.

        Cost: one value's size to h for each word.
        """
        self._check_usable()
        try:
            registration = whole_array("get_at", self._registry, src)
            dtype = dtype_there("get_at", registration)
            of, at = broadcast("get_at", pids, indices)
            destination = check_out("get_at", out, of.shape, dtype)
            for pid, its_indices, positions in self._words("get_at", registration, of, at):
                where = messages.pack(its_indices, self._port.stage)
                nbytes = len(positions) * dtype.itemsize
                outgoing = self._to(pid)
                outgoing.gets.append((registration.slot, None, None, where, nbytes))
                if self._watch is not None:
                    outgoing.sites[1].append(here("get_at"))
                self._gets.append(Get(pid, destination, None, dtype, nbytes, positions))
            if self._watch is not None and destination.size:
                self._watch.add(destination, "get_at")
        except BspError as error:
            self._fail(error)
        return destination

    def _words(
        self, operation: str, registration: Registration, pids: Array, indices: Array
    ) -> list[Words]:
        """Sort the words of a call by process, with every check that is possible now."""
        words = sort_by_process(operation, pids, indices, self.nprocs)
        check_there(operation, registration, words)
        if registration.extents is None and words:
            self._unresolved.append(Pending(operation, registration, words))
        return words

    def send(self, pid: int, payload: Any, tag: Any = None) -> None:
        """Send a message that process ``pid`` can read in the next superstep.

        The payload is copied before the call returns.

        Args:
            pid: receiving process; may be this one.
            payload: array (shape and dtype are kept), bytes, or any picklable object.
            tag: small picklable object; bytes of the size that :meth:`set_tagsize`
                set, where it did.

        Raises:
            ProcessRangeError: ``pid`` is no process of this group.
            MessageError: the payload or the tag cannot be pickled, or the tag has
                another size.

        Cost: the payload's bytes to h_out here and to h_in on ``pid``.
        Source: Hill et al. 1998, bsp_send.
        """
        self._check_usable()
        receiver = self._check_pid(pid, "send")
        if self._tag_size is not None:
            self._check_tag(tag)
        try:
            wire = messages.encode(payload, tag, self._port.stage)
        except BspError as error:
            self._fail(error)
        self._to(receiver).messages.append(wire)

    # -- reading messages ---------------------------------------------------------------

    def qsize(self) -> tuple[int, int]:
        """Return how many messages are left to read, and the bytes of their payloads.

        Source: Hill et al. 1998, bsp_qsize.
        """
        self._check_usable()
        return len(self._queue), self._queue.nbytes()

    def get_tag(self) -> Any:
        """Return the tag of the next message, and leave it there; None if there is none.

        Source: Hill et al. 1998, bsp_get_tag.
        """
        self._check_usable()
        message = self._queue.peek()
        return None if message is None else messages.decode_tag(message.wire)

    def move(self) -> Any:
        """Take the next message and return its payload, which is the caller's own.

        Raises:
            MessageError: there is no message left.

        Source: Hill et al. 1998, bsp_move.
        """
        self._check_usable()
        if not len(self._queue):
            raise self._error(MessageError, "move: there is no message left; ask qsize() first")
        return messages.decode(self._queue.take().wire, self._port.fetch)

    def hpmove(self) -> tuple[Any, Any] | None:
        """Take the next message and return (tag, payload) without copying; None if none is left.

        An array or bytes come as a view that is valid until the next sync.

        Source: Hill et al. 1998, bsp_hpmove.
        """
        self._check_usable()
        if not len(self._queue):
            return None
        wire = self._queue.take().wire
        return messages.decode_tag(wire), messages.decode(wire, self._port.fetch, copy=False)

    def messages(self) -> Iterator[tuple[int, Any, Any]]:
        """Take the messages one after the other, as (source, tag, payload).

        They come in the order (source, program); each payload is the caller's own.
        """
        self._check_usable()
        while len(self._queue):
            yield self._read()

    def set_tagsize(self, size: int) -> int | None:
        """Have every tag be bytes of one length from the next superstep on.

        Collective.

        Returns:
            The size until now; None where tags are free.

        Source: Hill et al. 1998, bsp_set_tagsize.
        """
        self._check_usable()
        if size < 0:
            raise self._error(MessageError, f"set_tagsize: a tag cannot have {size} bytes")
        self._registry.note("set_tagsize", int(size))
        self._next_tag_size = int(size)
        return self._tag_size

    # -- ends of supersteps -----------------------------------------------------------

    def sync(self) -> None:
        """End the superstep: wait for all processes of the group, deliver everything.

        Gets read and write, then puts write, then messages become readable.

        Raises:
            SyncMismatchError: another process ends this superstep, or registered
                in it, otherwise.
            BoundsError: a transfer named an array made in this superstep, and would
                leave it.

        Cost: l, and g h for what was transferred.
        Source: Hill et al. 1998, bsp_sync.
        """
        self._check_usable()
        self._end_superstep(Kind.SYNC, 0)

    def oblsync(self, n: int) -> None:
        """End the superstep as soon as ``n`` messages addressed to this process are there.

        There is one message for each send and one for each put of any elements, this
        process's own to itself included. Other processes may by then be in another
        superstep; what they send early waits for its superstep. Registrations take
        effect at the next global sync.

        Args:
            n: how many messages to wait for.

        Raises:
            SyncMismatchError: more than ``n`` have come or fewer can come, or another
                process ends this superstep by a global sync.
            PendingTransferError: the superstep has a get.

        Cost: g h for what was transferred among those that sent to this process.
        Source: PUB, bsp_oblsync; Gonzalez et al., section 2.
        """
        self._check_usable()
        self._end_oblivious(n, 0)

    # -- sub-groups -------------------------------------------------------------------

    def partition(self, ends: Sequence[int]) -> Group:
        """Split the group; return the sub-group that this process is in.

        Collective, and without communication. Use it as ``with bsp.partition(ends)
        as sub:`` or call ``sub.done()``; until then this group rests. Transfers
        pending here stay pending, and messages not read yet can be read afterwards.

        Args:
            ends: sub-group i has the processes ``ends[i-1] .. ends[i] - 1``; not
                decreasing, the last is ``nprocs``; empty sub-groups are legal.

        Raises:
            PartitionError: ``ends`` is none of that.

        Cost: nothing.
        Source: PUB, bsp_partition; Gonzalez et al., section 2.2.
        """
        self._check_usable()
        bounds = self._check_ends(ends)
        index = next(i for i, end in enumerate(bounds) if self.pid < end)
        first = bounds[index - 1] if index else 0
        sub = self._open(index, first, bounds[index] - first)
        self._partitions += 1
        self._unusable = "a sub-group of it is open; leave the sub-group first (done)"
        return sub

    def done(self) -> None:
        """Leave a sub-group; the group that was partitioned is in use again.

        Raises:
            PartitionError: this is no sub-group, or a sub-group of it is open.
            PendingTransferError: transfers wait for a sync.

        Source: PUB, bsp_done.
        """
        self._check_usable()
        if self._parent is None:
            raise self._error(PartitionError, "done: this group is the whole run")
        self._check_nothing_pending("done")
        self._leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.done()
        elif self._parent is not None and self._parent._unusable is not None:
            self._leave()  # the exception is what the caller is to see

    def _read(self) -> tuple[int, Any, Any]:
        source, wire = self._queue.take()
        return source, messages.decode_tag(wire), messages.decode(wire, self._port.fetch)

    # -- sub-groups, inside -------------------------------------------------------------

    def _open(self, index: int, first: int, size: int) -> Group:
        return Group(self._split(index, first, size), self._terms, self)

    def _split(self, index: int, first: int, size: int) -> Port:
        try:
            return self._port.split(self._partitions, index, first, size)
        except BspError as error:
            self._fail(error)

    def _leave(self) -> None:
        parent = self._parent
        assert parent is not None
        self._unusable = "it has been left (done)"
        parent._unusable = None
        for memory in self._registry.memories():
            self._port.release(memory)
        self._close()

    # -- checks ---------------------------------------------------------------------------

    def _to(self, pid: int) -> Outgoing:
        outgoing = self._out.get(pid)
        if outgoing is None:
            outgoing = self._out[pid] = Outgoing()
        return outgoing

    def _check_pid(self, pid: Any, operation: str) -> int:
        try:
            number = operator.index(pid)
        except TypeError:
            raise self._error(
                ProcessRangeError, f"{operation}: {pid!r} is no process; a pid is an integer"
            ) from None
        if not 0 <= number < self.nprocs:
            raise self._error(
                ProcessRangeError,
                f"{operation}: there is no process {number} among {self.nprocs} (0 to "
                f"{self.nprocs - 1})",
            )
        return number

    def _check_dtype(self, dtype: np.dtype[Any], operation: str) -> None:
        if dtype.hasobject:
            raise self._error(
                DtypeError, f"{operation}: dtype {dtype} holds Python objects; send them instead"
            )

    def _check_tag(self, tag: Any) -> None:
        if type(tag) is messages.CollectiveTag:
            return  # a collective's own, which no program sees
        if not isinstance(tag, bytes) or len(tag) != self._tag_size:
            raise self._error(
                MessageError, f"send: tags are bytes of length {self._tag_size}, not {tag!r}"
            )

    def _check_ends(self, ends: Sequence[int]) -> list[int]:
        try:
            bounds = [operator.index(end) for end in ends]
        except TypeError:
            raise self._error(
                PartitionError,
                f"partition: ends are integers, one for each sub-group, not {ends!r}",
            ) from None
        if bounds != sorted(bounds) or not bounds or bounds[0] < 0 or bounds[-1] != self.nprocs:
            raise self._error(
                PartitionError,
                f"partition: ends {bounds} do not rise from 0 or more to {self.nprocs}, the "
                f"number of processes",
            )
        return bounds
