"""Finds the registration that an array object names, without a search.

If an array lies inside another one that was registered later, it names the later
registration. So an object can be found by its identity only while no later registration
contains its memory. The memory of these objects is kept sorted by its first byte: adding or
removing one is a binary search.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, Generic, Protocol, TypeVar

_Span = tuple[int, int, int]
"""First byte of an array's memory, first byte behind it, id() of the object."""


class Named(Protocol):
    """The part of a registration that this module uses."""

    slot: int
    handle: Any
    """The object that names it."""
    memory_range: tuple[int, int]
    """First byte of its memory, and first byte behind it."""


_Registration = TypeVar("_Registration", bound=Named)


class Identities(Generic[_Registration]):
    """Registrations by the identity of the object that names each of them."""

    def __init__(self) -> None:
        self.named: dict[int, _Registration] = {}
        """By id() of the object that names it."""
        self._spans: list[_Span] = []  # sorted; without arrays of no elements
        self._covered: set[int] = (
            set()
        )  # slots of registrations that contain the memory of earlier ones

    def add(self, registration: _Registration) -> None:
        """Add a registration; remove those whose memory it contains."""
        number = id(registration.handle)
        low, high = registration.memory_range
        if low < high:
            self._cover(registration.slot, low, high)
            insort(self._spans, (low, high, number))
        elif number in self.named:  # it has no memory and is registered once more
            self._covered.add(registration.slot)
        self.named[number] = registration

    def _cover(self, slot: int, low: int, high: int) -> None:
        spans = self._spans
        first = bisect_left(spans, (low,))
        last = bisect_left(spans, (high,), first)
        inside = [span for span in spans[first:last] if span[1] <= high]
        if inside:
            self._covered.add(slot)
            spans[first:last] = [span for span in spans[first:last] if span[1] > high]
            for *_, number in inside:
                del self.named[number]

    def remove(self, registration: _Registration) -> bool:
        """Remove a registration.

        Returns:
            Whether no other registration can be found again because of this; otherwise
            :meth:`clear` has to follow, and all that remain have to be added again, in order.
        """
        number = id(registration.handle)
        if self.named.get(number) is registration:
            del self.named[number]
            low, high = registration.memory_range
            if low < high:
                del self._spans[bisect_left(self._spans, (low, high, number))]
        return registration.slot not in self._covered

    def clear(self) -> None:
        """Remove all."""
        self.named.clear()
        self._spans.clear()
        self._covered.clear()
