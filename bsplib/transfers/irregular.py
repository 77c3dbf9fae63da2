"""Irregular exchange: single words to or from many processes, in one call.

The words of a call are sorted by process once, with numpy; each process is sent one array
of indices and one of values.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bsplib.backends.parcels import Payload
from bsplib.errors import (
    BoundsError,
    DtypeError,
    PlaceError,
    ProcessRangeError,
    RegistrationError,
)
from bsplib.transfers import operations
from bsplib.transfers.messages import INLINE, Stage, pack
from bsplib.transfers.place import Array
from bsplib.transfers.registry import Registration, Registry, decode_dtype

Indices = NDArray[np.int64]

_NEGATIVE = 1 << 63
"""A negative number that is read as an unsigned one has at least this value."""
_SCAN_MAX_PROCESSES = 16
_SCAN_MIN_WORDS = 1000
"""Up to so many processes, and from so many words on, one scan of the pids for each process
is faster than sorting them."""


class Batch(NamedTuple):
    """The words of one call that go to, or come from, one process."""

    pid: int
    all_indices: Indices
    """Indices of the words of all processes in their registered arrays, in C order."""
    highest: int
    """Greatest of these indices."""
    positions: Indices | None
    """Positions of this batch's words in the flattened arguments of the call; None for all."""

    def number(self) -> int:
        """Return the number of words."""
        return len(self.all_indices if self.positions is None else self.positions)

    def indices(self) -> Indices:
        """Return the indices of the words in the array there."""
        return self.all_indices if self.positions is None else self.all_indices[self.positions]

    def pack_indices(self, stage: Stage) -> Payload:
        """Return a payload of the indices of the words."""
        return pick_values(self.all_indices, self.positions, stage, self.pid)

    def pack_values(self, values: Array, stage: Stage) -> Payload:
        """Return a payload of the words' values, taken from the flat values of the call."""
        return pick_values(values, self.positions, stage, self.pid)


class UncheckedWords:
    """Words of one call whose bounds can only be checked at the sync."""

    def __init__(self, operation: str, registration: Registration, batches: list[Batch]) -> None:
        self._operation = operation
        self._registration = registration
        self._batches = batches

    def resolve(self) -> None:
        """Raise if a word lies outside the array there."""
        check_there(self._operation, self._registration, self._batches)


def whole_array(operation: str, registry: Registry, place: Any) -> Registration:
    """Return the registration of an array that is named as a whole.

    Raises:
        RegistrationError: it is not registered, or not yet effective.
        PlaceError: it is a view of a registered array only.
    """
    found = registry.find(place)
    if found is None:
        if registry.is_pending(place):
            raise RegistrationError(f"{operation}: the registration takes effect at the next sync")
        raise RegistrationError(
            f"{operation}: the array is not registered; push_reg it first (an assignment such as "
            f"x = x + 1 makes a new array; write x[:] = x + 1)"
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
    if registration.array is not None:
        return registration.array.dtype
    for extent in registration.extents or []:
        if extent is not None:
            return decode_dtype(extent.dtype)
    raise RegistrationError(f"{operation}: no process has an array in this registration")


def broadcast(operation: str, *arguments: ArrayLike) -> list[Array]:
    """Broadcast the arguments of a call against each other.

    Raises:
        PlaceError: their shapes cannot be broadcast.
    """
    arrays = [np.asarray(argument) for argument in arguments]
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise PlaceError(f"{operation}: arguments of shapes {shapes} do not go together") from None


def sort_by_process(operation: str, pids: Array, indices: Array, nprocs: int) -> list[Batch]:
    """Sort the words of a call by process, in the order of the call.

    Args:
        operation: name of the primitive, for errors.
        pids: pid for each word.
        indices: index for each word, of the same shape.
        nprocs: number of processes of the group.

    Raises:
        ProcessRangeError: a pid is no process.
        BoundsError: an index is negative.
        PlaceError: pids or indices are no integers.
    """
    for name, array in (("pids", pids), ("indices", indices)):
        if array.dtype.kind not in "iu" and array.size:
            raise PlaceError(f"{operation}: {name} are integers, not {array.dtype}")
    if not pids.size:
        return []
    to, flat = (array.reshape(-1).astype(np.int64, copy=False) for array in (pids, indices))
    last = _highest(to)
    if last is None or last >= nprocs:
        raise ProcessRangeError(
            f"{operation}: there is no process {_wrong(pids)} among {nprocs} (0 to {nprocs - 1})"
        )
    highest = _highest(flat)
    if highest is None:
        wrong = _wrong(indices)
        what = "is negative" if wrong < 0 else "is larger than any array"
        raise BoundsError(f"{operation}: index {wrong} {what}")
    if to[0] == to[-1] and (to == to[0]).all():
        return [Batch(last, flat, highest, None)]
    return list(_split(to, flat, highest, nprocs))


def _highest(numbers: Indices) -> int | None:
    """Return the greatest of some numbers; None if one is negative. Needs one pass over them."""
    highest = int(numbers.view(np.uint64).max())
    return highest if highest < _NEGATIVE else None


def _wrong(numbers: Array) -> int:
    """Return a number out of range: the least one if it is negative, otherwise the greatest."""
    least = int(numbers.min())
    return least if least < 0 else int(numbers.max())


def _split(pids: Array, indices: Indices, highest: int, nprocs: int) -> Iterator[Batch]:
    if nprocs <= _SCAN_MAX_PROCESSES and len(pids) > _SCAN_MIN_WORDS:
        for pid in range(nprocs):
            positions = np.flatnonzero(pids == pid)
            if len(positions):
                yield Batch(pid, indices, highest, positions)
        return
    # numpy sorts integers of one or two bytes by radix, in linear time.
    order = np.argsort(pids.astype(np.uint8 if nprocs <= 256 else np.uint16), kind="stable")
    ends = np.cumsum(np.bincount(pids, minlength=nprocs))
    start = 0
    for pid, end in enumerate(ends.tolist()):
        if end > start:
            yield Batch(pid, indices, highest, order[start:end])
        start = end


def pick_values(values: Array, positions: Indices | None, stage: Stage, to: int) -> Payload:
    """Copy the values at some positions, or all, into a payload for a process.

    Args:
        values: array of one dimension.
        positions: as in :class:`Batch`.
        stage: returns memory for large payloads.
        to: the process that receives the payload.
    """
    if positions is None:
        return pack(values, stage, to)
    nbytes = len(positions) * values.itemsize
    if nbytes <= INLINE:
        return values[positions].tobytes()
    ticket, room = stage(nbytes, to)
    values.take(positions, out=room.view(values.dtype), mode="clip")  # without a buffer
    return ticket


def check_there(operation: str, registration: Registration, batches: list[Batch]) -> None:
    """Raise if words lie outside the arrays of their processes.

    Raises:
        BoundsError: an index is beyond the array.
        RegistrationError: a process registered None.
    """
    extents = registration.extents
    if extents is None:
        return
    for batch in batches:
        pid, extent = batch.pid, extents[batch.pid]
        if extent is None:
            raise RegistrationError(f"{operation}: process {pid} registered None there")
        size = extent.size
        if batch.highest < size:
            continue
        indices = batch.indices()
        highest = int(indices.max())
        if highest >= size:
            outside = int((indices >= size).sum())
            raise BoundsError(
                f"{operation}: {outside} of {len(indices)} indices fall outside the array on "
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
        combined = op(np.empty(0, dtype), np.empty(0, dtype)).dtype
        code = pickle.dumps(op)
    except (TypeError, pickle.PicklingError, AttributeError) as error:
        raise DtypeError(f"{operation}: {op} cannot combine values of {dtype}: {error}") from None
    if not np.can_cast(combined, dtype, "same_kind"):
        raise DtypeError(f"{operation}: {op} makes {combined} of {dtype}, which is not kept there")
    return code


def combine(array: Array, op: bytes | None, indices: Indices, values: Array) -> None:
    """Write or combine words into an array of this process, in order.

    Args:
        array: array with any strides.
        op: from :func:`encode_op`: combines each value with the element; None to overwrite it.
        indices: of the elements, in C order.
        values: one for each index, of the array's dtype.
    """
    if array.flags.c_contiguous:
        flat: Array = array.reshape(-1)
        where: Any = indices
    else:
        flat, where = array, np.unravel_index(indices, array.shape)
    if op is None:
        flat[where] = values
    else:
        pickle.loads(op).at(flat, where, values)  # from a process of the same run


def pick(array: Array, indices: Indices) -> Array:
    """Return words of an array of this process.

    Args:
        array: array with any strides.
        indices: of the elements, in C order.
    """
    if array.flags.c_contiguous:
        return array.reshape(-1)[indices]
    picked: Array = array[np.unravel_index(indices, array.shape)]
    return picked
