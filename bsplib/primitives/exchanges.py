"""The collectives that bring values to other processes, whole or in parts."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.core.queue import Message
from bsplib.errors import BspError, UsageError
from bsplib.primitives import blocks
from bsplib.primitives.collective_mail import CollectiveMail, copied, header_of, tag_of, unpack
from bsplib.transfers.registry import DtypeCode, decode_dtype, encode_dtype

_Value = TypeVar("_Value")


class Exchanges(CollectiveMail):
    """Broadcast, gather, allgather, scatter and alltoall."""

    # -- one value to all, or from all ----------------------------------------------------

    def broadcast(
        self, x: _Value | None, root: SupportsIndex = 0, stages: int | None = None
    ) -> _Value:
        """Return process ``root``'s ``x`` on every process.

        In one stage the root sends the whole to everybody. In two it sends each
        process a piece, which that one sends to everybody: this costs a superstep
        more and spreads the communication evenly. Pieces are of an array's elements,
        or of the bytes of a pickle.

        Args:
            x: an array, a number, bytes or any picklable object; ignored on
                processes other than the root.
            root: process whose ``x`` it is.
            stages: 1 or 2; None leaves it to the Machine: two stages from
                ``n > l / (p g - 2 g)`` on, and never with one or two processes. What
                the root says counts.

        Returns:
            The value.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            UsageError: ``stages`` is not 1, 2 or None.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: the root is in no broadcast, or in one from elsewhere.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1 or 2.
        Cost: (p - 1) n g + l in one stage, 2 (p - 1)/p n g + 2 l in two.
        Source: Jarvis et al. 2002, section 3.2, equations 6 to 8.
        """
        source = self._check_call("broadcast", root)
        if stages not in (None, 1, 2):
            raise self._error(
                UsageError,
                f"broadcast: stages is {stages!r}; it is 1, 2, or None to leave it to the Machine",
            )
        sent = self._send_value(x, stages) if self.pid == source else None
        self.sync()
        arrived = self._arrived("broadcast", [source])
        found, pieces = sent or self._receive_value(arrived[source])
        value: _Value = found
        if pieces is None:
            return value
        self._send_piece(pieces, [pid for pid in self._others() if pid != source])
        kept = self._queue.take_left(self._port.fetch)
        self.sync()
        everyone = range(self.nprocs)
        arrived = self._arrived("broadcast", [] if self.pid == source else everyone, kept)
        if self.pid == source:
            return value
        for pid, message in arrived.items():
            pieces.flat[self._piece(pid, pieces.flat.size)] = self._unwrap(message, copy=False)
        value = pieces.whole()
        return value  # noqa: RET504  # it has the type

    @overload
    def gather(
        self, x: _Value, root: SupportsIndex = 0, *, axis: None = None
    ) -> list[_Value] | None: ...
    @overload
    def gather(
        self, x: ArrayLike, root: SupportsIndex = 0, *, axis: int
    ) -> NDArray[Any] | None: ...
    def gather(self, x: Any, root: SupportsIndex = 0, *, axis: int | None = None) -> Any:
        """Return the ``x`` of all processes on process ``root``, as a list or joined.

        Args:
            x: an array, a number, bytes or any picklable object; of any size.
            root: process that receives them.
            axis: along which arrays are joined, in the order of the pids, as by
                ``numpy.concatenate``; None for the list of the values.

        Returns:
            The values by pid on the root, or with ``axis`` one array; None on the others.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            UsageError: ``axis`` is no integer.
            ShapeError: an array has no such axis, or they differ along another one.
            DtypeError: with ``axis``, there is no dtype for all of them, or one holds
                Python objects.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no gather, or in one to elsewhere.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal values the sum of all but the root's for
        (p - 1) n.
        """
        receiver = self._check_call("gather", root)
        own = self._send_or_own("gather", receiver, self._block("gather", x, axis))
        self.sync()
        if self.pid != receiver:
            self._arrived("gather", [])
            return None
        return self._listed_or_joined(
            "gather", self._arrived("gather", range(self.nprocs)), own, axis
        )

    @overload
    def allgather(self, x: _Value, *, axis: None = None) -> list[_Value]: ...
    @overload
    def allgather(self, x: ArrayLike, *, axis: int) -> NDArray[Any]: ...
    def allgather(self, x: Any, *, axis: int | None = None) -> Any:
        """Return the ``x`` of all processes on every process, as a list or joined.

        Args:
            x: an array, a number, bytes or any picklable object; of any size.
            axis: along which arrays are joined, in the order of the pids, as by
                ``numpy.concatenate``; None for the list of the values.

        Returns:
            The values by pid, or with ``axis`` one array.

        Raises:
            UsageError: ``axis`` is no integer.
            ShapeError: an array has no such axis, or they differ along another one.
            DtypeError: with ``axis``, there is no dtype for all of them, or one holds
                Python objects.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no allgather.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal values h is the greater of (p - 1) times
        the largest and the sum of all but the smallest.
        """
        self._check_usable()
        return self._exchange("allgather", self._block("allgather", x, axis), axis)

    # -- parts ----------------------------------------------------------------------------

    @overload
    def scatter(
        self, parts: NDArray[Any] | None, root: SupportsIndex = 0, *, axis: None = None
    ) -> Any: ...
    @overload
    def scatter(
        self, parts: Sequence[_Value] | None, root: SupportsIndex = 0, *, axis: None = None
    ) -> _Value: ...
    @overload
    def scatter(
        self, parts: ArrayLike | None, root: SupportsIndex = 0, *, axis: int
    ) -> NDArray[Any]: ...
    def scatter(self, parts: Any, root: SupportsIndex = 0, *, axis: int | None = None) -> Any:
        """Return part ``pid`` of process ``root``'s parts on each process.

        Args:
            parts: one part for each process, by pid, of any sizes: a list, or an array
                whose first axis has an index for each process; with ``axis`` an array
                of any shape. Ignored on processes other than the root.
            root: process that has them.
            axis: along which the array is cut into a block for each process, as by
                ``numpy.array_split``: the first blocks are longer by one element where
                they cannot be equal. What the root says counts.

        Returns:
            The part, or the block.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            UsageError: there are more or fewer parts than processes, or ``axis`` is no
                integer.
            ShapeError: the array has no such axis.
            DtypeError: with ``axis``, the array holds Python objects.
            MessageError: a part cannot be pickled.
            SyncMismatchError: the root is in no scatter, or in one from elsewhere.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal parts the sum of all but the root's for
        (p - 1) n.
        """
        source = self._check_call("scatter", root)
        own = None
        if self.pid == source:
            own = self._send_parts("scatter", self._blocks("scatter", parts, axis))
        self.sync()
        arrived = self._arrived("scatter", [source])
        return own if self.pid == source else self._unwrap(arrived[source])

    @overload
    def alltoall(self, parts: NDArray[Any], *, axis: None = None) -> list[Any]: ...
    @overload
    def alltoall(self, parts: Sequence[_Value], *, axis: None = None) -> list[_Value]: ...
    @overload
    def alltoall(self, parts: ArrayLike, *, axis: int | tuple[int, int]) -> NDArray[Any]: ...
    def alltoall(self, parts: Any, *, axis: int | tuple[int, int] | None = None) -> Any:
        """Send part i to process i, and return what the processes sent here.

        Args:
            parts: one part for each process, by pid, of any sizes: a list, or an array
                whose first axis has an index for each process; with ``axis`` an array
                of any shape. None where there is nothing for a process.
            axis: along which the array is cut into a block for each process, as by
                ``numpy.array_split``, and the blocks that come are joined. With two
                axes it is cut along the first and joined along the second one: a matrix
                in blocks of rows becomes one in blocks of columns by ``axis=(1, 0)``.

        Returns:
            By pid, the part that each process had for this one; None from a process
            that had nothing. With ``axis`` one array.

        Raises:
            UsageError: there are more or fewer parts than processes, or ``axis`` is
                neither an integer nor two.
            ShapeError: the array has no such axis, or blocks differ along another one.
            DtypeError: with ``axis``, there is no dtype for all blocks, or the array
                holds Python objects.
            MessageError: a part cannot be pickled.
            SyncMismatchError: a process is in another collective.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal parts h is the bytes in or out of a
        process, its part for itself apart. None is not sent and costs nothing.
        """
        self._check_usable()
        along, joined = blocks.two_axes(axis)
        self._block("alltoall", parts, joined)
        own = self._send_parts("alltoall", self._blocks("alltoall", parts, along))
        self.sync()
        return self._listed_or_joined("alltoall", self._taken("alltoall"), own, joined)

    # -- what these have in common --------------------------------------------------------------

    def _exchange(self, operation: str, x: Any, axis: int | None = None) -> Any:
        """Exchange one value of each process with all: allgather, and the choices of a split."""
        data, pickled = self._pack(operation, x)
        tag = tag_of(operation, pickled)
        for pid in self._others():
            self.send(pid, data, tag)
        own = unpack(copied(data), pickled=pickled)
        self.sync()
        arrived = self._arrived(operation, range(self.nprocs))
        return self._listed_or_joined(operation, arrived, own, axis)

    def _block(self, operation: str, x: Any, axis: int | None) -> Any:
        """Return a value, or the array that it is where the result is joined along an axis."""
        if axis is None:
            return x
        try:
            return blocks.block(operation, self._to_read(operation, x), axis)
        except BspError as error:
            self._fail(error)

    def _blocks(self, operation: str, parts: Any, axis: int | None) -> Any:
        """Return parts, or the blocks of an array that is cut along an axis."""
        if axis is None:
            return parts
        try:
            return blocks.cut(operation, self._to_read(operation, parts), self._nprocs, axis)
        except BspError as error:
            self._fail(error)

    def _listed_or_joined(
        self, operation: str, arrived: dict[int, Message], own: Any, axis: int | None
    ) -> Any:
        """Return the values of all processes as a list, or joined along an axis."""
        values = self._by_pid(arrived, own, copy=axis is None)
        if axis is None:
            return values
        try:
            return blocks.join(operation, values, axis)
        except BspError as error:
            self._fail(error)

    def _check_parts(self, operation: str, parts: Any) -> None:
        try:
            count = len(parts)
        except TypeError:
            raise self._error(
                UsageError,
                f"{operation}: parts is a {type(parts).__name__}; it is a list with one part for "
                f"each of the {self.nprocs} processes",
            ) from None
        if count != self.nprocs:
            cut = "; axis=0 cuts an array into blocks" if isinstance(parts, np.ndarray) else ""
            raise self._error(
                UsageError,
                f"{operation}: there are {count} parts for {self.nprocs} processes; each "
                f"process has one{cut}",
            )

    def _by_pid(self, arrived: dict[int, Message], own: Any, *, copy: bool = True) -> list[Any]:
        """Return the values that arrived, by source; None where a process sent nothing.

        Without ``copy`` arrays are views until the sync.
        """
        values = [None] * self.nprocs
        for pid, message in arrived.items():
            values[pid] = self._unwrap(message, copy=copy)
        values[self.pid] = own
        return values

    def _send_or_own(self, operation: str, receiver: int, x: Any) -> Any:
        if self.pid == receiver:
            return self._own(operation, x)
        self._send_one(operation, receiver, x)
        return None

    def _send_parts(self, operation: str, parts: Any) -> Any:
        """Send each process its part; return this process's own."""
        self._check_parts(operation, parts)
        for pid in self._others():
            if parts[pid] is not None or operation == "scatter":
                self._send_one(operation, pid, parts[pid])
        return self._own(operation, parts[self.pid])

    def _send_value(self, x: Any, stages: int | None) -> tuple[Any, _Pieces | None]:
        """Send all others the whole value or a piece each.

        Returns:
            The value, and its pieces where it travels in pieces.
        """
        data, pickled = self._pack("broadcast", x)
        nbytes = len(data) if type(data) is bytes else data.nbytes
        data = copied(data)
        if stages != 2 and (stages == 1 or not self.machine.two_stages_pay(nbytes, self.nprocs)):
            tag = tag_of("broadcast", pickled)
            for pid in self._others():
                self.send(pid, data, tag)
            return unpack(data, pickled=pickled), None
        pieces = _Pieces.of(data, pickled=pickled)
        tag = tag_of("broadcast", pieces.header())
        for pid in self._others():
            self.send(pid, pieces.flat[self._piece(pid, pieces.flat.size)], tag)
        return unpack(data, pickled=pickled), pieces

    def _receive_value(self, message: Message) -> tuple[Any, _Pieces | None]:
        header = header_of(message)
        if isinstance(header, bool):
            return self._unwrap(message), None
        pieces = _Pieces.empty(*header)
        pieces.flat[self._piece(self.pid, pieces.flat.size)] = self._unwrap(message, copy=False)
        return None, pieces

    def _send_piece(self, pieces: _Pieces, receivers: Iterable[int]) -> None:
        piece = pieces.flat[self._piece(self.pid, pieces.flat.size)]
        for pid in receivers:
            self.send(pid, piece, tag_of("broadcast"))


class _Pieces(NamedTuple):
    """A value that travels in pieces."""

    form: str
    """``array``, ``bytes`` or ``pickle``."""
    shape: tuple[int, ...]
    flat: NDArray[Any]

    @classmethod
    def of(cls, data: Any, *, pickled: bool) -> _Pieces:
        """Lay out what travels for a value."""
        if type(data) is np.ndarray:
            return cls("array", data.shape, data.reshape(-1))
        if type(data) is not bytes:
            data, pickled = pickle.dumps(data, 5), True
        flat = np.frombuffer(data, np.uint8)
        return cls("pickle" if pickled else "bytes", flat.shape, flat)

    @classmethod
    def empty(cls, form: str, shape: tuple[int, ...], dtype: DtypeCode) -> _Pieces:
        """Make room for what a header announces."""
        return cls(form, shape, np.empty(prod(shape), decode_dtype(dtype)))

    def header(self) -> tuple[str, tuple[int, ...], DtypeCode]:
        """Return what the receivers need to know."""
        return self.form, self.shape, encode_dtype(self.flat.dtype)

    def whole(self) -> Any:
        """Return the value once all pieces are there."""
        if self.form == "array":
            return self.flat.reshape(self.shape)
        return unpack(self.flat.tobytes(), pickled=self.form == "pickle")
