"""Processes as greenlets of one thread: before each shared access it is chosen who goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from .history import FIRST_AREA, History, owner_of, variable_of, word_of

Choose = Callable[["Scheduler", list[int]], int]
"""Chooses who goes on, given the processes that can; ``scheduler.pid`` has run last."""
_MOST_STEPS = 100_000
_RING_START = 80
"""Place in its block of the first element of the ring."""


class OrderError(Exception):
    """The processes wait for each other, or do not come to an end."""


class PrunedError(OrderError):
    """The rest of an order is that of another one."""


def usual(last: int, able: list[int]) -> int:
    """Return the process that has run last, if it can go on, or the next one, by pid."""
    return last if last in able else next((pid for pid in able if pid > last), able[0])


class Conflicts:
    """The words at which it matters who comes first: some process stores them, and one polls them.

    A process **polls** a word if it looks at it and goes on whatever it finds. To wait for a word
    is no poll: what the process finds at last is the same in all orders.

    Args:
        everywhere: take all words for such.
    """

    def __init__(self, *, everywhere: bool = True) -> None:
        self.everywhere = everywhere
        self.has_grown = False
        """More words were found than were known at the beginning of the search."""
        self._polled: set[int] = set()
        self._stored: set[int] = set()

    def is_at_poll(self, variable: int) -> bool:
        """Note a poll of a word; tell whether another process may store it."""
        self.has_grown |= variable not in self._polled
        self._polled.add(variable)
        return self.everywhere or variable in self._stored

    def is_at_store(self, variable: int) -> bool:
        """Note a store of a word; tell whether another process may poll it."""
        self.has_grown |= variable not in self._stored
        self._stored.add(variable)
        return self.everywhere or variable in self._polled


class Scheduler:
    """Lets processes run, one at a time.

    Args:
        choose: who goes on, where several processes can.
        nprocs: number of processes.
        conflicts: where another process may go on instead of one that could go on.
        whole: choose from the beginning; otherwise, after a process, when it has called
            :meth:`begin_to_choose`.
    """

    def __init__(
        self,
        choose: Choose,
        nprocs: int,
        conflicts: Conflicts | None = None,
        *,
        whole: bool = True,
    ) -> None:
        self._choose = choose
        self._conflicts = conflicts or Conflicts()
        self._whole = whole
        self._has_begun = [whole] * nprocs
        self._suspects = [False] * nprocs
        """By pid: it checks whether it waits in vain."""
        self._processes: list[greenlet] = []
        self._home = getcurrent()
        self._error: BaseException | None = None
        self.history = History(nprocs)
        self._looks: list[dict[int, int]] = [{} for _ in range(nprocs)]
        """By pid: the version of each word at which a process has looked since its wait began."""
        self._found: list[set[int]] = [set() for _ in range(nprocs)]
        """By pid: posts of others that it has found since its last store."""
        self._waits = [False] * nprocs
        """By pid: none of these words is as the process needs it."""
        self._is_looking = [False] * nprocs
        """By pid: it looks whether it has to wait. What it finds then stays so."""
        self._acts = [0] * nprocs
        """By pid: how often it has changed something for others, or for itself by what it read."""
        self._has_accessed = [False] * nprocs
        """By pid: it has looked at a shared word, or stored one, since the last point."""
        self.pid = 0
        """The process that runs."""
        self.steps = 0
        self._quiet = True
        """Nothing is scheduled now."""

    def run(self, mains: Sequence[Callable[[], Any]]) -> None:
        """Run processes to their end.

        Raises:
            Exception: one of them has failed, or they wait for each other.
        """
        self._processes = [greenlet(functools.partial(self._be, main)) for main in mains]
        self._quiet = False
        while self._error is None and not all(each.dead for each in self._processes):
            try:
                self.pid = self._next()
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
            self.history.fold(self.pid, "begins")
            main()
        except GreenletExit:
            pass
        except BaseException as error:  # noqa: BLE001  # of the program; the test reports it
            self._error = self._error or error

    def _able(self) -> list[int]:
        able = [
            pid
            for pid, process in enumerate(self._processes)
            if not process.dead and not (self._waits[pid] and self._finds_the_same(pid))
        ]
        if not able:
            raise OrderError("all processes wait, and none can go on")
        if self.steps > _MOST_STEPS:
            raise OrderError(f"the processes have not ended after {self.steps} steps")
        return able

    def _next(self) -> int:
        """Return who goes on now."""
        able = self._able()
        return self._choose(self, able) if self._has_begun[self.pid] else usual(self.pid, able)

    def _finds_the_same(self, pid: int) -> bool:
        versions = self.history.versions
        return all(versions.get(each, 0) == found for each, found in self._looks[pid].items())

    def state(self, able: list[int]) -> int:
        """Return a number for all that decides how the processes can go on from here.

        Args:
            able: the processes that can.
        """
        waits = [
            frozenset(self._looks[pid]) if waits else None for pid, waits in enumerate(self._waits)
        ]
        last = self.pid if self.pid in able else -1
        return hash((*self.history.hashes, last, *able, *waits))

    def begin_to_choose(self) -> None:
        """From here on another process may go on instead of this one, or where it waits."""
        self._has_begun[self.pid] = True

    # -- what processes call ------------------------------------------------------------------

    def look(self, number: int) -> None:
        """Come to a look at a word, by its number in the segment."""
        writer, role = word_of(number)
        if self._quiet or writer == self.pid:
            return
        pid, variable = self.pid, variable_of(number)
        if not self._is_looking[pid]:
            if self._conflicts.is_at_poll(variable) and (self._whole or not self._suspects[pid]):
                self._point()
            self.history.look(pid, variable)
        self._looks[pid].setdefault(variable, self.history.versions.get(variable, 0))
        self._acts[pid] += role >= _RING_START
        self._has_accessed[pid] = True

    def find(self, number: int) -> None:
        """Find a post of the meeting to which this process has come: it stays for all of it."""
        if not self._quiet and word_of(number).writer != self.pid:
            self._find(self.pid, variable_of(number))
            self._has_accessed[self.pid] = True

    def _find(self, pid: int, variable: int) -> None:
        """Depend on a word that was waited for, whether it was there at once or not."""
        if variable not in self._found[pid]:
            self._found[pid].add(variable)
            self.history.look(pid, variable)

    def change(self, *numbers: int) -> None:
        """Come to a store that changes words: what others do before it finds the old ones."""
        if self._quiet:
            return
        matters = [self._conflicts.is_at_store(variable_of(number)) for number in numbers]
        if any(matters):
            self._point()
        pid = self.pid
        self._has_accessed[pid] = True
        self._acts[pid] += 1
        self._found[pid].clear()
        for number in numbers:
            self.history.store(pid, number)

    def data(self, byte: int) -> None:
        """Come to memory of another process: it may be written after the last word was found."""
        if not self._quiet and self._is_foreign(byte) and self._has_accessed[self.pid]:
            self._has_accessed[self.pid] = False
            self._point()

    def _is_foreign(self, byte: int) -> bool:
        return byte >= 0 and owner_of(byte) != self.pid

    def read(self, byte: int, nbytes: int, found: Hashable) -> None:
        """Read memory at once, if it is of another process."""
        if not self._quiet and self._is_foreign(byte):
            self.history.read(self.pid, byte, nbytes)
            self.history.fold(self.pid, found)

    def hold(self, byte: int, nbytes: int, found: memoryview) -> None:
        """Begin to read memory of another process."""
        if not self._quiet:
            self.history.hold(self.pid, byte, nbytes)
            self.history.fold(self.pid, bytes(found))

    def keep(self, byte: int, nbytes: int, found: bytes) -> None:
        """Begin to read a payload of another process, as long as an array lives."""
        if not self._quiet:
            self.history.keep(self.pid, byte, nbytes)
            self.history.fold(self.pid, found)

    def return_kept(self, byte: int) -> None:
        """Note that the array of a payload has died, and that this was stored."""
        if not self._quiet:
            self.history.return_kept(self.pid, byte)

    def write(self, byte: int, nbytes: int) -> None:
        """Write memory; in the control words, nobody may read what was there before."""
        if not self._quiet and 0 <= byte < FIRST_AREA:
            self.history.give_back(self.pid, byte, nbytes)
        elif not self._quiet and self._is_foreign(byte):
            message = f"process {self.pid} writes at {byte:#x}, into memory of another one"
            raise OrderError(message)  # the states of a search would have to tell when

    def give_back(self, byte: int, nbytes: int) -> None:
        """Use memory of this process for something else."""
        if not self._quiet:
            self._acts[self.pid] += 1
            self.history.give_back(self.pid, byte, nbytes)

    def wait(self, ready: Callable[[], object], suspect: Callable[[], None]) -> None:
        """Return once something is ready; look again only after some word has changed."""
        pid, history = self.pid, self.history
        while not self._quiet:
            hashed, clock, acts = history.hashes[pid], history.clocks[pid].copy(), self._acts[pid]
            self._looks[pid] = {}
            if self._is_ready(ready):
                return
            self._suspects[pid] = True
            suspect()
            self._suspects[pid] = False
            if acts == self._acts[pid]:  # what it found in vain has no consequences
                history.hashes[pid], history.clocks[pid] = hashed, clock
                self._waits[pid] = True
                self._pass_on()
                self._waits[pid] = False
        raise GreenletExit

    def _is_ready(self, ready: Callable[[], object]) -> bool:
        pid = self.pid
        self._is_looking[pid] = True
        try:
            is_ready = bool(ready())
        finally:
            self._is_looking[pid] = False
        if is_ready:
            for variable in self._looks[pid]:
                self._find(pid, variable)
        return is_ready

    def _point(self) -> None:
        self.steps += 1
        if self._has_begun[self.pid]:
            self._pass_on()

    def _pass_on(self) -> None:
        try:
            pid = self._next()
        except OrderError as error:
            self._error = error
            self._home.switch()
            return
        if pid != self.pid:
            self.pid = pid
            self._processes[pid].switch()
