"""A run of the backend shm whose processes are greenlets: port, groups and core are the real ones.

Replaced are: words that processes share (each access is a point of the scheduler), waiting (a
process waits until some word has changed), and the heap and outboxes (what they give back is
filled with a pattern). It needs the interpreted core, whose functions can be replaced.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

from bsplib.backends.shm.child import KeptPort
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import CONTROL_BYTES, PAGE, WORD
from bsplib.backends.shm.doorbell import doorbells
from bsplib.backends.shm.heap import Heap
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.waiting import Waiting
from bsplib.core import BUILD, atomics, box, core, waiting
from bsplib.running.seeds import Seeds
from bsplib.running.task import Conditions, Task, run_task

from .scheduler import Choose, Scheduler

PATTERN = 0xDB
"""Each byte of memory that is not in use."""
NPROCS = 3
_LARGE = 1 << 13
"""In place of 256 KiB: from so many bytes on, processes wait for memory that is in use."""
_STEP_NS = 500
"""Time that passes between two looks at the clock."""

assert BUILD == "python", "set BSPLIB_CORE=python"


def writer_of(byte: int) -> int:
    """Return the process that writes a control word, or -1."""
    return (byte - PAGE) // CONTROL_BYTES


class Words:
    """The control words; each access is a point of the scheduler."""

    def __init__(self, words: memoryview, here: SharedMemory) -> None:
        self._words = words
        self._here = here

    def __getitem__(self, key: Any) -> Any:
        first = key.start if isinstance(key, slice) else key
        self._here.scheduler.look(writer_of(WORD * first))
        return self._words[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._words[key] != value:
            self._here.scheduler.change()
        self._words[key] = value


class Windows(dict[int, Any]):
    """The windows of the segment; whoever asks for one is about to use the memory there."""

    def __init__(self, windows: Any, here: SharedMemory) -> None:
        self._windows = windows
        self._here = here
        self.mapped = windows.mapped

    def __getitem__(self, chunk: int) -> Any:
        self._here.scheduler.data()
        return self._windows[chunk]


class SharedMemory:
    """The memory of all runs: each begins with control words of 0, and areas of any content."""

    def __init__(self) -> None:
        self.segment = Segment.outside_files(NPROCS)
        self.segment.reserve_control()
        for pid in range(NPROCS):
            self.segment.reserve(self.segment.control_start(pid), CONTROL_BYTES)
        self.scheduler = Scheduler(lambda pid, _: pid)
        self._windows: Any = self.segment.windows
        self.segment.windows = Windows(self._windows, self)  # type: ignore[assignment]
        self.segment.control = Words(self.segment.control, self)  # type: ignore[assignment]

    def clear(self) -> None:
        """Clear all control words."""
        ctypes.memset(self.segment.address, 0, PAGE + NPROCS * CONTROL_BYTES)

    def fill(self, start: int, nbytes: int) -> None:
        """Fill memory that is not in use."""
        first = self._windows[start >> 20][0]
        ctypes.memset(self._windows.mapped[first][0] + start - first, PATTERN, nbytes)


class FilledHeap(Heap):
    """A heap whose memory holds the pattern when it is given out, and when it is given back."""

    def __init__(self, here: SharedMemory, pid: int) -> None:
        super().__init__(here.segment, here.segment.area(pid))
        self._here = here
        self._last_run: dict[int, int] = {}

    def allocate(self, nbytes: int) -> tuple[int, bool]:
        """See :meth:`Heap.allocate`."""
        for start, size in self._last_run.items():
            self._here.fill(start, size)
        self._last_run.clear()
        start, _ = super().allocate(nbytes)
        self._here.fill(start, self._used[start])
        return start, False

    def release(self, start: int) -> None:
        """See :meth:`Heap.release`."""
        self._here.fill(start, self._used[start])
        super().release(start)

    def clear(self) -> None:
        """See :meth:`Heap.clear`: others may read what the last run left until the next begins."""
        self._last_run = dict(self._used)
        super().clear()


class ScheduledContext(ProcessContext):
    """A process whose memory is filled when it is given back."""

    def __init__(self, here: SharedMemory, pid: int) -> None:
        super().__init__(here.segment, pid, doorbells(here.segment, NPROCS))
        self._here = here
        self.heap = FilledHeap(here, pid)

    def give_outbox(self, outbox: Any) -> None:
        """See :meth:`ProcessContext.give_outbox`."""
        for start, nbytes in outbox._chunks:
            self._here.fill(start, nbytes)
        super().give_outbox(outbox)


HERE = SharedMemory()


def _replace(replacements: dict[str, Callable[..., Any]]) -> None:
    """Replace functions of ``atomics`` wherever modules have imported them."""
    for name, function in replacements.items():
        original = getattr(atomics, name)
        for module in list(sys.modules.values()):
            if vars(module).get(name) is original:
                setattr(module, name, function)


def _install() -> None:
    load, store, now = atomics.load, atomics.store, iter(range(0, 1 << 62, _STEP_NS))

    def scheduled_load(address: int) -> int:
        HERE.scheduler.look(writer_of(address - HERE.segment.address))
        return load(address)

    def scheduled_store(address: int, value: int) -> None:
        if load(address) != value:
            HERE.scheduler.change()
        store(address, value)

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def scheduled(*args: Any) -> Any:
            HERE.scheduler.data()
            return function(*args)

        return scheduled

    at_data = {
        name: before(getattr(atomics, name)) for name in ("peek", "poke", "copy", "bytes_at")
    }
    _replace({"load": scheduled_load, "store": scheduled_store, **at_data})
    _replace({"now_ns": lambda: next(now)})
    for name, module in sys.modules.items():
        if name.startswith("bsplib.") and hasattr(module, "LARGE"):
            module.LARGE = _LARGE

    # A process looks once, and waits then: for a change, not for some time.
    waiting.Waiter.arrives = lambda _, address, floor: scheduled_load(address) >= floor  # type: ignore[method-assign]

    def wait(_: Waiting, ready: Any, whom: Any, suspect: Any, *, spun: bool = False) -> None:
        HERE.scheduler.wait(ready, suspect)

    Waiting.wait = wait  # type: ignore[method-assign]
    open_box = box.Box._open

    def open_filled(self: box.Box) -> None:
        for byte, _, nbytes in self._blocks[self._turn]:
            HERE.fill(byte, nbytes)
        open_box(self)

    box.Box._open = open_filled  # type: ignore[method-assign]
    sync_quickly = core.Core._sync_quickly

    def noted_sync(self: core.Core, stamp: int) -> bool:
        self.was_quick = sync_quickly(self, stamp)
        return self.was_quick

    core.Core._sync_quickly = noted_sync  # type: ignore[method-assign]


_install()
_CONDITIONS = Conditions(None)  # type: ignore[arg-type]  # no program asks for the Machine


def run(main: Callable[..., Any], runs: int, choose: Choose) -> list[list[Any]]:
    """Run a program on 3 processes in the order that is chosen; return results by run and pid.

    Args:
        main: the program, called with the group and the number of the run.
        runs: how often it is run by the same processes, as in a pool.
        choose: who goes on.

    Raises:
        Exception: a process has failed, or the processes wait for each other.
    """
    HERE.clear()
    scheduler = HERE.scheduler = Scheduler(choose)
    results: list[list[Any]] = [[None] * NPROCS for _ in range(runs)]
    reported = [0] * NPROCS

    def process(pid: int) -> None:
        root = KeptPort(ScheduledContext(HERE, pid))
        for number in range(runs):
            task = Task(main, (number,), {}, Seeds(), _CONDITIONS)
            results[number][pid] = run_task(task, root.open()).value
            reported[pid] += 1
            scheduler.changes += 1
            if number + 1 < runs:
                root.begin_anew()
                scheduler.wait(lambda: min(reported) > number, lambda: None)  # noqa: B023

    scheduler.run([functools.partial(process, pid) for pid in range(NPROCS)])
    return results
