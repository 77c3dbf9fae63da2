"""The elements that a put or get names on another process, and the checks of their bounds.

A :class:`Target` is made when the primitive is called. Where the other process
announced its array in an earlier superstep everything is checked at once;
otherwise :meth:`Target.resolve` checks at the sync, before anything is written.
"""

from __future__ import annotations

import operator
from math import prod
from reprlib import repr as short
from typing import Any

import numpy as np

from bsplib import call_site
from bsplib.core.forms import are_equal, decode_dtype
from bsplib.errors import BoundsError, DtypeError, PlaceError, RegistrationError
from bsplib.transfers.casting import check_out
from bsplib.transfers.descriptions import Contiguous, Selected
from bsplib.transfers.place import (
    Array,
    Region,
    WireIndex,
    broadcasts,
    selected_shape,
    to_wire,
    whole,
)
from bsplib.transfers.registry import AnnouncedArray, Found, Registration, Registry


def target_of(
    operation: str,
    registry: Registry,
    pid: int,
    place: Any,
    offset: int | None,
    at: Any,
    other: Any = None,
) -> Target:
    """Find the elements that a primitive names.

    Args:
        operation: name of the primitive.
        registry: registry of the group.
        pid: the other process.
        place: registered array, view of one, or stand-in.
        offset: as in :meth:`Group.put`.
        at: as in :meth:`Group.put`.
        other: the argument with which ``place`` may be swapped.

    Raises:
        RegistrationError: ``place`` is not registered, or None there.
        PlaceError: the arguments name no elements.
        BoundsError: ``offset`` is negative.
    """
    found = registry.find(place)
    if found is None:
        raise _not_registered(operation, registry, place, other)
    target = Target(operation, found.registration, pid, place)
    if offset is not None and at is not None:
        raise PlaceError(f"{operation}: give offset={offset} or at=, not both")
    if offset is not None:
        target.name_offset(offset)
    elif at is not None:
        target.name_index(at)
    else:
        target.name_view(place, found)
    return target


def _not_registered(operation: str, registry: Registry, place: Any, other: Any) -> Exception:
    hint = registry.swapped(operation, other)
    if not isinstance(place, np.ndarray) and not registry.is_pending(place):
        if isinstance(place, np.generic | int | float | complex):
            return PlaceError(
                f"{operation}: {place!r} is a number and names no place; write x[3:4] or "
                f"offset=3 in place of x[3]"
            )
        way_out = hint or "; bsp.zeros makes one"
        return PlaceError(f"{operation}: {type(place).__name__} is no registered array{way_out}")
    name = call_site.name_of(place) or f"the array of shape {np.shape(place)}"
    if registry.is_pending(place):
        return RegistrationError(
            f"{operation}: the registration of {name} takes effect at the next sync"
        )
    primitive = "get_at" if operation.endswith("get") else "put_at"
    return RegistrationError(
        f"{operation}: {name} is not in a registered array{hint}; push_reg it first. Or was it "
        f"made by x + 1 or by an index with a list or a mask, such as x[[0, 2]]? Those make a "
        f"copy: write x[:] = x + 1, and name single elements with {primitive}"
    )


class Target:
    """Elements of a registered array on another process."""

    def __init__(self, operation: str, registration: Registration, pid: int, place: Any) -> None:
        self._operation = operation
        self._registration = registration
        self._pid = pid
        # An error at the sync has to name the variable, which can only be found at the call.
        self._name = call_site.name_of(place) if registration.announced is None else None
        self._place = place
        self._region: Region | None = None
        self._offset: int | None = None
        self._index: WireIndex | None = None
        self._reshaped = False
        """The place is a contiguous part of the array in another shape; the offset is its first
        element."""
        self._count = 0
        self._shape: tuple[int, ...] = ()
        self.rearranged: Region | None = None
        """How to rearrange the values of a get when they come; None if that is not needed."""
        self.resolved = registration.announced is not None
        there = self._there() if self.resolved else registration.announcement()
        if there is None:
            raise RegistrationError(
                f"{operation}: this process registered None there, so that the dtype is known "
                f"after the next sync only"
            )
        self.dtype = decode_dtype(there.dtype)
        self._check_dtype()

    # -- the three ways to name a place -------------------------------------------------

    def name_offset(self, offset: Any) -> None:
        """Name as many elements as are transferred, from ``offset`` on."""
        try:
            self._offset = operator.index(offset)
        except TypeError:
            raise PlaceError(f"{self._operation}: offset {offset!r} is no integer") from None
        if self._offset < 0:
            raise BoundsError(
                f"{self._operation}: offset {offset} is negative; it counts from the first element"
            )

    def name_index(self, index: Any) -> None:
        """Name what an index selects from the array there."""
        self._index = to_wire(index)
        if self._index is None:
            shown = " ".join(short(index).split())  # an array may take several lines
            raise PlaceError(
                f"{self._operation}: at={shown} is no basic index (integers, slices, ...); name "
                f"single elements with {self._operation.removeprefix('hp')}_at"
            )

    def name_view(self, view: Any, found: Found) -> None:
        """Name the indices that a view has in its array: its region, or all of them."""
        array = self._registration.array
        if array is None or not isinstance(view, np.ndarray):
            raise PlaceError(
                f"{self._operation}: this process registered None there; give offset= or at="
            )
        self._shape = view.shape
        self._region = found.region
        if found.is_whole and view.size:
            self._region = whole(array)
        elif found.region is None and view.size:
            self._offset = self._registration.contiguous_start(view)
            self._reshaped = self._offset is not None
            if not self._reshaped:
                raise PlaceError(
                    f"{self._operation}: the view of shape {view.shape} is no basic slice of the "
                    f"registered array of shape {array.shape}, and no contiguous part of it in "
                    f"another shape; push_reg the view itself, or give offset= or at="
                )

    # -- the transfers ------------------------------------------------------------------

    def for_put(self, values: Array) -> tuple[Contiguous | Selected, Array]:
        """Return what a put names, and the values in the order in which they are sent.

        Args:
            values: not empty, of the dtype of the array there.
        """
        if self._reshaped:
            self._broadcast(values)
            values = np.broadcast_to(values, self._shape)
        elif self._offset is None:
            self._shape = self._shape if self._index is None else values.shape
            self._broadcast(values)
        self._count = values.size
        self._check()
        if self._region is not None:
            values = self._region.spread(values)
        return self._described(values.shape), values

    def for_get(self, destination: Array) -> Contiguous | Selected:
        """Return what a get names.

        Args:
            destination: not empty, of the shape that is named.
        """
        self._count, self._shape = destination.size, destination.shape
        self._check()
        region = self._region
        if region is not None and region.order != tuple(range(len(region.order))):
            self.rearranged = region
        return self._described(destination.shape)

    def _described(self, shape: tuple[int, ...]) -> Contiguous | Selected:
        """Return what is named, for values of a shape."""
        slot, region = self._registration.slot, self._region
        if self._index is not None:
            return Selected(slot, self._index, shape)
        first = self._offset if region is None else self._flat(region)
        if first is not None:
            return Contiguous(slot, first, prod(shape))
        assert region is not None  # an empty view takes no values: _broadcast raised
        return Selected(slot, region.wire(), shape)

    def destination(self, dst: Array | None, count: Any = None) -> Array:
        """Return the array for the values of a get: ``dst``, or a new one.

        Args:
            dst: given by the program, or None.
            count: number of elements from an offset on; None if ``dst`` says it.

        Raises:
            PlaceError: ``dst`` cannot be written, or has another shape; or nothing says how
                many elements there are, or both do.
            DtypeError: ``dst`` cannot take the values.
        """
        shape = self._shape_named() if count is None else self._shape_counted(dst, count)
        if shape is None:
            if dst is None:
                raise PlaceError(f"{self._operation}: {self._lacking_shape()}")
            shape = dst.shape if isinstance(dst, np.ndarray) else np.shape(dst)
        return check_out(self._operation, dst, shape, self.dtype)

    def _shape_counted(self, dst: Array | None, count: Any) -> tuple[int, ...]:
        """Return the shape of the destination where the program gives a number of elements."""
        try:
            number = operator.index(count)
        except TypeError:
            number = -1
        if number < 0:
            raise PlaceError(
                f"{self._operation}: count is {count!r}; it is a number of elements, 0 or more"
            )
        if self._offset is None:
            raise PlaceError(
                f"{self._operation}: count={count} goes with offset=; a view, or at=, says itself "
                f"how many elements there are"
            )
        if dst is not None:
            raise PlaceError(
                f"{self._operation}: give count={count}, or dst= with as many elements, not both"
            )
        if self.resolved:
            self._check_contiguous(self._offset, number, self._there().size)
        return (number,)

    def _lacking_shape(self) -> str:
        """Return text for a get that does not say how many elements it reads."""
        if self._index is None:
            return "give dst=, whose shape says how many elements to get, or count="
        return (
            f"the shape of {self._words()} on process {self._pid} is known after the next sync "
            f"only, since the array was made in this superstep; sync first, or give dst="
        )

    def _shape_named(self) -> tuple[int, ...] | None:
        """Return the shape that is named; None if the destination determines it."""
        if self._offset is not None and not self._reshaped:
            return None
        if self._index is None:
            return self._shape
        there = self._there() if self.resolved else None
        return None if there is None else self._selected(there.shape)

    def _flat(self, region: Region) -> int | None:
        """Return the first element of a region, if it is contiguous on the other process, too."""
        array = self._registration.array
        assert array is not None
        if array.ndim == 1 or self._registration.alike:
            return region.flat(array.shape)
        return None

    def _broadcast(self, values: Array) -> None:
        if self._index is not None:
            return  # against the shape there, in _check
        if not prod(self._shape):
            raise BoundsError(
                f"{self._operation}: {values.size} values are given for a place of shape "
                f"{self._shape}, which has no elements"
            )
        if not broadcasts(values.shape, self._shape):
            raise BoundsError(
                f"{self._operation}: values of shape {values.shape} do not broadcast to the "
                f"shape {self._shape} of the place; name a part of the array that has their shape"
            )

    # -- checks against the array there -----------------------------------------------------

    def resolve(self) -> None:
        """Do the checks at the sync that could not be done at the call."""
        self._there()
        self._check_dtype()
        self.resolved = True
        self._check()

    def _there(self) -> AnnouncedArray:
        announced = self._registration.announced
        assert announced is not None
        there = announced[self._pid]
        if there is None:
            raise RegistrationError(
                f"{self._operation}: process {self._pid} registered None as {self._words()}"
            )
        return there

    def _check_dtype(self) -> None:
        here = self._registration.dtype
        if here is None or self._registration.announced is None:
            return
        there = self._there().dtype
        if not are_equal(here, there):
            raise DtypeError(
                f"{self._operation}: {self._words()} has dtype {decode_dtype(here)} here and dtype "
                f"{decode_dtype(there)} on process {self._pid}"
            )

    def _check(self) -> None:
        """Raise if the transfer would leave the array there."""
        if not self.resolved:
            return
        shape = self._there().shape
        if self._offset is not None:
            if self._reshaped:
                self._check_alike(shape)
            self._check_contiguous(self._offset, self._count, prod(shape))
        elif self._index is not None:
            self._check_selection(self._selected(shape))
        elif self._region is not None:
            over = self._region.overshoot(shape)
            if over is not None:
                lacking, count = self._region.outside(shape), prod(self._region.count)
                raise BoundsError(
                    f"{self._operation}: {lacking} of {count} elements fall outside "
                    f"{self._words()} on process {self._pid} ({over})"
                )

    def _check_alike(self, there: tuple[int, ...]) -> None:
        """Raise if a contiguous part in another shape does not have the same indices there."""
        array = self._registration.array
        assert array is not None  # or there would be no view of it
        # Along one axis C order is that of the indices, whatever the lengths.
        if there != array.shape and (len(there) != 1 or array.ndim != 1):
            raise PlaceError(
                f"{self._operation}: the place is a part of {self._words()} in another shape, and "
                f"the array has shape {array.shape} here and {there} on process {self._pid}; give "
                f"offset= or at="
            )

    def _check_contiguous(self, offset: int, count: int, size: int) -> None:
        if offset + count > size:
            lacking = min(count, offset + count - size)
            raise BoundsError(
                f"{self._operation}: {lacking} of {count} elements fall outside {self._words()} "
                f"on process {self._pid} (offset {offset} + {count} > size {size})"
            )

    def _selected(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        assert self._index is not None
        try:
            return selected_shape(shape, self._index)
        except IndexError as error:
            raise BoundsError(
                f"{self._operation}: at= does not index {self._words()} of shape {shape} on "
                f"process {self._pid}: {error}"
            ) from None

    def _check_selection(self, selected: tuple[int, ...]) -> None:
        if self._operation.endswith("put"):
            fits = broadcasts(self._shape, selected)
        else:
            fits = self._shape == selected
        if not fits:
            raise BoundsError(
                f"{self._operation}: values of shape {self._shape} do not fit the shape "
                f"{selected} that at= selects from {self._words()} on process {self._pid}"
            )

    def _words(self) -> str:
        name = self._name or call_site.name_of(self._place)
        return repr(name) if name else "the array"
