"""What one process of a run uses in all its groups: memory, fences, waiting."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from bsplib.backends.base import LeftGroup
from bsplib.backends.shm.control import BLOCKS, OS_PID, WORD
from bsplib.backends.shm.heap import Heap
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.waiting import Fences, Waiting


class ProcessContext:
    """A process of the run: memory, fences, and waiting for others.

    Args:
        segment: the memory that the run shares.
        pid: the process.
        wait_by: how the process waits; see :class:`Waiting`, as for the next one.
        has_core: each process has a core of its own.
    """

    def __init__(
        self,
        segment: Segment,
        pid: int,
        wait_by: str = "auto",
        has_core: bool | None = None,
    ) -> None:
        self.segment = segment
        self.pid = pid
        self.nprocs = segment.nprocs
        self.control = segment.control
        self.heap = Heap(segment, segment.area(pid))
        self.fences = Fences()
        self._starts = [segment.control_start(other) // WORD for other in range(self.nprocs)]
        self.waiting = Waiting(
            self.control, pid, self._starts, segment.futexes(), self.fences, wait_by, has_core
        )
        self.left_over: list[LeftGroup] = []
        """Groups that this process has left, in which others may still be."""
        self.runs = 0
        """Number of tasks that have ended in this process."""

    def begin(self) -> None:
        """Begin to use it, in its process: others may fence this process from now on."""
        self.fences.register()
        self.control[self._starts[self.pid] + OS_PID] = os.getpid()

    def begin_anew(self) -> None:
        """Release all memory of a task that has ended in every process."""
        self.runs += 1
        self.heap.clear()
        if self.left_over:
            # Their posts came too late to give the blocks back, and no process needs them now.
            first = self._starts[self.pid] + 1  # that of the root group may be used again
            for label in range(first, first + BLOCKS - 1):
                self.control[label] = 0
            self.left_over.clear()

    def reclaim_left_groups(self) -> None:
        """Release the groups that every process has left."""
        self.left_over[:] = [group for group in self.left_over if not group.try_to_release()]

    def wait(
        self,
        ready: Callable[[], object],
        whom: Sequence[int],
        suspect: Callable[[], None],
    ) -> None:
        """Wait as :meth:`Waiting.wait` does, and look at groups that this process has left.

        This process may have left a group before the others had posted there. They cannot use
        the blocks of that group again before it has looked at their posts: without the look,
        it and they could wait for each other.
        """

        def look() -> None:
            if self.left_over:
                self.reclaim_left_groups()
            suspect()

        self.waiting.wait(ready, whom, look)

    def has_block(self) -> bool:
        """Tell whether this process can enter another group."""
        start = self._starts[self.pid]
        return 0 in self.control[start : start + BLOCKS].tolist()

    def start_of(self, pid: int) -> int:
        """Return the index of the first control word of a process."""
        return self._starts[pid]

    def port_class(self, kind: type[Any]) -> type[Any]:
        """Return the class of the ports of this process, which is of this kind."""
        return kind


def context_class() -> type[ProcessContext]:
    """Return the class of the processes of a run; the environment may name a module for tests."""
    module = os.environ.get("BSP_POISON")
    if not module:
        return ProcessContext
    found: type[ProcessContext] = importlib.import_module(module).PoisonedContext
    return found
