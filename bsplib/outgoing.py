"""What one process has for another at the end of a superstep."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from bsplib.backends.base import Parcel
from bsplib.messages import payload_bytes, size_of

_NONE: tuple[Any, ...] = ()


class Outgoing:
    """Puts, gets and messages from one process to another, in program order.

    Single words that are put one after the other into the same array make a **run**,
    which travels as two columns: where they go, and the words.
    """

    __slots__ = (
        "_firsts",
        "_more",
        "_run",
        "_single",
        "_words",
        "gets",
        "messages",
        "puts",
        "sites",
    )

    def __init__(self) -> None:
        self.puts: list[tuple[Any, ...]] = []
        """(slot, first element, payload), (slot, index, shape of the payload, payload) or
        (slot, None, operation, indices, payload)."""
        self.gets: Sequence[tuple[Any, ...]] = _NONE
        """(slot, first element, count, bytes), (slot, index, bytes) or
        (slot, None, None, indices, bytes)."""
        self.messages: Sequence[Any] = _NONE
        self.sites: tuple[Any, ...] = _NONE
        """Where the puts and the gets were called, if that is to be checked."""
        self._firsts: list[int]
        self._words: list[bytes]
        self._run: int | None = None  # slot of the array that a run is open for
        self._single: int | None = None  # likewise of the last put, if it is of one word
        self._more = 0  # puts that are no entries of their own

    def add_put(self, put: tuple[Any, ...]) -> None:
        """Add a put that comes after all puts so far."""
        if self._run is not None:
            self._close_run()
        self._single = None
        self.puts.append(put)

    def add_word(self, slot: int, first: int, word: bytes) -> None:
        """Add a put of one word: (slot, element, bytes)."""
        if self._run == slot:
            self._firsts.append(first)
            self._words.append(word)
        elif self._single == slot:
            _, before, its_word = self.puts.pop()
            self._run, self._single = slot, None
            self._firsts, self._words = [before, first], [its_word, word]
        else:
            self.add_put((slot, first, word))
            self._single = slot

    def _close_run(self) -> None:
        slot, self._run = self._run, None
        self._more += len(self._firsts) - 1
        where = array("q", self._firsts).tobytes()
        self.puts.append((slot, None, None, where, b"".join(self._words)))

    def add_get(self, get: tuple[Any, ...]) -> None:
        """Add a get."""
        if not self.gets:
            self.gets = []
        self.gets.append(get)  # type: ignore[attr-defined]  # a list from now on

    def add_message(self, message: Any) -> None:
        """Add a message as :func:`bsplib.messages.encode` makes it."""
        if not self.messages:
            self.messages = []
        self.messages.append(message)  # type: ignore[attr-defined]  # a list from now on

    def add_site(self, of_get: bool, site: Any) -> None:
        """Keep where the latest put, or the latest get, was called."""
        self.sites = self.sites or ([], [])
        self.sites[of_get].append(site)

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

    def nbytes(self) -> int:
        """Return the payload that goes to the other process."""
        return parcel_bytes(self.parcel())[0]


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
    sent = sum(size_of(put[-1]) for put in puts) + sum(map(payload_bytes, messages))
    return sent, sum(get[-1] for get in gets)
