"""Looks from time to time at what the thread of ``main`` executes: its Python stack, with lines.

Two timers of the kernel send a real-time signal, which nothing else uses, to this thread. Its
handler in C writes down the addresses of the stack's code objects and instructions, which become
lines at the end. A handler in Python sees only the line at which the interpreter goes on: for
``a @ b`` this is a later one, or that of another function. One timer counts the CPU time of the
thread: the kernel looks at it when it updates that time anyway, and such a tick stands for the CPU
time since the one before it. The other counts elapsed time, and its tick is kept if the thread
sleeps, or is ready without a core; it stands for all time without a core since the one before it.
It needs an interrupt of its own, which costs a virtual machine some 30 us, and so it is rare while
the thread computes. Together they stand for all time until the last tick.

Where a code object is new on the stack, the handler asks the interpreter to keep it alive as soon
as it can: then no other one gets its address. The handler reads frames of the interpreter as they
are at that instant. It changes nothing, allocates nothing, and asks the kernel before it reads a
page. What it found is compared with code objects that are alive, and never used as an object.

A loss of a given share of the run needs the same number of ticks, however long the run is. So the
time between two ticks grows with the run.

Only the compiled core can do this: the interpreted one has no handler in C.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import NamedTuple

try:
    import cython
except ImportError:
    from bsplib.core import _no_cython as cython

if not cython.compiled:

    def start_timers(_number: int, _interval_ns: int, _of_run: int) -> int:
        """Return that there are no timers."""
        return 1

    def stop_timers() -> None:
        """Do nothing."""

    def know(_code: int) -> None:
        """Do nothing."""

    def ticks() -> memoryview:
        """Return that there are none."""
        return memoryview(b"")


INTERVAL_NS = 4_000_000
"""CPU time between two ticks at first: that between two updates of it, on most kernels."""
OF_RUN = 1000
"""The time between two ticks is doubled when this many of it have passed."""

ON_CORE, BLOCKED, NO_CORE = range(3)
"""What a thread does: it has a core, it waits for something, or it is ready without a core."""

CUT = (1, 128)
"""Calls of a stack that may have more: see the handler."""
_signals: list[int] = []
"""The signal that is used from the first start on."""


Place = tuple[CodeType, int, int]
"""One call of a stack: code, the offset of the instruction in it, and line."""


class Tick(NamedTuple):
    """A look at the thread."""

    time: int
    """Nanoseconds on the clock of ``time.perf_counter_ns``."""
    spent: int
    """Nanoseconds for which it stands."""
    system: int
    """Those of them in which the thread was in the system, such as for page faults."""
    state: int
    stack: int
    """Its number. The handler writes in its place how many calls follow, of two words each."""


_FIELDS = len(Tick._fields)


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
        self._codes: dict[int, CodeType] = {}  # kept alive, by address

    def start(self) -> str:
        """Start the timers; return why that is impossible, empty where it is not."""
        if reason := why_not():
            return reason
        if not _signals:
            _signals.extend(_free_signals()[:1])
        if not _signals:
            return "lines need a real-time signal, and the program uses all of them"
        signal.signal(_signals[0], self._keep)
        error = start_timers(_signals[0], INTERVAL_NS, OF_RUN)
        return f"lines need a timer: {os.strerror(error)}" if error else ""

    def stop(self) -> tuple[list[list[Place]], list[Tick]]:
        """Stop the timers; return the stacks, with the innermost call first, and the ticks."""
        stop_timers()
        signal.signal(_signals[0], _ignore)  # one may still be on its way
        words, at = ticks().cast("q"), 0
        keys: dict[bytes, int] = {}
        found = []
        while at < len(words):
            calls = at + _FIELDS
            end = calls + 2 * words[calls - 1]
            stack = keys.setdefault(words[calls:end].tobytes(), len(keys))
            found.append(Tick._make([*words[at : calls - 1].tolist(), stack]))
            at = end
        stacks = [memoryview(key).cast("q").tolist() for key in keys]
        if any(address not in self._codes for stack in stacks for address in stack[::2]):
            # Of functions that had returned whenever the interpreter could keep their code.
            self._codes = _codes_of_functions(self._codes.values()) | self._codes
        return [self._places(stack) for stack in stacks], found

    def _keep(self, _number: int, frame: FrameType | None) -> None:
        """Keep the code that is on the stack; the interpreter calls this between instructions."""
        while frame is not None:
            code = frame.f_code
            if id(code) not in self._codes:
                self._codes[id(code)] = code
                know(id(code))
            frame = frame.f_back

    def _places(self, stack: list[int]) -> list[Place]:
        """Return the calls of a stack; of code that is gone, the line that called it counts."""
        pairs = zip(stack[::2], stack[1::2], strict=True)
        known = ((self._codes[address], at) for address, at in pairs if address in self._codes)
        return [(code, at, _line(code, at)) for code, at in known]


@functools.lru_cache(1024)
def _line(code: CodeType, offset: int) -> int:
    lines = (line for first, end, line in code.co_lines() if first <= offset < end)
    return next(lines, None) or code.co_firstlineno


def _codes_of_functions(codes: Iterable[CodeType]) -> dict[int, CodeType]:
    """Return some codes, those of the functions of all modules, and those inside, by address."""
    found: dict[int, CodeType] = {}
    left = list(codes)
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            members = list(vars(value).values()) if isinstance(value, type) else [value]
            left += [each.__code__ for each in members if type(each) is FunctionType]
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
    """Do nothing for a signal that was on its way when the timers were stopped."""


def _mask(how: int) -> None:
    """Let no tick come during a fork: a slow one would begin anew after each, again and again."""
    signal.pthread_sigmask(how, _signals)


def _end_in_child() -> None:
    stop_timers()
    _mask(signal.SIG_UNBLOCK)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _mask(signal.SIG_BLOCK),
        after_in_child=_end_in_child,
        after_in_parent=lambda: _mask(signal.SIG_UNBLOCK),
    )
