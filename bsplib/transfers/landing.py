"""Where staged values may be received straight away, on a backend that can do so.

That is where no other transfer of the superstep writes: else the order of writing matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bsplib.backends.base import Arrived
from bsplib.backends.parcels import Ticket, size_of
from bsplib.transfers.registry import Registry


class Landing(NamedTuple):
    """A staged payload, and the memory of this process that it is written to."""

    ticket: Ticket
    room: memoryview


Stretch = tuple[int, int]
"""The first byte of some memory, and the first byte behind it."""


def landings_of_puts(registry: Registry, incoming: Iterable[Arrived]) -> list[Landing]:
    """Return the staged values of all puts if no two puts overlap; else none.

    Where puts of other kinds than stretches have come, too, there are none.
    """
    landings: list[Landing] = []
    written: list[Stretch] = []
    for _, parcel in incoming:
        if parcel.puts is None:
            continue
        slots, firsts, values, others, _ = parcel.puts
        if others:
            return []
        for slot, first, payload in zip(slots, firsts, values, strict=True):
            registration, nbytes = registry.at(slot), size_of(payload)
            room = registration.bytes
            if room is None:  # it has gaps
                written.append(registration.extent)
                continue
            start = first * registration.itemsize
            low = registration.address + start
            written.append((low, low + nbytes))
            if isinstance(payload, tuple):
                landings.append(Landing(payload, room[start : start + nbytes]))
    return landings if are_apart(written) else []


def are_apart(stretches: list[Stretch]) -> bool:
    """Tell whether no two stretches of memory overlap."""
    stretches.sort()
    end = 0
    for low, high in stretches:
        if low < end:
            return False
        end = high
    return True
