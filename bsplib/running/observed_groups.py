"""Groups whose primitives are calls, in virtual time or for records.

They are subclasses, chosen when the run starts, so that any other group pays nothing for them. The
engine stops the virtual clock of a process inside its own calls, or measures them; each other
primitive that is a call is wrapped in a function that tells the engine where it begins and ends.

In virtual time every primitive is a call. Of a run on real processes that is recorded, a collective
is one call as a whole: its copies, and the pickles of its values, are communication. The sync in it
is none of a call, and what it combines is computation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from bsplib.core.calls import Calls
from bsplib.core.clock import Clock, EmptyPrimitive
from bsplib.group import Group
from bsplib.primitives import combinations, exchanges

_Method = Callable[..., Any]

_COLLECTIVES = (combinations.__name__, exchanges.__name__)
"""The modules of the collectives."""
_BATCHES, _CALLS = 20, 50
"""How often an empty primitive is called, to find out what the clock measures between two
calls with nothing in between."""


@functools.cache
def group_class(*, is_virtual: bool, is_recorded: bool) -> type[Group]:
    """Return the class of the groups of a run."""
    if not (is_virtual or is_recorded):
        return Group
    namespace = {
        name: _timed(method)
        for name, method in inspect.getmembers(Group, inspect.isfunction)
        if (not name.startswith("_") or name in ("__enter__", "__exit__"))
        and method is not vars(Calls).get(name)
        and (is_virtual or method.__module__ in _COLLECTIVES)
    }
    return cast("type[Group]", type("ObservedGroup", (Group,), namespace))


def _timed(method: _Method) -> _Method:
    """Return a primitive that is a call from its beginning to its end."""
    if inspect.isgeneratorfunction(getattr(method, "__wrapped__", None)):
        return _timed_context(method)

    @functools.wraps(method)
    def timed(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        engine = self._engine
        engine.begin_call()
        try:
            return method(self, *args, **kwargs)
        finally:
            engine.end_call()

    return timed


def _timed_context(method: _Method) -> _Method:
    """Return the same for a primitive of a ``with`` statement, whose body is none of the call."""

    @functools.wraps(method)
    @contextmanager
    def timed(self: Any, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        engine = self._engine
        engine.begin_call()
        try:
            with method(self, *args, **kwargs) as value:
                engine.end_call()
                try:
                    yield value
                finally:
                    engine.begin_call()
        finally:
            engine.end_call()

    return timed


@functools.cache
def empty_stretch_ns() -> int:
    """Return what a clock measures in ns between two primitives with nothing in between."""
    clock = Clock()
    call = EmptyPrimitive(clock).call
    clock.settle()
    clock.resume()
    seen = [clock.now()]
    for _ in range(_BATCHES):
        for _ in range(_CALLS):
            call()
        seen.append(clock.now())
    return round(float(np.median(np.diff(seen))) / _CALLS)
