"""The time and the memory that the profiler takes for large runs.

``python -m benchmarks.bench_profiler`` writes ``benchmarks/results/profiler.json``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.large_runs import LINES, in_new_process, stacks
from benchmarks.timing import seconds_of
from bsplib.directions import Direction
from bsplib.profiler.book import Book
from bsplib.profiler.callgraph import build
from bsplib.profiler.picture import picture_of
from bsplib.profiler.rates import Rates
from bsplib.recording.records import (
    FROM_SYSTEM,
    NOT_MEASURED,
    RECORD,
    TRAFFIC,
    GroupInfo,
    Run,
    root_group,
)

NPROCS, RECORDS = 16, 10**6
_PARTITIONS = 1000


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
    stack = np.repeat(rng.integers(0, LINES, supersteps), NPROCS)
    alone = rng.random(len(stack)) < 0.1
    stack[alone] = rng.integers(0, LINES, alone.sum())
    work = rng.integers(1000, 2000, (supersteps, NPROCS))
    released = np.cumsum(work.max(axis=1))
    records["start"] = np.repeat(released - work.max(axis=1), NPROCS)
    records["arrive"] = records["start"] + work.ravel()
    records["released"] = records["end"] = np.repeat(released, NPROCS)
    records["pid"], records["stack"], records["superstep"] = pid, stack, number
    for name in FROM_SYSTEM:
        records[name] = NOT_MEASURED
    if in_sub_groups:
        records["group"] = 1 + 2 * (number % _PARTITIONS) + pid // (NPROCS // 2)
    traffic = np.zeros(len(records), TRAFFIC)
    traffic["record"], traffic["bytes"], traffic["messages"] = np.arange(len(records)), 8, 1
    traffic["partner"], traffic["direction"] = pid ^ 1, Direction.OUT
    return Run(NPROCS, tuple(groups), stacks(), records, traffic)


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


# -- traces from the file to the losses ------------------------------------------------------------


class _Stages:
    """Samples of a trace, each from a new process, which reads it and books its losses."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        self._peak_bytes: dict[str, int] = {}

    def measure(self) -> float:
        """Read the trace in a new process; return the seconds until there is a call graph."""
        taken = in_new_process("read", self._path)
        self._seconds = {stage: taken[stage]["seconds"] for stage in taken}
        self._seconds["CPU"] = taken["losses"]["cpu_s"]
        for stage in taken:
            peak = taken[stage]["peak_bytes"]
            self._peak_bytes[stage] = max(peak, self._peak_bytes.get(stage, 0))
        return self._seconds["graph"]

    def last(self, stage: str) -> float:
        """Return the seconds of the last sample until a stage was complete."""
        return self._seconds[stage]

    def peak_bytes(self, stage: str) -> int:
        """Return the greatest memory of all samples until a stage was complete."""
        return self._peak_bytes[stage]

    def cases(self, name: str) -> list[Case]:
        """Return the cases of this trace; the others say what the first has measured."""
        graph, losses = (partial(self.peak_bytes, stage) for stage in ("graph", "losses"))
        limits = Goal.seconds(20.0), Goal.peak(4 * 2**30)
        return [
            Case(f"{name}: until the call graph", self.measure, goals=limits, peak_bytes=graph),
            Case(
                f"{name}: until the losses",
                partial(self.last, "losses"),
                goals=limits,
                peak_bytes=losses,
            ),
            Case(f"{name}: of this, reading", partial(self.last, "trace")),
            Case(f"{name}: CPU time of all", partial(self.last, "CPU")),
        ]


_TRACES = {
    "16 processes, 10^6 supersteps": (16, 10**6),
    "65,536 processes, 16 supersteps": (2**16, 16),
}


def _traces(stack: ExitStack) -> Sequence[Case]:
    """Write traces with as many rows of traffic as records, and read each in new processes."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    cases = []
    for number, (name, (nprocs, supersteps)) in enumerate(_TRACES.items()):
        path = folder / f"{number}.bsp"
        in_new_process("write", path, nprocs, supersteps)
        cases += _Stages(path).cases(name)
    return cases


_COLUMNS = 1000
_RATES = Rates(g=1e-9, l=1e-6)
_ZOOM_GOAL_S = 50e-3


def _pictures(_: ExitStack) -> Sequence[Case]:
    """Sum up the first window of a timeline, and answer a zoom into it."""
    run = large_run(in_sub_groups=False)
    for array in (run.records, run.traffic):
        array.setflags(write=False)  # as those of a trace that was read
    picture = picture_of(Book(run, _RATES), most_rows=128)
    steps, ended_ns = picture.steps.count, picture.steps.ended_ns
    zooms = {
        "supersteps": partial(picture.by_superstep, steps // 7, steps // 3, _COLUMNS),
        "time": partial(picture.by_time, ended_ns / 7, ended_ns / 3, _COLUMNS),
    }

    def first() -> None:
        picture_of(Book(run, _RATES), most_rows=128).by_superstep(0, steps, _COLUMNS)

    return [
        Case("the whole run by supersteps", partial(seconds_of, first)),
        *(
            Case(
                f"a third of it by {axis}",
                partial(seconds_of, zoom),
                goals=(Goal.seconds(_ZOOM_GOAL_S),),
            )
            for axis, zoom in zooms.items()
        ),
    ]


SECTIONS = (
    Section(f"Call graph of a run of {RECORDS:.0e} records, p = {NPROCS}", "graph", _graphs),
    Section(
        f"A window of the timeline of {RECORDS:.0e} records, p = {NPROCS}", "window", _pictures
    ),
    Section("A trace from the file to its losses", "trace", _traces, repeats=3, warm_up=0),
)

BENCHMARK = Benchmark("profiler", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
