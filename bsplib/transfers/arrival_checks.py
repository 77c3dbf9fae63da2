"""Checks of puts that arrive before their sender knew the shape of the array here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bsplib.core.entries import Entry
from bsplib.core.kinds import PUT, STAGED_PUT, STRIDED
from bsplib.errors import BoundsError
from bsplib.transfers.delivery import parts_of
from bsplib.transfers.descriptions import Contiguous, Named, Selected, is_put, unpacked
from bsplib.transfers.place import Array, WireIndex, broadcasts, from_wire, selected_shape
from bsplib.transfers.registry import Registry

Data = Callable[[int, Entry], Any]
"""Returns the data of an entry of a process, as bytes."""


def check_arrivals(registry: Registry, source: int, entries: Iterable[Entry], data: Data) -> None:
    """Check puts into arrays whose shapes their sender did not know yet.

    Such puts arrive without a check in oblivious supersteps only.

    Raises:
        BoundsError: one would leave the array here.
    """
    for entry in entries:
        kind = entry[0]
        if not is_put(kind) or kind == STRIDED:  # a strided view is of an array that all know
            continue
        put = put_of(registry, entry)
        registration = registry.at(put.slot)
        array = registration.array
        if registration.announced is not None or array is None:
            continue
        where = parts_of(entry[4], data(source, entry))[0] if entry[4] else None
        misfit = _misfit(put, array, where)
        if misfit:
            raise BoundsError(
                f"put: {misfit} from process {source} lie outside the array of shape "
                f"{array.shape} here"
            )


def put_of(registry: Registry, entry: Entry) -> Named:
    """Return what the entry of a put describes."""
    kind, slot, first, description, *_, nbytes = entry
    if kind in (PUT, STAGED_PUT):
        itemsize = registry.itemsize(slot)
        return Contiguous(slot, first // itemsize, nbytes // itemsize)
    return unpacked(description)[0]


def _misfit(put: Named, array: Array, where: Array | None) -> str | None:
    """Return text for what a put names outside the array; None if it stays inside."""
    if isinstance(put, Contiguous):
        fits = put.first + put.count <= array.size
        return None if fits else f"{put.count} elements at offset {put.first}"
    if isinstance(put, Selected):
        fits = _fits(put.shape, array.shape, put.selection)
        return None if fits else f"values of shape {put.shape} at {from_wire(put.selection)}"
    assert where is not None  # it has a word at least
    highest = np.max(where)
    return None if highest < array.size else f"index {highest}"


def _fits(values: tuple[int, ...], shape: tuple[int, ...], index: WireIndex) -> bool:
    """Tell whether values broadcast to what an index selects from an array."""
    try:
        return broadcasts(values, selected_shape(shape, index))
    except IndexError:
        return False
