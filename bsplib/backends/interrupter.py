"""How a program that computes in this process is interrupted by another thread."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType


class Interrupter:
    """Raises an error in the thread that made it, whatever it computes.

    In the main thread a signal does, which also ends calls of the system that wait. In another one
    the interpreter raises the error before its next instruction.

    Args:
        number: of a signal that nothing else uses.
        error: class of the error.
        spares: tells of a frame whether it must not be interrupted.
    """

    def __init__(
        self,
        number: int,
        error: type[BaseException],
        spares: Callable[[FrameType | None], bool] = lambda _: False,
    ) -> None:
        self._number = number
        self._error = error
        self._spares = spares
        self._thread = threading.get_ident()
        is_main = threading.current_thread() is threading.main_thread()
        self._by_signal = is_main and hasattr(signal, "pthread_kill")  # not on Windows
        self._handles = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def handling(self) -> Iterator[None]:
        """Allow it inside the block, up to :meth:`end`."""
        before = signal.signal(self._number, self._handle) if self._by_signal else None
        self._handles = True
        try:
            yield
        finally:
            self.end()
            if self._by_signal:
                signal.signal(self._number, before)

    def end(self) -> None:
        """Interrupt no more."""
        with self._lock:
            self._handles = False
            if not self._by_signal:
                self._let_raise(None)

    def fire(self) -> None:
        """Interrupt the thread."""
        with self._lock:
            if not self._handles:
                return
            if self._by_signal:
                signal.pthread_kill(self._thread, self._number)
            elif not self._spares(sys._current_frames().get(self._thread)):
                self._let_raise(self._error)

    def _let_raise(self, error: type[BaseException] | None) -> None:
        """Let the thread raise an error before its next instruction; None cancels that."""
        raised = None if error is None else ctypes.py_object(error)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), raised)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._handles and not self._spares(frame):
            raise self._error


def without_handler(stack: Sequence[tuple[str, int, str]]) -> Sequence[tuple[str, int, str]]:
    """Return the stack of an error without the handler of the signal, its innermost frame."""
    return stack[1:] if stack and stack[0][0] == __file__ else stack
