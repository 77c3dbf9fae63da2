"""Checks of puts that arrive before their sender knew the extent of the array here."""

from __future__ import annotations

import numpy as np

from bsplib.backends.parcels import IndexPut, Parcel, StretchPut, WordsPut, size_of
from bsplib.errors import BoundsError
from bsplib.transfers.messages import Fetch, unpack
from bsplib.transfers.place import Array, WireIndex, broadcasts, from_wire, selected_shape
from bsplib.transfers.registry import Registry


def check_arrivals(registry: Registry, source: int, parcel: Parcel, fetch: Fetch) -> None:
    """Check puts into arrays whose extents their sender did not know yet.

    Such puts arrive without a check in oblivious supersteps only.

    Raises:
        BoundsError: one would leave the array here.
    """
    if parcel.puts is None:
        return
    values, indices = iter(parcel.puts.values), iter(parcel.puts.indices)
    for put in parcel.puts.each():
        payload = next(values)
        where = next(indices) if isinstance(put, WordsPut) else b""
        registration = registry.at(put.slot)
        array = registration.array
        if registration.extents is not None or array is None:
            continue
        misfit = _misfit(put, array, size_of(payload), unpack(where, fetch))
        if misfit:
            raise BoundsError(
                f"put: {misfit} from process {source} lie outside the array of shape "
                f"{array.shape} here"
            )


def _misfit(
    put: StretchPut | IndexPut | WordsPut, array: Array, nbytes: int, where: bytes | memoryview
) -> str | None:
    """Return text for what a put names outside the array; None if it stays inside."""
    if isinstance(put, StretchPut):
        count = nbytes // array.itemsize
        fits = put.first + count <= array.size
        return None if fits else f"{count} elements at offset {put.first}"
    if isinstance(put, IndexPut):
        fits = _fits(put.shape, array.shape, put.selection)
        return None if fits else f"values of shape {put.shape} at {from_wire(put.selection)}"
    highest = np.frombuffer(where, np.int64).max()
    return None if highest < array.size else f"index {highest}"


def _fits(values: tuple[int, ...], shape: tuple[int, ...], index: WireIndex) -> bool:
    """Tell whether values broadcast to what an index selects from an array."""
    try:
        return broadcasts(values, selected_shape(shape, index))
    except IndexError:
        return False
