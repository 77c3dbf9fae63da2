"""What one process has for another at the end of a superstep."""

from __future__ import annotations

from array import array
from typing import Any

from bsplib.backends.base import Parcel
from bsplib.messages import payload_bytes, size_of


class Outgoing:
    """Puts, gets and messages from one process to another, in program order.

    Single words that are put one after the other into the same array make a **run**,
    which travels as two columns: where they go, and the words.
    """

    __slots__ = ("_more", "_written", "firsts", "gets", "messages", "puts", "run", "sites", "words")

    def __init__(self) -> None:
        self.puts: list[tuple[Any, ...]] = []
        """(slot, first element, payload), (slot, index, shape of the payload, payload) or
        (slot, None, operation, indices, payload)."""
        self.gets: list[tuple[Any, ...]] = []
        """(slot, first element, count, bytes), (slot, index, bytes) or
        (slot, None, None, indices, bytes)."""
        self.messages: list[Any] = []
        self.sites: tuple[Any, ...] = ([], [])
        """Where the puts and the gets were called, if that is to be checked."""
        self.run: int | None = None
        """Slot of the array that a run is open for."""
        self.firsts: list[int] = []
        """Elements that the words of the run go to."""
        self.words: list[bytes] = []
        self._more = 0  # puts that are no entries of their own
        self._written = 0  # bytes of those that are in place already

    def add_put(self, put: tuple[Any, ...]) -> None:
        """Add a put that comes after all puts so far."""
        if self.run is not None:
            self.open_run(None)
        self.puts.append(put)

    def open_run(self, slot: int | None) -> None:
        """Close the run that is open; open one for the array of a slot, or none."""
        if self.run is not None:
            self._close_run(self.run)
            self.firsts, self.words = [], []
        self.run = slot

    def _close_run(self, slot: int) -> None:
        if len(self.firsts) == 1:
            self.puts.append((slot, self.firsts[0], self.words[0]))
            return
        self._more += len(self.firsts) - 1
        where = array("q", self.firsts).tobytes()
        self.puts.append((slot, None, None, where, b"".join(self.words)))

    def note_written(self, nbytes: int) -> None:
        """Count a put that has been written already."""
        self._more += 1
        self._written += nbytes

    def parcel(self) -> tuple[Any, ...]:
        """Return what travels as plain values."""
        if self.run is not None:
            self.open_run(None)
        return self.puts, self.gets, self.messages, self.sites

    def is_empty(self) -> bool:
        """Tell whether nothing travels."""
        return not (self.puts or self.gets or self.messages or self.run is not None)

    def count(self) -> int:
        """Return for how many messages an oblsync there has to wait."""
        self.open_run(None)
        return len(self.puts) + len(self.messages) + self._more

    def nbytes(self) -> int:
        """Return the payload that goes to the other process."""
        return parcel_bytes(self.parcel())[0] + self._written


def parcel_bytes(parcel: Parcel) -> tuple[int, int]:
    """Return the payload that a parcel brings, and the payload that its gets ask for."""
    puts, gets, messages, _ = parcel
    sent = sum(size_of(put[-1]) for put in puts) + sum(map(payload_bytes, messages))
    return sent, sum(get[-1] for get in gets)
