"""What travels between processes: one type for each kind of put and get, and the parcel.

A **parcel** is what one process has for another at the end of a superstep. It says what
is to be done (``puts``, ``gets``, ``messages``) in plain values (None, numbers, strings,
bytes, and tuples and lists of them), and has the payloads beside it, in lists of their
own and in the same order. So a backend can move the payloads as they are, without looking
for them in what it packs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

_new = tuple.__new__
"""Makes a named tuple in half the time of a call of its class."""

Ticket = tuple[int, Any, int]
"""Stands for a payload that was staged: the process that staged it (its number in the
group), where it lies (the backend's own affair), its size in bytes."""

Payload = bytes | Ticket
"""Values on their way: carried along, or staged where the ticket says."""

WireIndex = tuple[Any, ...]
"""A basic index in plain values; see :func:`bsplib.transfers.place.to_wire`."""

Site = tuple[str, str]
"""Operation, and file and line of its call: kept under ``check=True`` only."""


class StretchPut(NamedTuple):
    """Write elements that follow each other in C order. Takes one payload: the values."""

    slot: int
    """Number of the registration, the same on all processes."""
    first: int


class StretchPuts(NamedTuple):
    """Several :class:`StretchPut` one after the other, by columns."""

    slots: list[int]
    firsts: list[int]


class IndexPut(NamedTuple):
    """Write what a basic index selects. Takes one payload: the values."""

    slot: int
    selection: WireIndex
    shape: tuple[int, ...]
    """Of the values, which broadcast to what is selected."""


class WordsPut(NamedTuple):
    """Write or combine single words. Takes one payload of values and one of indices."""

    slot: int
    op: bytes | None
    """Pickled ufunc that combines each value into what is there; None to write."""
    number: int
    """For how many messages of an oblsync it counts."""


class StretchGet(NamedTuple):
    """Read elements that follow each other in C order."""

    slot: int
    first: int
    nbytes: int


class StretchGets(NamedTuple):
    """Several :class:`StretchGet` one after the other, by columns."""

    slots: list[int]
    firsts: list[int]
    nbytes: list[int]


class IndexGet(NamedTuple):
    """Read what a basic index selects."""

    slot: int
    selection: WireIndex
    nbytes: int


class WordsGet(NamedTuple):
    """Read single words. Takes one payload of indices."""

    slot: int
    nbytes: int


Put = StretchPuts | IndexPut | WordsPut
Get = StretchGets | IndexGet | WordsGet

_PUTS = (StretchPuts, IndexPut, WordsPut)
_GETS = (StretchGets, IndexGet, WordsGet)
_CODES = {kind: code for kinds in (_PUTS, _GETS) for code, kind in enumerate(kinds)}

MessageHead = tuple[Any, bool, tuple[Any, ...]]
"""Tag of a message, whether the tag is pickled, and what the payload is."""


class Parcel(NamedTuple):
    """What one process has for another at the end of a superstep, in program order."""

    puts: Sequence[Put] = ()
    gets: Sequence[Get] = ()
    messages: Sequence[MessageHead] = ()
    values: Sequence[Payload] = ()
    """Of the puts; of a reply, those of the gets that it answers."""
    contents: Sequence[Payload] = ()
    """Of the messages."""
    put_indices: Sequence[Payload] = ()
    get_indices: Sequence[Payload] = ()
    sites: tuple[Sequence[Site], Sequence[Site]] | tuple[()] = ()
    """Where the puts and where the gets were called; empty where that is not checked."""

    def payloads(self) -> Iterator[Payload]:
        """Return all payloads."""
        return chain(self.values, self.contents, self.put_indices, self.get_indices)

    def plain(self) -> tuple[Any, ...]:
        """Return the parcel in plain values, for :meth:`of_plain`."""
        puts = [(_CODES[type(put)], *put) for put in self.puts] if self.puts else ()
        gets = [(_CODES[type(get)], *get) for get in self.gets] if self.gets else ()
        return puts, gets, *self[2:]

    @classmethod
    def of_plain(cls, plain: tuple[Any, ...]) -> Parcel:
        """Return the parcel that :meth:`plain` has put into plain values."""
        puts = [_new(_PUTS[put[0]], put[1:]) for put in plain[0]] if plain[0] else ()
        gets = [_new(_GETS[get[0]], get[1:]) for get in plain[1]] if plain[1] else ()
        return _new(cls, (puts, gets, *plain[2:]))


SMALL_PUT_BYTES = 192
"""Values of a :class:`SmallPut`, at most."""


class SmallPut(NamedTuple):
    """A stretch of few bytes: all that one process has for others in many supersteps."""

    slot: int
    first: int
    data: Any
    """Bytes of the values, as ``bytes`` or a ``memoryview``."""

    def parcel(self) -> Parcel:
        """Return the same as a parcel."""
        return Parcel([StretchPuts([self.slot], [self.first])], values=[bytes(self.data)])


def each_put(puts: Sequence[Put]) -> Iterator[StretchPut | IndexPut | WordsPut]:
    """Return the puts one by one, without columns."""
    for put in puts:
        if isinstance(put, StretchPuts):
            yield from map(StretchPut._make, zip(*put, strict=True))
        else:
            yield put


def each_get(gets: Sequence[Get]) -> Iterator[StretchGet | IndexGet | WordsGet]:
    """Return the gets one by one, without columns."""
    for get in gets:
        if isinstance(get, StretchGets):
            yield from map(StretchGet._make, zip(*get, strict=True))
        else:
            yield get


class Traffic(NamedTuple):
    """What a parcel makes two processes exchange; no indices, tags or headers count."""

    sent_bytes: int
    """Payload of its puts and messages."""
    asked_bytes: int
    """Payload that its gets ask for."""
    sends: bool
    asks: bool


def traffic_of(parcel: Parcel) -> Traffic:
    """Return what a parcel brings, and what its gets ask for."""
    sent = sum(map(size_of, parcel.values)) + sum(map(size_of, parcel.contents))
    asked = sum(_asked(get) for get in parcel.gets) if parcel.gets else 0
    return Traffic(sent, asked, bool(parcel.puts or parcel.messages), bool(parcel.gets))


def size_of(payload: Payload) -> int:
    """Return the bytes of a payload."""
    return len(payload) if payload.__class__ is bytes else payload[2]


def _asked(get: Get) -> int:
    return sum(get.nbytes) if isinstance(get, StretchGets) else get.nbytes
