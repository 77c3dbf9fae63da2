"""Irregular exchange: single elements to or from many processes, in one call.

The elements of a call are sorted by process once; each process is sent one entry with indices and
values. :mod:`bsplib.core.elements` moves the elements; here is what decides and explains.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

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
from bsplib.transfers.casting import as_array
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
            f"{operation}: the array is not registered{registry.swapped(operation, *others)}; "
            f"push_reg it first (an assignment such as x = x + 1 makes a new array; write "
            f"x[:] = x + 1)"
        )
    if not found.is_whole:
        raise PlaceError(
            f"{operation}: indices count from the start of a registered array; name the array, "
            f"not a view of shape {np.shape(place)}"
        )
    return found.registration


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


# -- indices that count along axes, as numpy's index arrays do ------------------------------------
# A tuple has an index array for each axis of the array there, or for its first axes: then whole
# sub-arrays are meant, such as rows of a matrix. They become indices of single elements in C order.


class Elements(NamedTuple):
    """Single elements that an index names."""

    pids: Array
    """Of each element, as far as they broadcast; one without axes for all."""
    indices: Array
    """Of each element in C order."""
    inner: tuple[int, ...] | None = None
    """Shape of the arrays there without their first axis, where that is not known yet but
    assumed; None otherwise."""


def elements(
    operation: str, registration: Registration, pids: ArrayLike, indices: Any, nprocs: int
) -> Elements:
    """Return the elements that the indices of a call name.

    Args:
        operation: the primitive, for errors.
        registration: the array.
        pids: as in :meth:`Group.put_at`.
        indices: an array of indices in C order, or a tuple of index arrays.
        nprocs: number of processes of the group.

    Raises:
        PlaceError: there are more index arrays than axes, or they are no integers, or do not
            broadcast; or the shapes there do not tell how large a sub-array is.
        BoundsError: an index is negative, or lies outside the array there.
        ProcessRangeError: a pid is no process.
        RegistrationError: a process registered None.
        DtypeError: pids or indices are a masked array.
    """
    if not isinstance(indices, tuple):
        return Elements(as_array(operation, pids), as_array(operation, indices))
    whose = as_array(operation, pids)
    to, *parts = broadcast(operation, whose, *_integers(operation, indices))
    shapes = _shapes(operation, registration, to, nprocs)
    axes = len(shapes[0])
    if len(parts) > axes:
        raise PlaceError(
            f"{operation}: {len(parts)} index arrays are given for an array of {axes} axes"
        )
    rows = {shape[len(parts) :] for shape in shapes}
    if len(rows) > 1:
        raise PlaceError(
            f"{operation}: sub-arrays of shapes {sorted(rows)} cannot be named in one call; give "
            f"an index array for each axis, or one call for each process"
        )
    known = registration.announced is not None
    flat = np.zeros(parts[0].shape, np.int64)
    for axis, part in enumerate(parts):
        sizes = _for_each([shape[axis] for shape in shapes], to)
        _check(operation, part, axis, sizes if known or axis else None, to)
        flat += part.astype(np.int64) * _for_each([prod(shape[axis + 1 :]) for shape in shapes], to)
    (row,) = rows
    if row:
        ones = (1,) * len(row)
        flat = flat.reshape(flat.shape + ones) + np.arange(prod(row)).reshape(row)
        to = to.reshape(to.shape + ones) if to.ndim else to
    return Elements(to, flat, None if known else shapes[0][1:])


def check_axes(
    operation: str, registration: Registration, pids: ArrayLike, indices: Any, values: ArrayLike
) -> None:
    """Raise if whole rows seem to be meant by indices that name single elements.

    Raises:
        PlaceError: the array has several axes, and there are values of more axes than
            indices in C order.
    """
    array = registration.array
    if isinstance(indices, tuple) or array is None or array.ndim < 2:
        return
    named = max(np.ndim(pids), np.ndim(indices))
    if np.ndim(values) > named > 0:  # several values may meet in one element
        raise PlaceError(
            f"{operation}: values of shape {np.shape(values)} are given for {np.size(indices)} "
            f"single elements of an array of {array.ndim} axes; name whole rows by a tuple, "
            f"(rows,), or elements by an index array for each axis"
        )


def _integers(operation: str, indices: tuple[Any, ...]) -> list[Array]:
    """Return index arrays as such."""
    if not indices:
        raise PlaceError(f"{operation}: indices is an empty tuple; it has an index for each axis")
    parts = [as_array(operation, part) for part in indices]
    for given, part in zip(indices, parts, strict=True):
        if part.dtype.kind not in "iu" and (part.size or part.dtype.hasobject):
            what = repr(given) if part.ndim == 0 else f"an array of {part.dtype}"
            raise PlaceError(
                f"{operation}: indices in a tuple are integers or arrays of them, not {what}"
            )
    return [part if part.size else part.astype(np.int64) for part in parts]


def _shapes(
    operation: str, registration: Registration, pids: Array, nprocs: int
) -> list[tuple[int, ...]]:
    """Return the shape there: one for all processes if it is the same, otherwise by pid.

    Where it is not announced yet, it is assumed to be that of the array here.
    """
    array, announced = registration.array, registration.announced
    if announced is None:
        if array is None:
            raise RegistrationError(
                f"{operation}: this process registered None there, so that the shapes are known "
                f"after the next sync only"
            )
        return [array.shape]
    if registration.alike:
        there = announced[0]
        assert there is not None  # or they would not be alike
        return [there.shape]
    if pids.dtype.kind not in "iu":
        return [next(there.shape for there in announced if there is not None)]  # refused later
    if pids.size and not (pids.min() >= 0 and pids.max() < nprocs):
        raise no_process(operation, pids, nprocs)
    used = set(np.unique(pids).tolist())
    shapes = []
    for pid, there in enumerate(announced):
        if there is None and pid in used:
            raise RegistrationError(f"{operation}: process {pid} registered None there")
        shapes.append(there.shape if there is not None and pid in used else None)
    some = next((shape for shape in shapes if shape is not None), ())
    filled = [some if shape is None else shape for shape in shapes]
    if len({len(shape) for shape in filled}) > 1:
        raise PlaceError(
            f"{operation}: the arrays on these processes have different numbers of axes; use "
            f"indices in C order, or one call for each process"
        )
    return filled


def _for_each(values: Sequence[int], pids: Array) -> Any:
    """Return for each element the value of its process."""
    return values[0] if len(values) == 1 else np.array(values)[pids]


def _check(operation: str, part: Array, axis: int, sizes: Any, pids: Array) -> None:
    """Raise if indices along an axis are negative, or not less than the sizes there.

    Args:
        operation: the primitive.
        part: the indices.
        axis: that they count along.
        sizes: of that axis: one, or one for each index; None if they are not known.
        pids: of each index, or one for all.
    """
    if not part.size:
        return
    if (least := int(part.min())) < 0:
        raise BoundsError(f"{operation}: index {least} on axis {axis} is negative")
    outside = np.zeros(part.shape, bool) if sizes is None else part >= sizes
    if outside.any():
        first = np.unravel_index(int(outside.argmax()), part.shape)
        pid = int(pids[first]) if pids.ndim else int(pids)
        size = np.broadcast_to(sizes, part.shape)[first]
        raise BoundsError(
            f"{operation}: {int(outside.sum())} of {part.size} indices fall outside the array, the "
            f"first one on process {pid} (index {part[first]} on axis {axis}, size {size})"
        )
