"""What one process has for another at the end of a superstep."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from bsplib.backends.base import SMALL_PUT_BYTES, Parcel, SmallPut

_NONE: tuple[Any, ...] = ()


class Outgoing:
    """Puts, gets and messages from one process to another, in program order.

    Single words that are put one after the other into the same array make a **run**,
    which travels as two columns: where they go, and the words.
    """

    # One is made for each process that anything is put to, in each superstep: these are
    # defaults of the class, which cost nothing until they are written.
    puts: Sequence[tuple[Any, ...]] = _NONE
    """(slot, first element, payload), (slot, index, shape of the payload, payload) or
    (slot, None, operation, indices, payload)."""
    gets: Sequence[tuple[Any, ...]] = _NONE
    """(slot, first element, count, bytes), (slot, index, bytes) or
    (slot, None, None, indices, bytes)."""
    messages: Sequence[Any] = _NONE
    sites: tuple[Any, ...] = _NONE
    """Where the puts and the gets were called, if that is to be checked."""
    _run: int | None = None  # slot of the array that a run is open for
    _single: int | None = None  # likewise of the last put, if it is of one word
    _more = 0  # puts that are no entries of their own
    _firsts: list[int]
    _words: list[bytes]

    def add_put(self, put: tuple[Any, ...]) -> None:
        """Add a put that comes after all puts so far."""
        if self._run is not None:
            self._close_run()
        self._single = None
        if self.puts:
            self.puts.append(put)  # type: ignore[attr-defined]  # a list from the first on
        else:
            self.puts = [put]

    def add_word(self, slot: int, first: int, word: bytes) -> None:
        """Add a put of one word: (slot, element, bytes)."""
        if self._run == slot:
            self._firsts.append(first)
            self._words.append(word)
        elif self._single == slot:
            _, before, its_word = self.puts.pop()  # type: ignore[attr-defined]  # likewise
            self._run, self._single = slot, None
            self._firsts, self._words = [before, first], [its_word, word]
        else:
            self.add_put((slot, first, word))
            self._single = slot

    def _close_run(self) -> None:
        slot, self._run = self._run, None
        self._more += len(self._firsts) - 1
        where = array("q", self._firsts).tobytes()
        self.add_put((slot, None, None, where, b"".join(self._words)))

    def add_get(self, get: tuple[Any, ...]) -> None:
        """Add a get."""
        if self.gets:
            self.gets.append(get)  # type: ignore[attr-defined]  # likewise
        else:
            self.gets = [get]

    def add_message(self, message: Any) -> None:
        """Add a message as :func:`bsplib.transfers.messages.encode` makes it."""
        if self.messages:
            self.messages.append(message)  # type: ignore[attr-defined]  # likewise
        else:
            self.messages = [message]

    def add_site(self, of_get: bool, site: Any) -> None:
        """Keep where the latest put, or the latest get, was called."""
        self.sites = self.sites or ([], [])
        self.sites[of_get].append(site)

    def small_put(self) -> SmallPut | None:
        """Return the one small put that is all there is, if so it is."""
        if len(self.puts) == 1 and self._run is None and not (self.gets or self.messages):
            put = self.puts[0]
            payload = put[-1]
            if len(put) == 3 and payload.__class__ is bytes and len(payload) <= SMALL_PUT_BYTES:
                return put
        return None

    def parcel(self) -> tuple[Any, ...]:
        """Return what travels as plain values."""
        if self._run is not None:
            self._close_run()
        return self.puts, self.gets, self.messages, self.sites

    def is_empty(self) -> bool:
        """Tell whether nothing travels."""
        return self._run is None and not (self.puts or self.gets or self.messages)

    def count(self) -> int:
        """Return for how many messages an oblsync there has to wait."""
        if self._run is not None:
            self._close_run()
        return len(self.puts) + len(self.messages) + self._more


class Early:
    """What one process has done to another's memory before the superstep ends."""

    __slots__ = ("bytes_read", "bytes_written", "gets", "puts")

    def __init__(self) -> None:
        self.puts = 0
        self.bytes_written = 0
        self.gets = 0
        self.bytes_read = 0


def parcel_bytes(parcel: Parcel) -> tuple[int, int]:
    """Return the payload that a parcel brings, and the payload that its gets ask for."""
    puts, gets, messages, _ = parcel
    payloads = [put[-1] for put in puts]
    for message in messages:
        payloads += message[3]
    sent = sum([len(part) if part.__class__ is bytes else part[1] for part in payloads])
    return sent, sum([get[-1] for get in gets])
