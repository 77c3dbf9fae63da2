"""What the trace of a run says of the blocks of its experiments: their h-relations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bsplib.errors import TraceError
from bsplib.experiments.blocks import Sample, Samples
from bsplib.recording.records import Direction, Run
from bsplib.recording.trace import read_trace
from bsplib.sync_kinds import Kind

H = dict[tuple[int, int], int]
"""Bytes by process and position of the sample among those of the process."""


def h_of_samples(path: Path, samples: Sequence[Samples]) -> H:
    """Return the h-relation of each passage of a block on each process, in bytes.

    It is the sum over the supersteps that ended inside, those of sub-groups too, of what the
    process sent or received, whichever is more.

    Args:
        path: a trace whose last run has the samples.
        samples: what each process has measured.

    Returns:
        Nothing where the trace cannot be read, since its records were lost for example.
    """
    try:
        run = read_trace(path).runs[-1]
    except (TraceError, IndexError):
        return {}
    if run.nprocs != len(samples):
        return {}
    h = _h_of_records(run)
    found: H = {}
    for pid, own in enumerate(samples):
        mine = np.flatnonzero((run.records["pid"] == pid) & (run.records["kind"] != Kind.END))
        began, ended = (run.records[field][mine] for field in ("arrive", "end"))
        for number, each in enumerate(own.kept):
            inside = _inside(each, began, ended)
            found[pid, number] = int(h[mine[inside]].sum())
    return found


def _inside(
    sample: Sample, arrived: NDArray[np.int64], ended: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Mark the supersteps that ended inside a passage."""
    first, last = round(sample.began_s * 1e9), round(sample.ended_s * 1e9)
    marked: NDArray[np.bool_] = (arrived >= first) & (ended <= last)
    return marked


def _h_of_records(run: Run) -> NDArray[np.int64]:
    """Return the greater of bytes in and bytes out, for each record."""
    sent = np.zeros(len(run.records), np.int64)
    received = np.zeros_like(sent)
    keys = ("pid", "group", "superstep")
    place = {
        key: number
        for number, key in enumerate(zip(*map(run.records.__getitem__, keys), strict=True))
    }
    for row in run.traffic:
        own = int(row["record"])
        _, group, superstep = (run.records[own][key] for key in keys)
        other = place.get((row["partner"], group, superstep))
        mine, theirs = (sent, received) if row["direction"] == Direction.OUT else (received, sent)
        mine[own] += row["bytes"]
        if other is not None:
            theirs[other] += row["bytes"]
    return np.maximum(sent, received)
