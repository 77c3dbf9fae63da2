"""A line on standard error where a signal ends this process."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class LastWords:
    """Say a line if SIGTERM or SIGHUP ends this process.

    Only where the program leaves the signal to the system, and only from the main
    thread: Python runs handlers nowhere else.

    Args:
        text: the line.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._pid = os.getpid()
        self._handled: list[int] = []
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, self._end)
                    self._handled.append(number)

    def forget(self) -> None:
        """Leave the signals to the system again."""
        for number in self._handled:
            if signal.getsignal(number) == self._end:  # the program has not taken it meanwhile
                signal.signal(number, signal.SIG_DFL)
        self._handled.clear()

    def _end(self, number: int, _: FrameType | None) -> None:
        if os.getpid() == self._pid:  # a signal may come before a forked process forgets it
            name = signal.Signals(number).name
            with contextlib.suppress(OSError):
                os.write(2, f"bsp: ended by {name}; {self._text}\n".encode(errors="replace"))
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _leave_unsaid() -> None:
    """In a forked process: leave the signals to the system."""
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(getattr(handler, "__self__", None), LastWords):
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_leave_unsaid)
