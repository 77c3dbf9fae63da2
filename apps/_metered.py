"""A group whose virtual processors are charged the time that their thread computed.

The clock of the simulator runs on while other programs of the computer do. The time
that the system counts for the thread does not, so that what is simulated on a busy
computer is what a quiet one would have computed, but for its caches.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

import bsplib


class Metered:
    """A group that can all that a :class:`bsplib.Group` can.

    Whatever the program does between two calls of the group is charged; what the calls
    do is not, since the Machine prices it. Where processes are real this changes nothing.

    Args:
        bsp: the group; charged from now on.
    """

    def __init__(self, bsp: bsplib.Group, stopwatch: Stopwatch | None = None) -> None:
        self._bsp = bsp
        self._stopwatch = stopwatch or Stopwatch()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._bsp, name)
        if not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self.charge_since()
            try:
                result = value(*args, **kwargs)
                return Metered(result, self._stopwatch) if name == "partition" else result
            finally:
                self._stopwatch.start()

        return call

    def charge_since(self) -> None:
        """Charge what has been computed since the last call."""
        self._bsp.charge(self._stopwatch.read_s())
        self._stopwatch.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.done()


class Stopwatch:
    """Of the time that this thread computes."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin anew."""
        self._began_ns = time.thread_time_ns()

    def read_s(self) -> float:
        """Return the seconds since it was started."""
        return (time.thread_time_ns() - self._began_ns) * 1e-9
