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

from bsplib.backends.base import Parcel, Payload, SmallPut
from bsplib.transfers.irregular import combine, pick
from bsplib.transfers.messages import INLINE, Fetch, Message, Stage, pack, unpack
from bsplib.transfers.place import Array, Region, WireIndex, from_wire
from bsplib.transfers.registry import Registration, Registry

Puts = list[tuple[Any, ...]]
Gets = list[tuple[Any, ...]]


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
    puts: Puts
    gets: Gets
    messages: list[Any]
    sites: tuple[Any, ...]


Arrived = tuple[int, Parcel]
"""Source, and (puts, gets, messages, sites)."""


def read_sources(
    registry: Registry, gets: Iterable[tuple[Any, ...]], stage: Stage, fetch: Fetch
) -> list[Payload]:
    """Copy what others get from this process, before anything here is written."""
    return [_reply(registry, get, stage, fetch) for get in gets]


def _reply(registry: Registry, get: tuple[Any, ...], stage: Stage, fetch: Fetch) -> Payload:
    room = registry.at(get[0]).bytes
    nbytes = get[-1]
    if len(get) == 4 and nbytes <= INLINE and room is not None:
        start = get[1] * (nbytes // get[2])
        return room[start : start + nbytes].tobytes()
    return pack(_source(registry, get, fetch), stage)


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
        destination = get.destination
        destination[...] = values if destination.ndim == 1 else values.reshape(destination.shape)


def write_puts(registry: Registry, incoming: Iterable[Arrived], fetch: Fetch) -> None:
    """Write the puts of all processes, in order of source and program."""
    at = registry.at
    for _, parcel in incoming:
        for put in parcel[0]:
            registration = at(put[0])
            if len(put) == 3:
                _write_stretch(registration, put[1], unpack(put[2], fetch))
            elif len(put) == 5:
                _write_words(registration, put[2], unpack(put[3], fetch), unpack(put[4], fetch))
            else:
                _write_index(registration, put[1], put[2], unpack(put[3], fetch))


def write_small_puts(registry: Registry, small_puts: Iterable[SmallPut]) -> None:
    """Write small puts."""
    for slot, first, data in small_puts:
        _write_stretch(registry.at(slot), first, data)


def _write_stretch(registration: Registration, first: int, data: bytes | memoryview) -> None:
    room = registration.bytes
    if room is not None:
        start = first * registration.itemsize
        room[start : start + len(data)] = data
        return
    array = _array(registration)  # with gaps
    values = np.frombuffer(data, array.dtype)
    array.flat[first : first + len(values)] = values


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


def messages_of(incoming: Iterable[Arrived]) -> list[Message]:
    """Return the messages of all processes, in order of source and program."""
    return [(source, wire) for source, parcel in incoming for wire in parcel[2]]
