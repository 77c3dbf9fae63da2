"""Threads that a program has left running, which hold the end of their process."""

from __future__ import annotations

import sys
import threading
import time

_MOMENT_S = 1.0
"""Seconds for threads to end by themselves, before there is a line about them."""


def tell_of_threads(pid: int) -> None:
    """Wait a moment for the threads that hold the end of this process, then say which they are.

    Args:
        pid: this process, in the run.
    """
    until = time.monotonic() + _MOMENT_S
    for thread in _holding():
        thread.join(max(until - time.monotonic(), 0))
    names = ", ".join(repr(thread.name) for thread in _holding())
    if names:
        print(
            f"bsplib: the end of the run waits for process {pid}, in which main has ended and "
            f"these threads run on: {names}; join them in main, or make them with daemon=True",
            file=sys.stderr,
            flush=True,
        )


def _holding() -> list[threading.Thread]:
    """Return the threads that the interpreter waits for before it ends."""
    this = threading.current_thread()
    return [each for each in threading.enumerate() if each is not this and not each.daemon]
