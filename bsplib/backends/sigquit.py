"""Ask a run where its processes are: by SIGQUIT, which Ctrl-backslash in a terminal sends.

The run goes on. Where it waits for real processes, it looks every now and then whether somebody
has asked: to answer in the handler of the signal would disturb the wait. Virtual processors
live in the thread that runs the handler, and there it answers at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from bsplib.backends.members import Whereabouts

_LOOK_S = 0.2
"""Seconds between two looks."""

Rows = Sequence[Whereabouts]

_show: Callable[[Rows], None] | None = None
"""Shows the answer; None where nobody can ask."""
_is_asked = False
_at_once: Callable[[FrameType | None], Rows] | None = None


def install(show: Callable[[Rows], None]) -> None:
    """Let SIGQUIT ask, unless it has a handler already or is ignored.

    Args:
        show: shows where processes are.
    """
    global _show  # noqa: PLW0603  # the handler belongs to the process, too
    if not hasattr(signal, "SIGQUIT"):  # Windows
        return
    if signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL:
        _show = show
        signal.signal(signal.SIGQUIT, _handle)


def _handle(_: int, frame: FrameType | None) -> None:
    global _is_asked  # noqa: PLW0603
    if _at_once is not None and _show is not None:
        _show(_at_once(frame))
    else:
        _is_asked = True


def seconds_to_wait(seconds: float) -> float:
    """Return how much of a wait may pass until somebody looks again, in seconds."""
    return seconds if _show is None else min(seconds, _LOOK_S)


def answer(find: Callable[[], Rows]) -> None:
    """Show where processes are, if somebody has asked.

    Args:
        find: returns it.
    """
    global _is_asked  # noqa: PLW0603
    if _is_asked and _show is not None:
        _is_asked = False
        _show(find())


@contextmanager
def answered_at_once(find: Callable[[FrameType | None], Rows]) -> Iterator[None]:
    """Answer in the handler of the signal, inside the block.

    Args:
        find: returns where processes are; it is given the frame that the signal interrupts.
    """
    global _at_once  # noqa: PLW0603
    before, _at_once = _at_once, find
    try:
        yield
    finally:
        _at_once = before


@contextmanager
def ignored_by_children() -> Iterator[None]:
    """Start processes inside the block that ignore the signal; a terminal sends it to all."""
    if _show is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGQUIT, before)


def ignore() -> None:
    """In a forked process: ignore the signal if the caller answers it."""
    if _show is not None:
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
