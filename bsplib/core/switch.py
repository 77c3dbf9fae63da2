"""The order in which virtual processors run, and the switch from one to the next.

Each virtual processor is a greenlet that runs until it has to wait. Those that can continue
run in rounds, and a seed determines a permutation for every round: a program must not depend
on the order, and the same seed gives the same order again.

The module runs interpreted, or compiled with ``switch.pxd``, where the switch is a call of
greenlet's C functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

if not cython.compiled:
    from greenlet import getcurrent

    def switch_to(target: Any) -> Any:
        """Let a greenlet run; return when another one switches back to the caller's."""
        return target.switch()

    def is_running(target: Any) -> bool:
        """Tell whether a greenlet is the current one."""
        return getcurrent() is target

    def has_begun(target: Any) -> bool:
        """Tell whether a greenlet has begun, and has not ended."""
        return bool(target)

    def prepare_switch() -> None:
        """Do what a compiled module needs before it switches."""


prepare_switch()


class Process:
    """One virtual processor, as far as the switch has to know it."""

    def __init__(self, greenlet: Any) -> None:
        self.greenlet = greenlet
        self.doing = "not started"
        """What it does or waits for, as text for errors."""
        self.left: list[Any] = []
        """Groups that it has left before all other processes had posted there."""

    def is_current(self) -> bool:
        """Tell whether this virtual processor is the one that runs."""
        return is_running(self.greenlet)


class Rounds:
    """Decides which virtual processor runs next.

    Args:
        random: a numpy Generator for the permutations.
        hub: the greenlet that starts virtual processors: its stack is empty.
    """

    def __init__(self, random: Any, hub: Any) -> None:
        self._random = random
        self._hub = hub
        self._round: list[Process] = []  # the next one is the last
        self._next_round: list[Process] = []
        self.current: Any = None
        """The virtual processor that runs; None before the first one does."""
        self.is_over = False
        """A process has failed, so that the others run only up to their next sync."""

    def wait(self, process: Process, doing: str) -> None:
        """Let others run until one of them wakes this process."""
        process.doing = doing
        if not self._round and self._next_round:
            self._begin_round()
        if self._round:
            following = self._round.pop()
            if has_begun(following.greenlet):
                self.current = following
                switch_to(following.greenlet)  # without a detour through the hub
                return
            self._round.append(following)
        switch_to(self._hub)  # a greenlet has to be started by the hub

    def wake(self, processes: Sequence[Process]) -> None:
        """Let waiting processes run again, in the next round."""
        self._next_round += processes

    def run(self) -> None:
        """Run until no virtual processor can continue; only the hub calls this."""
        while self._round or self._next_round:
            if not self._round:
                self._begin_round()
            self.current = self._round.pop()
            switch_to(self.current.greenlet)

    def clear(self) -> None:
        """Let no waiting process continue."""
        self._round.clear()
        self._next_round.clear()

    def _begin_round(self) -> None:
        waiting = self._next_round
        self._next_round = []
        order = self._random.permutation(len(waiting)).tolist()
        self._round = [waiting[index] for index in order]
