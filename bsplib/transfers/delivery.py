"""What the end of a superstep does to the memory of one process.

The order is the contract of every backend: all gets read their sources, then
their destinations are written in program order, then puts are written in the
order (source, program), then messages become readable in that order. The functions only take
parcels, and read and write arrays of this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.backends.base import Arrived, Carrier
from bsplib.backends.parcels import (
    Gets,
    IndexGet,
    IndexPut,
    Payload,
    Puts,
    Site,
    StretchGets,
    StretchPuts,
    WordsGet,
    WordsPut,
)
from bsplib.core.queue import Message
from bsplib.transfers.casting import check_survival
from bsplib.transfers.irregular import combine, pick, write_at
from bsplib.transfers.landing import Landing, are_apart, landings_of_puts
from bsplib.transfers.messages import INLINE, pack, unpack
from bsplib.transfers.place import Array, Region, extent, from_wire
from bsplib.transfers.registry import Registration, Registry


class PendingGet(NamedTuple):
    """A get of this process, to be written when its values have come."""

    pid: int
    destination: Array
    region: Region | None
    """How to rearrange the values; None if they come in the order of the destination."""
    dtype: np.dtype[Any]
    nbytes: int
    positions: NDArray[np.int64] | None = None
    """Which elements of the destination, in C order; None for all of them."""
    site: Site | None = None
    """Where it was called; known under ``check=True`` only, where each value has to survive its
    cast to the dtype of the destination."""


def read_sources(registry: Registry, gets: Gets, carrier: Carrier, to: int) -> list[Payload]:
    """Copy what another process gets from this one, before anything here is written.

    Args:
        registry: of the group.
        gets: of the other process.
        carrier: stages the values.
        to: the other process.
    """
    at = registry.at
    values = [
        _stretch(at(slot), first, nbytes, carrier, to)
        for slot, first, nbytes in zip(gets.slots, gets.firsts, gets.sizes, strict=True)
    ]
    indices = iter(gets.indices)
    for get in gets.others:
        if isinstance(get, StretchGets):
            values += [
                _stretch(at(slot), first, nbytes, carrier, to)
                for slot, first, nbytes in zip(*get, strict=True)
            ]
        else:
            values.append(_selected(_array(at(get.slot)), get, indices, carrier, to))
    return values


def _stretch(
    registration: Registration, first: int, nbytes: int, carrier: Carrier, to: int
) -> Payload:
    room = registration.bytes
    if nbytes <= INLINE and room is not None:
        start = first * registration.itemsize
        return room[start : start + nbytes].tobytes()
    array = _array(registration)
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return pack(flat[first : first + nbytes // array.itemsize], carrier.stage, to)


def _selected(
    array: Array,
    get: IndexGet | WordsGet,
    indices: Iterator[Payload],
    carrier: Carrier,
    to: int,
) -> Payload:
    if isinstance(get, WordsGet):
        where = np.frombuffer(unpack(next(indices), carrier.fetch), np.int64)
        return pick(array, where, carrier, to)
    values = np.asarray(array[from_wire(get.selection)], dtype=array.dtype)
    return pack(values, carrier.stage, to)


def write_gets(
    gets: list[PendingGet], replies: Mapping[int, Sequence[Payload]], carrier: Carrier
) -> None:
    """Write the destinations of this process's gets in program order."""
    order = {pid: iter(payloads) for pid, payloads in replies.items()}
    arrived = [(get, next(order[get.pid])) for get in gets]
    if carrier.receives_in_place:
        carrier.receive(_landings_of_gets(arrived))
    for get, payload in arrived:
        if not isinstance(payload, bytes) and _takes_bytes(get):
            carrier.land(payload, _bytes_of(get.destination))
        else:
            _write_get(get, np.frombuffer(unpack(payload, carrier.fetch), get.dtype))


def _landings_of_gets(arrived: list[tuple[PendingGet, Payload]]) -> list[Landing]:
    """Return the staged values that may be received in their destinations."""
    if not are_apart([extent(get.destination) for get, _ in arrived]):
        return []
    return [
        Landing(payload, _bytes_of(get.destination))
        for get, payload in arrived
        if isinstance(payload, tuple) and _takes_bytes(get)
    ]


def _bytes_of(destination: Array) -> memoryview:
    return destination.reshape(-1).view(np.uint8).data


def _takes_bytes(get: PendingGet) -> bool:
    """Tell whether the bytes that come can be written to the destination as they are."""
    destination = get.destination
    plain = get.region is None and get.positions is None
    return plain and destination.flags.c_contiguous and destination.dtype == get.dtype


def _write_get(get: PendingGet, values: Array) -> None:
    if get.site is not None and get.dtype != get.destination.dtype:
        operation, line = get.site
        what, way_out = f"{operation} at {line} from process {get.pid}", "get them into an array"
        values = check_survival(what, values, get.destination.dtype, way_out)
    if get.positions is not None:
        write_at(get.destination, get.positions, values)
        return
    if get.region is not None:
        values = get.region.gather(values)
    destination = get.destination
    destination[...] = values if destination.ndim == 1 else values.reshape(destination.shape)


def write_puts(registry: Registry, incoming: Sequence[Arrived], carrier: Carrier) -> None:
    """Write the puts of all processes, in order of source and program."""
    if carrier.receives_in_place:
        carrier.receive(landings_of_puts(registry, incoming))
    at = registry.at
    for _, parcel in incoming:
        puts = parcel.puts
        if puts is None:
            continue
        slots, firsts, values, others, _ = puts
        for slot, first, payload in zip(slots, firsts, values, strict=False):
            write_stretch(at(slot), first, payload, carrier)
        if others:
            _write_others(registry, puts, carrier)


def _write_others(registry: Registry, puts: Puts, carrier: Carrier) -> None:
    """Write the puts that are not among the first stretches."""
    at, fetch = registry.at, carrier.fetch
    values, indices = iter(puts.values[len(puts.slots) :]), iter(puts.indices)
    for put in puts.others:
        if isinstance(put, StretchPuts):
            for slot, first, payload in zip(*put, values, strict=False):
                write_stretch(at(slot), first, payload, carrier)
        elif isinstance(put, IndexPut):
            _write_index(at(put.slot), put, unpack(next(values), fetch))
        else:
            where = unpack(next(indices), fetch)
            _write_words(at(put.slot), put, where, unpack(next(values), fetch))


def write_stretch(
    registration: Registration, first: int, payload: Payload, carrier: Carrier
) -> None:
    """Write elements that follow each other into a registered array."""
    room = registration.bytes
    if room is None:
        data = carrier.fetch(payload) if isinstance(payload, tuple) else payload
        _write_with_gaps(registration, first, data)
        return
    start = first * registration.itemsize
    if isinstance(payload, tuple):
        carrier.land(payload, room[start : start + payload[2]])
    else:
        room[start : start + len(payload)] = payload


def _write_with_gaps(registration: Registration, first: int, data: bytes | memoryview) -> None:
    array = _array(registration)
    values = np.frombuffer(data, array.dtype)
    array.flat[first : first + len(values)] = values


def _write_index(registration: Registration, put: IndexPut, data: bytes | memoryview) -> None:
    array = _array(registration)
    array[from_wire(put.selection)] = np.ndarray(put.shape, array.dtype, buffer=data)


def _write_words(
    registration: Registration,
    put: WordsPut,
    indices: bytes | memoryview,
    data: bytes | memoryview,
) -> None:
    array = _array(registration)
    combine(array, put.op, np.frombuffer(indices, np.int64), np.frombuffer(data, array.dtype))


def _array(registration: Registration) -> Array:
    assert registration.array is not None  # the sender has checked
    return registration.array


def messages_of(incoming: Iterable[Arrived]) -> list[Message]:
    """Return the messages of all processes, in order of source and program."""
    messages: list[Message] = []
    for source, parcel in incoming:
        if parcel.messages is not None:
            messages += zip(repeat(source), *parcel.messages, strict=False)
    return messages
