"""Registering arrays, and allocating registered ones."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bsplib import call_site
from bsplib.errors import DtypeError, RegistrationError, ShapeError
from bsplib.primitives.state import GroupState, typed_as
from bsplib.transfers.casting import cast_values
from bsplib.transfers.guard import plain
from bsplib.transfers.held_arrays import as_of_the_program, origin, references
from bsplib.transfers.place import Array

Shape = SupportsIndex | Sequence[SupportsIndex]
"""Number of elements, or one number for each axis."""
_Scalar = TypeVar("_Scalar", bound=np.generic)
_Registered = TypeVar("_Registered", bound=Array)
TypeOf = type[_Scalar] | np.dtype[_Scalar]
"""A dtype that says to a type checker what the elements are."""


def _unsuitable(value: object) -> str:
    """Say why transfers cannot write into a value."""
    if isinstance(value, np.ndarray):
        return "a read-only array cannot be written to; register a copy of it"
    return (
        f"{reprlib.repr(value)} is no array ({type(value).__name__}); make one with bsp.array, "
        f"or with numpy.array and register that"
    )


@overload
def push_reg(bsp: GroupState, array: _Registered) -> _Registered: ...
@overload  # the stand-in for None names a place, as an array does
def push_reg(bsp: GroupState, array: None) -> Any: ...
@overload
def push_reg(bsp: GroupState, array: Array | None) -> Any: ...
def push_reg(bsp: GroupState, array: Array | None) -> Any:
    """Register an array for transfers from the next superstep on.

    Collective: every process registers an array, or None, in the same order.
    Sizes may differ between processes; dtypes may not. An array may be
    registered again; the latest registration counts.

    Args:
        array: any writable array, in shared memory or not, with gaps or not: a
            column, too, or a field of records; None where this process has none.

    Returns:
        What names the registration in transfers: ``array`` itself, or a stand-in
        for None.

    Raises:
        RegistrationError: ``array`` is no writable array.
        DtypeError: its dtype holds Python objects or has 0 bytes, or it is a masked array.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    Source: Hill et al. 1998, bsp_push_reg.
    """
    bsp._check_usable()
    if array is not None:
        if not isinstance(array, np.ndarray) or not array.flags.writeable:
            raise bsp._error(RegistrationError, f"push_reg: {_unsuitable(array)}")
        bsp._as_array("push_reg", array)
        _check_dtype(bsp, array.dtype, "push_reg")
    shared_address = None if array is None else bsp._port.shared_address_of(array)
    before = () if bsp._watch is None else references(array)
    registration = bsp._registry.push(array, shared_address)
    bsp._engine.arrivals.define(registration.slot, 0)
    if array is not None and bsp._watch is not None:
        registration.origin = origin(before, references(array), "push_reg", array)
    return registration.handle


def pop_reg(bsp: GroupState, array: Array) -> None:
    """End the latest registration of an array with the superstep.

    Collective, in the same order on all processes. Memory that ``zeros``,
    ``empty`` or ``array`` allocated is freed at the next sync: the array may
    not be used after it.

    Args:
        array: registered array, or what ``push_reg(None)`` returned.

    Raises:
        RegistrationError: ``array`` is not registered.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    Source: Hill et al. 1998, bsp_pop_reg.
    """
    bsp._check_usable()
    registration = bsp._checked(bsp._registry.pop, array)
    if bsp._watch is not None:
        registration.freed_by = f"pop_reg at {call_site.line()}"


@overload
def zeros(bsp: GroupState, shape: Shape) -> NDArray[np.float64]: ...
@overload
def zeros(bsp: GroupState, shape: Shape, dtype: TypeOf[_Scalar]) -> NDArray[_Scalar]: ...
@overload
def zeros(bsp: GroupState, shape: Shape, dtype: type[bool]) -> NDArray[np.bool_]: ...  # type: ignore[overload-overlap]  # bools are ints
@overload
def zeros(bsp: GroupState, shape: Shape, dtype: type[int]) -> NDArray[np.int_]: ...
@overload
def zeros(bsp: GroupState, shape: Shape, dtype: type[float]) -> NDArray[np.float64]: ...
@overload
def zeros(bsp: GroupState, shape: Shape, dtype: type[complex]) -> NDArray[np.complex128]: ...
@overload
def zeros(bsp: GroupState, shape: Shape, dtype: DTypeLike) -> Array: ...
def zeros(bsp: GroupState, shape: Shape, dtype: DTypeLike = float) -> Array:
    """Allocate an array of zeros in shared memory and register it.

    Collective. It may be named in transfers at once, in this superstep too.
    Shapes may differ between processes.

    Args:
        shape: number of elements, or one number for each axis.
        dtype: any dtype without Python objects.

    Returns:
        The array, until ``pop_reg`` frees it at a sync or the group ends.

    Raises:
        ShapeError: ``shape`` is neither an integer nor several, or one is negative.
        DtypeError: ``dtype`` is no dtype, or holds Python objects.
        OutOfSharedMemoryError: it does not fit into /dev/shm.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    """
    return _allocate(bsp, "zeros", shape, _dtype(bsp, "zeros", dtype), zero=True)


def _allocate(
    bsp: GroupState,
    operation: str,
    shape: Shape,
    dtype: np.dtype[Any],
    *,
    zero: bool = False,
) -> Array:
    bsp._check_usable()
    _check_dtype(bsp, dtype, operation)
    size = _size(bsp, operation, shape)
    memory = bsp._checked(bsp._port.allocate, prod(size) * dtype.itemsize, zero=zero)
    made: Array = np.ndarray(size, dtype, buffer=memory)
    if bsp._watch is not None:
        made = bsp._watch.allocated(made)
    before = () if bsp._watch is None else as_of_the_program(references(made))
    registration = bsp._registry.allocate(made, memory, bsp._port.shared_address_of(made))
    bsp._engine.arrivals.define(registration.slot, registration.address)
    if bsp._watch is not None:
        registration.origin = origin(before, references(made), operation, made)
    return made


@typed_as(zeros)
def empty(bsp: GroupState, shape: Shape, dtype: DTypeLike = float) -> Array:
    """Allocate an array in shared memory and register it, with any content.

    Collective. It may be named in transfers at once, in this superstep too.
    Shapes may differ between processes. Its elements are undefined until they are written.

    Args:
        shape: number of elements, or one number for each axis.
        dtype: any dtype without Python objects.

    Returns:
        The array, until ``pop_reg`` frees it at a sync or the group ends.

    Raises:
        ShapeError: ``shape`` is neither an integer nor several, or one is negative.
        DtypeError: ``dtype`` is no dtype, or holds Python objects.
        OutOfSharedMemoryError: it does not fit into /dev/shm.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    """
    return _allocate(bsp, "empty", shape, _dtype(bsp, "empty", dtype))


@overload
def zeros_like(
    bsp: GroupState, array: NDArray[_Scalar], dtype: None = None
) -> NDArray[_Scalar]: ...
@overload
def zeros_like(bsp: GroupState, array: ArrayLike, dtype: TypeOf[_Scalar]) -> NDArray[_Scalar]: ...
@overload
def zeros_like(bsp: GroupState, array: ArrayLike, dtype: DTypeLike | None = None) -> Array: ...
def zeros_like(bsp: GroupState, array: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Allocate zeros in shared memory, in the shape of an array, and register them.

    Collective. It may be named in transfers at once, in this superstep too.
    Shapes may differ between processes.

    Args:
        array: has the shape, and the dtype where none is given; registered or not.
        dtype: any dtype without Python objects; that of ``array`` if None.

    Returns:
        The array, until ``pop_reg`` frees it at a sync or the group ends.

    Raises:
        DtypeError: ``dtype`` is no dtype, or holds Python objects.
        OutOfSharedMemoryError: it does not fit into /dev/shm.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    """
    model = array if isinstance(array, np.ndarray) else np.asarray(array)
    wanted = model.dtype if dtype is None else _dtype(bsp, "zeros_like", dtype)
    return _allocate(bsp, "zeros_like", model.shape, wanted, zero=True)


@overload
def full(
    bsp: GroupState, shape: Shape, fill_value: ArrayLike, dtype: TypeOf[_Scalar]
) -> NDArray[_Scalar]: ...
@overload
def full(
    bsp: GroupState, shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None
) -> Array: ...
def full(
    bsp: GroupState, shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None
) -> Array:
    """Allocate an array of one value in shared memory and register it.

    Collective. It may be named in transfers at once, in this superstep too.
    Shapes may differ between processes.

    Args:
        shape: number of elements, or one number for each axis.
        fill_value: the value of all elements, or an array that broadcasts to ``shape``;
            cast (same_kind) to the dtype.
        dtype: of the array, without Python objects; that of the value if None.

    Returns:
        The array, until ``pop_reg`` frees it at a sync or the group ends.

    Raises:
        ShapeError: ``shape`` is neither an integer nor several, or one is negative;
            or ``fill_value`` does not broadcast to it.
        DtypeError: ``dtype`` is no dtype, or holds Python objects; or ``fill_value``
            cannot be cast to it.
        OutOfSharedMemoryError: it does not fit into /dev/shm.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    """
    wanted = np.asarray(fill_value).dtype if dtype is None else _dtype(bsp, "full", dtype)
    size = _size(bsp, "full", shape)
    values = bsp._checked(cast_values, "full", fill_value, wanted)
    try:
        spread = np.broadcast_to(values, size)
    except ValueError:
        raise bsp._error(
            ShapeError,
            f"full: fill_value has shape {values.shape}, which does not broadcast to the "
            f"shape {size}; give one value, or an array of that shape",
        ) from None
    made = _allocate(bsp, "full", size, wanted)
    plain(made)[...] = spread
    return made


@overload
def array(bsp: GroupState, data: NDArray[_Scalar], dtype: None = None) -> NDArray[_Scalar]: ...
@overload
def array(bsp: GroupState, data: ArrayLike, dtype: TypeOf[_Scalar]) -> NDArray[_Scalar]: ...
@overload
def array(bsp: GroupState, data: ArrayLike, dtype: DTypeLike | None = None) -> Array: ...
def array(bsp: GroupState, data: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Copy data into a new array in shared memory and register it.

    Collective. It may be named in transfers at once, in this superstep too.
    Shapes may differ between processes.

    Args:
        data: what ``numpy.array`` takes.
        dtype: of the array, without Python objects; that of the data if None.

    Returns:
        The array, until ``pop_reg`` frees it at a sync or the group ends.

    Raises:
        DtypeError: the dtype holds Python objects, or the data are a masked array.
        OutOfSharedMemoryError: it does not fit into /dev/shm.
        PartitionError: the group cannot be used now.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    """
    values = np.asarray(bsp._as_array("array", data), dtype)
    made = _allocate(bsp, "array", values.shape, values.dtype)
    plain(made)[...] = values
    return made


@contextmanager
def scope(bsp: GroupState) -> Iterator[None]:
    """Free the arrays that are allocated inside the ``with`` block, as ``pop_reg`` does.

    Collective: ``with bsp.scope(): x = bsp.zeros(n); ...``. The arrays may not be
    used after the sync that follows the end of the block.

    Raises:
        PartitionError: the group cannot be used now, at the beginning or at the end.

    Cost: nothing here; an announcement to all at the next sync, which counts for no h.
    """
    bsp._check_usable()
    before = {registration.slot for registration in bsp._registry.allocated()}
    yield
    bsp._check_usable()
    for registration in bsp._registry.allocated():
        if registration.slot not in before:
            bsp._registry.pop(registration.handle)
            if bsp._watch is not None:
                registration.freed_by = f"the end of the scope at {call_site.line()}"


def _size(bsp: GroupState, operation: str, shape: Shape) -> tuple[int, ...]:
    """Return a shape as a tuple."""
    try:
        sizes = shape if isinstance(shape, Iterable) else (shape,)
        size = tuple(operator.index(n) for n in sizes)
    except TypeError:
        raise bsp._error(
            ShapeError,
            f"{operation}: shape is {shape!r}; it is an integer, or one for each axis",
        ) from None
    if any(n < 0 for n in size):
        raise bsp._error(ShapeError, f"{operation}: shape {size} has a negative size")
    return size


def _dtype(bsp: GroupState, operation: str, dtype: DTypeLike) -> np.dtype[Any]:
    try:
        return np.dtype(dtype)
    except TypeError:
        way_out = "say float, int or numpy.int32"
        if isinstance(dtype, int):  # as in zeros(2, 3)
            way_out = "a shape of several axes is a tuple, as in zeros((2, 3))"
        raise bsp._error(DtypeError, f"{operation}: {dtype!r} is no dtype; {way_out}") from None


def _check_dtype(bsp: GroupState, dtype: np.dtype[Any], operation: str) -> None:
    if dtype.hasobject:
        raise bsp._error(
            DtypeError, f"{operation}: dtype {dtype} holds Python objects; send them instead"
        )
    if dtype.itemsize == 0:
        raise bsp._error(
            DtypeError,
            f"{operation}: an element of dtype {dtype} has 0 bytes, so that there is nothing to "
            f"transfer; give text a length, as in 'S8'",
        )
