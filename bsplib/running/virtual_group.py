"""A group in virtual time: the clock of its process is paused inside every primitive.

It is a subclass, chosen when the run starts, so that a group in real time pays nothing
for it. The engine pauses the clock in its own calls. Each other primitive is wrapped in a
function that pauses the clock before the call and resumes it when the program goes on.
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

_Method = Callable[..., Any]

_READ_TIME = ("sync", "time")
"""Primitives that return the time, or in which others wait for this process: before them the
clock has to count all that it has measured."""
_BATCHES, _CALLS = 20, 50
"""How often an empty primitive is called, to find out what the clock measures between two
calls with nothing in between."""


class _VirtualTime(Group):
    """The methods of a group in virtual time that do more than pause the clock."""

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


@functools.cache
def virtual_group() -> type[Group]:
    """Return the class of groups for processes in virtual time."""
    namespace = {name: _wrapped(method) for name, method in _primitives().items()}
    return cast("type[Group]", type("VirtualGroup", (_VirtualTime,), namespace))


def _primitives() -> dict[str, _Method]:
    """Return the methods that a program calls, by name, but for those of the engine."""
    methods = inspect.getmembers(Group, inspect.isfunction)
    return {
        name: method
        for name, method in methods
        if (not name.startswith("_") or name in ("__enter__", "__exit__"))
        and method is not vars(Calls).get(name)
    }


def _wrapped(method: _Method) -> _Method:
    """Return a primitive that pauses the clock while it is executed, and only then."""
    if inspect.isgeneratorfunction(getattr(method, "__wrapped__", None)):
        return _pausing_context(method)
    return _settling(method) if method.__name__ in _READ_TIME else _pausing(method)


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


def _settling(method: _Method) -> _Method:
    @functools.wraps(method)
    def settled(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._port.clock.settle()
        return method(self, *args, **kwargs)

    return _pausing(settled)


def _pausing_context(method: _Method) -> _Method:
    @functools.wraps(method)
    @contextmanager
    def paused(self: Any, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        clock: Clock = self._port.clock
        clock.pause()
        try:
            with method(self, *args, **kwargs) as value, _outside(clock):
                yield value
        finally:
            clock.resume()

    return paused


@contextmanager
def _outside(clock: Clock) -> Iterator[None]:
    """Resume the clock for the body of a ``with`` statement."""
    clock.resume()
    try:
        yield
    finally:
        clock.pause()


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
