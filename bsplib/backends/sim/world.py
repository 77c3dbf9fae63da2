"""The virtual processors of a run, and the order in which they run.

Each is a greenlet that runs until it has to wait. Those that can continue run in rounds,
and a seed determines a permutation for every round: a program must not depend on the
order, and the same seed gives the same order again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import greenlet
import numpy as np

from bsplib.backends.base import LeftGroup, Stopped
from bsplib.backends.launching import Prices
from bsplib.backends.members import named
from bsplib.backends.sim.clock import Clock
from bsplib.errors import SyncMismatchError


class Process:
    """One virtual processor."""

    def __init__(
        self, pid: int, clock: Clock, body: Callable[[Process], None], hub: greenlet.greenlet
    ) -> None:
        self.pid = pid
        self.clock = clock
        self.doing = "not started"
        """What it does or waits for, as text for errors."""
        self.superstep: Callable[[], int] = int
        """Returns its superstep in the root group; 0 before it has opened a port."""
        self.left: list[LeftGroup] = []
        """Groups that it has left before all other processes had posted there."""
        self.greenlet = greenlet.greenlet(lambda: body(self), hub)


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
        self.gatherings: dict[tuple[int, ...], Any] = {}
        self.current: Process | None = None
        """The virtual processor that runs; None before the first one does."""
        self.failed = False
        """A process has failed, so that the others run only up to their next sync."""
        self._random = np.random.default_rng(seed)
        self._hub = greenlet.getcurrent()
        self.processes: list[Process] = []
        """By pid."""
        self._round: list[Process] = []
        self._next_round: list[Process] = []

    def add(self, body: Callable[[Process], None]) -> None:
        """Add a virtual processor that runs ``body``."""
        process = Process(len(self.processes), Clock(self._scale), body, self._hub)
        self.processes.append(process)
        self._next_round.append(process)

    def run(self) -> None:
        """Run until all have ended; processes that wait for each other get an error."""
        while (process := self._pick()) is not None or self._unwind():
            if process is not None:
                self._resume(process)

    def wait(self, process: Process, doing: str) -> None:
        """Let others run until one of them wakes this process."""
        process.doing = doing
        following = self._round[-1] if self._round else None
        if following is not None and following.greenlet:
            self.current = self._round.pop()
            following.greenlet.switch()  # without a detour through the hub
        else:
            self._hub.switch()  # a greenlet has to be started by the hub, whose stack is empty

    def wake(self, processes: list[Process]) -> None:
        """Let waiting processes run again, in the next round."""
        self._next_round += processes

    def stop(self) -> None:
        """End the run: processes run again only to unwind."""
        self.failed = True
        self._round.clear()
        self._next_round.clear()

    def _pick(self) -> Process | None:
        if not self._round:
            waiting, self._next_round = self._next_round, []
            order = self._random.permutation(len(waiting)).tolist()
            self._round = [waiting[index] for index in order]
        return self._round.pop() if self._round else None

    def _resume(self, process: Process) -> None:
        self.current = process
        process.greenlet.switch()

    def _unwind(self) -> bool:
        """End a waiting process when none can continue; return whether there was one."""
        waiting = [process for process in self.processes if not process.greenlet.dead]
        if not waiting:
            return False
        first = self.current = waiting[0]
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
