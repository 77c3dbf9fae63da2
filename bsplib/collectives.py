"""The collectives: what all processes of a group do together, values in, values out.

They are written on send and sync alone, so that they cost what BSP says, and their
supersteps stand in a profile like any others. Every process of the group calls the
same one, with the same root. Of all of them:

* What they return is the caller's own: no part of it is memory of an argument.
* A value is taken at the call; puts that are pending take effect at the syncs.
* Messages that the program sent before can be read afterwards, however many
  supersteps it took; those not read before are gone, as after any sync.

In the costs n is the bytes of one value (of a part, where there are parts), p the
number of processes. Arrays, bytes and numpy's numbers travel as they are, anything
else as its pickle.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib import messages
from bsplib.errors import MessageError, ShapeError, SyncMismatchError, UsageError
from bsplib.messages import CollectiveTag, Message, WireMessage
from bsplib.registry import DtypeCode, decode_dtype, encode_dtype
from bsplib.superstep import Supersteps

_WORD = 8
"""Bytes that an element counts where all processes have to choose alike."""

Op = Callable[[Any, Any], Any]


class Collectives(Supersteps):
    """The collectives of a group, above its send and its sync."""

    if TYPE_CHECKING:

        def send(self, pid: int, payload: Any, tag: Any = None) -> None: ...  # noqa: D102
        def sync(self) -> None: ...  # noqa: D102
        def _check_pid(self, pid: Any, operation: str) -> int: ...

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
            UsageError: ``stages`` is none of that.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: the root is in no broadcast, or in one from elsewhere.

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
        kept = self._queue.copy_left(self._port.fetch)
        self.sync()
        everyone = range(self.nprocs)
        arrived = self._arrived("broadcast", [] if self.pid == source else everyone, kept)
        if self.pid == source:
            return value
        for pid, wire in arrived.items():
            pieces.flat[self._piece(pid, pieces.flat.size)] = self._unwrap(wire, copy=False)
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

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal values h is the greater of (p - 1) times
        the largest and the sum of all but the smallest.
        """
        self._check_usable()
        data, pickled = self._pack("allgather", x)
        for pid in self._others():
            self.send(pid, data, CollectiveTag("allgather", pickled))
        own = _unpack(_copied(data), pickled=pickled)
        self.sync()
        return self._by_pid(self._arrived("allgather", range(self.nprocs)), own)

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

        Supersteps: 1.
        Cost: (p - 1) n g + l; with unequal parts h is the bytes in or out of a
        process, its part for itself apart. None is not sent and costs nothing.
        """
        self._check_usable()
        own = self._send_parts("alltoall", parts)
        self.sync()
        return self._by_pid(self._taken("alltoall"), own)

    # -- combination ------------------------------------------------------------------------

    def reduce(self, x: Any, op: Op = np.add, root: int = 0) -> Any:
        """Return ``x_0 op x_1 op ... op x_(p-1)`` on process ``root``.

        The values are combined in the order of the pids, from the left, element by
        element, so that the result is the same in every run, bit by bit, and ``op``
        need neither commute nor be exactly associative.

        With a ufunc the values are arrays of one shape (or numbers, or what
        ``numpy.asarray`` takes). The Machine then chooses, as for :meth:`broadcast`
        and counting 8 bytes for each element: either everything goes to the root,
        which combines it; or each process combines a piece of all arrays, and the
        pieces go to the root. Any other function is given the values whole.

        Args:
            x: what this process contributes.
            op: a binary ufunc, or a function of two values.
            root: process that receives the result.

        Returns:
            The result on the root; None on the others.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
            ShapeError: with a ufunc, the shapes differ.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no reduce, or in one to elsewhere.

        Supersteps: 1 or 2.
        Cost: (p - 1) n g + l and (p - 1) n of computation on the root in one;
        2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two.
        Source: the second way is that of Jarvis et al. 2002, equation 7, backwards.
        """
        receiver = self._check_call("reduce", root)
        job = self._combination("reduce", x, op)
        self._send_operand(job, range(self.nprocs) if job.cut else [receiver])
        self.sync()
        if not job.cut and self.pid != receiver:
            self._operands(job, [])
            return None
        result = job.fold(self._operands(job, range(self.nprocs)))
        if not job.cut:
            return result
        if self.pid != receiver:
            self.send(receiver, result, CollectiveTag("reduce"))
        kept = self._queue.copy_left(self._port.fetch)
        self.sync()
        arrived = self._arrived("reduce", range(self.nprocs) if self.pid == receiver else [], kept)
        return self._joined(job, arrived, result) if self.pid == receiver else None

    def allreduce(self, x: Any, op: Op = np.add) -> Any:
        """Return ``x_0 op x_1 op ... op x_(p-1)`` on every process.

        Order, arguments and choice between two ways are those of :meth:`reduce`:
        either everybody sends its whole value to everybody; or each process combines
        a piece of all arrays, and sends the piece to everybody.

        Args:
            x: what this process contributes.
            op: a binary ufunc, or a function of two values.

        Returns:
            The result, the same on all processes, bit by bit.

        Raises:
            UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
            ShapeError: with a ufunc, the shapes differ.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no allreduce.

        Supersteps: 1 or 2.
        Cost: (p - 1) n g + l and (p - 1) n of computation in one;
        2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two.
        """
        self._check_usable()
        job = self._combination("allreduce", x, op)
        everyone = range(self.nprocs)
        self._send_operand(job, everyone)
        self.sync()
        result = job.fold(self._operands(job, everyone))
        if not job.cut:
            return result
        for pid in self._others():
            self.send(pid, result, CollectiveTag("allreduce"))
        kept = self._queue.copy_left(self._port.fetch)
        self.sync()
        arrived = self._arrived("allreduce", everyone, kept)
        return self._joined(job, arrived, result)

    def scan(self, x: Any, op: Op = np.add) -> Any:
        """Return ``x_0 op ... op x_pid`` on each process: the inclusive prefix.

        Order, arguments and choice between two ways are those of :meth:`reduce`:
        either each process sends its whole value to those after it; or each process
        combines a piece of all arrays, and sends each process its prefix.

        Args:
            x: what this process contributes.
            op: a binary ufunc, or a function of two values.

        Returns:
            The combination of the values of this process and of those before it.

        Raises:
            UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
            ShapeError: with a ufunc, the shapes differ.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no scan.

        Supersteps: 1 or 2.
        Cost: (p - 1) n g + l and (p - 1) n of computation in one;
        2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two.
        """
        self._check_usable()
        job = self._combination("scan", x, op)
        everyone = range(self.nprocs)
        self._send_operand(job, everyone if job.cut else everyone[self.pid :])
        self.sync()
        if not job.cut:
            return job.fold(self._operands(job, everyone[: self.pid + 1]))
        prefixes = job.prefixes(self._operands(job, everyone))
        for pid in self._others():
            self.send(pid, prefixes[pid], CollectiveTag("scan"))
        kept = self._queue.copy_left(self._port.fetch)
        self.sync()
        arrived = self._arrived("scan", everyone, kept)
        return self._joined(job, arrived, prefixes[self.pid])

    # -- checks -----------------------------------------------------------------------------

    def _check_call(self, operation: str, root: Any) -> int:
        self._check_usable()
        return self._check_pid(root, operation)

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

    def _check_op(self, operation: str, op: Any) -> None:
        if isinstance(op, np.ufunc) and (op.nin, op.nout) != (2, 1):
            raise self._error(
                UsageError,
                f"{operation}: numpy's {op.__name__} makes {op.nout} values of {op.nin}; what "
                f"combines makes one of two",
            )
        if not callable(op):
            raise self._error(
                UsageError,
                f"{operation}: op is {op!r}; it is a binary ufunc or a function of two values",
            )

    # -- messages of a collective -------------------------------------------------------------

    def _others(self) -> list[int]:
        """Return the other processes, beginning after this one, so that not all send to one."""
        return [*range(self.pid + 1, self.nprocs), *range(self.pid)]

    def _arrived(
        self, operation: str, sources: Iterable[int], kept: list[Message] | None = None
    ) -> dict[int, WireMessage]:
        """Return what a superstep of this collective brought, by source.

        Args:
            operation: the collective.
            sources: the processes that send something in it; this one does not matter.
            kept: messages of the program from its first superstep, to be read after it.
        """
        arrived = self._taken(operation)
        if kept:
            self._queue.fill(kept)
        self._check_sources(operation, arrived, sources)
        return arrived

    def _taken(self, operation: str) -> dict[int, WireMessage]:
        arrived = {}
        for source, wire in self._queue.take_collective():
            other, _ = messages.decode_tag(wire)
            if other != operation:
                raise self._error(
                    SyncMismatchError,
                    f"{operation}: process {source} is in {other} in the same superstep",
                )
            arrived[source] = wire
        return arrived

    def _check_sources(
        self, operation: str, arrived: dict[int, WireMessage], sources: Iterable[int]
    ) -> None:
        wrong = sorted(arrived.keys() ^ (set(sources) - {self.pid}))
        if wrong:
            came = "something" if wrong[0] in arrived else "nothing"
            raise self._error(
                SyncMismatchError,
                f"{operation}: {came} came from process {wrong[0]}; all processes call {operation} "
                f"together, with the same root and op",
            )

    def _unwrap(self, wire: WireMessage, *, copy: bool = True) -> Any:
        """Return what a message holds; without ``copy`` an array as a view until the sync."""
        pickled = messages.decode_tag(wire)[1] is True
        payload = messages.decode(wire, self._port.fetch, copy=copy and not pickled)
        return _unpack(payload, pickled=pickled)

    def _by_pid(self, arrived: dict[int, WireMessage], own: Any) -> list[Any]:
        """Return what arrived, by source; None from whom nothing came."""
        values = [None] * self.nprocs
        for pid, wire in arrived.items():
            values[pid] = self._unwrap(wire)
        values[self.pid] = own
        return values

    def _pack(self, operation: str, x: Any) -> tuple[Any, bool]:
        """Return what travels for a value that goes to many, and whether it is a pickle."""
        if messages.is_plain(x):
            return x, False
        try:
            return pickle.dumps(x, 5), True
        except Exception as error:
            kind = type(x).__name__
            raise self._error(
                MessageError, f"{operation}: a value of type {kind} cannot be pickled: {error}"
            ) from error

    def _own(self, operation: str, x: Any) -> Any:
        """Return a value as it would arrive on another process."""
        data, pickled = self._pack(operation, x)
        return _unpack(_copied(data), pickled=pickled)

    def _send_or_own(self, operation: str, receiver: int, x: Any) -> Any:
        if self.pid == receiver:
            return self._own(operation, x)
        self.send(receiver, x, CollectiveTag(operation))
        return None

    def _send_parts(self, operation: str, parts: Any) -> Any:
        """Send each process its part; return this process's own."""
        self._check_parts(operation, parts)
        for pid in self._others():
            if parts[pid] is not None or operation == "scatter":
                self.send(pid, parts[pid], CollectiveTag(operation))
        return self._own(operation, parts[self.pid])

    # -- broadcast, inside ----------------------------------------------------------------------

    def _piece(self, pid: int, size: int) -> slice:
        """Return which of ``size`` elements are process ``pid``'s."""
        return slice(pid * size // self.nprocs, (pid + 1) * size // self.nprocs)

    def _send_value(self, x: Any, stages: int | None) -> tuple[Any, _Pieces | None]:
        """Send everybody the whole or a piece; return the value, and the pieces to come."""
        data, pickled = self._pack("broadcast", x)
        nbytes = len(data) if type(data) is bytes else data.nbytes
        data = _copied(data)
        if stages != 2 and (stages == 1 or not self.machine.two_stages_pay(nbytes, self.nprocs)):
            for pid in self._others():
                self.send(pid, data, CollectiveTag("broadcast", pickled))
            return _unpack(data, pickled=pickled), None
        pieces = _Pieces.of(data, pickled=pickled)
        for pid in self._others():
            piece = pieces.flat[self._piece(pid, pieces.flat.size)]
            self.send(pid, piece, CollectiveTag("broadcast", pieces.header()))
        return _unpack(data, pickled=pickled), pieces

    def _receive_value(self, wire: WireMessage) -> tuple[Any, _Pieces | None]:
        header = messages.decode_tag(wire)[1]
        if isinstance(header, bool):
            return self._unwrap(wire), None
        pieces = _Pieces.empty(*header)
        pieces.flat[self._piece(self.pid, pieces.flat.size)] = self._unwrap(wire, copy=False)
        return None, pieces

    def _send_piece(self, pieces: _Pieces, receivers: Iterable[int]) -> None:
        piece = pieces.flat[self._piece(self.pid, pieces.flat.size)]
        for pid in receivers:
            self.send(pid, piece, CollectiveTag("broadcast"))

    # -- combination, inside ----------------------------------------------------------------------

    def _combination(self, operation: str, x: Any, op: Op) -> _Combination:
        """Check what a process contributes, and choose how it is combined."""
        self._check_op(operation, op)
        if not isinstance(op, np.ufunc) or op.signature is not None:
            return _Combination(operation, op, x, elementwise=False, cut=False)
        values = np.asarray(x)
        cut = self.machine.two_stages_pay(values.size * _WORD, self.nprocs)
        return _Combination(operation, op, values, elementwise=True, cut=cut)

    def _send_operand(self, job: _Combination, receivers: Iterable[int]) -> None:
        """Send others the value or their pieces of it, and keep what is for this process."""
        flat = job.value.reshape(-1) if job.cut else None
        tag = CollectiveTag(job.operation, job.shape())
        for pid in receivers:
            part = job.value if flat is None else flat[self._piece(pid, flat.size)]
            if pid != self.pid:
                self.send(pid, part, tag)
            elif job.elementwise:
                job.own = part.copy()
            else:
                job.own = self._own(job.operation, part)

    def _operands(self, job: _Combination, sources: Iterable[int]) -> list[Any]:
        """Return the values to combine, or the pieces of them that are this process's."""
        arrived = self._taken(job.operation)
        self._check_shapes(job, arrived)
        self._check_sources(job.operation, arrived, sources)
        views = job.elementwise  # a function may change or keep what it is given
        return [
            job.own if pid == self.pid else self._unwrap(arrived[pid], copy=not views)
            for pid in sources
        ]

    def _check_shapes(self, job: _Combination, arrived: dict[int, WireMessage]) -> None:
        """Raise where the values have not one shape, or not all sent a piece."""
        shapes = {pid: messages.decode_tag(wire)[1] for pid, wire in arrived.items()}
        shapes[self.pid] = job.shape()
        silent = job.cut and len(shapes) < self.nprocs
        if len(set(shapes.values())) == 1 and not silent:
            return
        if len(shapes) < self.nprocs:
            self.sync()  # the error of a process that has heard from all says more, and is first
        if len(set(shapes.values())) > 1:
            pids: dict[str, list[int]] = {}
            for pid in sorted(shapes):
                pids.setdefault(shapes[pid], []).append(pid)
            words = ", ".join(f"{shape} on {_processes(pids[shape])}" for shape in pids)
            raise self._error(ShapeError, f"{job.operation}: the shapes of x differ: {words}")

    def _joined(self, job: _Combination, arrived: dict[int, WireMessage], own: Any) -> Any:
        """Put the pieces of a result together."""
        whole = np.empty(job.value.size, own.dtype)
        whole[self._piece(self.pid, whole.size)] = own
        for pid, wire in arrived.items():
            whole[self._piece(pid, whole.size)] = self._unwrap(wire, copy=False)
        return whole.reshape(job.value.shape)[()]


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
        return _unpack(self.flat.tobytes(), pickled=self.form == "pickle")


class _Combination:
    """What one process knows of a reduce, allreduce or scan.

    Attributes:
        own: what this process keeps of its own value to combine: all or a piece.
    """

    def __init__(self, operation: str, op: Op, value: Any, *, elementwise: bool, cut: bool) -> None:
        self.operation = operation
        self.op = op
        self.value = value
        self.elementwise = elementwise
        self.cut = cut
        self.own: Any = None

    def shape(self) -> str:
        """Return in words what all processes must have alike."""
        return str(self.value.shape) if self.elementwise else "any"

    def fold(self, operands: list[Any]) -> Any:
        """Combine values from the left."""
        if len(operands) == 1:
            return operands[0][()] if self.elementwise else operands[0]
        return functools.reduce(self._onto, operands[2:], self.op(*operands[:2]))

    def prefixes(self, operands: list[Any]) -> list[Any]:
        """Combine values from the left, and return every step."""
        results = [operands[0]]
        for value in operands[1:]:
            results.append(self.op(results[-1], value))
        return results

    def _onto(self, total: Any, value: Any) -> Any:
        """Combine one value more, in place where that makes no difference."""
        if self.elementwise and type(total) is np.ndarray and total.dtype == value.dtype:
            return self.op(total, value, out=total)  # type: ignore[call-arg]  # a ufunc
        return self.op(total, value)


def _copied(data: Any) -> Any:
    return data.copy() if type(data) is np.ndarray else data


def _unpack(data: Any, *, pickled: bool) -> Any:
    return pickle.loads(data) if pickled else data  # from a process of the same run


def _processes(pids: list[int]) -> str:
    return f"process {pids[0]}" if len(pids) == 1 else f"processes {pids}"
