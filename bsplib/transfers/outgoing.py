"""What one process has for another at the end of a superstep."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, TypeVar

from bsplib.backends.parcels import (
    SMALL_PUT_BYTES,
    Get,
    IndexGet,
    IndexPut,
    MessageHead,
    Parcel,
    Payload,
    Put,
    Site,
    SmallPut,
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

    Puts of stretches are kept by columns, which costs less than an object for each. Single
    words that are put one after the other into the same array make a **run**, which travels
    as one :class:`WordsPut`.
    """

    # One object is made for each process that anything is put to, in each superstep. These
    # are defaults of the class, which cost nothing until they are assigned.
    messages: Sequence[MessageHead] = _NONE
    contents: Sequence[Payload] = _NONE
    sites: tuple[list[Site], list[Site]] | tuple[()] = ()
    _has_puts = False
    _lone: SmallPut | None = None  # the put that is the only one so far, of any size
    _puts: Sequence[Put] = _NONE  # without the lone put, the open columns and the open run
    _values: Sequence[Payload] = _NONE
    _put_indices: Sequence[Payload] = _NONE
    _gets: Sequence[Get] = _NONE
    _get_indices: Sequence[Payload] = _NONE
    _slots: list[int] | None = None  # columns of stretches, while no other kind has followed
    _firsts: list[int]
    _single: int | None = None  # slot of the last put, if that was one word
    _run: int | None = None  # slot of the array that a run is open for
    _run_firsts: list[int]
    _run_words: list[bytes]

    # -- puts -------------------------------------------------------------------------------

    def add_stretch(self, slot: int, first: int, payload: Payload) -> None:
        """Add a put of elements that follow each other, after all puts so far."""
        if not self._has_puts:
            self._has_puts = True
            self._lone = _new(SmallPut, (slot, first, payload))
            return
        if self._run is not None:
            self._close_run()
        self._single = None
        if self._slots is None:
            self._open_columns()
        self._slots.append(slot)  # type: ignore[union-attr]  # they are open
        self._firsts.append(first)
        self._values.append(payload)  # type: ignore[attr-defined]  # a list by then

    def _open_columns(self) -> None:
        """Let stretches be kept by columns, the lone put as the first of them."""
        lone = self._lone
        if lone is None:
            self._slots, self._firsts, self._values = [], [], [*self._values]
        else:
            slot, first, payload = lone
            self._slots, self._firsts, self._values = [slot], [first], [payload]
            self._lone = None

    def add_word(self, slot: int, first: int, word: bytes) -> None:
        """Add a put of one word."""
        if not self._has_puts:
            self._has_puts = True
            self._single = slot
            self._lone = _new(SmallPut, (slot, first, word))
        elif self._run == slot:
            self._run_firsts.append(first)
            self._run_words.append(word)
        elif self._single == slot:
            self._open_run(slot, first, word)
        else:
            self.add_stretch(slot, first, word)
            self._single = slot

    def _open_run(self, slot: int, first: int, word: bytes) -> None:
        """Make a run of the single word that was put last, and of another one."""
        if self._slots is None:
            self._open_columns()
        assert self._slots is not None  # they are open, and the single word is the last one
        self._slots.pop()
        before, value = self._firsts.pop(), self._values.pop()  # type: ignore[attr-defined]
        self._run, self._single = slot, None
        self._run_firsts, self._run_words = [before, first], [value, word]

    def add_put(self, put: StretchPut | IndexPut, payload: Payload) -> None:
        """Add a put of any kind but single words."""
        if isinstance(put, StretchPut):
            self.add_stretch(put.slot, put.first, payload)
        else:
            self._close()
            self._has_puts = True
            self._puts = _with(self._puts, put)
            self._values = _with(self._values, payload)

    def add_words(self, put: WordsPut, indices: Payload, values: Payload) -> None:
        """Add a put of single words, each with its index."""
        self._close()
        self._has_puts = True
        self._puts = _with(self._puts, put)
        self._values = _with(self._values, values)
        self._put_indices = _with(self._put_indices, indices)

    def _close(self) -> None:
        """Put what is kept by columns behind the other puts."""
        if self._lone is not None:  # nothing else is there
            slot, first, payload = self._lone
            self._puts, self._values = [_new(StretchPuts, ([slot], [first]))], [payload]
            self._lone = self._single = None
            return
        if self._run is not None:
            self._close_run()
        if self._slots is not None:
            if self._slots:
                self._puts = _with(self._puts, _new(StretchPuts, (self._slots, self._firsts)))
            self._slots = self._single = None

    def _close_run(self) -> None:
        slot, self._run = self._run, None
        assert slot is not None  # as the callers have seen
        put = WordsPut(slot, None, len(self._run_firsts))
        indices = array("q", self._run_firsts).tobytes()
        self.add_words(put, indices, b"".join(self._run_words))

    # -- gets and messages ------------------------------------------------------------------

    def add_stretch_get(self, slot: int, first: int, nbytes: int) -> None:
        """Add a get of elements that follow each other."""
        last = self._gets[-1] if self._gets else None
        if last.__class__ is StretchGets:
            last.slots.append(slot)
            last.firsts.append(first)
            last.nbytes.append(nbytes)
        else:
            self._gets = _with(self._gets, _new(StretchGets, ([slot], [first], [nbytes])))

    def add_get(self, get: StretchGet | IndexGet) -> None:
        """Add a get of any kind but single words."""
        if isinstance(get, StretchGet):
            self.add_stretch_get(*get)
        else:
            self._gets = _with(self._gets, get)

    def add_words_get(self, get: WordsGet, indices: Payload) -> None:
        """Add a get of single words."""
        self._gets = _with(self._gets, get)
        self._get_indices = _with(self._get_indices, indices)

    def add_message(self, head: MessageHead, content: Payload) -> None:
        """Add a message as :func:`bsplib.transfers.messages.encode` makes it."""
        if self.messages:
            self.messages.append(head)  # type: ignore[attr-defined]  # a list from the first on
            self.contents.append(content)  # type: ignore[attr-defined]
        else:
            self.messages, self.contents = [head], [content]

    def add_site(self, of_get: bool, site: Site) -> None:
        """Keep where the latest put, or the latest get, was called."""
        self.sites = self.sites or ([], [])
        self.sites[of_get].append(site)

    # -- what travels -----------------------------------------------------------------------

    def small_put(self) -> SmallPut | None:
        """Return the one small put that is all there is, if so it is."""
        lone = self._lone
        if lone is None or self._gets or self.messages:
            return None
        data = lone[2]
        return lone if data.__class__ is bytes and len(data) <= SMALL_PUT_BYTES else None

    def parcel(self) -> Parcel:
        """Return what travels."""
        if self._has_puts:
            self._close()
        return _new(
            Parcel,
            (
                self._puts,
                self._gets,
                self.messages,
                self._values,
                self.contents,
                self._put_indices,
                self._get_indices,
                self.sites,
            ),
        )

    def is_empty(self) -> bool:
        """Tell whether nothing travels."""
        return not (self._has_puts or self._gets or self.messages)

    def count(self) -> int:
        """Return for how many messages an oblsync there has to wait."""
        return self.number_of_puts() + len(self.messages)

    def number_of_puts(self) -> int:
        """Return how many puts there are."""
        self._close()
        return sum(
            len(put.slots) if isinstance(put, StretchPuts) else _messages_of(put)
            for put in self._puts
        )

    def number_of_gets(self) -> int:
        """Return how many gets there are."""
        return sum(len(get.slots) if isinstance(get, StretchGets) else 1 for get in self._gets)


def _with(items: Sequence[_Item], item: _Item) -> Sequence[_Item]:
    """Add an item to a list that may not have been made yet."""
    if not items:
        return [item]
    items.append(item)  # type: ignore[attr-defined]  # made here, hence a list
    return items


def _messages_of(put: IndexPut | WordsPut) -> int:
    return put.number if isinstance(put, WordsPut) else 1


class Early:
    """What one process has done to another's memory before the superstep ends."""

    __slots__ = ("bytes_read", "bytes_written", "gets", "puts")

    def __init__(self) -> None:
        self.puts = 0
        self.bytes_written = 0
        self.gets = 0
        self.bytes_read = 0
