"""The end of a run on virtual processors by its timeout or by Ctrl-C."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

from bsplib import call_site
from bsplib.backends.launching import Interrupted, TimeIsOver
from bsplib.backends.members import Stack, Whereabouts, from_stack
from bsplib.backends.sim.world import Process, World


class Interruption:
    """Runs all processes, and records where they were when the run was interrupted.

    Args:
        world: all virtual processors.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._error: BaseException | None = None
        self._rows: list[Whereabouts] = []

    def run_to_the_end(self) -> None:
        """Run until all processes have ended."""
        while True:
            try:
                self._world.run()
            except (Overtime, KeyboardInterrupt) as error:  # between two processes
                self.note(error)
                self._world.stop()
            else:
                return

    def note(self, error: BaseException) -> None:
        """Record an error of the running process, if it is the first interruption."""
        if self._error is None and isinstance(error, Overtime | KeyboardInterrupt):
            self._error = error
            stack = without_alarm(call_site.stack_of_error(error.__traceback__))
            self._rows = self._places(stack)
            self._world.stop()

    def now(self, frame: FrameType | None) -> list[Whereabouts]:
        """Return where all processes are, while the run goes on.

        Args:
            frame: the one that runs.
        """
        current = self._world.current
        if current is not None:
            current.clock.pause()  # virtual time counts no answers
        try:
            return self._places(call_site.stack_of(frame))
        finally:
            if current is not None:
                current.clock.resume()

    def _places(self, stack: Stack) -> list[Whereabouts]:
        """Return where all processes are; the running one is at this stack."""
        return [self._place(process, stack) for process in self._world.processes]

    def _place(self, process: Process, stack: Stack) -> Whereabouts:
        if not process.greenlet and not process.greenlet.dead:
            return Whereabouts(process.pid, 0, "", "has not begun")
        if process.greenlet.dead:
            return Whereabouts(process.pid, process.superstep(), "", "has ended")
        if process is self._world.current:
            return from_stack(process.pid, process.superstep(), stack)
        waits = call_site.stack_of(process.greenlet.gr_frame)
        return from_stack(process.pid, process.superstep(), waits, waits=True)

    def raise_it(self) -> None:
        """Raise the error of an interrupted run, with the places of all processes."""
        if isinstance(self._error, KeyboardInterrupt):
            raise Interrupted(self._error, self._rows)
        if self._error is not None:
            raise TimeIsOver(self._rows)


# -- how a run on virtual processors is interrupted when it has taken too long --------------------


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
        """Interrupt no more, and wait for the thread: with it a next run could not be forked."""
        with self._lock:
            self._ended.set()
            if not self._by_signal:
                _raise_in(self._interrupted, None)
        self.thread.join()

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
