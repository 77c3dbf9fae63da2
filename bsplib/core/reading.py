"""How a program reads its messages: an iterator that takes them from the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython
from bsplib.core.forms import DTYPES
from bsplib.core.queue import Queue

if TYPE_CHECKING:
    from bsplib.core.engine import Engine
if not cython.compiled:
    from bsplib.core.atomics import new_array, prepare, this_thread
prepare()


class Reading:
    """Takes messages from the queue of an engine, one after the other.

    Args:
        engine: whose messages are read.
        bsp: the group that has the engine.
    """

    def __init__(self, engine: Engine, bsp: Any) -> None:
        self._engine = engine
        self._bsp = bsp
        self._queue: Queue = engine.queue

    def __iter__(self) -> Reading:
        return self

    def __next__(self) -> tuple[int, Any, Any]:
        if not len(self):
            raise StopIteration
        queue, engine = self._queue, self._engine
        engine.begin_call()
        try:
            message: tuple[int, Any, Any] = self._decoded(queue.take())
            return message
        finally:
            engine.end_call()

    def __len__(self) -> int:
        if this_thread() != self._engine.quick:
            # The group has another engine where it was left, and opened again.
            self._bsp._check_usable("messages", self._engine)
        return len(self._queue.messages) - self._queue.next

    def __getitem__(self, position: Any) -> Any:
        raise TypeError(
            "messages are read one after the other: for source, tag, payload in bsp.messages(); "
            "list(bsp.messages()) has them by position"
        )

    def __reduce__(self) -> Any:
        raise TypeError(
            "bsp.messages() reads the messages of one process; list(bsp.messages()) is data"
        )

    def _decoded(self, message: Any) -> Any:
        """Return a message as a program reads it."""
        source, head, content = message
        tag, is_pickled, form = head
        if not isinstance(content, tuple) and not is_pickled:
            if form[0] == "bytes":
                return source, tag, content
            if form[0] == "array":
                dtype = DTYPES.get(form[2])
                if dtype is not None and type(content) is bytearray:
                    return source, tag, np.ndarray(form[1], dtype, content)
                if dtype is not None:
                    return source, tag, new_array(form[1], dtype, content)
        return self._bsp._decode(message)
