"""The array of another process as a place that is read and written by indices."""

from __future__ import annotations

import weakref
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from bsplib.errors import PlaceError
from bsplib.primitives.state import GroupState
from bsplib.transfers.place import Array


class RemoteArray:
    """A registered array on another process; :meth:`Group.on` makes it.

    Indices are basic ones (integers, slices, Ellipsis, or several of them), taken against
    the shape that the array has on that process.

    Args:
        group: group of this process.
        pid: the other process.
        array: names the registration.
    """

    __iter__ = None
    """It has indices and no elements: a loop over it would ask for one get after the other."""

    def __init__(self, group: GroupState, pid: int, array: Any) -> None:
        self._group = group
        self._pid = pid
        self._array = array

    def __getitem__(self, index: Any) -> Array:
        """Read elements at the end of the superstep, as ``get(pid, x, at=index)`` does.

        Returns:
            A new array, whose content is valid after the sync; without axes for one element.
        """
        result: Array = self._group.get(self._pid, self._array, at=index)
        _await(self._group, result)
        return result

    def __setitem__(self, index: Any, values: ArrayLike) -> None:
        """Write elements at the end of the superstep, as ``put(pid, values, x, at=index)`` does."""
        group = self._group
        if _is_awaited(group, values):
            group._fail(
                PlaceError(
                    "on: the value is the result of a get that is complete after the sync only, so "
                    "that an assignment such as bsp.on(pid, x)[i] += v cannot add to it; write "
                    "bsp.put_at(pid, i, v, x, op=numpy.add)"
                )
            )
        group.put(self._pid, values, self._array, at=index)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: its values are on another process."""
        self._group._fail(
            PlaceError(
                f"on: the values of this array are on process {self._pid}; write bsp.on(pid, x)[:] "
                f"to get them, and use the result after the next sync"
            )
        )

    def __repr__(self) -> str:
        kind = type(self._array).__name__
        if isinstance(self._array, np.ndarray):
            kind = f"array of shape {self._array.shape} here"
        return f"<{kind}, on process {self._pid}>"


def _await(group: GroupState, result: Array) -> None:
    """Remember the result of a get, which the next sync fills."""
    if group._awaited_in != group._engine.superstep:
        group._awaited.clear()
        group._awaited_in = group._engine.superstep
    group._awaited[id(result)] = weakref.ref(result)


def _is_awaited(group: GroupState, values: Any) -> bool:
    """Tell whether values are a remembered result, or a view of one, before the sync."""
    if group._awaited_in != group._engine.superstep:
        return False
    known = [group._awaited.get(id(each)) for each in (values, getattr(values, "base", None))]
    return any(reference is not None and reference() is not None for reference in known)
