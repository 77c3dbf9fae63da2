"""Call stacks for a trace, whose depth and length of names are limited."""

from __future__ import annotations

from bsplib.recording.records import Frame, Stack

MAX_TEXT = 4096
"""Greatest number of characters of the name of a file or function."""
MAX_STACK = 1000
"""Greatest number of frames of a stack."""
_CUT = "[...]"


def shortened(stack: Stack, most: int = MAX_STACK) -> Stack:
    """Return a stack that is short enough for a trace.

    If a stack is too deep, its middle is replaced by one frame that says how many calls
    are left out. If a name is too long, its middle is left out, too.

    Args:
        stack: from ``main`` to the sync.
        most: greatest number of frames, at least 3.
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
