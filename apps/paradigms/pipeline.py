"""A stream of items that passes through stages, each on processes of its own.

Stage s does item k in superstep s + k, so that all stages work at once, on different items. No
process waits at a barrier: a superstep ends, by oblsync, when the item of the stage before is
there. A fast stage runs ahead of a slow one, and its items wait in a queue. So that the queue has
no more than ``capacity`` items, the slow stage sends a message back in every superstep that is a
multiple of the capacity, and the fast one waits for it.

Before its first item and after its last one a stage makes empty supersteps, so that all processes
make as many; none of them waits for anything.

Source: Gonzalez et al., section 1, who name pipelines as what partitions and oblivious
synchronisation are for, and print none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import bsplib
from bsplib.apps.paradigms.errors import do

Stage = Callable[[bsplib.Group, Any], Any]
"""Is called with the group of the stage's processes, and an item; returns the item for the next
stage, on its process 0 at least."""


class _StageItem(NamedTuple):
    """What a stage sends to the next one."""

    value: Any
    is_end: bool = False


_END = _StageItem(None, is_end=True)


def pipeline(
    bsp: bsplib.Group,
    stages: Sequence[Stage],
    items: Iterable[Any] | None = None,
    *,
    widths: Sequence[int] | None = None,
    capacity: int = 4,
) -> list[Any] | None:
    """Pass items through stages; process 0 has what comes out of the last one, in order.

    Args:
        bsp: the group; all its processes call this.
        stages: the same on all processes; each is called with the group of its processes, which
            it may use as any other, and an item. Its process 0 returns what the next stage gets.
        items: on process 0, anything that can be sent; they are taken as they are needed, so that
            they may come from a generator. What other processes give is not used.
        widths: number of processes of each stage; default: as equal as can be. With fewer
            processes than stages, neighbouring stages share a process.
        capacity: how many items may wait between two stages.

    Returns:
        On process 0 the items that came out, None on the others.

    Raises:
        TaskError: a stage failed; the text has its number and that of the item.
        TypeError: process 0 gives no items.
        ValueError: there is no stage, the widths do not make up the processes, or the capacity
            is no positive number.

    Cost: n + s supersteps for n items and s stages that have processes of their own, all of which
    end with oblsync, and one more for the results; h is an item in and one out.
    Source: Gonzalez et al., section 1.
    """
    place = _place(bsp, stages, widths, capacity)
    if bsp.pid == 0 and items is None:
        raise TypeError("pipeline: process 0 gives the items, and gave None")
    source = iter(() if items is None or bsp.pid else items)
    out = _Line(bsp, place, stages, capacity).run(source)
    return _to_first(bsp, place, out)


@dataclass(frozen=True)
class _LinePosition:
    """Where a process is in the line."""

    ends: list[int]
    """As for ``partition``: one group of processes for each link of the line."""
    own: range
    """Numbers of the stages of this process."""
    index: int
    """Index of the group of this process."""

    @property
    def length(self) -> int:
        return len(self.ends)

    def members(self, index: int) -> range:
        """Return the pids of a group."""
        return range(self.ends[index - 1] if index else 0, self.ends[index])


def _place(
    bsp: bsplib.Group, stages: Sequence[Stage], widths: Sequence[int] | None, capacity: int
) -> _LinePosition:
    if not stages:
        raise ValueError("pipeline: there is no stage")
    if capacity < 1:
        raise ValueError(f"pipeline: the capacity is {capacity}; it is 1 or more")
    if widths is None:
        length = min(len(stages), bsp.nprocs)
        ends = [(index + 1) * bsp.nprocs // length for index in range(length)]
    else:
        if len(widths) != len(stages) or min(widths) < 1 or sum(widths) != bsp.nprocs:
            raise ValueError(
                f"pipeline: widths {list(widths)} do not give {bsp.nprocs} processes to "
                f"{len(stages)} stages, one or more to each"
            )
        ends = list(accumulate(widths))
    index = bisect_right(ends, bsp.pid)
    first, last = (at * len(stages) // len(ends) for at in (index, index + 1))
    return _LinePosition(ends, range(first, last), index)


class _Line:
    """A process in the line, from the first superstep to the last."""

    def __init__(
        self, bsp: bsplib.Group, place: _LinePosition, stages: Sequence[Stage], capacity: int
    ) -> None:
        self._bsp, self._place, self._capacity = bsp, place, capacity
        self._stages = [(number, stages[number]) for number in place.own]
        self._is_first = place.index == 0
        self._is_last = place.index == place.length - 1
        self._leads = bsp.pid == place.members(place.index)[0]

    def run(self, source: Iterator[Any]) -> list[Any]:
        """Do all items; return what comes out of the last stage, if this is it."""
        out, index = [], self._place.index
        for step in range(index):
            self._answer(step)
            self._bsp.oblsync(int(step == index - 1))
        step, item = index, self._next(source)
        while not item.is_end:
            self._answer(step)
            value = self._do(step - index, item.value)
            if self._is_last:
                out.append(value)
            self._pass(_StageItem(value))
            self._bsp.oblsync(int(not self._is_first) + self._waits(step))
            step, item = step + 1, self._next(source)
        self._pass(_END)
        self._bsp.oblsync(self._waits(step))
        for _ in range(index + 1, self._place.length):
            self._bsp.oblsync(0)
        return out

    def _next(self, source: Iterator[Any]) -> _StageItem:
        """Return the item that is there: from the source, or of the stage before."""
        if self._is_first:
            return self._shared(next(map(_StageItem, source), _END) if self._leads else None)
        (found,) = (item for _, _, item in self._bsp.messages() if item is not None)
        return found

    def _shared(self, item: _StageItem | None) -> _StageItem:
        """Return an item of process 0 on all processes of the first stage."""
        if len(self._place.members(0)) == 1:
            assert item is not None
            return item
        with self._bsp.partition(self._place.ends) as group:
            shared: _StageItem = group.broadcast(item)
            return shared

    def _do(self, number: int, value: Any) -> Any:
        """Do the stages of this process; a partition costs nothing."""
        with self._bsp.partition(self._place.ends) as group:
            for stage, work in self._stages:
                what = f"stage {stage}, {getattr(work, '__name__', 'a function')}, of item {number}"
                value = do(work, group, value, what=what)
        return value

    def _pass(self, item: _StageItem) -> None:
        if self._leads and not self._is_last:
            for pid in self._place.members(self._place.index + 1):
                self._bsp.send(pid, item)

    def _answer(self, step: int) -> None:
        """Tell the stage before that it may go on, in every superstep in which it waits for it."""
        is_time = step >= self._place.index - 1 and step % self._capacity == 0
        if is_time and self._leads and not self._is_first:
            self._bsp.send(self._place.members(self._place.index - 1)[0], None)

    def _waits(self, step: int) -> int:
        """Return how many answers come in a superstep, 0 or 1."""
        return int(step % self._capacity == 0 and self._leads and not self._is_last)


def _to_first(bsp: bsplib.Group, place: _LinePosition, out: list[Any]) -> list[Any] | None:
    """Return on process 0 what the last stage has."""
    leader = place.members(place.length - 1)[0]
    if leader == 0:
        return out if bsp.pid == 0 else None
    if bsp.pid == leader:
        bsp.send(0, out)
    bsp.oblsync(int(bsp.pid == 0))
    return next(bsp.messages())[2] if bsp.pid == 0 else None
