"""Processes as greenlets of one thread: before each shared access it is chosen who goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

Choose = Callable[[int, list[int]], int]
"""Chooses who goes on, given the process that has run last and those that can."""
_MOST_STEPS = 100_000


class OrderError(Exception):
    """The processes wait for each other, or do not come to an end."""


class Scheduler:
    """Lets processes run, one at a time.

    Args:
        choose: who goes on, where several processes can.
    """

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._processes: list[greenlet] = []
        self._home = getcurrent()
        self._error: BaseException | None = None
        self._seen: list[int | None] = []
        """By pid: how many changes a process had seen when it began to wait; None if it runs."""
        self._has_accessed: list[bool] = []
        """By pid: it has looked at a shared word, or stored one, since the last point."""
        self.pid = 0
        """The process that runs."""
        self.steps = 0
        self.changes = 0
        """How often a shared word was changed."""
        self._quiet = True
        """Nothing is scheduled now."""

    def run(self, mains: Sequence[Callable[[], Any]]) -> None:
        """Run processes to their end.

        Raises:
            Exception: one of them has failed, or they wait for each other.
        """
        self._processes = [greenlet(functools.partial(self._be, main)) for main in mains]
        self._seen = [None] * len(mains)
        self._has_accessed = [False] * len(mains)
        self._quiet = False
        while self._error is None and not all(each.dead for each in self._processes):
            try:
                able = self._able()
                self.pid = self._choose(self.pid, able)
                self._processes[self.pid].switch()
            except OrderError as error:
                self._error = error
        self._quiet = True
        for each in self._processes:
            each.throw(GreenletExit)
        if self._error is not None:
            raise self._error

    def _be(self, main: Callable[[], Any]) -> None:
        try:
            main()
        except GreenletExit:
            pass
        except BaseException as error:  # noqa: BLE001  # of the program; the test reports it
            self._error = self._error or error

    def _able(self) -> list[int]:
        able = [
            pid
            for pid, process in enumerate(self._processes)
            if not process.dead and self._seen[pid] != self.changes
        ]
        if not able:
            raise OrderError("all processes wait, and none can go on")
        if self.steps > _MOST_STEPS:
            raise OrderError(f"the processes have not ended after {self.steps} steps")
        return able

    # -- what processes call ------------------------------------------------------------------

    def look(self, writer: int) -> None:
        """Come to a look at a word.

        Only its writer can change what is found: to let another process go on here is the same
        as to do so at the next point.
        """
        if not self._quiet and writer != self.pid:
            self._point([writer])
            self._has_accessed[self.pid] = True

    def change(self) -> None:
        """Come to a store that changes a word: what others do before it finds the old one."""
        if self._quiet:
            return
        self._point()
        self._has_accessed[self.pid] = True
        self.changes += 1

    def data(self) -> None:
        """Come to memory that words announce: another process may go on after the last word."""
        if not self._quiet and self._has_accessed[self.pid]:
            self._has_accessed[self.pid] = False
            self._point()

    def wait(self, ready: Callable[[], object], suspect: Callable[[], None]) -> None:
        """Return once something is ready; look again only after some word has changed."""
        while not self._quiet:
            seen = self.changes
            if ready():
                return
            suspect()
            self._seen[self.pid] = seen
            self._pass_on()
            self._seen[self.pid] = None
        raise GreenletExit

    def _point(self, others: Sequence[int] | None = None) -> None:
        self.steps += 1
        self._pass_on(others)

    def _pass_on(self, others: Sequence[int] | None = None) -> None:
        try:
            able = self._able()
            if others is not None:
                able = [pid for pid in able if pid == self.pid or pid in others]
            pid = self._choose(self.pid, able)
        except OrderError as error:
            self._error = error
            self._home.switch()
            return
        if pid != self.pid:
            self.pid = pid
            self._processes[pid].switch()
