"""The samples of one process: what its thread executed, at regular times.

A process has two files of its own beside its records. ``PID.samples`` has rows of four integers:
ticks that found the same stack one after the other (``bsplib.core.sampling.Sampler``).
``PID.places`` has one line of JSON for each stack: whether its innermost call is a communication
primitive, and its frames. Both are written without a buffer, in between two instructions of the
program, which may be inside any function of Python, this recorder among them.

Memory is bounded: beyond ``MAX_STACKS`` stacks, a new one is recorded as its innermost function.
"""

from __future__ import annotations

import dis
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import numpy as np

from bsplib import call_site
from bsplib.core.sampling import MOST_CALLS, Place, Sampler
from bsplib.recording.record_folder import PLACES, SAMPLES
from bsplib.recording.records import Frame, Stack
from bsplib.recording.stacks import shortened

INTERVAL_NS = 997_000
"""Time from one sample to the next: 1 kHz, but in no step with what a program repeats each ms."""
TICKS = np.dtype(
    [("first", np.int64), ("last", np.int64), ("count", np.int64), ("stack", np.int64)]
)
"""A row of the file of samples; times are in ns since the barrier before ``main``. ``stack`` is
``STATES`` times the number of the stack, plus the state of the thread."""
MAX_STACKS = 20_000
_CUT = Frame("", "[calls left out]", 0, 0)
"""Stands for the outer calls of a stack that is too deep, or one of too many."""

_PRIMITIVES = frozenset(
    {"put", "get", "send", "hpput", "hpget", "put_at", "get_at", "move", "hpmove", "messages"}
    | {"_send_slowly", "_get_slowly", "_decode", "timed"}
)
"""Names of primitives whose time is that of communication calls, and of their long ways."""
_CALL = "CALL"
_CALL_BYTES = 8
"""An instruction that calls, with what the interpreter keeps behind it: a tick may stand there."""
_LOADS = frozenset({"LOAD_METHOD", "LOAD_ATTR"})


class LineSampler:
    """Samples this process from the start to the end of ``main``.

    Args:
        folder: of the records.
        pid: this process.
        outermost: code of the function that calls ``main``; stacks begin above it.
        began_ns: time 0 of the records.
        now: returns the time on the clock of the records.
    """

    def __init__(
        self,
        folder: Path,
        pid: int,
        outermost: CodeType,
        began_ns: int,
        now: Callable[[], int],
    ) -> None:
        import time  # noqa: PLC0415  # the name is needed nowhere else

        self._paths = [folder / f"{pid}.{name}" for name in (SAMPLES, PLACES)]
        self._files: list[int] = []
        self._outermost = outermost
        # The clocks of the hosts of a run differ, and the records have that of process 0.
        self._began_ns = began_ns - (now() - time.perf_counter_ns())
        self._numbers: dict[tuple[Stack, bool], int] = {}
        self._owner = os.getpid()
        self._sampler = Sampler(INTERVAL_NS, self._define_safely, self._save_safely)

    def start(self) -> str:
        """Start sampling; return why that was impossible, empty where it was not."""
        try:
            for path in self._paths:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                self._files.append(os.open(path, flags, 0o600))
            self._sampler.start()
        except (OSError, ValueError) as error:
            self._close()
            return str(error)
        return ""

    def close(self) -> None:
        """End sampling, and write what was sampled; what a forked process has is not its own."""
        if self._files and os.getpid() == self._owner:
            self._sampler.stop()
        self._close()

    def _close(self) -> None:
        files, self._files = self._files, []
        for file in files:
            os.close(file)

    def _write(self, which: int, content: bytes) -> None:
        """Write to a file; where that is impossible, what comes after it is lost."""
        if not self._files or os.getpid() != self._owner:
            return
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self._files[which], left) :]
        except OSError:
            self._close()

    def _define_safely(self, places: list[Place]) -> int:
        try:
            return self._define(places)
        except Exception as error:  # noqa: BLE001  # see _fail
            self._fail(error)
            return 0

    def _save_safely(self, rows: list[int]) -> None:
        try:
            self._save(rows)
        except Exception as error:  # noqa: BLE001  # see _fail
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End sampling after an error, which is none of the program.

        A handler of the program's own signals may be called in between, too: what it raises goes
        on to the program.
        """
        for file, *_ in call_site.stack_of_error(error.__traceback__):
            if not call_site.is_own_file(file) and not call_site.is_installed(file):
                raise error
        self._close()

    def _save(self, rows: list[int]) -> None:
        table = np.array(rows, np.int64).reshape(-1, 4)
        table[:, :2] -= self._began_ns
        self._write(0, table.tobytes())

    def _define(self, places: list[Place]) -> int:
        """Return the number of a stack."""
        stack, is_call = self._stack_of(places)
        known = self._numbers.get((stack, is_call))
        if known is not None:
            return known
        if len(self._numbers) >= MAX_STACKS and len(stack) > 1:
            stack = (_CUT, stack[-1])
            if (known := self._numbers.get((stack, is_call))) is not None:
                return known
        number = self._numbers[stack, is_call] = len(self._numbers)
        self._write(1, (json.dumps([is_call, shortened(stack)]) + "\n").encode())
        return number

    def _stack_of(self, places: list[Place]) -> tuple[Stack, bool]:
        """Return a stack from ``main`` down, and whether it is inside a communication call."""
        codes = [code for code, _, _ in places]
        is_cut = self._outermost not in codes
        if codes[0] is self._outermost or (is_cut and len(codes) < MOST_CALLS):  # outside main
            return (Frame("", call_site.END, 0, 0, library=True),), False
        places = places if is_cut else places[: codes.index(self._outermost)]
        frames = [
            Frame(code.co_filename, code.co_qualname, code.co_firstlineno, line, is_own)
            for code, _, line in places
            if not ((is_own := call_site.is_own(code)) and call_site.is_wrapper(code))
        ]
        if is_cut:
            frames.append(_CUT)
        return tuple(reversed(frames)), _is_call(places)


def _is_call(places: list[Place]) -> bool:
    """Tell whether a stack is inside a communication primitive.

    A primitive of the compiled core has no frame: there, the instruction shows it.
    """
    code, offset, _ = places[0]
    if offset in _calls_of_primitives(code):
        return True
    for code, _, _ in places:
        if not call_site.is_own(code):
            return False
        if code.co_name in _PRIMITIVES:
            return True
    return False


@functools.lru_cache(1024)
def _calls_of_primitives(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions that call a method with the name of a primitive.

    The method was looked up by an instruction before it, which begins at the same place of the
    source. Most functions have no such name: then nothing is disassembled.
    """
    found: set[int] = set()
    if _PRIMITIVES.isdisjoint(code.co_names):
        return frozenset()
    looked_up: dict[tuple[int | None, int | None], str] = {}
    for each in dis.get_instructions(code):
        if each.positions is None:
            continue
        place = each.positions.lineno, each.positions.col_offset
        if each.opname in _LOADS:
            looked_up[place] = each.argval
        elif each.opname.startswith(_CALL) and looked_up.get(place) in _PRIMITIVES:
            found.update(range(each.offset, each.offset + _CALL_BYTES, 2))
    return frozenset(found)
