"""What the end of a superstep does to the memory of one process.

The order is the contract of every backend: all gets read their sources, then
their destinations are written in program order, then puts are written in the
order (source, program), then messages become readable in that order. Pure: parcels
come in, arrays of this process are read and written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Parcel, Payload
from bsplib.irregular import combine, pick
from bsplib.messages import Fetch, Message, Stage, pack, payload_bytes, size_of, unpack
from bsplib.place import Array, Region, WireIndex, from_wire
from bsplib.registry import Registration, Registry


class Outgoing:
    """What one process has for another at the end of a superstep."""

    __slots__ = ("gets", "messages", "puts", "sites")

    def __init__(self) -> None:
        self.puts: list[tuple[Any, ...]] = []
        """(slot, first element, payload), (slot, index, shape of the payload, payload) or
        (slot, None, operation, indices, payload)."""
        self.gets: list[tuple[Any, ...]] = []
        """(slot, first element, count, bytes), (slot, index, bytes) or
        (slot, None, None, indices, bytes)."""
        self.messages: list[Any] = []
        self.sites: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
        """Where the puts and the gets were called, if that is to be checked."""

    def parcel(self) -> tuple[Any, ...]:
        """Return it as plain values."""
        return self.puts, self.gets, self.messages, self.sites

    def count(self) -> int:
        """Return for how many messages an oblsync there has to wait."""
        return len(self.puts) + len(self.messages)

    def nbytes(self) -> int:
        """Return the payload that travels to the other process."""
        return parcel_bytes(self.parcel())[0]


def parcel_bytes(parcel: Parcel) -> tuple[int, int]:
    """Return the payload that a parcel brings, and the payload that its gets ask for."""
    puts, gets, messages, _ = parcel
    sent = sum(size_of(put[-1]) for put in puts) + sum(map(payload_bytes, messages))
    return sent, sum(get[-1] for get in gets)


class Get(NamedTuple):
    """A get that this process asked for, to be written when the values are here."""

    pid: int
    destination: Array
    region: Region | None
    """How the values are to be rearranged; None if they come as the destination is."""
    dtype: np.dtype[Any]
    nbytes: int
    positions: NDArray[np.int64] | None = None
    """Which elements of the destination, in C order; None for all of them."""


class Incoming(NamedTuple):
    """What one process sent here."""

    source: int
    puts: list[tuple[Any, ...]]
    gets: list[tuple[Any, ...]]
    messages: list[Any]
    sites: tuple[list[tuple[str, str]], list[tuple[str, str]]]


def read_sources(
    registry: Registry, gets: Iterable[tuple[Any, ...]], stage: Stage, fetch: Fetch
) -> list[Payload]:
    """Copy what others get from this process, before anything here is written."""
    return [pack(_source(registry, get, fetch), stage) for get in gets]


def _source(registry: Registry, get: tuple[Any, ...], fetch: Fetch) -> Array:
    array = _array(registry.at(get[0]))
    if len(get) == 5:
        return pick(array, np.frombuffer(unpack(get[3], fetch), np.int64))
    if len(get) == 4:
        _, start, count, _ = get
        flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
        stretch: Array = flat[start : start + count]
        return stretch
    selected: Array = array[from_wire(get[1])]
    return np.asarray(selected, dtype=array.dtype)


def write_gets(gets: list[Get], replies: dict[int, list[Payload]], fetch: Fetch) -> None:
    """Write the destinations of this process's gets in program order."""
    order = {pid: iter(payloads) for pid, payloads in replies.items()}
    for get in gets:
        values = np.frombuffer(unpack(next(order[get.pid]), fetch), get.dtype)
        if get.positions is not None:
            get.destination.flat[get.positions] = values
            continue
        if get.region is not None:
            values = get.region.gather(values)
        get.destination[...] = values.reshape(get.destination.shape)


def write_puts(registry: Registry, incoming: list[Incoming], fetch: Fetch) -> None:
    """Write the puts of all processes, in order of source and program."""
    at = registry.at
    for _, puts, *_ in incoming:
        for put in puts:
            if len(put) == 3:
                _write_flat(at(put[0]), put[1], unpack(put[2], fetch))
            elif len(put) == 5:
                _write_words(at(put[0]), put[2], unpack(put[3], fetch), unpack(put[4], fetch))
            else:
                _write_index(at(put[0]), put[1], put[2], unpack(put[3], fetch))


def _write_flat(registration: Registration, start: int, data: bytes | memoryview) -> None:
    array = _array(registration)
    if registration.bytes is not None:
        first = start * array.itemsize
        registration.bytes[first : first + len(data)] = data
    else:
        values = np.frombuffer(data, array.dtype)
        array.flat[start : start + len(values)] = values


def _write_index(
    registration: Registration, index: WireIndex, shape: tuple[int, ...], data: bytes | memoryview
) -> None:
    array = _array(registration)
    array[from_wire(index)] = np.ndarray(shape, array.dtype, buffer=data)


def _write_words(
    registration: Registration,
    op: bytes | None,
    indices: bytes | memoryview,
    data: bytes | memoryview,
) -> None:
    array = _array(registration)
    combine(array, op, np.frombuffer(indices, np.int64), np.frombuffer(data, array.dtype))


def _array(registration: Registration) -> Array:
    assert registration.array is not None  # whoever asked has checked
    return registration.array


def messages_of(incoming: list[Incoming]) -> list[Message]:
    """Return the messages of all processes, in order of source and program."""
    return [Message(source, wire) for source, _, _, messages, _ in incoming for wire in messages]
