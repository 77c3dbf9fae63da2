"""A run on virtual processors: its start, and its end by a timeout or by Ctrl-C."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bsplib import call_site
from bsplib.backends.blas import one_thread_in_main
from bsplib.backends.launching import (
    Ended,
    Interrupted,
    NothingKept,
    Options,
    Report,
    TimeIsOver,
    Times,
    Work,
)
from bsplib.backends.members import Stack, Whereabouts, from_stack
from bsplib.backends.signals import quit_answered_at_once
from bsplib.backends.sim.port import Process, SimPort, World


def launch(work: Work, options: Options) -> Report:
    """Do some work on virtual processors; see :attr:`Backend.launch`."""
    assert options.prices is not None  # given to every backend whose time is virtual
    world = World(options.prices, options.seed, options.scale)
    inside = work.inside()
    outcomes: dict[int, Ended] = {}
    interruption = Interruption(world)

    def body(process: Process) -> None:
        def open_port() -> SimPort:
            port = SimPort(world, process, process.pid, range(options.nprocs))
            process.superstep = port.superstep
            return port

        try:
            outcome = inside.run(process.pid, open_port)
        except BaseException as error:  # noqa: BLE001  # the caller of run raises it
            interruption.note(error)
            outcome = inside.describe(error, process.pid)
        outcomes[process.pid] = outcome
        if outcome.failed:
            world.rounds.is_over = True  # the others run only up to their next sync

    for _ in range(options.nprocs):
        world.add(body)
    lines = inside.whole_lines(lambda: world.current.pid if world.current else None)
    answers = quit_answered_at_once(interruption.now)
    with one_thread_in_main(), _collector_uncounted(world), lines, alarm(options.timeout), answers:
        interruption.run_to_the_end()
    interruption.raise_it()
    return Report(outcomes, _times(world))


def keep(options: Options) -> NothingKept:
    """Make virtual processors for several runs, each in microseconds; see :attr:`Backend.keep`."""
    return NothingKept(lambda work, timeout: launch(work, options._replace(timeout=timeout)))


@contextmanager
def _collector_uncounted(world: World) -> Iterator[None]:
    """Stop the clock of a process during garbage collection, which serves all processes."""

    def collect(phase: str, _: dict[str, int]) -> None:
        if world.current is not None:
            clock = world.current.clock
            (clock.pause if phase == "start" else clock.resume)()

    gc.callbacks.append(collect)
    try:
        yield
    finally:
        gc.callbacks.remove(collect)


def _times(world: World) -> Times:
    return Times(
        max(process.ended_ns for process in world.processes) * 1e-9,
        sum(process.clock.computed_ns() for process in world.processes) * 1e-9,
    )


# -- the end of a run on virtual processors by its timeout or by Ctrl-C ---------------------------


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
            stack = _without_handler(call_site.stack_of_error(error.__traceback__))
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
if hasattr(signal, "SIGRTMAX"):
    _SIGNAL = signal.SIGRTMAX - 7
else:  # on macOS; on Windows none is sent
    _SIGNAL = getattr(signal, "SIGUSR2", signal.SIGINT)


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
    interrupter, has_ended = _Interrupter(_SIGNAL, Overtime), threading.Event()

    def watch() -> None:
        timeout = seconds
        while not has_ended.wait(timeout):
            interrupter.fire()
            timeout = _AGAIN_S

    thread = threading.Thread(target=watch, name="bsp-alarm", daemon=True)

    def end() -> None:
        interrupter.end()
        has_ended.set()
        thread.join()  # with another thread a next run could not be forked

    try:
        with interrupter.handling():
            thread.start()
            try:
                yield
            finally:
                end()
    except Overtime:  # raised between the end of the block and end()
        end()
        raise


class _Interrupter:
    """Raises an error in the thread that made it, whatever it computes.

    In the main thread a signal does, which also ends calls of the system that wait. In another one
    the interpreter raises the error before its next instruction.

    Args:
        number: of a signal that nothing else uses.
        error: class of the error.
    """

    def __init__(self, number: int, error: type[BaseException]) -> None:
        self._number = number
        self._error = error
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
            else:
                self._let_raise(self._error)

    def _let_raise(self, error: type[BaseException] | None) -> None:
        """Let the thread raise an error before its next instruction; None cancels that."""
        raised = None if error is None else ctypes.py_object(error)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), raised)

    def _handle(self, *_: object) -> None:
        if self._handles:
            raise self._error


def _without_handler(stack: Stack) -> Stack:
    """Return the stack of an error without the handler of the signal, its innermost frame."""
    return stack[1:] if stack and stack[0][0] == __file__ else stack
