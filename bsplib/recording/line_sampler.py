"""The samples of one process: what its thread executed, at regular times; written and read.

The sampler (:mod:`bsplib.core.sampling`) calls this between two instructions of the program, which
may be inside any function of Python, the recorder among them. So what it finds is written through
the two methods of the spool that expect this (:meth:`bsplib.recording.spool.Spool.add_samples`).

Memory is bounded: beyond ``MAX_STACKS`` stacks, a new one is recorded as its innermost function,
and beyond ``MAX_SAMPLES`` samples, no more are kept.
"""

from __future__ import annotations

import dis
import functools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType

import numpy as np
from numpy.typing import NDArray

from bsplib import call_site
from bsplib.core.sampling import STATES, Place, Sampler
from bsplib.recording.packing import heads, unpacked, whole_chunks
from bsplib.recording.records import MAX_NUMBER, SAMPLE, Doing, Frame, Stack
from bsplib.recording.spool import SAMPLES, Spool

INTERVAL_NS = 997_000
"""Time from one sample to the next: 1 kHz, but in no step with what a program repeats each ms."""
MAX_STACKS = 20_000
MAX_SAMPLES = 2**26
"""Greatest number of samples of one process: 18 hours at 1 kHz."""
_BY_STATE = np.array([Doing.COMPUTING, Doing.BLOCKED, Doing.NO_CORE], np.uint8)
"""What a process does outside of calls and syncs, by the state of its thread."""
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
        spool: to which the samples are written.
        outermost: code of the function that calls ``main``; stacks begin above it.
        began_ns: time 0 of the records.
        now: returns the time on the clock of the records.
    """

    def __init__(
        self,
        spool: Spool,
        outermost: CodeType,
        began_ns: int,
        now: Callable[[], int],
    ) -> None:
        self._spool: Spool | None = spool
        self._outermost = outermost
        # The clocks of the hosts of a run differ, and the records have that of process 0.
        self._began_ns = began_ns - (now() - time.perf_counter_ns())
        self._left = MAX_SAMPLES
        self._numbers: dict[Stack, int] = {}
        self._owner = os.getpid()
        self._sampler = Sampler(INTERVAL_NS, self._define_safely, self._save_safely)

    def start(self) -> str:
        """Start sampling; return why that was impossible, empty where it was not."""
        try:
            self._sampler.start()
        except (OSError, ValueError) as error:
            self._spool = None
            return str(error)
        return ""

    def close(self) -> None:
        """End sampling, and write what was sampled; what a forked process has is not its own."""
        if self._spool is not None and os.getpid() == self._owner:
            self._sampler.stop()
        self._spool = None

    def _define_safely(self, places: list[Place], is_cut: bool) -> int:
        try:
            return self._define(places, is_cut)
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
        if call_site.is_of_handler(error):
            raise error
        self._spool = None

    def _save(self, rows: list[int]) -> None:
        """Write the samples of rows of ticks (:class:`bsplib.core.sampling.Sampler`)."""
        spool = self._writable()
        if spool is None or not rows:
            return
        first, last, count, what = np.array(rows, np.int64).reshape(-1, 4).T
        count = np.minimum(count, self._left - (np.cumsum(count) - count)).clip(0)
        self._left -= int(count.sum())
        each = np.repeat(np.arange(len(count)), count)
        place, state = np.divmod(what[each], STATES)
        samples = np.zeros(len(each), SAMPLE)
        samples["time"] = _times(first, last, count, each) - self._began_ns
        samples["stack"], is_call = np.divmod(place, 2)
        samples["doing"] = np.where(is_call, Doing.CALL, _BY_STATE[state])
        within = (samples["time"] >= 0) & (samples["time"] <= MAX_NUMBER)
        spool.add_samples(samples[within])

    def _define(self, places: list[Place], is_cut: bool) -> int:
        """Return twice the number of a stack, plus 1 where it is inside a communication call."""
        stack, is_call = self._stack_of(places, is_cut)
        number = self._numbers.get(stack)
        if number is None and len(self._numbers) >= MAX_STACKS and len(stack) > 1:
            stack = (_CUT, stack[-1])
            number = self._numbers.get(stack)
        if number is None:
            number = len(self._numbers)
            if (spool := self._writable()) is not None:
                spool.define_sampled(number, stack)  # may raise what a handler of the program does
            self._numbers[stack] = number
        return 2 * number + is_call

    def _writable(self) -> Spool | None:
        """Return the spool; None in a forked process, and after an error."""
        return self._spool if os.getpid() == self._owner else None

    def _stack_of(self, places: list[Place], is_cut: bool) -> tuple[Stack, bool]:
        """Return a stack from ``main`` down, and whether it is inside a communication call."""
        codes = [code for code, _, _ in places]
        is_whole = self._outermost in codes
        if codes[0] is self._outermost or not (is_whole or is_cut):  # outside main
            return (Frame("", call_site.END, 0, 0, library=True),), False
        places = places[: codes.index(self._outermost)] if is_whole else places
        frames = [
            Frame(code.co_filename, code.co_qualname, code.co_firstlineno, line, is_own)
            for code, _, line in places
            if not ((is_own := call_site.is_own(code)) and call_site.is_hidden(code))
        ]
        if not is_whole:
            frames.append(_CUT)
        return tuple(reversed(frames)), _is_call(places)


def _times(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    count: NDArray[np.int64],
    each: NDArray[np.intp],
) -> NDArray[np.int64]:
    """Return the times of ticks, which are evenly spaced in a row; ``each`` has their rows."""
    steps = (last - first) / np.maximum(count - 1, 1)
    within = np.arange(len(each)) - (np.cumsum(count) - count)[each]
    times: NDArray[np.int64] = first[each] + (within * steps[each]).astype(np.int64)
    return times


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


# -- reading the samples of a process -------------------------------------------------------------


def read_samples(
    folder: Path, pid: int, stacks: Sequence[int], records: Callable[[], NDArray[np.void]]
) -> NDArray[np.void] | None:
    """Return the samples of a process that can be true; None where it was not sampled.

    Args:
        folder: where the process kept its records.
        pid: the process.
        stacks: the number in the run of each stack that its samples name.
        records: returns the records of the process; called only if it was sampled.

    Raises:
        TraceError: the file is damaged.
    """
    path = folder / f"{pid}.{SAMPLES}"
    if not path.exists():
        return None
    content = whole_chunks(memoryview(path.read_bytes()))
    chunks = [unpacked(payload, head.rows, SAMPLE) for head, payload in heads(content)]
    samples = np.concatenate([np.empty(0, SAMPLE), *chunks])
    time, stack = samples["time"], samples["stack"]
    kept = (time >= 0) & (time <= MAX_NUMBER) & (stack >= 0) & (stack < len(stacks))
    kept &= samples["doing"] < len(Doing)
    samples = samples[kept]
    samples["pid"] = pid
    samples["stack"] = np.array(stacks, np.int32)[samples["stack"]]
    samples["doing"][_are_in_sync(samples["time"], records())] = Doing.WAITING
    return samples[np.argsort(samples["time"], kind="stable")]


def joined_samples(parts: Sequence[NDArray[np.void] | None]) -> NDArray[np.void] | None:
    """Return the samples of all processes; None where none was sampled."""
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None


def _are_in_sync(times: NDArray[np.int64], records: NDArray[np.void]) -> NDArray[np.bool_]:
    """Tell which times are between the arrival at a sync and its end.

    The records of a process are in order of their ends, and its syncs do not overlap.
    """
    if not len(records):
        return np.zeros(len(times), bool)
    place = np.searchsorted(records["end"], times, side="right").clip(max=len(records) - 1)
    found: NDArray[np.bool_] = (records["arrive"][place] <= times) & (times < records["end"][place])
    return found
