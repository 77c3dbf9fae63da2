"""The virtual processors of a run: how they begin, wait for each other, and end."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import greenlet
import numpy as np

from bsplib.backends.base import LeftGroup, Stopped
from bsplib.backends.launching import Prices
from bsplib.backends.members import named
from bsplib.core import switch
from bsplib.core.clock import Clock
from bsplib.errors import SyncMismatchError


class Process(switch.Process):
    """One virtual processor."""

    def __init__(
        self, pid: int, clock: Clock, body: Callable[[Process], None], hub: greenlet.greenlet
    ) -> None:
        super().__init__(greenlet.greenlet(lambda: body(self), hub))
        self.pid = pid
        self.clock = clock
        self.superstep: Callable[[], int] = int
        """Returns its superstep in the root group; 0 before it has opened a port."""
        self.ended_ns = 0
        """When the last process came to the end of main: the meeting there has no price."""
        self.left: list[LeftGroup]


class World:
    """All virtual processors of a run.

    Args:
        prices: prices of communication.
        seed: seed of the order in which they run.
        scale: virtual seconds for each second of CPU time of this computer.
    """

    def __init__(self, prices: Prices, seed: int, scale: float) -> None:
        self.prices = prices
        self._scale = scale
        self.groups: dict[tuple[int, ...], Any] = {}
        """What the processes of each group share, by the partitions that led to it."""
        self._hub = greenlet.getcurrent()
        self.rounds = switch.Rounds(np.random.default_rng(seed), self._hub)
        """The order in which they run."""
        self.processes: list[Process] = []
        """By pid."""
        self._turns: list[tuple[int, int, Process]] = []
        """Processes that wait until no other one is earlier: a heap by their times and pids."""

    @property
    def current(self) -> Process | None:
        """The virtual processor that runs; None before the first one does."""
        process: Process | None = self.rounds.current
        return process

    @property
    def failed(self) -> bool:
        """Whether a process has failed, so that the others run only up to their next sync."""
        return self.rounds.is_over

    def fail(self) -> None:
        """Let the others run only up to their next sync."""
        self.rounds.is_over = True

    def add(self, body: Callable[[Process], None]) -> None:
        """Add a virtual processor that runs ``body``."""
        process = Process(len(self.processes), Clock(self._scale), body, self._hub)
        self.processes.append(process)
        self.rounds.wake([process])

    def run(self) -> None:
        """Run until all have ended; processes that wait for each other get an error."""
        self._run_in_turn()
        while self._unwind():
            self._run_in_turn()

    def stop(self) -> None:
        """End the run: processes run again only to unwind."""
        self.fail()
        self.rounds.clear()

    def wait_for_turn(self, process: Process) -> None:
        """Let the current process wait until all others wait, too, or have ended.

        Of several that wait for this, the earliest one continues.
        """
        heapq.heappush(self._turns, (process.clock.now(), process.pid, process))
        self.rounds.wait(process, "waits for its turn")

    def _run_in_turn(self) -> None:
        self.rounds.run()
        while self._turns and not self.failed:
            self.rounds.wake([heapq.heappop(self._turns)[-1]])
            self.rounds.run()

    def _unwind(self) -> bool:
        """End a waiting process when none can continue; return whether there was one."""
        waiting = [process for process in self.processes if not process.greenlet.dead]
        if not waiting:
            return False
        first = self.rounds.current = waiting[0]
        if not first.greenlet:
            first.greenlet.throw()  # it has not begun, and must not begin any more
        elif self.failed:
            first.greenlet.throw(Stopped)
        else:
            first.greenlet.throw(SyncMismatchError(self._whereabouts()))
        return True

    def _whereabouts(self) -> str:
        """Return text for errors: which processes wait where, and which have ended."""
        places: dict[str, list[int]] = {}
        for process in self.processes:
            where = "returned from main" if process.greenlet.dead else process.doing
            places.setdefault(where, []).append(process.pid)
        parts = [f"{named(pids)} {where}" for where, pids in places.items()]
        return f"the processes wait for each other: {', '.join(parts)}"
