"""Stops a program that computes in this process, where it is the driver of its job, too."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from bsplib.backends.base import Stopped

_SIGNAL = getattr(signal, "SIGRTMAX", 0) - 8
"""A realtime signal that nothing else uses; less than 1 where there are none."""
_CALLER = f"{__package__}.bsp_run_under_mpiexec"
"""The module in which the run began."""


class Interrupter:
    """Raises :class:`Stopped` in the thread that made it, whatever it computes.

    It does not where the thread is inside the link: that looks itself whether the run ends, and
    its sends and receives could not be told any more after an error at any line.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        is_main = threading.current_thread() is threading.main_thread()
        self._by_signal = is_main and _SIGNAL > 0
        self._handles = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def handling(self) -> Iterator[None]:
        """Allow it inside the block."""
        before = signal.signal(_SIGNAL, self._handle) if self._by_signal else None
        self._handles = True
        try:
            yield
        finally:
            with self._lock:
                self._handles = False
            if self._by_signal:
                signal.signal(_SIGNAL, before)

    def fire(self) -> None:
        """Interrupt the thread."""
        with self._lock:
            if not self._handles:
                return
            if self._by_signal:
                signal.pthread_kill(self._thread, _SIGNAL)
            elif not _is_in_link(sys._current_frames().get(self._thread)):
                thread = ctypes.c_ulong(self._thread)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(Stopped))

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._handles and not _is_in_link(frame):
            raise Stopped


def _is_in_link(frame: FrameType | None) -> bool:
    """Tell whether a frame, or one that has called it since the run began, is of this room."""
    while frame is not None and (module := str(frame.f_globals.get("__name__"))) != _CALLER:
        if module.startswith(f"{__package__}."):
            return True
        frame = frame.f_back
    return False
