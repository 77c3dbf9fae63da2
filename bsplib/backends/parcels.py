"""What processes exchange: one type for each kind of put and get, and the parcel.

A **parcel** is what one process sends to another at the end of a superstep. It describes the
transfers, and has their payloads in separate lists, in the same order. So a backend can move
the payloads as they are, and need not search for them in the descriptions.
:meth:`Parcel.plain` consists of None, numbers, strings, bytes, and tuples and lists of them,
for a backend that packs a parcel by :mod:`marshal`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_new = tuple.__new__
"""Makes a named tuple in half the time of a call of its class."""

Ticket = tuple[int, Any, int]
"""Stands for a payload that was staged: the pid of the process that staged it, where it lies
(in a form that only the backend understands), and its size in bytes."""

Payload = bytes | Ticket
"""Values that are transferred: the bytes themselves, or the ticket of the staged values."""

WireIndex = tuple[Any, ...]
"""A basic index in plain values; see :func:`bsplib.transfers.place.to_wire`."""

Site = tuple[str, str]
"""Name of a primitive, and file and line of its call: known under ``check=True`` only."""


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
    """Shape of the values, which broadcast to what is selected."""


class WordsPut(NamedTuple):
    """Write or combine single words. Takes one payload of values and one of indices."""

    slot: int
    op: bytes | None
    """Pickled ufunc that combines each value into what is there; None to write."""
    number: int
    """As how many messages an oblsync counts it."""


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


OtherPut = StretchPuts | IndexPut | WordsPut
OtherGet = StretchGets | IndexGet | WordsGet

_PUTS = (StretchPuts, IndexPut, WordsPut)
_GETS = (StretchGets, IndexGet, WordsGet)
_CODES = {kind: code for kinds in (_PUTS, _GETS) for code, kind in enumerate(kinds)}


class Puts(NamedTuple):
    """The puts of a parcel. Most are stretches: those before any other kind are kept by columns."""

    slots: Sequence[int]
    firsts: Sequence[int]
    values: Sequence[Payload]
    """Values of all puts, those in ``others`` included."""
    others: Sequence[OtherPut] = ()
    """The first put that is no stretch, and all after it."""
    indices: Sequence[Payload] = ()
    """Indices of the puts of single words."""

    def each(self) -> Iterator[StretchPut | IndexPut | WordsPut]:
        """Return the puts one by one, without columns."""
        yield from map(StretchPut, self.slots, self.firsts)
        for put in self.others:
            if isinstance(put, StretchPuts):
                yield from map(StretchPut, *put)
            else:
                yield put


class Gets(NamedTuple):
    """The gets of a parcel. Most are stretches: those before any other kind are kept by columns."""

    slots: Sequence[int]
    firsts: Sequence[int]
    sizes: Sequence[int]
    """Bytes of each stretch."""
    others: Sequence[OtherGet] = ()
    """The first get that is no stretch, and all after it."""
    indices: Sequence[Payload] = ()
    """Indices of the gets of single words."""

    def each(self) -> Iterator[StretchGet | IndexGet | WordsGet]:
        """Return the gets one by one, without columns."""
        yield from map(StretchGet, self.slots, self.firsts, self.sizes)
        for get in self.others:
            if isinstance(get, StretchGets):
                yield from map(StretchGet, *get)
            else:
                yield get


MessageHead = tuple[Any, bool, tuple[Any, ...]]
"""Tag of a message, whether the tag is pickled, and the form of the payload."""


class Messages(NamedTuple):
    """The messages of a parcel."""

    heads: Sequence[MessageHead]
    contents: Sequence[Payload]


class Parcel(NamedTuple):
    """What one process sends to another at the end of a superstep, in program order."""

    puts: Puts | None = None
    gets: Gets | None = None
    messages: Messages | None = None
    replies: Sequence[Payload] = ()
    """Values that the receiver has asked for, in the order of its gets. A parcel of the second
    exchange of a superstep has nothing else."""
    sites: tuple[Sequence[Site], Sequence[Site]] | tuple[()] = ()
    """Where the puts and where the gets were called; empty without ``check=True``."""

    def plain(self) -> tuple[Any, ...]:
        """Return the parcel in plain values, for :meth:`of_plain`."""
        puts, gets, messages, replies, sites = self
        return (  # a slice of a named tuple is a tuple without names
            None if puts is None else _coded(puts) if puts.others else puts[:],
            None if gets is None else _coded(gets) if gets.others else gets[:],
            None if messages is None else messages[:],
            replies,
            sites,
        )

    @classmethod
    def of_plain(cls, plain: tuple[Any, ...]) -> Parcel:
        """Return the parcel that :meth:`plain` has put into plain values."""
        puts, gets, messages, replies, sites = plain
        if puts is not None:
            puts = _new(Puts, puts if not puts[3] else _decoded(puts, _PUTS))
        if gets is not None:
            gets = _new(Gets, gets if not gets[3] else _decoded(gets, _GETS))
        if messages is not None:
            messages = _new(Messages, messages)
        return _new(cls, (puts, gets, messages, replies, sites))


def _coded(part: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return puts or gets with a code in place of the type of each of the others."""
    slots, firsts, values, others, indices = part
    return slots, firsts, values, [(_CODES[type(each)], *each) for each in others], indices


def _decoded(part: tuple[Any, ...], kinds: Sequence[type[Any]]) -> tuple[Any, ...]:
    """Return puts or gets with the types that the codes stand for."""
    slots, firsts, values, others, indices = part
    return slots, firsts, values, [_new(kinds[each[0]], each[1:]) for each in others], indices


class Traffic(NamedTuple):
    """How much a parcel makes two processes exchange, without indices, tags and headers."""

    sent_bytes: int
    """Payload of its puts and messages."""
    asked_bytes: int
    """Payload that comes back for its gets."""


def traffic_of(parcel: Parcel) -> Traffic:
    """Return how much a parcel sends, and how much its gets ask for."""
    puts, gets, messages, *_ = parcel
    sent = asked = 0
    if puts is not None:
        sent = sum(map(size_of, puts.values))
    if messages is not None:
        sent += sum(map(size_of, messages.contents))
    if gets is not None:
        asked = sum(gets.sizes) + sum(map(_asked, gets.others))
    return Traffic(sent, asked)


def calls_of(parcel: Parcel) -> int:
    """Return the number of puts, gets and messages of a parcel, as a recorder counts them."""
    puts, gets, messages, *_ = parcel
    count = 0 if messages is None else len(messages.contents)
    if puts is not None:
        count += len(puts.slots) + sum(map(_puts_in, puts.others))
    if gets is not None:
        others = (len(get.slots) if isinstance(get, StretchGets) else 1 for get in gets.others)
        count += len(gets.slots) + sum(others)
    return count


def _puts_in(put: OtherPut) -> int:
    if isinstance(put, StretchPuts):
        return len(put.slots)
    return put.number if isinstance(put, WordsPut) else 1


def size_of(payload: Payload) -> int:
    """Return the bytes of a payload."""
    return len(payload) if payload.__class__ is bytes else payload[2]


def _asked(get: OtherGet) -> int:
    return sum(get.nbytes) if isinstance(get, StretchGets) else get.nbytes
