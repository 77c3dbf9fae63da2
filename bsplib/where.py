"""Where in the program a primitive was called, for errors."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

_CALLS_MAIN = "run_task"
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def is_own(code: CodeType) -> bool:
    """Tell whether code is bsplib's own, and not the program's."""
    return code.co_filename.startswith(_HERE)


def caller() -> FrameType | None:
    """Return the innermost frame of the program; None once ``main`` has returned."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame.f_code):
        if frame.f_code.co_name == _CALLS_MAIN:
            return None
        frame = frame.f_back
    return frame


def place() -> str:
    """Return file and line of the call, such as ``sort.py:31``."""
    frame = caller()
    if frame is None:
        return "end of main"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def name_of(value: Any) -> str | None:
    """Return the name that the caller has for a value."""
    frame = caller()
    if frame is None:
        return None
    return next((name for name, known in frame.f_locals.items() if known is value), None)
