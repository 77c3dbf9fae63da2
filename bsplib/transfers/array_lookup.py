"""Finds registrations by the memory of their arrays, without a search through all of them.

Arrays whose memory overlaps, directly or through others, are a **cluster**. Clusters are kept
sorted by their first byte: to find, add or remove a registration is a binary search, and then
concerns one cluster only, which has a single member in most programs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain, count
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar


class Named(Protocol):
    """The part of a registration that this module uses."""

    handle: Any
    """The object that names it."""
    memory_range: tuple[int, int]
    """First byte of its memory, and first byte behind it; (0, 0) where None is registered."""


_Registration = TypeVar("_Registration", bound=Named)


class Clusters(Generic[_Registration]):
    """The registrations that are effective, by their memory and by the objects that name them."""

    def __init__(self) -> None:
        self._numbers = count()
        self._named: dict[int, list[_Registration]] = {}
        """By id() of the object that names them, the latest last."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._members: list[list[tuple[int, _Registration]]] = []
        """Of each cluster, numbered in the order in which they were added."""

    def add(self, registration: _Registration) -> None:
        """Add a registration, the latest one."""
        self._named.setdefault(id(registration.handle), []).append(registration)
        if registration.memory_range != (0, 0):
            self._insert((next(self._numbers), registration))

    def _insert(self, member: tuple[int, _Registration]) -> None:
        """Join a registration and all clusters that it overlaps into one."""
        low, high = _span(member[1])
        first, stop = bisect_right(self._ends, low), bisect_left(self._starts, high)
        if first < stop:
            low, high = min(low, self._starts[first]), max(high, self._ends[stop - 1])
        joined = [each for members in self._members[first:stop] for each in members]
        self._starts[first:stop], self._ends[first:stop] = [low], [high]
        self._members[first:stop] = [sorted([*joined, member], key=itemgetter(0))]

    def remove(self, registration: _Registration) -> None:
        """Remove a registration."""
        named = self._named[id(registration.handle)]
        named.remove(registration)
        if not named:
            del self._named[id(registration.handle)]
        if registration.memory_range == (0, 0):
            return
        at = bisect_right(self._starts, _span(registration)[0]) - 1
        members = self._members[at]
        del self._starts[at], self._ends[at], self._members[at]
        for member in members:
            if member[1] is not registration:
                self._insert(member)

    def named_by(self, handle: Any) -> _Registration | None:
        """Return the latest registration of an object; None if a later one contains its memory."""
        named = self._named.get(id(handle))
        if named is None:
            return None
        found = named[-1]
        low, high = found.memory_range
        for registration in self.near(low, high):
            if registration is found:
                break
            if registration.memory_range[0] <= low and high <= registration.memory_range[1]:
                return None
        return found

    def near(self, low: int, high: int) -> list[_Registration]:
        """Return the registrations that may contain some memory, the latest first.

        Args:
            low: its first byte.
            high: the first byte behind it; ``low`` for an array without elements, which may lie at
                the end of the memory of another one.
        """
        first, stop = bisect_left(self._ends, low), bisect_left(self._starts, max(high, low + 1))
        if stop - first == 1:
            near = self._members[first]
            if len(near) == 1:  # as in most programs
                return [near[0][1]]
        else:
            near = sorted(chain(*self._members[first:stop]), key=itemgetter(0))
        return [registration for _, registration in reversed(near)]

    def is_alone(self, registration: _Registration) -> bool:
        """Tell whether no other registered array shares memory with a registered one."""
        return len(self._members[bisect_right(self._starts, _span(registration)[0]) - 1]) == 1


def _span(registration: Named) -> tuple[int, int]:
    """Return the memory of an array, of at least one byte: even empty arrays are at some place."""
    low, high = registration.memory_range
    return low, max(high, low + 1)
