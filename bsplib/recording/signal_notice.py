"""A notice on standard error when a signal ends this process."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class SignalNotice:
    """Prints a line if SIGTERM or SIGHUP ends this process.

    It handles only signals for which the program has no handler of its own. Outside the
    main thread it does nothing, since Python allows handlers only there.

    Args:
        text: the line to print.
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

    def cancel(self) -> None:
        """Restore the default action of the signals."""
        for number in self._handled:
            if signal.getsignal(number) == self._end:  # unless the program set a handler since
                signal.signal(number, signal.SIG_DFL)
        self._handled.clear()

    def _end(self, number: int, _: FrameType | None) -> None:
        if os.getpid() == self._pid:  # not in a forked process that still has the handler
            name = signal.Signals(number).name
            with contextlib.suppress(OSError):
                os.write(2, f"bsp: ended by {name}; {self._text}\n".encode(errors="replace"))
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _cancel_after_fork() -> None:
    """Restore the default action of the signals in a forked process."""
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(getattr(handler, "__self__", None), SignalNotice):
            signal.signal(number, signal.SIG_DFL)


os.register_at_fork(after_in_child=_cancel_after_fork)
