"""Call stacks that a trace can hold: not too deep, with names that are not too long."""

from __future__ import annotations

from bsplib.recording.records import Frame, Stack

MAX_TEXT = 4096
"""Characters of the name of a file or function."""
MAX_STACK = 1000
"""Frames of a stack."""
_CUT = "[...]"


def bearable(stack: Stack, most: int = MAX_STACK) -> Stack:
    """Return a stack that a reader takes.

    Of a stack that is too deep the middle is left out, and a frame says so; so is the
    middle of a name that is too long.

    Args:
        stack: from ``main`` to the sync.
        most: how many frames it may have, at least 3.
    """
    if len(stack) > most:
        outer, inner = (most - 1) // 2, most // 2
        left_out = Frame("", f"[{len(stack) - outer - inner} calls left out]", 0, 0, False)
        stack = (*stack[:outer], left_out, *stack[len(stack) - inner :])
    if any(len(frame.file) > MAX_TEXT or len(frame.function) > MAX_TEXT for frame in stack):
        stack = tuple(
            frame._replace(file=_cut(frame.file), function=_cut(frame.function)) for frame in stack
        )
    return stack


def _cut(text: str, most: int = MAX_TEXT) -> str:
    if len(text) <= most:
        return text
    half = (most - len(_CUT)) // 2
    return text[:half] + _CUT + text[-half:]
