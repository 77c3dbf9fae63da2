"""Signals: those that are held back while processes are started and ended, and SIGQUIT.

A Python signal handler may raise anywhere; ``KeyboardInterrupt`` is the usual case.
Raised between ``fork`` and the line that notes the new process, or in the middle of the
clean-up, it would leave processes, file descriptors or memory behind. So the handlers
of the program are replaced, while a run begins and ends, by one that only notes the
signal; the noted signals are handled where the run waits, or once everything is given
back.

Blocking the signals (``pthread_sigmask``) would not do: another thread of the caller, one
of the BLAS library for example, takes the signal then, and Python runs the handler in the
main thread all the same. Signals without a Python handler keep their meaning.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any, Self

from bsplib.backends.members import Whereabouts

try:
    # The one of signal makes an enumeration of each answer, which takes a microsecond.
    from _signal import getsignal as _getsignal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal as _getsignal

_Handler = Callable[[int, FrameType | None], Any]


class held_back:  # noqa: N801  # used like a function, in a with statement
    """Note signals instead of handling them, inside a ``with`` block of the main thread.

    In another thread it does nothing, since Python runs no handlers there.
    """

    def __init__(self) -> None:
        self.handlers: dict[int, _Handler] = {}
        """The handlers of the program, by the number of the signal."""
        self._noted: list[int] = []
        self._holds = False
        self._before: held_back | None = None

    def __enter__(self) -> Self:
        global _current  # signal handlers belong to the process, too
        if threading.current_thread() is threading.main_thread():
            # A handler of the program may raise until _holds is set; until then, our handlers
            # that are in place call those of the program at once.
            for number in range(1, signal.NSIG):
                handler = _getsignal(number)
                if callable(handler):
                    self.handlers[number] = handler
                    signal.signal(number, self._handle)
            self._before, _current = _current, self
            self._holds = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            # A second Ctrl-C during the clean-up after the first one has no further effect.
            self._noted = [number for number in self._noted if number != signal.SIGINT]
        self.end()
        self._handle_noted()

    def end(self) -> None:
        """Put the handlers of the program back; noted signals are kept."""
        global _current  # noqa: PLW0603
        if _current is not self:  # in a thread that is not the main one
            return
        _current = self._before
        # From here on a handler may raise. If it does so before all are put back, ours stays in
        # place of the rest, and calls the handlers of the program at once.
        self._holds = False
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """Handle signals at once inside the block; those noted before are handled first.

        Once a handler has raised, signals are held back again, so that a second signal
        cannot interrupt the clean-up after the first.
        """
        self._holds = False
        try:
            self._handle_noted()
            yield
        finally:
            self._holds = _current is self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._holds:
            self._noted.append(number)
            return
        self._holds = _current is self
        self.handlers[number](number, frame)
        self._holds = False

    def _handle_noted(self) -> None:
        while self._noted:
            self._handle(self._noted.pop(0), None)


_current: held_back | None = None


_IN_FORCE = nullcontext()


def let_through() -> AbstractContextManager[None]:
    """Handle signals inside a block, also where they are held back around it."""
    if _current is None or threading.current_thread() is not threading.main_thread():
        return _IN_FORCE
    return _current.let_through()


def keep_own_handlers() -> None:
    """In a process that was forked while signals were held back: put the handlers back.

    SIGINT is ignored there: the caller decides what Ctrl-C means; so is SIGQUIT, if it answers.
    """
    while _current is not None:
        _current.handlers.pop(signal.SIGINT, None)
        _current.end()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _show is not None:
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)


@contextmanager
def without_interrupt() -> Iterator[None]:
    """Start processes with SIGINT blocked: they ignore it before they unblock it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- to ask a run where its processes are: by SIGQUIT, which Ctrl-backslash in a terminal sends ---
# The run goes on. Where it waits for real processes, it looks every now and then whether somebody
# has asked: to answer in the handler of the signal would disturb the wait. Virtual processors
# live in the thread that runs the handler, and there it answers at once.


_LOOK_S = 0.2
"""Seconds between two looks."""

Rows = Sequence[Whereabouts]

_show: Callable[[Rows], None] | None = None
"""Shows the answer; None where nobody can ask."""
_is_asked = False
_at_once: Callable[[FrameType | None], Rows] | None = None


def install_quit(show: Callable[[Rows], None]) -> None:
    """Let SIGQUIT ask, unless it has a handler already or is ignored.

    Args:
        show: shows where processes are.
    """
    global _show  # noqa: PLW0603  # the handler belongs to the process, too
    if not hasattr(signal, "SIGQUIT"):  # Windows
        return
    if signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL:
        _show = show
        signal.signal(signal.SIGQUIT, _handle_quit)


def _handle_quit(_: int, frame: FrameType | None) -> None:
    global _is_asked  # noqa: PLW0603
    if _at_once is not None and _show is not None:
        _show(_at_once(frame))
    else:
        _is_asked = True


def seconds_to_look(seconds: float) -> float:
    """Return how much of a wait may pass until somebody looks again, in seconds."""
    return seconds if _show is None else min(seconds, _LOOK_S)


def answer_quit(find: Callable[[], Rows]) -> None:
    """Show where processes are, if somebody has asked.

    Args:
        find: returns it.
    """
    global _is_asked  # noqa: PLW0603
    if _is_asked and _show is not None:
        _is_asked = False
        _show(find())


@contextmanager
def quit_answered_at_once(find: Callable[[FrameType | None], Rows]) -> Iterator[None]:
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
def quit_ignored_by_children() -> Iterator[None]:
    """Start processes inside the block that ignore the signal; a terminal sends it to all."""
    if _show is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGQUIT, before)
