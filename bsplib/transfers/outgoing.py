"""What one process collects for another during a superstep, until it sends a parcel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from bsplib.backends.parcels import (
    Gets,
    IndexGet,
    IndexPut,
    MessageHead,
    Messages,
    OtherGet,
    OtherPut,
    Parcel,
    Payload,
    Puts,
    Site,
    StretchGet,
    StretchGets,
    StretchPut,
    StretchPuts,
    WordsGet,
    WordsPut,
)

_Item = TypeVar("_Item")

_NONE: tuple[Any, ...] = ()
_new = tuple.__new__
"""Makes a named tuple in half the time of a call of its class."""


class Outgoing:
    """Puts, gets and messages from one process to another, in program order.

    Stretches are kept by columns, which takes less time than an object for each.
    """

    # One object is made in each superstep for each receiver. These are defaults of the class,
    # which take no time until they are assigned.
    messages: Sequence[MessageHead] = _NONE
    contents: Sequence[Payload] = _NONE
    sites: tuple[list[Site], list[Site]] | tuple[()] = ()
    _put_slots: Sequence[int] = _NONE
    _put_firsts: Sequence[int] = _NONE
    _other_puts: Sequence[OtherPut] = _NONE
    _values: Sequence[Payload] = _NONE
    _put_indices: Sequence[Payload] = _NONE
    _get_slots: Sequence[int] = _NONE
    _get_firsts: Sequence[int] = _NONE
    _get_sizes: Sequence[int] = _NONE
    _other_gets: Sequence[OtherGet] = _NONE
    _get_indices: Sequence[Payload] = _NONE

    # -- puts -------------------------------------------------------------------------------

    def add_stretch(self, slot: int, first: int, payload: Payload) -> None:
        """Add a put of elements that follow each other, after all puts so far."""
        if self._other_puts:
            self._add_late_stretch(slot, first, payload)
        elif self._put_slots:
            self._put_slots.append(slot)  # type: ignore[attr-defined]  # lists, made below
            self._put_firsts.append(first)  # type: ignore[attr-defined]
            self._values.append(payload)  # type: ignore[attr-defined]
        else:
            self._put_slots, self._put_firsts, self._values = [slot], [first], [payload]

    def _add_late_stretch(self, slot: int, first: int, payload: Payload) -> None:
        """Add a stretch that comes after a put of another kind."""
        last = self._other_puts[-1]
        if not isinstance(last, StretchPuts):
            last = StretchPuts([], [])
            self._other_puts.append(last)  # type: ignore[attr-defined]  # lists, see _add_other
        last.slots.append(slot)
        last.firsts.append(first)
        self._values.append(payload)  # type: ignore[attr-defined]

    def add_put(self, put: StretchPut | IndexPut, payload: Payload) -> None:
        """Add a put of any kind but single words."""
        if isinstance(put, StretchPut):
            self.add_stretch(put.slot, put.first, payload)
        else:
            self._add_other(put, payload)

    def add_words(self, put: WordsPut, indices: Payload, values: Payload) -> None:
        """Add a put of single words, each with its index."""
        self._add_other(put, values)
        self._put_indices = _with(self._put_indices, indices)

    def _add_other(self, put: IndexPut | WordsPut, payload: Payload) -> None:
        """Add a put that is not kept by columns."""
        self._other_puts = _with(self._other_puts, put)
        self._values = _with(self._values, payload)

    # -- gets and messages ------------------------------------------------------------------

    def add_stretch_get(self, slot: int, first: int, nbytes: int) -> None:
        """Add a get of elements that follow each other."""
        if self._other_gets:
            self._add_late_get(slot, first, nbytes)
        elif self._get_slots:
            self._get_slots.append(slot)  # type: ignore[attr-defined]  # lists, made below
            self._get_firsts.append(first)  # type: ignore[attr-defined]
            self._get_sizes.append(nbytes)  # type: ignore[attr-defined]
        else:
            self._get_slots, self._get_firsts, self._get_sizes = [slot], [first], [nbytes]

    def _add_late_get(self, slot: int, first: int, nbytes: int) -> None:
        """Add a stretch that comes after a get of another kind."""
        last = self._other_gets[-1]
        if not isinstance(last, StretchGets):
            last = StretchGets([], [], [])
            self._other_gets.append(last)  # type: ignore[attr-defined]  # a list, see _with
        last.slots.append(slot)
        last.firsts.append(first)
        last.nbytes.append(nbytes)

    def add_get(self, get: StretchGet | IndexGet) -> None:
        """Add a get of any kind but single words."""
        if isinstance(get, StretchGet):
            self.add_stretch_get(*get)
        else:
            self._other_gets = _with(self._other_gets, get)

    def add_words_get(self, get: WordsGet, indices: Payload) -> None:
        """Add a get of single words."""
        self._other_gets = _with(self._other_gets, get)
        self._get_indices = _with(self._get_indices, indices)

    def add_message(self, head: MessageHead, content: Payload) -> None:
        """Add a message as :func:`bsplib.transfers.messages.encode` makes it."""
        if self.messages:
            self.messages.append(head)  # type: ignore[attr-defined]  # a list from the first on
            self.contents.append(content)  # type: ignore[attr-defined]
        else:
            self.messages, self.contents = [head], [content]

    def add_site(self, of_get: bool, site: Site) -> None:
        """Add where the latest put, or the latest get, was called."""
        self.sites = self.sites or ([], [])
        self.sites[of_get].append(site)

    # -- what is sent -----------------------------------------------------------------------

    def parcel(self) -> Parcel:
        """Return the parcel to send."""
        puts = gets = messages = None
        if self._values:
            puts = _new(
                Puts,
                (
                    self._put_slots,
                    self._put_firsts,
                    self._values,
                    self._other_puts,
                    self._put_indices,
                ),
            )
        if self._get_slots or self._other_gets:
            gets = _new(
                Gets,
                (
                    self._get_slots,
                    self._get_firsts,
                    self._get_sizes,
                    self._other_gets,
                    self._get_indices,
                ),
            )
        if self.messages:
            messages = _new(Messages, (self.messages, self.contents))
        return _new(Parcel, (puts, gets, messages, _NONE, self.sites))

    def is_empty(self) -> bool:
        """Tell whether there is nothing to send."""
        return not (self._values or self.messages or self._get_slots or self._other_gets)

    def count(self) -> int:
        """Return how many messages an oblsync of the receiver has to count for it."""
        return self.number_of_puts() + len(self.messages)

    def number_of_puts(self) -> int:
        """Return how many puts there are."""
        return len(self._put_slots) + sum(map(_number, self._other_puts))

    def number_of_gets(self) -> int:
        """Return how many gets there are."""
        others = (len(get.slots) if isinstance(get, StretchGets) else 1 for get in self._other_gets)
        return len(self._get_slots) + sum(others)


def _number(put: OtherPut) -> int:
    if isinstance(put, StretchPuts):
        return len(put.slots)
    return put.number if isinstance(put, WordsPut) else 1


def _with(items: Sequence[_Item], item: _Item) -> Sequence[_Item]:
    """Add an item to a list that may not have been made yet."""
    if not items:
        return [item]
    items.append(item)  # type: ignore[attr-defined]  # made here, hence a list
    return items


class Early:
    """The puts and gets of one process to another that were done before the superstep ends."""

    __slots__ = ("bytes_read", "bytes_written", "gets", "puts")

    def __init__(self) -> None:
        self.puts = 0
        self.bytes_written = 0
        self.gets = 0
        self.bytes_read = 0
