"""A run of the backend shm whose processes are greenlets: port, groups and core are the real ones.

Replaced are: words that processes share (each access is a point of the scheduler), waiting (a
process waits until some word has changed), and the heap and staging buffers (what they give back is
filled with a pattern). It needs the interpreted core, whose functions can be replaced.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import warnings
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from greenlet import GreenletExit

from bsplib.backends.shm import oblivious, port
from bsplib.backends.shm.child import KeptPort
from bsplib.backends.shm.context import ProcessContext
from bsplib.backends.shm.control import CELLS, CONTROL_BYTES, PAGE, WORD
from bsplib.backends.shm.heap import Heap
from bsplib.backends.shm.segment import Segment
from bsplib.backends.shm.staging import Kept
from bsplib.backends.shm.waiting import Waiting
from bsplib.core import BUILD, atomics, entries, meeting
from bsplib.core import values as core_values
from bsplib.running.options import Conditions
from bsplib.running.process import run_task
from bsplib.running.task import Seeds, Task

from .history import REPORTED, owner_of, word_of
from .scheduler import Choose, Conflicts, Scheduler

PATTERN = 0xDB
"""Each byte of memory that is not in use."""
NPROCS = 3
_LARGE = 1 << 13
"""In place of 256 KiB: the least bytes for which processes wait for memory that is in use."""
_STEP_NS = 4000
"""Time that passes between two looks at the clock."""

assert BUILD == "python", "set BSPLIB_CORE=python"


class Words:
    """The control words; each access is a point of the scheduler."""

    def __init__(self, words: memoryview, here: SharedMemory) -> None:
        self._words = words
        self._here = here

    def __getitem__(self, key: Any) -> Any:
        self._here.scheduler.look(key.start if isinstance(key, slice) else key)
        return self._words[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, slice):
            key, value = slice(key, key + 1), memoryview(array("Q", (value,)))
        changed = [
            number
            for number, old, new in zip(
                range(key.start, key.stop), self._words[key], value, strict=True
            )
            if old != new
        ]
        if changed:
            self._here.scheduler.change(*changed)
        self._words[key] = value


class SharedMemory:
    """The memory of all runs: each begins with control words of 0, and areas of any content."""

    def __init__(self) -> None:
        self.segment = Segment.outside_files(NPROCS)
        self.segment.reserve_control()
        for pid in range(NPROCS):
            self.segment.reserve(self.segment.control_start(pid), CONTROL_BYTES)
        self.scheduler = Scheduler(lambda point, _: point.pid, NPROCS)
        self.segment.control = Words(self.segment.control, self)  # type: ignore[assignment]
        self.plain_view = self.segment.view
        """Returns memory of a process without a right to read it."""
        for name in ("view", "view_array"):
            setattr(self.segment, name, self._held(getattr(self.segment, name)))
        self.floors = [0] * NPROCS
        """By pid: the least word of the posts of the meeting to which it has come."""
        self.arrays: set[tuple[int, int]] = set()
        self.kinds: list[set[int]] = [set() for _ in range(NPROCS)]
        """By pid: the kinds of the entries that it has made since it was asked."""
        self._begins = [self.segment.address]
        self._mapped = [(0, PAGE + NPROCS * CONTROL_BYTES)]

    def clear(self) -> None:
        """Clear all control words."""
        ctypes.memset(self.segment.address, 0, PAGE + NPROCS * CONTROL_BYTES)

    def fill(self, start: int, nbytes: int) -> None:
        """Fill memory that is not in use."""
        self.scheduler.give_back(start, nbytes)
        ctypes.memset(self.segment.address_of(start), PATTERN, nbytes)

    def byte_at(self, address: int) -> int:
        """Return the byte of the segment at an address; -1 outside of it."""
        for begin, (first, nbytes) in zip(self._begins, self._mapped, strict=True):
            if begin <= address < begin + nbytes:
                return first + address - begin
        windows = self.segment.windows.mapped.values()
        if len(windows) >= len(self._begins):
            self._begins[1:] = [begin for begin, _ in windows]
            self._mapped[1:] = [(first, len(buffer)) for _, (first, buffer, _) in windows]
            return self.byte_at(address)
        return -1

    def is_in_array(self, byte: int) -> bool:
        """Tell whether a byte is in an array of a program, into which its process writes."""
        return any(start <= byte < stop for start, stop in self.arrays)

    def _held(self, view: Callable[[int, int], Any]) -> Callable[[int, int], Any]:
        def held(start: int, nbytes: int) -> Any:
            found = view(start, nbytes)
            if owner_of(start) != self.scheduler.pid:
                self.scheduler.hold(start, nbytes, found)
            return found

        return held


class FilledHeap(Heap):
    """A heap whose memory holds the pattern when it is given out, and when it is given back."""

    def __init__(self, here: SharedMemory, pid: int) -> None:
        super().__init__(here.segment, here.segment.area(pid))
        self._here = here
        self._last_run: dict[int, int] = {}
        self._is_clearing = False

    def allocate(self, nbytes: int) -> tuple[int, bool]:
        """See :meth:`Heap.allocate`."""
        for start, size in self._last_run.items():
            self._here.fill(start, size)
        self._last_run.clear()
        start, _ = super().allocate(nbytes)
        self._here.fill(start, self._used[start])
        return start, False

    def clear(self) -> None:
        """See :meth:`Heap.clear`: others may read what the last run left until the next begins."""
        self._is_clearing = True
        super().clear()
        self._is_clearing = False

    def _free_block(self, start: int) -> None:
        """See :meth:`Heap._free_block`."""
        if self._is_clearing:
            self._last_run[start] = self._used[start]
        else:
            self._here.fill(start, self._used[start])
        super()._free_block(start)


class ScheduledContext(ProcessContext):
    """A process whose memory is filled when it is given back."""

    def __init__(self, here: SharedMemory, pid: int) -> None:
        super().__init__(here.segment, pid)
        self._here = here
        self.heap = FilledHeap(here, pid)


HERE = SharedMemory()


class ScheduledKept(Kept):
    """A payload that its receiver keeps: both stores of its word are points of the scheduler."""

    def __init__(self, address: int, nbytes: int) -> None:
        self._scheduler = HERE.scheduler
        self._byte = HERE.byte_at(address)
        super().__init__(address, nbytes)
        self._scheduler.keep(self._byte, nbytes, ctypes.string_at(address, nbytes))

    def __del__(self) -> None:
        if HERE.scheduler is not self._scheduler:
            return  # the array of a process that was ended: its memory has another use now
        try:
            super().__del__()
        except GreenletExit:
            return  # the process ends at its next wait
        self._scheduler.return_kept(self._byte)


def _replace(origin: Any, replacements: dict[str, Callable[..., Any]]) -> None:
    """Replace functions of a module wherever others have imported them."""
    for name, function in replacements.items():
        original = getattr(origin, name)
        for module in list(sys.modules.values()):
            if vars(module).get(name) is original:
                setattr(module, name, function)


def begin_to_choose() -> None:
    """From here on another process may go on instead of the one that calls this."""
    HERE.scheduler.begin_to_choose()


def take_kinds() -> set[int]:
    """Return the kinds of the entries that the process has made since the last call."""
    found = HERE.kinds[HERE.scheduler.pid]
    HERE.kinds[HERE.scheduler.pid] = set()
    return found


def _install_accesses() -> None:
    """Let the scheduler know of all accesses to shared memory."""
    load, store, peek, poke = atomics.load, atomics.store, atomics.peek, atomics.poke
    copy, bytes_at, open_row = atomics.copy, atomics.bytes_at, oblivious.open_row
    array_at = atomics.array_at

    def number_of(address: int) -> int:
        return HERE.byte_at(address) // WORD

    def scheduled_load(address: int) -> int:
        number = number_of(address)
        if word_of(number).role not in CELLS:
            HERE.scheduler.look(number)
            return load(address)
        value = load(address)
        if value >= HERE.floors[HERE.scheduler.pid]:  # otherwise the process is about to wait
            HERE.scheduler.find(number)
        return value

    def scheduled_store(address: int, value: int) -> None:
        if load(address) != value:
            HERE.scheduler.change(number_of(address))
        store(address, value)

    def noted_peek(address: int) -> int:
        value = peek(address)
        HERE.scheduler.read(HERE.byte_at(address), WORD, value)
        return value

    def noted_bytes_at(address: int, nbytes: int) -> bytes:
        found = bytes_at(address, nbytes)
        HERE.scheduler.read(HERE.byte_at(address), nbytes, found)
        return found

    def noted_bytearray_at(address: int, nbytes: int) -> bytearray:
        return bytearray(noted_bytes_at(address, nbytes))

    def noted_array_at(shape: Any, dtype: Any, address: int, nbytes: int) -> Any:
        found = array_at(shape, dtype, address, nbytes)
        HERE.scheduler.read(HERE.byte_at(address), nbytes, found.tobytes())
        return found  # whoever asks for it reads it before the next point

    def noted_poke(address: int, value: int) -> None:
        HERE.scheduler.write(HERE.byte_at(address), WORD)
        poke(address, value)

    def scheduled_copy(to: int, source: int, nbytes: int) -> None:
        HERE.scheduler.write(HERE.byte_at(to), nbytes)
        if HERE.is_in_array(HERE.byte_at(source)):
            HERE.scheduler.data(HERE.byte_at(source))
        HERE.scheduler.read(HERE.byte_at(source), nbytes, bytes_at(source, nbytes))
        copy(to, source, nbytes)

    def noted_open_row(segment: Any, index: int, row: int) -> Any:
        found = open_row(segment, index, row)
        if index:
            what = found[0], bytes(found[1])
            HERE.scheduler.read(index + oblivious._ROW.size * row, oblivious._ROW.size, what)
        return found

    _replace(
        atomics,
        {
            "load": scheduled_load,
            "store": scheduled_store,
            "peek": noted_peek,
            "poke": noted_poke,
            "copy": scheduled_copy,
            "bytes_at": noted_bytes_at,
            "bytearray_at": noted_bytearray_at,
            "array_at": noted_array_at,
        },
    )
    _replace(oblivious, {"open_row": noted_open_row})


def _install_waiting() -> None:
    """Let processes wait for changes, and let time pass in each of them alone."""
    clocks = [iter(range(0, 1 << 62, _STEP_NS)) for _ in range(NPROCS)]
    _replace(atomics, {"now_ns": lambda: next(clocks[HERE.scheduler.pid])})
    port.ShmPort.now = staticmethod(lambda: 1)  # it is a part of posts, and so of states
    for name, module in sys.modules.items():
        if name.startswith("bsplib.") and hasattr(module, "LARGE"):
            module.LARGE = _LARGE

    # A process looks once, and waits then: for a change, not for some time.
    meeting.Waiter.arrives = lambda _, address, floor: meeting.load(address) >= floor  # type: ignore[method-assign]

    def wait(_: Waiting, ready: Any, whom: Any, suspect: Any) -> None:
        HERE.scheduler.wait(ready, suspect)

    Waiting.wait = wait  # type: ignore[method-assign]
    meet = meeting.SharedMeeting.meet

    def noted_meet(self: Any, flags: int, head: int, stamp: int) -> bool:
        HERE.floors[HERE.scheduler.pid] = self._floor
        return meet(self, flags, head, stamp)

    meeting.SharedMeeting.meet = noted_meet  # type: ignore[method-assign]


def _install_memory() -> None:
    """Fill buffers that are used again, and note the entries, and which memory belongs to
    arrays."""
    entries.MOST_LARGE = core_values.MOST_LARGE = _LARGE  # larger values are staged
    open_buffer, reserve = entries.SendBuffer._open, entries.SendBuffer.reserve

    def noted_reserve(self: entries.SendBuffer, to: int, head: int, first: int, nbytes: int) -> int:
        HERE.kinds[HERE.scheduler.pid].add(head >> entries.KIND_SHIFT)
        return reserve(self, to, head, first, nbytes)

    entries.SendBuffer.reserve = noted_reserve  # type: ignore[method-assign]

    def open_filled(self: entries.SendBuffer) -> None:
        for byte, _, nbytes in self._blocks[self._side]:
            HERE.fill(byte, nbytes)
        open_buffer(self)

    entries.SendBuffer._open = open_filled  # type: ignore[method-assign]
    port.Kept = ScheduledKept  # type: ignore[attr-defined]
    Segment.is_short = lambda _: False  # type: ignore[method-assign]  # whatever else there is
    allocate = port.ShmPort.allocate

    def noted_allocate(self: Any, nbytes: int, *, zero: bool) -> memoryview:
        memory = allocate(self, nbytes, zero=zero)
        start = self.shared_address_of(np.frombuffer(memory, np.uint8))
        HERE.arrays.add((start, start + nbytes))
        return memory

    port.ShmPort.allocate = noted_allocate  # type: ignore[method-assign]


_install_accesses()
_install_waiting()
_install_memory()
_CONDITIONS = Conditions(None)  # type: ignore[arg-type]  # no program asks for the Machine


def run(
    main: Callable[..., Any],
    runs: int,
    choose: Choose,
    conflicts: Conflicts | None = None,
    *,
    whole: bool = True,
) -> list[list[Any]]:
    """Run a program on 3 processes in the order that is chosen; return results by run and pid.

    Args:
        main: the program, called with the group and the number of the run.
        runs: how often it is run by the same processes, as in a pool.
        choose: who goes on.
        conflicts: see :class:`Scheduler`.
        whole: see :class:`Scheduler`.

    Raises:
        Exception: a process has failed, or the processes wait for each other.
    """
    HERE.clear()
    HERE.arrays.clear()
    scheduler = HERE.scheduler = Scheduler(choose, NPROCS, conflicts, whole=whole)
    results: list[list[Any]] = [[None] * NPROCS for _ in range(runs)]
    control = HERE.segment.control
    words = [HERE.segment.control_start(pid) // WORD + REPORTED for pid in range(NPROCS)]

    def process(pid: int) -> None:
        root = KeptPort(ScheduledContext(HERE, pid))
        for number in range(runs):
            task = Task(main, (number,), {}, Seeds(), _CONDITIONS)
            results[number][pid] = run_task(task, root.open(), warnings.warn_explicit).value
            control[words[pid]] = number + 1
            if number + 1 < runs:
                root.begin_anew()
                scheduler.wait(lambda: all(control[each] > number for each in words), lambda: None)  # noqa: B023

    scheduler.run([functools.partial(process, pid) for pid in range(NPROCS)])
    return results
