"""Reads what a process sampled (:mod:`bsplib.recording.line_sampler`).

Whether a sample is in a sync is decided by the times of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsplib.recording.packing import heads, unpacked, whole_chunks
from bsplib.recording.records import MAX_NUMBER, SAMPLE, Doing
from bsplib.recording.spool import SAMPLES


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
