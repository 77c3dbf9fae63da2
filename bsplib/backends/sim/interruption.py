"""The end of a run on virtual processors by its timeout or by Ctrl-C."""

from __future__ import annotations

from types import FrameType

from bsplib import call_site
from bsplib.backends.launching import Interrupted, TimeIsOver
from bsplib.backends.sim.alarm import Overtime, without_alarm
from bsplib.backends.sim.world import Process, World
from bsplib.backends.whereabouts import Stack, Whereabouts, from_stack


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
