"""The interpreter with another order of the processes, in which hpputs take effect at once.

The contract leaves both open. A program in which either can be seen reads what another process
may write at the same time, and must not be drawn.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

from .interpreter import Group, Interpreter
from .steps import Put


class Early(Interpreter):
    """Executes hpputs at their call, and the processes in a random order.

    Args:
        nprocs: number of processes.
        seed: of the order.
    """

    def __init__(self, nprocs: int, seed: int) -> None:
        super().__init__(nprocs)
        self._random = random.Random(seed)

    def _block(self, group: Group, block: list[Any]) -> None:
        super()._block(group, self._in_another_order(group, block))

    def _in_another_order(self, group: Group, block: list[Any]) -> list[Any]:
        order = self._random.sample(range(group.size), group.size)
        found: list[Any] = []
        for is_alone, steps in itertools.groupby(block, lambda step: hasattr(step, "pid")):
            stretch = list(steps)
            if is_alone and all(step.pid is not None for step in stretch):
                stretch.sort(key=lambda step: order[step.pid])
            found += stretch
        return found

    def _put(self, group: Group, step: Put) -> None:
        before = len(group.puts[step.to])
        super()._put(group, step)
        for _, written in group.puts[step.to][before:] if step.hp else ():
            self._write(group, step.to, written)
