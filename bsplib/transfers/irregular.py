"""Irregular exchange: single elements to or from many processes, in one call.

The elements of a call are sorted by process once; each process is sent one entry with indices and
values. :mod:`bsplib.core.elements` moves the elements; here is what decides and explains.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.core.elements import count_elements, deal_elements
from bsplib.core.entries import index_bytes
from bsplib.core.forms import decode_dtype
from bsplib.errors import (
    BoundsError,
    DtypeError,
    PlaceError,
    ProcessRangeError,
    RegistrationError,
)
from bsplib.transfers import operations
from bsplib.transfers.argument_order import swapped
from bsplib.transfers.place import Array, line_of
from bsplib.transfers.registry import Registration, Registry

Indices = NDArray[np.int64]

_NEGATIVE = 1 << 63
"""A negative number that is read as an unsigned one has at least this value."""


class CountedElements:
    """The elements of one call, counted by process.

    Args:
        numbers: number of elements for each process that has any, by pid in ascending order.
        pids: pid of each word; may be left out if there is only one process.
        indices: index of each word in the array there, in C order.
        highest: greatest of the indices.
    """

    def __init__(
        self, numbers: dict[int, int], pids: Indices | None, indices: Indices, highest: int
    ) -> None:
        self.numbers = numbers
        self.highest = highest
        self._pids = pids if len(numbers) > 1 else None
        self._indices = indices

    def indices_of(self, pid: int) -> Indices:
        """Return the indices of the elements of a process."""
        return self._indices if self._pids is None else self._indices[self._pids == pid]

    def copied(self) -> CountedElements:
        """Return the elements in memory that the program cannot change."""
        pids = None if self._pids is None else self._pids.copy()
        return CountedElements(self.numbers, pids, self._indices.copy(), self.highest)

    def deal(self, values: Array, buffers: dict[int, NDArray[np.uint8]]) -> None:
        """Write the indices and the values of each process, as the data of its entry.

        Args:
            values: a value for each word, in one dimension.
            buffers: memory for the data, by process.
        """
        where = {pid: buffers[pid][: 8 * n].view(np.int64) for pid, n in self.numbers.items()}
        what = {
            pid: buffers[pid][index_bytes(n) :].view(values.dtype)
            for pid, n in self.numbers.items()
        }
        if self._pids is None:
            for pid in self.numbers:
                where[pid][:] = self._indices
                what[pid][:] = values
            return
        self._deal(_packed(values), where, what)

    def deal_positions(self, buffers: dict[int, NDArray[np.uint8]]) -> dict[int, Indices | None]:
        """Write the indices of each process; return the positions of its elements in the call.

        Args:
            buffers: memory for the indices, by process.

        Returns:
            None for a process that has all elements.
        """
        where = {pid: buffers[pid].view(np.int64) for pid in self.numbers}
        if self._pids is None:
            for pid in self.numbers:
                where[pid][:] = self._indices
            return dict.fromkeys(self.numbers)
        positions = {pid: np.empty(number, np.int64) for pid, number in self.numbers.items()}
        self._deal(None, where, positions)
        return {**positions}

    def _deal(
        self, values: Array | None, to_indices: dict[int, Indices], to_values: dict[int, Array]
    ) -> None:
        every = range(max(self.numbers) + 1)
        deal_elements(
            self._pids,
            self._indices,
            values,
            [to_indices.get(pid) for pid in every],
            [to_values.get(pid) for pid in every],
        )


class UncheckedElements:
    """Elements of one call whose bounds can only be checked at the sync.

    Args:
        operation: the primitive.
        registration: the array.
        elements: the elements of the call.
        inner: shape, without the first axis, for which indices along axes were converted;
            None where they were given in C order.
    """

    def __init__(
        self,
        operation: str,
        registration: Registration,
        elements: CountedElements,
        inner: tuple[int, ...] | None = None,
    ) -> None:
        self._operation = operation
        self._registration = registration
        self._elements = elements.copied()
        self._inner = inner

    def resolve(self) -> None:
        """Raise if a word lies outside the array there."""
        check_there(self._operation, self._registration, self._elements)
        announced = self._registration.announced
        if self._inner is None or announced is None:
            return
        for pid in self._elements.numbers:
            there = announced[pid]
            if there is not None and there.shape[1:] != self._inner:
                raise BoundsError(
                    f"{self._operation}: the array made in this superstep has shape "
                    f"{there.shape} on process {pid}, and another one here; sync before you name "
                    f"its elements by several indices"
                )


def whole_array(operation: str, registry: Registry, place: Any, *others: Any) -> Registration:
    """Return the registration of an array that is named as a whole.

    Args:
        operation: name of the primitive.
        registry: registry of the group.
        place: the array.
        *others: arguments with which it may be swapped.

    Raises:
        RegistrationError: it is not registered, or not yet effective.
        PlaceError: it is a view of a registered array only.
    """
    found = registry.find(place)
    if found is None:
        if registry.is_pending(place):
            raise RegistrationError(f"{operation}: the registration takes effect at the next sync")
        raise RegistrationError(
            f"{operation}: the array is not registered{swapped(operation, registry, *others)}; "
            f"push_reg it first (an assignment such as x = x + 1 makes a new array; write "
            f"x[:] = x + 1)"
        )
    registration = found.registration
    if not registration.is_of(place):
        raise PlaceError(
            f"{operation}: indices count from the start of a registered array; name the array, "
            f"not a view of shape {np.shape(place)}"
        )
    return registration


def dtype_there(operation: str, registration: Registration) -> np.dtype[Any]:
    """Return the dtype of a registered array."""
    if registration.dtype is not None:
        return decode_dtype(registration.dtype)
    for there in registration.announced or []:
        if there is not None:
            return decode_dtype(there.dtype)
    raise RegistrationError(f"{operation}: no process has an array in this registration")


def broadcast(operation: str, pids: ArrayLike, *arguments: ArrayLike) -> list[Array]:
    """Broadcast the arguments of a call against each other.

    A single pid without axes stays as it is, since the elements need not be sorted then.

    Raises:
        PlaceError: their shapes cannot be broadcast.
    """
    to, *others = arrays = [np.asarray(pids), *map(np.asarray, arguments)]
    if to.ndim == 0 and all(array.shape == others[0].shape for array in others):
        return arrays
    try:
        shape = np.broadcast(*arrays).shape
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise PlaceError(f"{operation}: arguments of shapes {shapes} do not go together") from None
    spread = [each if each.shape == shape else np.broadcast_to(each, shape) for each in others]
    return [to if to.ndim == 0 or to.shape == shape else np.broadcast_to(to, shape), *spread]


def sort_by_process(operation: str, pids: Array, indices: Array, nprocs: int) -> CountedElements:
    """Count the elements of a call by process, with the checks that need no registration.

    Args:
        operation: name of the primitive, for errors.
        pids: pid for each word, or a single one without axes.
        indices: index for each word.
        nprocs: number of processes of the group.

    Raises:
        ProcessRangeError: a pid is no process.
        BoundsError: an index is negative.
        PlaceError: pids or indices are no integers.
    """
    if not indices.size:
        return CountedElements({}, None, np.empty(0, np.int64), 0)
    for name, array in (("pids", pids), ("indices", indices)):
        if array.dtype.kind not in "iu":
            raise PlaceError(f"{operation}: {name} are integers, not {array.dtype}")
    flat = _numbers(indices)
    if pids.ndim == 0:
        to, pid = None, int(pids)
        numbers = {pid: len(flat)} if 0 <= pid < nprocs else None
        highest = int(flat.view(np.uint64).max())  # a negative one is great then
    else:
        to = _numbers(pids)
        numbers, highest = _count(to, flat, nprocs)
    if numbers is None:
        raise no_process(operation, pids, nprocs)
    if highest >= _NEGATIVE:  # one comparison finds negative ones, too: all are read as unsigned
        wrong = _wrong(indices)
        what = "is negative" if wrong < 0 else "is larger than any array"
        raise BoundsError(f"{operation}: index {wrong} {what}")
    return CountedElements(numbers, to, flat, highest)


def no_process(operation: str, pids: Array, nprocs: int) -> ProcessRangeError:
    """Return the error for pids of which one is no process."""
    return ProcessRangeError(
        f"{operation}: there is no process {_wrong(pids)} among {nprocs} (0 to {nprocs - 1})"
    )


def _count(pids: Indices, indices: Indices, nprocs: int) -> tuple[dict[int, int] | None, int]:
    """Return the number of elements by process, and the greatest index, read as unsigned.

    Instead of the numbers it returns None if a pid is no process.
    """
    counted = np.empty(nprocs + 1, np.uint64)
    if not count_elements(pids, indices, counted):
        return None, 0
    *numbers, highest = counted.tolist()
    return {pid: number for pid, number in enumerate(numbers) if number}, highest


def _numbers(array: Array) -> Indices:
    """Return integers as int64 in one dimension, as the core reads them."""
    return _packed(array.reshape(-1).astype(np.int64, copy=False))


def _packed(array: Array) -> Array:
    """Return an array whose elements lie one after the other, at aligned addresses."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy()


def _wrong(numbers: Array) -> int:
    """Return a number out of range: the least one if it is negative, otherwise the greatest."""
    least = int(numbers.min())
    return least if least < 0 else int(numbers.max())


def check_there(operation: str, registration: Registration, elements: CountedElements) -> None:
    """Raise if elements lie outside the arrays of their processes.

    Raises:
        BoundsError: an index is beyond the array.
        RegistrationError: a process registered None.
    """
    announced = registration.announced
    if announced is None:
        return
    for pid, number in elements.numbers.items():
        there = announced[pid]
        if there is None:
            raise RegistrationError(f"{operation}: process {pid} registered None there")
        size = there.size
        if elements.highest < size:
            continue
        # The greatest index of the call may be that of an element of another process.
        indices = elements.indices_of(pid)
        highest = int(indices.max())
        if highest >= size:
            outside = int((indices >= size).sum())
            raise BoundsError(
                f"{operation}: {outside} of {number} indices fall outside the array on "
                f"process {pid} (index {highest}, size {size})"
            )


def encode_op(operation: str, op: Any, dtype: np.dtype[Any]) -> bytes | None:
    """Return a combining ufunc as bytes; None if there is none.

    Raises:
        DtypeError: ``op`` is no binary ufunc, or cannot combine such values.
    """
    if op is None:
        return None
    op = operations.resolve(op)
    if not isinstance(op, np.ufunc) or (op.nin, op.nout) != (2, 1):
        raise DtypeError(f"{operation}: op is a binary ufunc such as numpy.add, not {op!r}")
    try:
        combined = op(np.empty(0, dtype), np.empty(0, dtype)).dtype  # it computes nothing
        code = pickle.dumps(op)
    except (TypeError, pickle.PicklingError, AttributeError) as error:
        raise DtypeError(f"{operation}: {op} cannot combine values of {dtype}: {error}") from None
    would_cut = combined.kind in "SU" and combined.itemsize > dtype.itemsize
    if would_cut or not np.can_cast(combined, dtype, "same_kind"):
        raise DtypeError(f"{operation}: {op} makes {combined} of {dtype}, which is not kept there")
    return code


def combine(array: Array, op: bytes | None, indices: Indices, values: Array) -> None:
    """Write or combine elements into an array of this process, in order.

    Args:
        array: array with any strides.
        op: from :func:`encode_op`: combines each value with the element; None to overwrite it.
        indices: of the elements, in C order.
        values: one for each index, of the array's dtype.
    """
    if op is None:
        line_of(array)[indices] = values
        return
    dense = array.flags.c_contiguous
    where: Any = indices if dense else np.unravel_index(indices, array.shape)
    # from a process of the same run
    pickle.loads(op).at(array.reshape(-1) if dense else array, where, values)
