"""Whether a program still holds an array that it has registered, for ``check=True``.

After ``x = x + 1`` the name ``x`` is that of another array. What others put into the registered
one arrives where the program cannot see it any more. The counts of references show this: those
of the registered array, and of the arrays that it is a view of, are compared with what they would
be if only bsplib held them.
"""

from __future__ import annotations

import operator
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bsplib import call_site


class Origin(NamedTuple):
    """Where a registered array comes from."""

    words: str
    """The primitive and the line, as text."""
    name: str | None
    """The variable of the program, where it can be seen at the call."""
    references: tuple[int, ...]
    """Those of bsplib to the array, and to each array that it is a view of."""


def references(array: Any) -> tuple[int, ...]:
    """Return the numbers of references to an array, and to each array that it is a view of."""
    counts = []
    while isinstance(array, np.ndarray):
        counts.append(sys.getrefcount(array))
        array = array.base
    return tuple(counts)


def as_of_the_program(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the :func:`references` to an array that bsplib has made, as if of the program.

    What it is a view of may be held by the memory that a backend has given, too; that is bsplib's.
    """
    return (counts[0], *[_REST[1]] * (len(counts) - 1))


def origin(before: tuple[int, ...], after: tuple[int, ...], operation: str, array: Any) -> Origin:
    """Describe the registration of an array that has just been made.

    Args:
        before: the :func:`references` to it before the registration.
        after: those after it, counted in the same function, and before the array is passed on:
            each call that it is passed through has one more.
        operation: the primitive.
        array: the object that names it.
    """
    own = tuple(now - then for now, then in zip(after, before, strict=True))
    name = call_site.name_of(array) or call_site.assigned_name()
    return Origin(f"{operation} at {call_site.line()}", name, own)


def is_held(registration: Any, own: tuple[int, ...]) -> bool:
    """Tell whether the program holds a registered array, or one that it is a view of.

    Args:
        registration: has the array as its ``handle``.
        own: the references of bsplib to it, and to what it is a view of.
    """
    counts = references(registration.handle)
    rest = (_REST[0], *[_REST[1]] * (len(counts) - 1))
    return any(map(operator.gt, counts, map(operator.add, own, rest)))


def _counted_besides() -> tuple[int, int]:
    """Return what :func:`references` adds for a registered array, and for what it is a view of."""
    holder = SimpleNamespace(handle=np.empty(1)[:])  # a view of an array that nobody else holds
    view, whole = references(holder.handle)
    return view - 1, whole


_REST = _counted_besides()


def refresh_variables() -> None:
    """Let no frame of the program keep old values of its variables.

    Python before 3.13 copies them when ``f_locals`` is read, as for the names in errors.
    """
    frame = call_site.caller()
    while frame is not None and not call_site.is_own(frame.f_code):
        frame.f_locals  # noqa: B018  # this replaces the copy
        frame = frame.f_back
