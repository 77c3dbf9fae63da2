"""Looks from time to time at what the thread of ``main`` executes: its Python stack, with lines.

A timer of the kernel (CLOCK_MONOTONIC) sends a real-time signal, which nothing else uses, to this
thread. Its handler in C writes down the time and the addresses of the stack's code objects and
instructions, and asks the interpreter, by ``PyErr_SetInterruptEx``, to call the sampler as soon as
it can: at once in Python code, else when the call of a function in C has returned. There the code
objects that are on the stack are kept alive. At the end the addresses become lines. So a tick
inside numpy, which may have released the interpreter lock, counts for the line that called numpy.
A handler in Python alone sees only the line at which the interpreter goes on: for ``a @ b`` this
is a later one, or that of another function.

The handler reads frames of the interpreter as they are at that instant. It changes nothing,
allocates nothing, and asks the kernel before it reads a page. What it found is compared with code
objects that are alive, and never used as an object itself.

A loss of a given share of the run needs the same number of ticks, however long the run is. So the
time between two ticks grows with the run: a short run has enough of them, and a long one pays
nothing for them.

Only the compiled core can do this: the interpreted one has no handler in C.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import threading
from array import array
from pathlib import Path
from types import CodeType, FrameType, FunctionType

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

if not cython.compiled:

    def start_timer(_number: int, _ring: int, _first_ns: int, _last_ns: int, _of_run: int) -> int:
        """Return that there is no timer."""
        return 1

    def stop_timer() -> None:
        """Do nothing."""


FIRST_NS = 2_000_000
"""Time between two ticks at first: a loss of 20 ms has ten of them."""
OF_RUN = 200
"""That time is doubled when this many of it have passed. So a twentieth of a run has five ticks or
more, as many as name a line."""
LAST_NS = 50_000_000
"""No longer time between two ticks is needed: they cost less than can be measured."""

Place = tuple[CodeType, int, int]
"""One call of a stack: code, the offset of the instruction in it, and line."""
ON_CORE, BLOCKED, NO_CORE = range(3)
"""What a thread does: it has a core, it waits for something, or it is ready without a core."""

_MOST_CALLS, _RING = 128, 64
"""Calls of a tick, and ticks of the ring, as in the handler."""
_READ, _FIELDS = 1, 6
"""Of the ring: the word with the number of ticks that were read, and those of a tick before its
calls."""
_TICK = _FIELDS + 2 * _MOST_CALLS
_MOST_STACKS = 20_000
"""Later ones are kept by their innermost call only: in a recursion each tick may find a new one,
of up to 2 KB."""
_signals: list[int] = []
"""The signal that is used from the first start on."""


def why_not() -> str:
    """Return a sentence that says why nothing can be sampled here; empty if it can be."""
    if not cython.compiled:
        return "lines are sampled by the compiled core, and the interpreted one runs"
    is_locked = getattr(sys, "_is_gil_enabled", bool)() or sys.version_info < (3, 13)
    if sys.platform != "linux" or sys.version_info >= (3, 14) or not is_locked:
        return "lines are sampled on Linux, by CPython 3.11 to 3.13"
    if threading.current_thread() is not threading.main_thread():
        return "lines are sampled in the main thread of a process, and main runs in another one"
    return ""


class Sampler:
    """Samples the main thread of this process, which starts and stops it."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}  # of stacks, by the addresses of all calls
        self._codes: dict[int, CodeType] = {}  # kept alive: their addresses are part of the keys
        self._ticks: list[list[int]] = []
        self._ring = array("q", bytes(8 * (_READ + 1 + _RING * _TICK)))

    def start(self) -> str:
        """Start the timer; return why that is impossible, empty where it is not."""
        if reason := why_not():
            return reason
        if not _signals:
            _signals.extend(_free_signals()[:1])
        if not _signals:
            return "lines need a real-time signal, and the program uses all of them"
        signal.signal(_signals[0], self._keep)
        ring, _ = self._ring.buffer_info()
        error = start_timer(_signals[0], ring, FIRST_NS, LAST_NS, OF_RUN)
        return f"lines need a timer: {os.strerror(error)}" if error else ""

    def stop(self) -> tuple[list[list[Place]], list[tuple[int, int, int]]]:
        """Stop the timer.

        Returns:
            The stacks, with the innermost call first; and for each tick its time on the clock of
            ``time.perf_counter_ns``, what the thread did, and the number of its stack.
        """
        stop_timer()
        self._keep(0, sys._getframe())
        signal.signal(_signals[0], _ignore)  # one may still be on its way
        keys = [memoryview(key).cast("q").tolist() for key in self._numbers]
        if any(address not in self._codes for key in keys for address in key[::2]):
            # Of functions that had returned whenever the interpreter could call the sampler.
            self._codes = _codes_of_functions() | self._codes
        return [self._places(key) for key in keys], _states(self._ticks)

    def _keep(self, _number: int, frame: FrameType | None) -> None:
        """Keep what the handler has found; the interpreter calls this between two instructions."""
        while frame is not None:
            self._codes[id(frame.f_code)] = frame.f_code
            frame = frame.f_back
        ring = self._ring
        while ring[_READ] < ring[0]:
            first = _READ + 1 + ring[_READ] % _RING * _TICK
            calls = first + _FIELDS
            depth = ring[calls - 1] if len(self._numbers) < _MOST_STACKS else 1
            key = ring[calls : calls + 2 * depth].tobytes()
            number = self._numbers.setdefault(key, len(self._numbers))
            self._ticks.append([*ring[first : calls - 1], number])
            ring[_READ] += 1

    def _places(self, key: list[int]) -> list[Place]:
        """Return the calls of a stack; of code that is gone, the line that called it counts."""
        pairs = zip(key[::2], key[1::2], strict=True)
        known = ((self._codes[address], at) for address, at in pairs if address in self._codes)
        return [(code, at, _line(code, at)) for code, at in known]


def _states(ticks: list[list[int]]) -> list[tuple[int, int, int]]:
    """Return time, state and number of the stack of each tick."""
    found = []
    for was, now in zip(ticks[:1] + ticks, ticks, strict=False):
        elapsed, cpu, process, sleeps = (now[field] - was[field] for field in range(4))
        *_, in_system, number = now
        state = ON_CORE
        if sleeps:
            # A thread that waits while others of its process have cores lets them compute.
            if in_system and 2 * (process - cpu) < max(elapsed, 1):
                state = BLOCKED
        elif 2 * cpu < elapsed:
            state = NO_CORE
        found.append((now[0], state, number))
    return found


def _line(code: CodeType, offset: int) -> int:
    lines = (line for first, end, line in code.co_lines() if first <= offset < end)
    return next(lines, None) or code.co_firstlineno


def _codes_of_functions() -> dict[int, CodeType]:
    """Return the code of all functions that exist, and that inside of it, by address."""
    found: dict[int, CodeType] = {}
    left = [each.__code__ for each in gc.get_objects() if type(each) is FunctionType]
    while left:
        code = left.pop()
        if id(code) not in found:
            found[id(code)] = code
            left += [each for each in code.co_consts if type(each) is CodeType]
    return found


def _free_signals() -> list[int]:
    """Return the real-time signals that the program neither handles nor ignores nor blocks."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    used = [int(mask, 16) for mask in re.findall(r"Sig(?:Blk|Ign|Cgt):\s*(\w+)", text)]
    numbers = range(signal.SIGRTMAX - 2, signal.SIGRTMIN, -1)
    return [each for each in numbers if not any(mask >> (each - 1) & 1 for mask in used)]


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing for a signal that was on its way when the timer was stopped."""


def _mask(how: int) -> None:
    """Let no tick come during a fork: a slow one would begin anew after each, again and again."""
    signal.pthread_sigmask(how, _signals)


def _end_in_child() -> None:
    stop_timer()
    _mask(signal.SIG_UNBLOCK)


os.register_at_fork(
    before=lambda: _mask(signal.SIG_BLOCK),
    after_in_child=_end_in_child,
    after_in_parent=lambda: _mask(signal.SIG_UNBLOCK),
)
