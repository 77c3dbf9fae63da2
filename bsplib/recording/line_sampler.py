"""The samples of one process: what its thread executed from time to time; written and read.

The sampler (:mod:`bsplib.core.sampling`) keeps what it sees until ``main`` ends. Then it is
written, once; a process that is killed has no samples.
"""

from __future__ import annotations

import dis
import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from types import CodeType

import numpy as np
from numpy.typing import NDArray

from bsplib import call_site
from bsplib.core.sampling import CUT, Place, Sampler
from bsplib.recording.records import MAX_NUMBER, SAMPLE, Doing, Frame, Stack, shortened
from bsplib.recording.spool import Spool

BY_STATE = (Doing.COMPUTING, Doing.BLOCKED, Doing.NO_CORE)
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
        self, spool: Spool, outermost: CodeType, began_ns: int, now: Callable[[], int]
    ) -> None:
        self._spool = spool
        self._outermost = outermost
        # The clocks of the hosts of a run differ, and the records have that of process 0.
        self._began_ns = began_ns - (now() - time.perf_counter_ns())
        self._owner = os.getpid()
        self._sampler = Sampler()
        self.reason = self._sampler.start()
        """Why nothing is sampled; empty where it is."""

    def close(self) -> None:
        """End sampling, and write what was sampled; what a forked process has is not its own."""
        if self.reason or os.getpid() != self._owner:
            return
        stacks, ticks = self._sampler.stop()
        numbers: dict[Stack, int] = {}
        found = []
        for places in stacks:
            stack, is_call = self._stack_of(places)
            found.append((numbers.setdefault(stack, len(numbers)), is_call))
        rows = []
        for tick in ticks:
            number, is_call = found[tick.stack]
            doing = Doing.CALL if is_call else BY_STATE[tick.state]
            moment = tick.time - self._began_ns
            rows.append((moment, number, doing, tick.spent, tick.system))
        self._spool.define("samples", [[*map(shortened, numbers)], rows], is_needed=False)

    def _stack_of(self, places: list[Place]) -> tuple[Stack, bool]:
        """Return a stack from ``main`` down, and whether it is inside a communication call.

        A line that a recursion has on the stack several times counts once.
        """
        codes = [code for code, _, _ in places]
        is_whole = self._outermost in codes
        places = places[: codes.index(self._outermost)] if is_whole else places
        if not places or (not is_whole and len(codes) not in CUT):  # outside main
            return (Frame("", call_site.END, 0, 0, library=True),), False
        frames = [
            Frame(code.co_filename, code.co_qualname, code.co_firstlineno, line)
            for code, line in _of_program(places)
        ] or [Frame("", call_site.IN_MAP, 0, 0, library=True)]
        outer = () if is_whole else (_CUT,)
        return (*outer, *dict.fromkeys(frames)), _is_call(places)


def _of_program(places: list[Place]) -> Iterator[tuple[CodeType, int]]:
    """Yield the calls of a stack that are the program's, the outermost first, with their lines.

    What bsplib has called of the standard library or of numpy, such as the reader of a file, is no
    part of the program, but for a function whose items ``bsplib.map`` does.
    """
    is_called_by_bsplib = False
    for code, _, line in reversed(places):
        if call_site.is_own(code):
            is_called_by_bsplib = not call_site.does_items(code)
        elif not (is_called_by_bsplib and _is_of_library(code.co_filename)):
            is_called_by_bsplib = False
            yield code, line


@functools.lru_cache(1024)
def _is_of_library(file: str) -> bool:
    """Tell whether bsplib calls code of a file by itself: also methods that a dataclass makes."""
    return file == "<string>" or call_site.is_called_by_bsplib(file)


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


def samples_of(
    pid: int,
    told: list[list[int]] | None,
    stacks: Sequence[int],
    records: Callable[[], NDArray[np.void]],
) -> NDArray[np.void] | None:
    """Return the samples of a process that can be true; None where it was not sampled.

    Args:
        pid: the process.
        told: what it has told of them; see :meth:`bsplib.recording.spool.Spool.define`.
        stacks: the number in the run of each stack that its samples name.
        records: returns the records of the process; called only if it was sampled.

    Raises:
        ValueError: it has told something else.
        OverflowError: a number is too large.
    """
    if told is None:
        return None
    time, stack, doing, spent, system = np.array(told, np.int64).reshape(-1, 5).T
    kept = (time >= 0) & (time <= MAX_NUMBER) & (stack >= 0) & (stack < len(stacks))
    kept &= (doing >= 0) & (doing < len(Doing)) & (spent >= system) & (spent <= MAX_NUMBER)
    kept &= system >= 0
    samples = np.zeros(int(np.count_nonzero(kept)), SAMPLE)
    samples["pid"], samples["time"], samples["doing"] = pid, time[kept], doing[kept]
    samples["stack"] = np.array(stacks, np.int32)[stack[kept]]
    samples["spent"], samples["system"] = spent[kept], system[kept]
    rows = records()
    # The records of a process are in order of their ends, and its syncs do not overlap.
    samples["doing"][are_between(samples["time"], rows["arrive"], rows["end"])] = Doing.WAITING
    return samples[np.argsort(samples["time"], kind="stable")]


def joined_samples(parts: Sequence[NDArray[np.void] | None]) -> NDArray[np.void] | None:
    """Return the samples of all processes; None where none was sampled."""
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None


def are_between(
    times: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Tell which times are in one of some stretches, which do not overlap and are in order."""
    if not len(ends):
        return np.zeros(len(times), bool)
    place = np.searchsorted(ends, times, side="right").clip(max=len(ends) - 1)
    found: NDArray[np.bool_] = (begins[place] <= times) & (times < ends[place])
    return found
