"""Groups whose primitives are measured, in virtual time or for records.

They are subclasses, chosen when the run starts, so that any other group pays nothing for them.

In virtual time the clock of a process is paused inside every primitive. The engine pauses it in its
own calls; each other primitive is wrapped in a function that pauses it.

Of a run on real processes that is recorded, the engine measures its own calls, too. A collective is
one call as a whole, as it is in virtual time: its copies, and the pickles of its values, are
communication. The sync in it is none of a call, and what it combines is computation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
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


def group_class(*, is_virtual: bool, is_recorded: bool) -> type[Group]:
    """Return the class of the groups of a run."""
    if is_virtual:
        return _virtual_group()
    return _recorded_group() if is_recorded else Group


@functools.cache
def _recorded_group() -> type[Group]:
    namespace = {
        name: _timed(method)
        for name, method in vars(Group).items()
        if getattr(method, "__module__", None) in _COLLECTIVES and not name.startswith("_")
    }
    return cast("type[Group]", type("RecordedGroup", (Group,), namespace))


def _timed(method: _Method) -> _Method:
    """Return a collective that is a call from its beginning to its end."""

    @functools.wraps(method)
    def timed(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        engine = self._engine
        engine.begin_call()
        try:
            return method(self, *args, **kwargs)
        finally:
            engine.end_call()

    return timed


# -- virtual time -----------------------------------------------------------------------------


@functools.cache
def _virtual_group() -> type[Group]:
    namespace = {name: _wrapped(method) for name, method in _primitives().items()}
    return cast("type[Group]", type("VirtualGroup", (_VirtualTime,), namespace))


class _VirtualTime(Group):
    """The methods of a group in virtual time that do more than pause the clock."""

    def time(self) -> float:
        """See :meth:`Group.time`. The clock counts before what it has measured."""
        clock = self._port.clock
        assert clock is not None
        clock.settle()
        return super().time()

    def _begin(self) -> None:
        super()._begin()
        clock = self._port.clock
        assert clock is not None
        clock.empty_ns, clock.core_empty_ns = _empty_stretches_ns()
        clock.resume()

    def _finish(self, main: CodeType | None = None) -> None:
        clock = self._port.clock
        assert clock is not None
        clock.pause()
        clock.settle()
        super()._finish(main)


def _primitives() -> dict[str, _Method]:
    """Return the methods that a program calls, by name, but for those of the engine."""
    return {
        name: method
        for name, method in inspect.getmembers(_VirtualTime, inspect.isfunction)
        if (not name.startswith("_") or name in ("__enter__", "__exit__"))
        and method is not vars(Calls).get(name)
    }


def _wrapped(method: _Method) -> _Method:
    """Return a primitive that pauses the clock while it is executed, and only then."""
    if inspect.isgeneratorfunction(getattr(method, "__wrapped__", None)):
        return _pausing_context(method)
    return _pausing(method)


def _pausing(method: _Method) -> _Method:
    @functools.wraps(method)
    def paused(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        clock = self._port.clock
        clock.pause()
        try:
            return method(self, *args, **kwargs)
        finally:
            clock.resume()

    return paused


def _pausing_context(method: _Method) -> _Method:
    @functools.wraps(method)
    @contextmanager
    def paused(self: Any, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        clock: Clock = self._port.clock
        clock.pause()
        try:
            with method(self, *args, **kwargs) as value:
                clock.resume()  # for the body of the statement
                try:
                    yield value
                finally:
                    clock.pause()
        finally:
            clock.resume()

    return paused


class _Probe:
    """Has a primitive that does nothing."""

    def __init__(self, clock: Clock) -> None:
        self._port = self
        self.clock = clock

    @_pausing
    def call(self) -> None:
        """Do nothing."""


@functools.cache
def _empty_stretches_ns() -> tuple[int, int]:
    """Return what a clock measures in ns between two primitives with nothing in between.

    The first number is for wrapped primitives, the second one for those of the core.
    """
    wrapped, bare = Clock(), Clock()
    return (
        _empty_stretch_ns(wrapped, _Probe(wrapped).call),
        _empty_stretch_ns(bare, EmptyPrimitive(bare).call),
    )


def _empty_stretch_ns(clock: Clock, call: Callable[[], None]) -> int:
    clock.settle()
    clock.resume()
    seen = [clock.now()]
    for _ in range(_BATCHES):
        for _ in range(_CALLS):
            call()
        seen.append(clock.now())
    return round(float(np.median(np.diff(seen))) / _CALLS)
