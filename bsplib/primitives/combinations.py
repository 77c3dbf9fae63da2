"""The collectives that combine a value of every process into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from bsplib.core.queue import Message
from bsplib.errors import ShapeError, UsageError
from bsplib.primitives.blocks import by_process
from bsplib.primitives.collective_mail import header_of, tag_of
from bsplib.primitives.contracts import shares
from bsplib.primitives.exchanges import Exchanges
from bsplib.transfers import operations
from bsplib.transfers.operations import Op

_WORD = 8
"""Bytes that an element counts where all processes have to choose alike."""


_Value = TypeVar("_Value")
_Op = np.ufunc | str | Callable[[_Value, _Value], _Value]
_Listed = list[Any] | tuple[Any, ...]
"""What a ufunc combines as arrays."""


class Combinations(Exchanges):
    """Reduce, allreduce, scan and exscan."""

    @overload
    def reduce(
        self, x: _Listed, op: np.ufunc | str = ..., root: SupportsIndex = 0
    ) -> NDArray[Any] | None: ...
    @overload
    def reduce(
        self, x: _Value, op: _Op[_Value] = ..., root: SupportsIndex = 0
    ) -> _Value | None: ...
    def reduce(self, x: Any, op: Any = np.add, root: SupportsIndex = 0) -> Any:
        """Return ``x_0 op x_1 op ... op x_(p-1)`` on process ``root``.

        The values are combined in the order of the pids, from the left, element by
        element, so that the result is the same in every run, bit by bit, and ``op``
        need neither commute nor be exactly associative.

        With a ufunc the values are numbers, or arrays of one shape (or what
        ``numpy.asarray`` takes). Of Python's own numbers and strings the result is one
        too: integers do not overflow, bools stay bools, strings add.

        For arrays the Machine chooses, as for :meth:`broadcast` and counting 8 bytes
        for each element: either everything goes to the root, which combines it; or each
        process combines a piece of all arrays, and the pieces go to the root. Any other
        function is given the values whole.

        Args:
            x: what this process contributes.
            op: a binary ufunc, its name (``"sum"``, ``"prod"``, ``"min"``, ``"max"``,
                ``"and"``, ``"or"``, ``"xor"``, ``"all"``, ``"any"``), or a function of
                two values. Python's ``sum``, ``all`` and ``any``, ``numpy.sum`` and the
                like mean the operation of their name.
            root: process that receives the result.

        Returns:
            The result on the root; None on the others.

        Raises:
            ProcessRangeError: ``root`` is no process of this group.
            UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
            ShapeError: with a ufunc, the shapes differ.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process is in no reduce, or in one to elsewhere.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

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
        result = self._combine(job.fold, self._operands(job, range(self.nprocs)))
        if not job.cut:
            return result
        if self.pid != receiver:
            self.send(receiver, result, tag_of("reduce"))
        kept = self._queue.take_left(self._port.fetch)
        self.sync()
        arrived = self._arrived("reduce", range(self.nprocs) if self.pid == receiver else [], kept)
        return self._joined(job, arrived, result) if self.pid == receiver else None

    @overload
    def allreduce(self, x: _Listed, op: np.ufunc | str = ...) -> NDArray[Any]: ...
    @overload
    def allreduce(self, x: _Value, op: _Op[_Value] = ...) -> _Value: ...
    def allreduce(self, x: Any, op: Any = np.add) -> Any:
        """Return ``x_0 op x_1 op ... op x_(p-1)`` on every process.

        Order, arguments and choice between two ways are those of :meth:`reduce`:
        either everybody sends its whole value to everybody; or each process combines
        a piece of all arrays, and sends the piece to everybody.

        Args:
            x: what this process contributes.
            op: a binary ufunc, its name (``"sum"``, ``"prod"``, ``"min"``, ``"max"``,
                ``"and"``, ``"or"``, ``"xor"``, ``"all"``, ``"any"``), or a function of
                two values. Python's ``sum``, ``all`` and ``any``, ``numpy.sum`` and the
                like mean the operation of their name.

        Returns:
            The result, the same on all processes, bit by bit.

        Raises:
            UsageError: ``op`` cannot be called, or is a ufunc of other than two values.
            ShapeError: with a ufunc, the shapes differ.
            MessageError: ``x`` cannot be pickled.
            SyncMismatchError: a process calls another collective, or none.
            OutOfSharedMemoryError: there is no room for the copy of a value.
            PartitionError: the group cannot be used now.

        Supersteps: 1 or 2.
        Cost: (p - 1) n g + l and (p - 1) n of computation in one;
        2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two.
        """
        self._check_usable()
        job = self._combination("allreduce", x, op)
        everyone = range(self.nprocs)
        self._send_operand(job, everyone)
        self.sync()
        result = self._combine(job.fold, self._operands(job, everyone))
        if not job.cut:
            return result
        for pid in self._others():
            self.send(pid, result, tag_of("allreduce"))
        kept = self._queue.take_left(self._port.fetch)
        self.sync()
        arrived = self._arrived("allreduce", everyone, kept)
        return self._joined(job, arrived, result)

    @overload
    def scan(self, x: _Listed, op: np.ufunc | str = ...) -> NDArray[Any]: ...
    @overload
    def scan(self, x: _Value, op: _Op[_Value] = ...) -> _Value: ...
    @shares("Args", "Raises", "Supersteps", "Cost", of=allreduce)
    def scan(self, x: Any, op: Any = np.add) -> Any:
        """Return ``x_0 op ... op x_pid`` on each process: the inclusive prefix.

        Order, arguments and choice between two ways are those of :meth:`reduce`:
        either each process sends its whole value to those after it; or each process
        combines a piece of all arrays, and sends each process its prefix.

        Returns:
            The combination of the values of this process and of those before it.
        """
        self._check_usable()
        job = self._combination("scan", x, op)
        everyone = range(self.nprocs)
        self._send_operand(job, everyone if job.cut else everyone[self.pid :])
        self.sync()
        if not job.cut:
            return self._combine(job.fold, self._operands(job, everyone[: self.pid + 1]))
        prefixes = self._combine(job.prefixes, self._operands(job, everyone))
        return self._exchange_prefixes(job, prefixes, everyone)

    @overload
    def exscan(self, x: _Listed, op: np.ufunc | str = ...) -> NDArray[Any] | None: ...
    @overload
    def exscan(self, x: _Value, op: _Op[_Value] = ...) -> _Value | None: ...
    @shares("Args", "Raises", "Supersteps", of=allreduce)
    def exscan(self, x: Any, op: Any = np.add) -> Any:
        """Return ``x_0 op ... op x_(pid-1)`` on each process: the exclusive prefix.

        Order, arguments and choice between two ways are those of :meth:`scan`. With the
        number of elements on each process as ``x``, the result is the position of the
        first element of this process among all.

        Returns:
            The combination of the values of the processes before this one. On process 0
            the identity of ``op`` in the form of ``x`` (zeros for a sum, ones for a
            product, an empty string for a sum of strings); None where ``op`` has no
            identity, as a minimum or a function.

        Cost: (p - 1) n g + l and (p - 2) n of computation in one;
        2 (p - 1)/p n g + 2 l and (p - 1)/p n of computation in two.
        """
        self._check_usable()
        job = self._combination("exscan", x, op)
        everyone = range(self.nprocs)
        self._send_operand(job, everyone if job.cut else everyone[self.pid :])
        self.sync()
        operands = self._operands(job, everyone if job.cut else everyone[: self.pid])
        if self.pid == 1 and job.elementwise:
            operands[0] = operands[0].copy()  # the result, which is memory of the message as yet
        if not job.cut:
            return self._combine(job.fold, operands) if operands else job.identity()
        prefixes = self._combine(job.prefixes, operands)
        result = self._exchange_prefixes(job, [prefixes[0], *prefixes[:-1]], everyone[1:])
        return job.identity() if self.pid == 0 else result

    def _exchange_prefixes(
        self, job: _Combination, prefixes: list[Any], receivers: Sequence[int]
    ) -> Any:
        """Send others the pieces of their prefixes; return the whole prefix of this process.

        Args:
            job: scan or exscan.
            prefixes: by pid; the pieces of them that this process has combined.
            receivers: the processes that have a prefix; on others None is returned.
        """
        for pid in self._others():
            if pid in receivers:
                self.send(pid, prefixes[pid], tag_of(job.operation))
        kept = self._queue.take_left(self._port.fetch)
        self.sync()
        receives = self.pid in receivers
        sources = range(self.nprocs) if receives else []
        arrived = self._arrived(job.operation, sources, kept)
        return self._joined(job, arrived, prefixes[self.pid]) if receives else None

    # -- what these have in common ----------------------------------------------------------------

    def _checked_op(self, operation: str, op: Any) -> Any:
        op = operations.resolve(op)
        if type(op) is np.ufunc and op.nin == 2 and op.nout == 1:
            return op
        if isinstance(op, str):
            names = ", ".join(operations.NAMED)
            raise self._error(
                UsageError,
                f"{operation}: op is {op!r}; names are {names}, and those of numpy's binary ufuncs",
            )
        if isinstance(op, np.ufunc) and (op.nin, op.nout) != (2, 1):
            raise self._error(
                UsageError,
                f"{operation}: numpy's {op.__name__} takes {op.nin} values and returns {op.nout}; "
                f"an op takes two and returns one",
            )
        if not callable(op):
            raise self._error(
                UsageError,
                f"{operation}: op is {op!r}; it is a binary ufunc or a function of two values",
            )
        return op

    def _combination(self, operation: str, x: Any, op: Any) -> _Combination:
        """Check what a process contributes, and choose how it is combined."""
        op = self._checked_op(operation, op)
        x = self._to_read(operation, x)
        if not isinstance(op, np.ufunc) or op.signature is not None:
            return _Combination(operation, op, x, x, "any")
        scalar = operations.scalar_of(x)
        if scalar is not None:
            combine, payload = operations.on_scalars(op), operations.to_wire(scalar)
            return _Scalars(operation, combine, scalar, payload, "()", op)
        values = self._as_array(operation, x)
        job = _Combination(operation, op, values, values, str(values.shape), op, elementwise=True)
        job.cut = self.machine.two_stages_pay(values.size * _WORD, self._nprocs)
        return job

    def _send_operand(self, job: _Combination, receivers: Iterable[int]) -> None:
        """Send others the value or their pieces of it, and keep the one of this process."""
        flat = job.value.reshape(-1) if job.cut else None
        tag, mine = tag_of(job.operation, job.shape), self._pid
        for pid in receivers:
            part = job.value if flat is None else flat[self._piece(pid, flat.size)]
            if pid != mine:
                self.send(pid, part, tag)
            else:
                job.own = part.copy() if job.elementwise else self._own(job.operation, job.given)

    def _operands(self, job: _Combination, sources: Iterable[int]) -> list[Any]:
        """Return the values to combine, or the pieces of them that are this process's."""
        arrived = self._taken(job.operation)
        self._check_shapes(job, arrived)
        self._check_sources(job.operation, arrived, sources)
        copy = not job.elementwise  # a function may change or keep what it is given
        mine = self._pid
        return [
            job.own if pid == mine else job.arrived(self._unwrap(arrived[pid], copy=copy))
            for pid in sources
        ]

    def _check_shapes(self, job: _Combination, arrived: dict[int, Message]) -> None:
        """Raise where the shapes of the values that have come differ."""
        silent = job.cut and len(arrived) + 1 < self._nprocs
        if not silent and _are_alike(job.shape, arrived):
            return
        shapes = {pid: header_of(message) for pid, message in arrived.items()}
        shapes[self._pid] = job.shape
        if len(shapes) < self._nprocs:
            # A process that has all shapes raises in this superstep. Its error says more, and
            # run raises the error of the lowest superstep: this process waits for the next.
            self.sync()
        if len(set(shapes.values())) > 1:
            words = by_process(shapes)
            raise self._error(ShapeError, f"{job.operation}: the shapes of x differ: {words}")

    def _combine(self, function: Callable[[list[Any]], Any], operands: list[Any]) -> Any:
        """Combine operands. Virtual time counts this as computation: it overrides the method."""
        return function(operands)

    def _joined(self, job: _Combination, arrived: dict[int, Message], own: Any) -> Any:
        """Put the pieces of a result together."""
        whole = np.empty(job.value.size, own.dtype)
        whole[self._piece(self.pid, whole.size)] = own
        for pid, message in arrived.items():
            whole[self._piece(pid, whole.size)] = self._unwrap(message, copy=False)
        return whole.reshape(job.value.shape)[()]


def _are_alike(shape: str, arrived: dict[int, Message]) -> bool:
    """Tell whether all values that have come are of a shape."""
    for message in arrived.values():  # noqa: SIM110  # a generator takes twice the time
        if header_of(message) != shape:
            return False
    return True


@dataclass(eq=False)
class _Combination:
    """One process's part in a reduce, allreduce, scan or exscan."""

    operation: str
    """The name of the collective."""
    op: Op
    """Combines two values."""
    given: Any
    """What this process contributes."""
    value: Any
    """The same in the form in which it is sent."""
    shape: str
    """In words, the shape that the values of all processes must have."""
    ufunc: np.ufunc | None = None
    """What ``op`` is or stands for; None if it is another function."""
    elementwise: bool = False
    """``op`` is a ufunc, and the values are arrays of one shape."""
    cut: bool = False
    """The arrays are cut into pieces, one for each process."""
    own: Any = None
    """What this process keeps of its own value to combine: all or a piece."""

    def arrived(self, payload: Any) -> Any:
        """Return the value that a payload stands for."""
        return payload

    def fold(self, operands: list[Any]) -> Any:
        """Combine values from the left."""
        if len(operands) == 1:
            return operands[0][()] if self.elementwise else operands[0]
        total = self.op(operands[0], operands[1])
        for value in operands[2:]:
            total = self._onto(total, value)
        return total

    def identity(self) -> Any:
        """Return the identity of the operation in the form of the value; None if it has none."""
        return None if self.ufunc is None else operations.identity(self.ufunc, self.given)

    def prefixes(self, operands: list[Any]) -> list[Any]:
        """Combine values from the left, and return every step."""
        results = [operands[0]]
        for value in operands[1:]:
            results.append(self.op(results[-1], value))
        return results

    def _onto(self, total: Any, value: Any) -> Any:
        """Combine one value more, in place where the result is the same."""
        if self.elementwise and type(total) is np.ndarray and total.dtype == value.dtype:
            return self.op(total, value, out=total)  # type: ignore[call-arg]  # a ufunc
        return self.op(total, value)


class _Scalars(_Combination):
    """A combination of scalars, of Python or of numpy."""

    def arrived(self, payload: Any) -> Any:
        """Return the value that a payload stands for."""
        return operations.from_wire(payload)
