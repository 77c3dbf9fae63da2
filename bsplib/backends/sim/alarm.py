"""How a run on virtual processors is interrupted when it has taken too long.

All virtual processors share one thread of the caller, so that an exception has to be
raised in that thread from outside. In the main thread a signal does it, which ends a
sleep or another wait of the system, too. In any other thread the interpreter raises it
before its next instruction, hence after the end of a sleep. In both cases a long call of C
code ends first.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

_AGAIN_S = 0.1
"""Seconds after which a process that still runs is interrupted again."""
_SIGNAL = getattr(signal, "SIGRTMAX", 0) - 7
"""A realtime signal that nothing else uses; less than 1 where there are none."""


class Overtime(BaseException):
    """The run has taken longer than it may; raised in the code that is being executed."""


@contextlib.contextmanager
def alarm(seconds: float | None) -> Iterator[None]:
    """Raise :class:`Overtime` in this thread if the block takes longer, again and again.

    Args:
        seconds: None where there is no limit.
    """
    if seconds is None:
        yield
        return
    watcher = _Watcher(seconds)
    try:
        with watcher.handling():
            watcher.thread.start()
            try:
                yield
            finally:
                watcher.end()
    except Overtime:  # raised between the end of the block and watcher.end()
        watcher.end()
        raise


def without_alarm(stack: Sequence[tuple[str, int, str]]) -> Sequence[tuple[str, int, str]]:
    """Return a stack without the handler of the signal, which is its innermost frame."""
    return stack[1:] if stack and stack[0][0] == __file__ else stack


class _Watcher:
    """A thread that interrupts the thread that made it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._interrupted = threading.get_ident()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        is_main = threading.current_thread() is threading.main_thread()
        self._by_signal = is_main and _SIGNAL > 0
        self.thread = threading.Thread(target=self._watch, name="bsp-alarm", daemon=True)

    @contextlib.contextmanager
    def handling(self) -> Iterator[None]:
        """Handle the signal inside the block."""
        if not self._by_signal:
            yield
            return
        before = signal.signal(_SIGNAL, self._handle)
        try:
            yield
        finally:
            signal.signal(_SIGNAL, before)

    def end(self) -> None:
        """Interrupt no more."""
        with self._lock:
            self._ended.set()
            if not self._by_signal:
                _raise_in(self._interrupted, None)

    def _watch(self) -> None:
        timeout = self._seconds
        while not self._ended.wait(timeout):
            with self._lock:
                if not self._ended.is_set():
                    self._interrupt()
            timeout = _AGAIN_S

    def _interrupt(self) -> None:
        if self._by_signal:
            signal.pthread_kill(self._interrupted, _SIGNAL)
        else:
            _raise_in(self._interrupted, Overtime)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if not self._ended.is_set():
            raise Overtime


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Make a thread raise an exception before its next instruction; None cancels that."""
    raised = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
