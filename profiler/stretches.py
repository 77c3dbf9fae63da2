"""The stretch of the program in which a superstep was computed, without samples.

A superstep begins where the sync before it ended, and ends where it is called. The two call stacks
agree down to one function; there, the superstep is the stretch between two lines.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import format as fmt

if TYPE_CHECKING:
    from bsplib.recording.records import Run, Stack


class Stretch(NamedTuple):
    """A part of a function, from one line to another."""

    file: str
    function: str
    first: int
    """Line of the call at its beginning; 0: the function begins there."""
    last: int
    """Line of the call at its end."""

    @property
    def text(self) -> str:
        """The stretch in words."""
        file = fmt.visible(self.file.rpartition("/")[2])
        where = f"of {fmt.visible(self.function)} ({file})" if file else ""
        if not self.first:
            between = f"from the beginning to line {self.last}"
        elif self.first == self.last:
            between = f"from line {self.first} to the next time there"
        else:
            between = f"between line {self.first} and line {self.last}"
        return f"{between} {where}".strip()


class StretchCost(NamedTuple):
    """What the supersteps of a stretch computed."""

    stretch: Stretch
    supersteps: int
    """Of the process with the most."""
    computing_s: float
    """Elapsed computing time, average over the processes."""
    greatest_s: float
    """The same of the process with the most."""
    pid: int
    """That process."""


def stretch_of(before: Stack | None, after: Stack) -> Stretch:
    """Return the stretch between two syncs.

    Args:
        before: stack of the sync before; None: the stretch begins with the program.
        after: stack of the sync at the end.
    """
    if before is None:
        frame = after[0]
        return Stretch(frame.file, frame.function, 0, frame.line)
    depth = 0
    deepest = min(len(before), len(after)) - 1
    while depth < deepest and before[depth] == after[depth]:
        depth += 1
    one, other = before[depth], after[depth]
    if one[:3] != other[:3]:  # two functions that one line calls: its function has the stretch
        depth = max(depth - 1, 0)
        one, other = before[depth], after[depth]
    first = one.line if one[:3] == other[:3] else 0
    return Stretch(other.file, other.function, first, other.line)


def stretches_of(run: Run) -> list[StretchCost]:
    """Return the stretches of a run, the one with the most computing first."""
    records = run.records
    elapsed = records["arrive"] - records["start"] - records["comm_calls"] - records["sub"]
    sums: defaultdict[tuple[int, int], list[np.ndarray]]
    sums = defaultdict(lambda: [np.zeros(run.nprocs), np.zeros(run.nprocs, np.int64)])
    for pid in range(run.nprocs):
        rows = np.flatnonzero(records["pid"] == pid)
        after = records["stack"][rows].astype(np.int64)
        before = np.concatenate([[-1], after[:-1]])[: len(after)]
        keys = before * len(run.stacks) + after
        each, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        totals = np.bincount(inverse.reshape(-1), elapsed[rows].clip(0))
        for key, total, count in zip(each.tolist(), totals, counts, strict=True):
            ends = key // len(run.stacks), key % len(run.stacks)
            sums[ends][0][pid] += total
            sums[ends][1][pid] += count
    return _merged(run, sums)


def _merged(run: Run, sums: dict[tuple[int, int], list[np.ndarray]]) -> list[StretchCost]:
    """Return the cost of each stretch, several pairs of stacks of which may be one."""
    merged: defaultdict[Stretch, list[np.ndarray]]
    merged = defaultdict(lambda: [np.zeros(run.nprocs), np.zeros(run.nprocs, np.int64)])
    for (before, after), (total, count) in sums.items():
        stretch = stretch_of(None if before < 0 else run.stacks[before], run.stacks[after])
        merged[stretch][0] += total
        merged[stretch][1] += count
    costs = []
    for stretch, (total, count) in merged.items():
        pid = int(total.argmax())
        average = float(total.mean()) / 1e9
        costs.append(StretchCost(stretch, int(count.max()), average, float(total[pid]) / 1e9, pid))
    return sorted(costs, key=lambda cost: (-cost.greatest_s, cost.stretch))
