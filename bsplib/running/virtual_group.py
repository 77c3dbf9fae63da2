"""A group in virtual time: the clock of its process is paused inside every primitive.

It is a subclass, chosen when the run starts, so that a group in real time pays nothing
for it. Each primitive is wrapped in a function that pauses the clock before the call and
resumes it when the program goes on.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, TypeVar, cast

import numpy as np

from bsplib.backends.base import VirtualClock
from bsplib.group import Group

_Group = TypeVar("_Group", bound=Group)
_Method = Callable[..., Any]

_READ_TIME = ("sync", "oblsync", "time")
"""Primitives that return the time, or in which others wait for this process: before them the
clock has to count all that it has measured."""
_BATCHES, _CALLS = 20, 50
"""How often an empty primitive is called, to find out what the clock measures between two
calls with nothing in between."""


class _VirtualTime(Group):
    """The methods of a group in virtual time that do more than pause the clock."""

    @property
    def _clock(self) -> VirtualClock:
        clock = self._port.clock
        assert clock is not None  # groups in virtual time are made for ports with a clock
        return clock

    def _begin(self) -> None:
        super()._begin()
        self._clock.empty_ns = _empty_stretch_ns(type(self._clock))
        self._clock.resume()

    def _finish(self, main: CodeType | None = None) -> None:
        self._clock.pause()
        self._clock.settle()
        super()._finish(main)

    def _combine(self, function: Callable[..., Any], operands: list[Any]) -> Any:
        with self._clock.computing():
            return super()._combine(function, operands)


@functools.cache
def in_virtual_time(kind: type[_Group]) -> type[_Group]:
    """Return the subclass of a class of groups for processes in virtual time."""
    namespace = {name: _wrapped(method) for name, method in _primitives(kind).items()}
    made = type(f"Virtual{kind.__name__}", (_VirtualTime, kind), namespace)
    return cast("type[_Group]", made)


def _primitives(kind: type[Group]) -> dict[str, _Method]:
    """Return the methods that a program calls, by name."""
    methods = inspect.getmembers(kind, inspect.isroutine)
    return {
        name: method
        for name, method in methods
        if not name.startswith("_") or name in ("__enter__", "__exit__")
    }


def _wrapped(method: _Method) -> _Method:
    """Return a primitive that pauses the clock while it is executed, and only then."""
    if method.__name__ == "messages":
        return _pausing_iterator(method)
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
        clock = self._port.clock
        clock.pause()
        clock.settle()
        try:
            return method(self, *args, **kwargs)
        finally:
            clock.resume()

    return settled


def _pausing_iterator(method: _Method) -> _Method:
    @functools.wraps(method)
    def paused(self: Any, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        return _Pausing(self._port.clock, method(self, *args, **kwargs))

    return paused


class _Pausing(Iterator[Any]):
    """An iterator that pauses the clock while the next value is found."""

    def __init__(self, clock: VirtualClock, values: Iterator[Any]) -> None:
        self._clock = clock
        self._values = values

    def __next__(self) -> Any:
        self._clock.pause()
        try:
            return next(self._values)
        finally:
            self._clock.resume()


def _pausing_context(method: _Method) -> _Method:
    @functools.wraps(method)
    @contextmanager
    def paused(self: Any, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
        clock: VirtualClock = self._port.clock
        clock.pause()
        try:
            with method(self, *args, **kwargs) as value, _outside(clock):
                yield value
        finally:
            clock.resume()

    return paused


@contextmanager
def _outside(clock: VirtualClock) -> Iterator[None]:
    """Resume the clock for the body of a ``with`` statement."""
    clock.resume()
    try:
        yield
    finally:
        clock.pause()


class _Probe:
    """Has a primitive that does nothing."""

    def __init__(self, clock: VirtualClock) -> None:
        self._port = self
        self.clock = clock

    @_pausing
    def call(self) -> None:
        """Do nothing."""


@functools.cache
def _empty_stretch_ns(kind: type[VirtualClock]) -> int:
    """Return how many ns a clock measures between two primitives with nothing in between."""
    clock = kind()
    call = _Probe(clock).call
    clock.settle()
    clock.resume()
    seen = [clock.now()]
    for _ in range(_BATCHES):
        for _ in range(_CALLS):
            call()
        seen.append(clock.now())
    return round(float(np.median(np.diff(seen))) / _CALLS)
