"""Where staged values may be received straight away, on a backend that can do so.

That is where no other transfer of the superstep writes: else the order of writing matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bsplib.backends.base import Handle
from bsplib.core.entries import Entry
from bsplib.core.kinds import ASK, MESSAGE, PUT, STAGED_MESSAGE, STAGED_PUT
from bsplib.transfers.delivery import PendingGet
from bsplib.transfers.place import Array, memory_range
from bsplib.transfers.registry import Registry


class Landing(NamedTuple):
    """A staged payload, and the memory of this process that it is written to."""

    handle: Handle
    memory: memoryview


_MESSAGES = (MESSAGE, STAGED_MESSAGE)

ByteRange = tuple[int, int]
"""The first byte of some memory, and the first byte behind it."""


def landings_of_puts(
    registry: Registry, incoming: Iterable[tuple[int, Sequence[Entry]]]
) -> list[Landing]:
    """Return the staged values of all puts if no two puts overlap; else none.

    Where other puts than of contiguous elements have come, too, there are none.

    Args:
        registry: of the group.
        incoming: sources, and the entries of each for this process.
    """
    landings: list[Landing] = []
    written: list[ByteRange] = []
    for source, entries in incoming:
        for kind, slot, first, _, _, where, nbytes in entries:
            if kind not in (PUT, STAGED_PUT):
                if is_put(kind):
                    return []
                continue
            registration = registry.at(slot)
            memory = registration.bytes
            if memory is None:  # it has gaps
                written.append(registration.memory_range)
                continue
            low = registration.address + first
            written.append((low, low + nbytes))
            if kind == STAGED_PUT:
                landings.append(Landing((source, where, nbytes), memory[first : first + nbytes]))
    return landings if are_apart(written) else []


def landings_of_gets(
    answers: Iterable[tuple[PendingGet, Handle | None]], others: Iterable[Array]
) -> list[Landing]:
    """Return the staged answers that may be received in their destinations.

    Args:
        answers: the gets of this process, and for each the handle of its values; None where they
            are part of an entry.
        others: destinations of the gets that this process has read itself, and writes later.
    """
    answers = list(answers)
    destinations = [*(get.destination for get, _ in answers), *others]
    if not are_apart([*map(memory_range, destinations)]):
        return []
    return [
        Landing(handle, get.bytes_of())
        for get, handle in answers
        if handle is not None and get.takes_bytes()
    ]


def is_put(kind: int) -> bool:
    """Tell whether entries of a kind are puts."""
    return kind < ASK and kind not in _MESSAGES


def are_apart(ranges: list[ByteRange]) -> bool:
    """Tell whether no two ranges of memory overlap."""
    ranges.sort()
    end = 0
    for low, high in ranges:
        if low < end:
            return False
        end = high
    return True
