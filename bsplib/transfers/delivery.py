"""What the end of a superstep does to the memory of one process, beside what the core does.

The order is the contract of every backend, and the core keeps it: all gets read their sources,
then their destinations are written in program order, then puts are written in the order (source,
program), then messages become readable in that order. The functions here are given entries one
by one, and read and write arrays of this process.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.core.entries import index_bytes
from bsplib.transfers.casting import check_survival
from bsplib.transfers.descriptions import CallSite, Contiguous, Named, Selected, unpacked
from bsplib.transfers.irregular import combine
from bsplib.transfers.place import Array, Region, from_wire, line_of
from bsplib.transfers.registry import Registration, Registry


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
        write_gaps(registration, put.first, data)
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


def write_gaps(registration: Registration, first: int, data: Any) -> None:
    """Write elements that follow each other into an array that may have gaps."""
    array = _array(registration)
    values = np.frombuffer(data, array.dtype)
    line_of(array)[first : first + len(values)] = values


def write_strided(registration: Registration, description: bytes, data: Any) -> None:
    """Write elements at regular distances into an array that has gaps.

    Args:
        registration: of the array.
        description: see :mod:`bsplib.core.known_arrays`.
        data: the bytes of the values.
    """
    array = _array(registration)
    first, block, _, *axes = np.frombuffer(description, np.int64).tolist()
    axes += [block // array.itemsize, array.itemsize]
    where = np.array(first)
    for length, step in zip(axes[::2], axes[1::2], strict=True):
        where = where[..., None] + step * np.arange(length)
    array.flat[where.reshape(-1) // array.itemsize] = np.frombuffer(data, array.dtype)


def _array(registration: Registration) -> Array:
    assert registration.array is not None  # the sender has checked
    return registration.array
