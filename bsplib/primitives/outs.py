"""The arrays that a program gives to collectives for their results.

An array is checked at the call as far as that is possible, and written when the last superstep of
the collective has ended. It needs the shape and the dtype of the result: values are copied as they
are. What is written has been sent before, or lies in memory of the collective: so an array may be,
or overlap, what the program gives to the same collective.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from bsplib.core.values import may_overlap
from bsplib.errors import DtypeError, PlaceError, ShapeError, UsageError
from bsplib.primitives.state import GroupState
from bsplib.transfers.guard import plain, usable
from bsplib.transfers.place import Array

Out = TypeVar("Out", bound=Array)
"""An array for a result, which a collective returns."""
Outs = TypeVar("Outs", bound=Array | Sequence[Array])
"""An array, or one for each process, for the results of all."""


def target_of(bsp: GroupState, operation: str, out: Any) -> Array | None:
    """Return the array for a result as a plain one; None where the program gives none.

    Raises:
        PlaceError: it is no writable array.
    """
    if out is None:
        return None
    return _writable(bsp, operation, out, "out")


def targets_of(
    bsp: GroupState, operation: str, out: Any, axis: int | None
) -> Array | list[Array] | None:
    """Return the array for a joined result, or one for the value of each process.

    Raises:
        PlaceError: one of them is no writable array.
        UsageError: there are more or fewer than processes.
    """
    if out is None or axis is not None:
        return target_of(bsp, operation, out)
    places: list[Array] | None = bsp._values.places(out)
    if places is not None:
        return places
    if not isinstance(out, np.ndarray | list | tuple):
        raise bsp._error(
            PlaceError,
            f"{operation}: out is a {type(out).__name__}; without axis= it is an array whose first "
            f"axis has an index for each process, or a list with an array for each",
        )
    whole = _writable(bsp, operation, out, "out") if isinstance(out, np.ndarray) else None
    count = len(out) if whole is None else whole.shape[0] if whole.ndim else 0
    if count != bsp.nprocs:
        raise bsp._error(
            UsageError,
            f"{operation}: out has {count} places for the values of {bsp.nprocs} processes; it "
            f"needs one for each",
        )
    if whole is not None:
        return [whole[pid, ...] for pid in range(count)]  # with ... a number is a view, too
    return [_writable(bsp, operation, each, f"out[{pid}]") for pid, each in enumerate(out)]


def fill(bsp: GroupState, operation: str, target: Array, value: Any) -> None:
    """Write a result.

    Raises:
        ShapeError: the array has another shape.
        DtypeError: the array has another dtype.
    """
    if target is not value and not bsp._values.fill([target], [value]):
        values = bsp._as_array(operation, value)
        check_form(bsp, operation, target, values.shape, values.dtype)
        np.copyto(target, values)


def fill_all(bsp: GroupState, operation: str, targets: list[Array], values: list[Any]) -> None:
    """Write the value of each process, but where there is None; all are checked before.

    Raises:
        Exception: what :func:`fill` raises.
    """
    if bsp._values.fill(targets, values):
        return
    pairs = []
    for pid, value in enumerate(values):
        if value is not None:
            array = bsp._as_array(operation, value)
            check_form(bsp, operation, targets[pid], array.shape, array.dtype, f"out[{pid}]")
            pairs.append((targets[pid], array))
    for target, array in pairs:
        np.copyto(target, array)


def check_form(
    bsp: GroupState,
    operation: str,
    target: Array,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    name: str = "out",
) -> None:
    """Raise unless an array has the shape and the dtype of a result."""
    if target.shape != shape:
        raise bsp._error(
            ShapeError, f"{operation}: {name} has shape {target.shape}, the result has {shape}"
        )
    if target.dtype != dtype:
        raise bsp._error(
            DtypeError, f"{operation}: {name} has dtype {target.dtype}, the result has {dtype}"
        )


def room_for(target: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return memory for the elements of a result, one behind the other: that of ``out`` if it does.

    Args:
        target: the array of the program, which has the form of the result; None if there is none.
        shape: of the result.
        dtype: of the result.
    """
    if target is not None and target.flags.c_contiguous:
        return target.reshape(-1)
    return np.empty(shape, dtype).reshape(-1)


def is_untouched(bsp: GroupState, array: Array) -> bool:
    """Tell whether no transfer can change an array at the end of this superstep.

    That is so where this process gets nothing, and where others cannot name it.
    """
    if bsp._engine.gets:
        return False
    for _, registration in bsp._registry.active():
        if registration.array is not None and may_overlap(array, plain(registration.array)):
            return False
    return True


def _writable(bsp: GroupState, operation: str, out: Any, name: str) -> Array:
    target = usable(out)
    if not isinstance(target, np.ndarray):
        raise bsp._error(
            PlaceError, f"{operation}: {name} is a {type(out).__name__}; it is a writable array"
        )
    if not target.flags.writeable:
        raise bsp._error(
            PlaceError, f"{operation}: {name} is a read-only array; give one that can be written"
        )
    return bsp._as_array(operation, target)
