"""The time that the profiler takes for the call graph of a large run.

``python -m benchmarks.bench_profiler`` writes ``benchmarks/results/profiler.json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_of
from bsplib.recording.records import (
    NO_CPU,
    RECORD,
    TRAFFIC,
    Direction,
    Frame,
    GroupInfo,
    Run,
    root_group,
)
from profiler.callgraph import build

NPROCS, RECORDS = 16, 10**6
_LINES = 40
_PARTITIONS = 1000


def _stacks() -> tuple[tuple[Frame, ...], ...]:
    """Return stacks that end at different lines of a few functions."""
    top = Frame("app.py", "main", 1, 3)
    return tuple(
        (top, Frame("app.py", f"step{line % 5}", 100 * (line % 5), 100 * (line % 5) + line))
        for line in range(_LINES)
    )


def _groups() -> list[GroupInfo]:
    """Return the root, and partitions of it into halves."""
    half = NPROCS // 2
    halves = range(half), range(half, NPROCS)
    return [root_group(NPROCS)] + [
        GroupInfo(0, 0, partition, index, members)
        for partition in range(_PARTITIONS)
        for index, members in enumerate(halves)
    ]


def large_run(*, in_sub_groups: bool) -> Run:
    """Return a run in which some processes end one superstep in ten at a different line."""
    rng = np.random.default_rng(1)
    supersteps = RECORDS // NPROCS
    groups = _groups() if in_sub_groups else [root_group(NPROCS)]
    records = np.zeros(supersteps * NPROCS, RECORD)
    number = np.repeat(np.arange(supersteps), NPROCS)
    pid = np.tile(np.arange(NPROCS), supersteps)
    stack = np.repeat(rng.integers(0, _LINES, supersteps), NPROCS)
    alone = rng.random(len(stack)) < 0.1
    stack[alone] = rng.integers(0, _LINES, alone.sum())
    work = rng.integers(1000, 2000, (supersteps, NPROCS))
    released = np.cumsum(work.max(axis=1))
    records["start"] = np.repeat(released - work.max(axis=1), NPROCS)
    records["arrive"] = records["start"] + work.ravel()
    records["released"] = records["end"] = np.repeat(released, NPROCS)
    records["pid"], records["stack"], records["superstep"] = pid, stack, number
    records["cpu"] = NO_CPU
    if in_sub_groups:
        records["group"] = 1 + 2 * (number % _PARTITIONS) + pid // (NPROCS // 2)
    traffic = np.zeros(len(records), TRAFFIC)
    traffic["record"], traffic["bytes"], traffic["messages"] = np.arange(len(records)), 8, 1
    traffic["partner"], traffic["direction"] = pid ^ 1, Direction.OUT
    return Run(NPROCS, tuple(groups), _stacks(), records, traffic)


def _graphs(_: ExitStack) -> Sequence[Case]:
    """Compare a run of one group with one of many sub-groups."""
    runs = {
        "one group": large_run(in_sub_groups=False),
        f"{2 * _PARTITIONS} sub-groups": large_run(in_sub_groups=True),
    }
    return [
        Case(name, partial(seconds_of, partial(build, run)), goals=(Goal.seconds(1.0),))
        for name, run in runs.items()
    ]


SECTIONS = (
    Section(f"Call graph of a run of {RECORDS:.0e} records, p = {NPROCS}", "graph", _graphs),
)

BENCHMARK = Benchmark("profiler", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
