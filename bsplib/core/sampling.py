"""Looks at regular times at what the thread of ``main`` executes: its Python stack, with lines.

A timer of the kernel (CLOCK_MONOTONIC) sends a real-time signal, which nothing else uses, to this
thread. Its handler in C writes down the time and the addresses of the stack's code objects and
instructions. Where the stack is not that of the tick before, it asks the interpreter, by
``PyErr_SetInterruptEx``, to call the sampler as soon as it can: at once in Python code, else when
the call of a function in C has returned. Then the addresses become code objects and lines. So a
tick inside numpy, which may have released the interpreter lock, counts for the line that called
numpy, and so does one between threads.

The handler reads frames of the interpreter as they are at that instant. It changes nothing,
allocates nothing, and asks the kernel before it reads a page. What it found is compared with code
objects that are alive, and never used as an object itself. ``Py_AddPendingCall`` would ask the
interpreter, too; but it takes a lock, which the interrupted thread may hold.

Why no sampler that exists already:

- **py-spy** and **austin** read the memory of a process from another one. That takes a core of
  its own, or stops the process meanwhile, and a permission (ptrace) that containers and login
  nodes often refuse; their times are not on the clock of the records.
- **Scalene** takes over SIGVTALRM and the functions of the module signal, and reports sums of
  lines, not times: they cannot be booked to supersteps.
- **pyinstrument** and **statprof** look from a hook of the interpreter or a CPU-time timer: these
  miss a call of numpy, or time that passes without CPU time. Kernels fire CPU-time timers at
  their own ticks only, often 250 times a second.
- **memray** follows allocations.
- A thread that samples waits for the interpreter lock, and takes a core of the program.

Only the compiled core can do this: the interpreted one has no handler in C.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

if not cython.compiled:

    def can_sample() -> bool:
        """Return False: there is no handler in C."""
        return False

    def before_fork() -> None:
        """Do nothing."""

    def after_fork(_is_child: bool) -> None:
        """Do nothing."""

    def free_signal() -> int:
        """Return 0: there is no signal."""
        return 0

    def start_timer(_number: int, _interval_ns: int) -> int:
        """Return that there is no timer."""
        return 1

    def stop_timer() -> None:
        """Do nothing."""

    def answer() -> None:
        """Do nothing."""

    def next_ticks() -> tuple[int, int, int, int, bytes] | None:
        """Return None: there are no ticks."""
        return None

    def offset_and_line(code: CodeType, _instruction: int) -> tuple[int, int]:
        """Return the first line."""
        return -1, code.co_firstlineno


Place = tuple[CodeType, int, int]
"""One call of a stack: code, the offset of the instruction in it (-1: not known), and line."""

ON_CORE, BLOCKED, NO_CORE, STATES = range(4)
"""What a thread does: it has a core, it waits for something, or it is ready without a core. The
last is counted as blocked where the system does not tell it. ``STATES``: how many these are."""
MOST_CALLS = 128
"""Greatest number of calls of a stack that are seen: the innermost ones."""
_PLACE_BYTES = 16
"""Of a call in a key: the addresses of its code and of its instruction."""
_MOST_KEYS = 2**14
"""Greatest number of stacks that are known; beyond it all are forgotten, and looked up anew."""
_MOST_NUMBERS = 4096
"""Numbers that are kept before they are saved: four for each row."""

_signal = 0
"""The signal that is used from the first start on."""


def why_not() -> str:
    """Return a sentence that says why nothing can be sampled here; empty if it can be."""
    if not cython.compiled:
        return "lines are sampled by the compiled core, and the interpreted one runs"
    if not can_sample():
        return "lines are sampled on Linux, by CPython 3.11 to 3.13"
    return ""


class Sampler:
    """Samples the thread that starts it, which is the main one.

    A **place** is an instruction of a code object. All places that were found are kept in a list.

    Args:
        interval_ns: time from one tick to the next.
        define: returns the number of a stack, the innermost call first; its second argument tells
            whether it had more calls than are seen.
        save: keeps rows: four integers for each, which are the times of the first and the
            last of some ticks (on the clock of ``time.perf_counter_ns``), how many these are, and
            ``STATES`` times the number of their stack plus what the thread mostly did before
            each of them. The ticks between the two are evenly spaced.
    """

    def __init__(
        self,
        interval_ns: int,
        define: Callable[[list[Place], bool], int],
        save: Callable[[list[int]], None],
    ) -> None:
        self._interval_ns = interval_ns
        self._define = define
        self._save = save
        self._forget()
        self._rows: list[int] = []
        self._first = self._last = self._count = 0  # of the row that is not complete
        self._number = -1
        self._reads = False

    def start(self) -> None:
        """Start the timer.

        Raises:
            OSError: the system has no signal, or no timer, left.
            ValueError: this is not the main thread, or the system is another one.
        """
        global _signal  # noqa: PLW0603  # signals belong to the process
        if reason := why_not():
            raise ValueError(reason)
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("main does not run in the main thread of its process")
        _signal = _signal or free_signal()
        if not _signal:
            raise OSError("the program handles all real-time signals")
        signal.signal(_signal, self._tell)
        if error := start_timer(_signal, self._interval_ns):
            raise OSError(error, os.strerror(error))

    def stop(self) -> None:
        """Stop the timer, and save what was not saved yet."""
        stop_timer()
        if _signal and threading.current_thread() is threading.main_thread():
            signal.signal(_signal, _ignore)  # one may still be on its way
        self._read(sys._getframe())
        self._end_row()
        self._save(self._rows)
        self._rows = []

    def _tell(self, _number: int, frame: FrameType | None) -> None:
        """Read what the handler has found; the interpreter calls this between two instructions."""
        answer()
        if self._reads:  # it is called while it runs: the one that runs reads all
            return
        self._reads = True
        try:
            self._read(frame)
        finally:
            self._reads = False

    def _read(self, frame: FrameType | None) -> None:
        while (ticks := next_ticks()) is not None:
            first, last, count, state, key = ticks
            number = self._numbers.get(key, -1)
            if number < 0:
                number = self._number_new(key, frame)
            self._add(first, last, count, STATES * number + state)
        if len(self._rows) >= _MOST_NUMBERS:
            rows, self._rows = self._rows, []
            self._save(rows)

    def _add(self, first: int, last: int, count: int, number: int) -> None:
        """Add ticks to the row that is not complete, if they are its next ones."""
        if number == self._number and first - self._last < 2 * self._interval_ns:
            self._last = last
            self._count += count
            return
        self._end_row()
        self._first, self._last, self._count, self._number = first, last, count, number

    def _end_row(self) -> None:
        if self._count:
            self._rows += self._first, self._last, self._count, self._number
        self._count = 0

    def _number_new(self, key: bytes, frame: FrameType | None) -> int:
        """Return the number of a stack whose instructions have not been seen together yet.

        Of a function that calls itself, each tick may find other instructions, or another depth.
        So a line that is on the stack several times counts once, at its outermost place: such
        stacks are few, and only a new one is described.
        """
        if max(len(self._numbers), len(self._places)) >= _MOST_KEYS:
            self._forget()
        found = self._positions_of(key, frame)
        depth = len(key) // _PLACE_BYTES
        if not found:
            return self._define(_current(frame), False)
        lines: list[int] = []
        for position in reversed(found[1:]):
            line = self._lines[position]
            if line not in lines:
                lines.append(line)
        stack = (*lines, found[0], depth == MOST_CALLS)
        number = self._stacks.get(stack, -1)
        if number < 0:
            calls = [self._places[position] for position in (found[0], *reversed(lines))]
            number = self._define(calls, depth == MOST_CALLS)
            self._stacks[stack] = number
        if len(found) == depth:
            self._numbers[key] = number
        return number

    def _positions_of(self, key: bytes, frame: FrameType | None) -> list[int]:
        """Return the positions of the places of a stack, the innermost first.

        Code objects that are neither known nor on the stack now may no longer exist: their calls
        are left out, and count for the line that called them.
        """
        found = []
        for first in range(0, len(key), _PLACE_BYTES):
            raw = key[first : first + _PLACE_BYTES]
            position = self._positions.get(raw, -1)
            if position < 0:
                position = self._position_new(raw, frame)
            if position >= 0:
                found.append(position)
        return found

    def _position_new(self, raw: bytes, frame: FrameType | None) -> int:
        """Return the position of a place that was not known; -1 if its code may be gone."""
        address, instruction = memoryview(raw).cast("P").tolist()
        while address not in self._codes:
            if frame is None:
                return -1
            self._codes[id(frame.f_code)] = frame.f_code
            frame = frame.f_back
        code = self._codes[address]
        place = code, *offset_and_line(code, instruction)
        position = len(self._places)
        self._lines.append(self._first_of_line.setdefault((address, place[2]), position))
        self._places.append(place)
        self._positions[raw] = position
        return position

    def _forget(self) -> None:
        """Forget all stacks and code objects; they are looked up anew."""
        self._numbers: dict[bytes, int] = {}  # by the addresses of all calls
        self._stacks: dict[tuple[int, ...], int] = {}  # by their lines
        self._places: list[Place] = []
        self._positions: dict[bytes, int] = {}  # of places, by address
        self._lines: list[int] = []  # by position: that of the first place on the same line
        self._first_of_line: dict[tuple[int, int], int] = {}  # by address of the code, and line
        self._codes: dict[int, CodeType] = {}  # kept alive: their addresses are part of the keys


def _current(frame: FrameType | None) -> list[Place]:
    """Return the places of the stack of a frame, the innermost first."""
    places: list[Place] = []
    while frame is not None:
        code = frame.f_code
        places.append((code, frame.f_lasti, frame.f_lineno or code.co_firstlineno))
        frame = frame.f_back
    return places


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing for a signal that was on its way when the timer was stopped."""


os.register_at_fork(
    before=lambda: before_fork(),  # noqa: PLW0108  # a C function is no object
    after_in_child=lambda: after_fork(True),
    after_in_parent=lambda: after_fork(False),
)
