"""What the end of a superstep does to the memory of one process, beside what the core does.

The order is the contract of every backend, and the core keeps it: all gets read their sources,
then their destinations are written in program order, then puts are written in the order (source,
program), then messages become readable in that order. The functions here are given entries one
by one, and read and write arrays of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.core.entries import Entry, index_bytes
from bsplib.core.kinds import PUT, STAGED_PUT, STRIDED
from bsplib.errors import BoundsError
from bsplib.transfers.casting import check_survival
from bsplib.transfers.descriptions import CallSite, Contiguous, Named, Selected, is_put, unpacked
from bsplib.transfers.irregular import combine
from bsplib.transfers.place import (
    Array,
    Region,
    WireIndex,
    broadcasts,
    from_wire,
    line_of,
    selected_shape,
)
from bsplib.transfers.registry import Registration, Registry

Data = Callable[[int, Entry], Any]
"""Returns the data of an entry of a process, as bytes."""


class PendingGet(NamedTuple):
    """A get of this process that another one answers, to be written when its values have come."""

    pid: int
    destination: Array
    region: Region | None
    """How to rearrange the values; None if they come in the order of the destination."""
    dtype: np.dtype[Any]
    positions: NDArray[np.int64] | None = None
    """Which elements of the destination, in C order; None for all of them."""
    site: CallSite | None = None
    """Where it was called; known under ``check=True`` only, where each value has to survive its
    cast to the dtype of the destination."""

    def write(self, data: Any) -> None:
        """Write the values that have come.

        Args:
            data: their bytes.
        """
        values: Array = np.frombuffer(data, self.dtype)
        if self.site is not None and self.dtype != self.destination.dtype:
            operation, line = self.site
            what, way_out = (
                f"{operation} at {line} from process {self.pid}",
                "get them into an array",
            )
            values = check_survival(what, values, self.destination.dtype, way_out)
        if self.positions is not None:
            line_of(self.destination)[self.positions] = values
            return
        if self.region is not None:
            values = self.region.gather(values)
        destination = self.destination
        destination[...] = values if destination.ndim == 1 else values.reshape(destination.shape)


def read_source(registry: Registry, get: Named, indices: Any, memory: NDArray[np.uint8]) -> None:
    """Copy what another process gets from this one, before anything here is written.

    Args:
        registry: of the group.
        get: of the other process.
        indices: the data of its entry.
        memory: memory for the values.
    """
    array = _array(registry.at(get.slot))
    values = memory.view(array.dtype)
    if isinstance(get, Contiguous):
        values[:] = line_of(array)[get.first : get.first + len(values)]
    elif isinstance(get, Selected):
        selected = np.asarray(array[from_wire(get.selection)], dtype=array.dtype)
        np.copyto(values.reshape(selected.shape), selected)
    else:
        values[:] = line_of(array)[np.frombuffer(indices, np.int64)]


def write_placed(registry: Registry, description: bytes, indices: int, data: Any) -> None:
    """Write a put whose place has a description.

    Args:
        registry: of the group.
        description: of the put.
        indices: how many indices the data begin with.
        data: the bytes of the values, behind those of the indices.
    """
    put, _ = unpacked(description)
    registration = registry.at(put.slot)
    if isinstance(put, Contiguous):
        write_gaps(registry, put.slot, put.first * registration.itemsize, data)
        return
    array = _array(registration)
    if isinstance(put, Selected):
        array[from_wire(put.selection)] = np.ndarray(put.shape, array.dtype, buffer=data)
        return
    where, values = parts_of(indices, data)
    combine(array, put.op, where, np.frombuffer(values, array.dtype))


def parts_of(indices: int, data: Any) -> tuple[NDArray[np.int64], memoryview]:
    """Return the indices that data begin with, and the bytes of the values behind them."""
    memory = memoryview(data)
    where = np.frombuffer(memory[: 8 * indices], np.int64)
    return where, memory[index_bytes(indices) :]


def write_gaps(registry: Registry, slot: int, first: int, data: Any) -> None:
    """Write elements that follow each other, from a byte on, into an array that may have gaps."""
    array = _array(registry.at(slot))
    values = np.frombuffer(data, array.dtype)
    start = first // array.itemsize
    line_of(array)[start : start + len(values)] = values


def write_strided(registry: Registry, slot: int, description: bytes, data: Any) -> None:
    """Write elements at regular distances into an array that has gaps.

    Args:
        registry: registry of the group.
        slot: of the array.
        description: see :mod:`bsplib.core.known_arrays`.
        data: the bytes of the values.
    """
    array = _array(registry.at(slot))
    first, block, _, *axes = np.frombuffer(description, np.int64).tolist()
    axes += [block // array.itemsize, array.itemsize]
    where = np.array(first)
    for length, step in zip(axes[::2], axes[1::2], strict=True):
        where = where[..., None] + step * np.arange(length)
    array.flat[where.reshape(-1) // array.itemsize] = np.frombuffer(data, array.dtype)


def _array(registration: Registration) -> Array:
    assert registration.array is not None  # the sender has checked
    return registration.array


# -- puts that arrive before their sender knew the shape of the array here -------------------------


def check_arrivals(registry: Registry, source: int, entries: Iterable[Entry], data: Data) -> None:
    """Check puts into arrays whose shapes their sender did not know yet.

    Such puts arrive without a check in oblivious supersteps only.

    Raises:
        BoundsError: one would leave the array here.
    """
    for entry in entries:
        kind = entry[0]
        if not is_put(kind) or kind == STRIDED:  # a strided view is of an array that all know
            continue
        put = put_of(registry, entry)
        registration = registry.at(put.slot)
        array = registration.array
        if registration.announced is not None or array is None:
            continue
        where = parts_of(entry[4], data(source, entry))[0] if entry[4] else None
        misfit = _misfit(put, array, where)
        if misfit:
            raise BoundsError(
                f"put: {misfit} from process {source} lie outside the array of shape "
                f"{array.shape} here"
            )


def put_of(registry: Registry, entry: Entry) -> Named:
    """Return what the entry of a put describes."""
    kind, slot, first, description, *_, nbytes = entry
    if kind in (PUT, STAGED_PUT):
        itemsize = registry.itemsize(slot)
        return Contiguous(slot, first // itemsize, nbytes // itemsize)
    return unpacked(description)[0]


def _misfit(put: Named, array: Array, where: Array | None) -> str | None:
    """Return text for what a put names outside the array; None if it stays inside."""
    if isinstance(put, Contiguous):
        fits = put.first + put.count <= array.size
        return None if fits else f"{put.count} elements at offset {put.first}"
    if isinstance(put, Selected):
        fits = _fits(put.shape, array.shape, put.selection)
        return None if fits else f"values of shape {put.shape} at {from_wire(put.selection)}"
    assert where is not None  # it has a word at least
    highest = np.max(where)
    return None if highest < array.size else f"index {highest}"


def _fits(values: tuple[int, ...], shape: tuple[int, ...], index: WireIndex) -> bool:
    """Tell whether values broadcast to what an index selects from an array."""
    try:
        return broadcasts(values, selected_shape(shape, index))
    except IndexError:
        return False
