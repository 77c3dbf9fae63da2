"""Reads what a process sampled, and finds out what it was doing then.

The ticks of a row become samples, evenly spaced. Whether one is in a sync is decided by the times
of the records; whether it is in a communication call, by its stack.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsplib.core.sampling import STATES
from bsplib.recording.line_sampler import TICKS
from bsplib.recording.record_folder import PLACES, SAMPLES
from bsplib.recording.records import MAX_NUMBER, SAMPLE, Doing, Frame, Stack

_BY_STATE = np.array([Doing.COMPUTING, Doing.BLOCKED, Doing.NO_CORE], np.uint8)
"""What a process does outside of calls and syncs, by the state of its thread."""
MAX_SAMPLES = 2**26
"""Of one process: 18 hours at 1 kHz. Later ones are left out."""


def read_samples(
    folder: Path, pid: int, stacks: dict[Stack, int], records: NDArray[np.void]
) -> NDArray[np.void] | None:
    """Return the samples of a process; None where it was not sampled.

    Args:
        folder: where the process kept its records.
        pid: the process.
        stacks: the numbers of the stacks of the run; those that it does not have yet are added.
        records: those of the process.

    Raises:
        ValueError: a file is damaged; also LookupError and TypeError.
    """
    path = folder / f"{pid}.{SAMPLES}"
    raw = path.read_bytes() if path.exists() else b""
    if len(raw) < TICKS.itemsize:
        return None
    numbers, calls = _read_places(folder / f"{pid}.{PLACES}", stacks)
    ticks = np.frombuffer(raw, TICKS, len(raw) // TICKS.itemsize)
    sound = (ticks["stack"] >= 0) & (ticks["stack"] < STATES * len(numbers)) & (ticks["count"] > 0)
    sound &= (ticks["first"] <= ticks["last"]) & (ticks["last"] <= MAX_NUMBER)
    sound &= np.cumsum(ticks["count"].clip(0)) <= MAX_SAMPLES
    ticks = ticks[sound]
    samples = np.zeros(int(ticks["count"].sum()), SAMPLE)
    each = np.repeat(np.arange(len(ticks)), ticks["count"])
    samples["pid"] = pid
    samples["time"] = _times(ticks, each)
    stack, state = np.divmod(ticks["stack"][each], STATES)
    samples["stack"] = numbers[stack]
    samples["doing"] = np.where(calls[stack], Doing.CALL, _BY_STATE[state])
    samples["doing"][_are_in_sync(samples["time"], records)] = Doing.WAITING
    return samples


def joined_samples(parts: Sequence[NDArray[np.void] | None]) -> NDArray[np.void] | None:
    """Return the samples of all processes; None where none was sampled."""
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None


def _times(ticks: NDArray[np.void], each: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the time of each tick; ``each`` is the position of its row."""
    begins = np.cumsum(ticks["count"]) - ticks["count"]
    steps = (ticks["last"] - ticks["first"]) / np.maximum(ticks["count"] - 1, 1)
    since = (np.arange(len(each)) - begins[each]) * steps[each]
    times = ticks["first"][each] + since.astype(np.int64)
    found: NDArray[np.int64] = np.maximum.accumulate(times.clip(0))
    return found


def _are_in_sync(times: NDArray[np.int64], records: NDArray[np.void]) -> NDArray[np.bool_]:
    """Tell which times are between the arrival at a sync and its end.

    The records of a process are in order of their ends, and its syncs do not overlap.
    """
    if not len(records):
        return np.zeros(len(times), bool)
    place = np.searchsorted(records["end"], times, side="right").clip(max=len(records) - 1)
    found: NDArray[np.bool_] = (records["arrive"][place] <= times) & (times < records["end"][place])
    return found


def _read_places(
    path: Path, stacks: dict[Stack, int]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the number of each stack in the run, and whether it is inside a call."""
    numbers, calls = [], []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text.split("\n")[:-1]:  # a last line without its end is incomplete
        is_call, frames = json.loads(line)
        stack = tuple(Frame(*frame) for frame in frames)
        numbers.append(stacks.setdefault(stack, len(stacks)))
        calls.append(bool(is_call))
    return np.array(numbers, np.int32), np.array(calls, bool)
