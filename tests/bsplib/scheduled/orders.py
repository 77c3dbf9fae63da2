"""Orders in which processes can run: all with few pre-emptions, and random ones.

Two things make the first kind few enough. Both are of Musuvathi and Qadeer 2007, "Iterative context
bounding for systematic testing of multithreaded programs".

**States.** An order ends where it comes to a state to which another one has come, with as many
pre-emptions at most. A state (:meth:`Scheduler.state`) has all on which the rest depends: for each
process a hash of its history (:mod:`scheduled.history`), which determines its variables and what it
has written; who runs, if it can go on; who can; at which words those that wait have looked. A look
in vain, after which a process waits, leaves no trace there unless it has changed something.

**Points.** A pre-emption is tried only before a store of a word that some process polls, before a
poll of a word that some process stores (:class:`Conflicts`), and before a copy from an array of
another process. For a *satisfied wait* this loses nothing: it commutes with all that others do.
Reads of other memory need no points as long as no order has a race: :class:`History` reports as an
error whenever memory is used anew and nothing orders that after each read of it. But a store that
others only wait for may end a wait: an order in which a process is held back before such a store,
while a second one waits for it and a third one goes on, may need one pre-emption more. With
``Conflicts(everywhere=True)`` each store and each poll is a point, as random orders have it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Protocol

from .scheduler import PrunedError, usual


class Point(Protocol):
    """Where it is chosen who goes on."""

    pid: int
    """The process that has run last."""

    def state(self, able: list[int]) -> int:
        """Return a number for all that decides how the processes can go on."""


class Order:
    """The process that has run last goes on while it can, and then the next one, by pid.

    Args:
        search: to which the order belongs.
        begin: who goes on at the first choices instead.
        preemptions: how many of these choices are pre-emptions.
    """

    def __init__(self, search: Search, begin: bytes, preemptions: int) -> None:
        self._search = search
        self.begin = begin
        self._preemptions = preemptions
        self.path = bytearray()

    def __call__(self, point: Point, able: list[int]) -> int:
        """Choose who goes on."""
        if len(able) == 1:
            return able[0]
        if len(self.path) < len(self.begin):
            pid = self.begin[len(self.path)]
        else:
            last = point.pid
            pid = usual(last, able)
            self._search.come_to(point.state(able))
            others = [other for other in able if other != pid]
            self._search.add(self.path, others, self._preemptions + (last in able))
        self.path.append(pid)
        return pid


class Search:
    """All orders with a limited number of pre-emptions.

    A pre-emption lets another process go on where one could go on by itself. Where a process waits
    or ends, any other one may go on.

    Args:
        most: pre-emptions of an order.
    """

    def __init__(self, most: int) -> None:
        self._to_do: list[list[bytes]] = [[] for _ in range(most + 1)]
        self._to_do[0].append(b"")
        self._states: set[int] = set()

    def orders(self) -> Iterator[Order]:
        """Yield orders, each to be run before the next is asked for."""
        for preemptions, to_do in enumerate(self._to_do):
            while to_do:
                yield Order(self, to_do.pop(), preemptions)

    def complete(self) -> int:
        """Return how many pre-emptions at most the orders have that were all run; -1 for none.

        It is called between two orders; the last one may have been the last of its number.
        """
        left = (number for number, to_do in enumerate(self._to_do) if to_do)
        return next(left, len(self._to_do)) - 1

    def come_to(self, state: int) -> None:
        """Note a state, or end the order where another one has come to it before.

        That one had made as many pre-emptions at most, since orders with fewer come first.
        """
        if state in self._states:
            raise PrunedError
        self._states.add(state)

    def add(self, path: bytearray, others: list[int], preemptions: int) -> None:
        """Note orders that are like this one so far, in which another process goes on then."""
        if preemptions < len(self._to_do):
            self._to_do[preemptions] += [bytes([*path, other]) for other in others]


class ByPriority:
    """The process with the highest priority goes on; some points give it the lowest one.

    Source: Burckhardt et al. 2010, "A randomized scheduler with probabilistic guarantees of
    finding bugs".

    Args:
        seed: of the priorities and the points.
        nprocs: number of processes.
        steps: about how many choices there are.
        changes: number of points at which a process loses its priority.
    """

    def __init__(self, seed: int, nprocs: int, steps: int, changes: int = 3) -> None:
        numbers = random.Random(seed)
        self._priorities = [float(each) for each in numbers.sample(range(nprocs), nprocs)]
        self._changes = {numbers.randrange(steps) for _ in range(changes)}
        self.choices = 0

    def __call__(self, point: Point, able: list[int]) -> int:
        """Choose who goes on."""
        if len(able) == 1:
            return able[0]
        if self.choices in self._changes:
            self._priorities[point.pid] = -1.0 - self.choices
        self.choices += 1
        return max(able, key=self._priorities.__getitem__)
