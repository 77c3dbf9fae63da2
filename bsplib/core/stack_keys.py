"""Numbers for call stacks, found anew at every sync.

The **key** of a stack is the exact sequence of its frames, each by its code object and the
instruction at which it stands. It contains every interpreted function: the compiled core has
no frames. Which of them are the program's is decided once for each key, by a function that is
handed in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

if not cython.compiled:
    RECENT = 0  # there is no faster way than the dictionary

    def key_of(keys: StackKeys, depth: int) -> Any:
        """Return the key of the stack from the frame at this depth; 0 is this function's own."""
        frame: FrameType | None = sys._getframe(depth)
        key: list[int] = []
        outermost = keys._outermost
        while frame is not None and (code := frame.f_code) is not outermost:
            key += id(code), frame.f_lasti
            frame = frame.f_back
        return tuple(key)

    def known_number(keys: StackKeys, depth: int) -> int:
        """Return the number of the stack from the frame at this depth, or -1 if it is new."""
        return keys._numbers.get(key_of(keys, depth + 1), -1)


_OWN = 0 if cython.compiled else 1
"""Frames of each function of this module."""


class StackKeys:
    """The numbers of the call stacks of one process.

    Args:
        outermost: code of the function above which stacks begin.
        define: returns the number of a stack whose key is new. It is given the innermost frame
            of the stack.
    """

    def __init__(self, outermost: CodeType, define: Callable[[FrameType], int]) -> None:
        self._outermost = outermost
        self._define = define
        self._numbers: dict[Any, int] = {}
        self._codes: dict[int, CodeType] = {}  # kept alive: their addresses are part of the keys
        self._recent: list[bytes | None] = [None] * RECENT

    def number(self, depth: int = 0) -> int:
        """Return the number of the caller's stack.

        Args:
            depth: how many interpreted functions are left out, counted from the caller.
        """
        number = known_number(self, depth + 2 * _OWN)
        return self._number_new(depth) if number < 0 else number

    def _number_new(self, depth: int) -> int:
        key = key_of(self, depth + 3 * _OWN)
        innermost = sys._getframe(depth + 2 * _OWN)
        frame: FrameType | None = innermost
        while frame is not None and frame.f_code is not self._outermost:
            self._codes[id(frame.f_code)] = frame.f_code
            frame = frame.f_back
        number = self._numbers[key] = self._define(innermost)
        return number
