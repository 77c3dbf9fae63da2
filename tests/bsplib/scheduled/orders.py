"""Orders in which processes can run: all with few deviations from taking turns, and random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

Run = Callable[["TakingTurns"], object]


class TakingTurns:
    """The process that has run last goes on while it can, and then the next one, by pid.

    Args:
        deviations: who goes on instead, by the number of the choice.
    """

    def __init__(self, deviations: Mapping[int, int]) -> None:
        self.deviations = deviations
        self.choices: list[tuple[int, list[int]]] = []
        """Who went on, and who could have, where several could."""

    def __call__(self, last: int, able: list[int]) -> int:
        """Choose who goes on."""
        if len(able) == 1:
            return able[0]
        usual = last if last in able else next((pid for pid in able if pid > last), able[0])
        pid = self.deviations.get(len(self.choices), usual)
        self.choices.append((pid, able))
        return pid


def all_orders(most: int) -> Iterator[TakingTurns]:
    """Yield every order with so many deviations at most, to be run before the next is asked for.

    A deviation is a pre-emption, or another choice where a process waits or ends.
    """
    to_do: list[dict[int, int]] = [{}]
    while to_do:
        deviations = to_do.pop()
        order = TakingTurns(deviations)
        yield order
        if len(deviations) < most:
            first = max(deviations, default=-1) + 1
            to_do += [
                {**deviations, number: other}
                for number in range(first, len(order.choices))
                for other in order.choices[number][1]
                if other != order.choices[number][0]
            ]


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

    def __call__(self, last: int, able: list[int]) -> int:
        """Choose who goes on."""
        if len(able) == 1:
            return able[0]
        if self.choices in self._changes:
            self._priorities[last] = -1.0 - self.choices
        self.choices += 1
        return max(able, key=self._priorities.__getitem__)
