"""The collectives that bring values to other processes, whole or in parts."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.core.queue import Message
from bsplib.errors import UsageError
from bsplib.primitives.collective_mail import CollectiveMail, copied, header_of, tag_of, unpack
from bsplib.transfers.registry import DtypeCode, decode_dtype, encode_dtype


class Exchanges(CollectiveMail):
    """Broadcast, gather, allgather, scatter and alltoall."""

    # -- one value to all, or from all ----------------------------------------------------

    def broadcast(self, x: Any, root: int = 0, stages: int | None = None) -> Any:
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
        value, pieces = sent or self._receive_value(arrived[source])
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
        return pieces.whole()

    def gather(self, x: Any, root: int = 0) -> list[Any] | None:
        """Return the ``x`` of all processes on process ``root``.

        Args:
            x: an array, a number, bytes or any picklable object; of any size.
            root: process that receives them.

        Returns:
            The values by pid on the root; None on the others.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no gather, or in one to elsewhere.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal values the sum of all but the root's for
        (p - 1) n.
        """
        receiver = self._check_call("gather", root)
        own = self._send_or_own("gather", receiver, x)
        self.sync()
        arrived = self._arrived("gather", range(self.nprocs) if self.pid == receiver else [])
        return self._by_pid(arrived, own) if self.pid == receiver else None

    def allgather(self, x: Any) -> list[Any]:
        """Return the ``x`` of all processes on every process.

        Args:
            x: an array, a number, bytes or any picklable object; of any size.

        Returns:
            The values by pid.

        Raises:
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no allgather.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal values h is the greater of (p - 1) times
        the largest and the sum of all but the smallest.
        """
        self._check_usable()
        return self._exchange("allgather", x)

    # -- parts ----------------------------------------------------------------------------

    def scatter(self, parts: Sequence[Any] | None, root: int = 0) -> Any:
        """Return part ``pid`` of process ``root``'s parts on each process.

        Args:
            parts: one part for each process, by pid, of any sizes; an array is cut
                along its first axis. Ignored on processes other than the root.
            root: process that has them.

        Returns:
            The part.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            UsageError: there are more or fewer parts than processes.
            MessageError: a part cannot be pickled.
            SyncMismatchError: the root is in no scatter, or in one from elsewhere.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal parts the sum of all but the root's for
        (p - 1) n.
        """
        source = self._check_call("scatter", root)
        own = self._send_parts("scatter", parts) if self.pid == source else None
        self.sync()
        arrived = self._arrived("scatter", [source])
        return own if self.pid == source else self._unwrap(arrived[source])

    def alltoall(self, parts: Sequence[Any]) -> list[Any]:
        """Send part i to process i, and return what the processes sent here.

        Args:
            parts: one part for each process, by pid, of any sizes; an array is cut
                along its first axis. None where there is nothing for a process.

        Returns:
            By pid, the part that each process had for this one; None from a process
            that had nothing.

        Raises:
            UsageError: there are more or fewer parts than processes.
            MessageError: a part cannot be pickled.
            SyncMismatchError: a process is in another collective.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal parts h is the bytes in or out of a
        process, its part for itself apart. None is not sent and costs nothing.
        """
        self._check_usable()
        own = self._send_parts("alltoall", parts)
        self.sync()
        return self._by_pid(self._taken("alltoall"), own)

    # -- what these have in common --------------------------------------------------------------

    def _exchange(self, operation: str, x: Any) -> list[Any]:
        """Exchange one value of each process with all: allgather, and the choices of a split."""
        data, pickled = self._pack(operation, x)
        tag = tag_of(operation, pickled)
        for pid in self._others():
            self.send(pid, data, tag)
        own = unpack(copied(data), pickled=pickled)
        self.sync()
        return self._by_pid(self._arrived(operation, range(self.nprocs)), own)

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
            raise self._error(
                UsageError,
                f"{operation}: there are {count} parts for {self.nprocs} processes; each "
                f"process has one",
            )

    def _by_pid(self, arrived: dict[int, Message], own: Any) -> list[Any]:
        """Return the values that arrived, by source; None where a process sent nothing."""
        values = [None] * self.nprocs
        for pid, message in arrived.items():
            values[pid] = self._unwrap(message)
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
