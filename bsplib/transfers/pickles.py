"""Pickles of the objects that travel, and how long they take to make and to read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Any

Note = Callable[[int, int], int]
"""Is told how long a pickle took, and its bytes if it was made; see ``Engine.note_pickling``."""


def dumps(
    value: Any, note: Note, take_buffer: Callable[[pickle.PickleBuffer], Any] | None = None
) -> bytes:
    """Return the pickle of a value, of which ``take_buffer`` may take the arrays."""
    began_ns = perf_counter_ns()
    data = pickle.dumps(value, 5, buffer_callback=take_buffer)
    note(perf_counter_ns() - began_ns, len(data))
    return data


def loads(data: Any, note: Note, buffers: Iterable[Any] = ()) -> Any:
    """Return the value of a pickle, which is from a process of the same run."""
    began_ns = perf_counter_ns()
    value = pickle.loads(data, buffers=buffers)
    note(perf_counter_ns() - began_ns, 0)
    return value
