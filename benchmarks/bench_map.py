"""A loop in parallel: ``bsplib.Pool.map`` beside pools and joblib, and how even the shares are.

``python -m benchmarks.bench_map`` writes ``benchmarks/results/map.json``. A task does nothing but
look at the clock until its time is over, so that it takes as long as it is told on a core of its
own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec

import numpy as np

import bsplib
from benchmarks import peers
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_of

NPROCS = 2
TASKS = 1000
SHAPE = 1.5
"""Of the Pareto distribution of times: their variance is infinite."""
LEAST_S = 2e-4
"""Of these times."""
WORK_S = 0.2
"""Of all tasks of the same time together, at least 20 of them."""
TIMES_S = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
LIMIT = "max(longest task, sum / p)"
LIBRARY = "multiprocessing.Pool.map"
LOKY = "joblib, loky"

Map = Callable[[Sequence[float]], object]


def task(seconds: float) -> float:
    """Keep a core busy for a time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return seconds


def pareto() -> list[float]:
    """Return the times of tasks of which a few take much longer than most."""
    random = np.random.default_rng(1)
    times: list[float] = (LEAST_S * (1 + random.pareto(SHAPE, TASKS))).tolist()
    return times


def _loky(tasks: Sequence[float]) -> object:
    from joblib import Parallel, delayed  # noqa: PLC0415  # may not be installed

    return Parallel(NPROCS)(delayed(task)(each) for each in tasks)


def _maps(stack: ExitStack) -> dict[str, Map]:
    """Return ways to call a function for each item, in processes that run already."""
    ours = stack.enter_context(bsplib.Pool(NPROCS))  # first, because it forks
    theirs = stack.enter_context(peers.FORK.Pool(NPROCS))
    joblib: dict[str, Map] = {LOKY: _loky} if find_spec("joblib") else {}
    if not joblib:
        print("without joblib: pip install -e '.[bench]'")
    return {
        LIBRARY: partial(theirs.map, task),
        f"{LIBRARY}, chunksize=1": partial(theirs.map, task, chunksize=1),
        **joblib,
        "bsplib.Pool.map": partial(ours.map, task),
    }


def _uneven(stack: ExitStack) -> Sequence[Case]:
    """Compare ways to share tasks of uneven times with the least time that there can be."""
    tasks = pareto()
    limit_s = max(*tasks, sum(tasks) / NPROCS)
    cases = [Case(LIMIT, lambda: limit_s)]
    for name, way in _maps(stack).items():
        goals = (Goal.times(1.1, LIMIT),) if "bsplib" in name else ()
        cases.append(Case(name, partial(seconds_of, partial(way, tasks)), (LIMIT,), goals))
    return cases


def _even(stack: ExitStack, task_s: float) -> Sequence[Case]:
    """Compare ways to share tasks that take all the same time."""
    tasks = [task_s] * max(20, round(WORK_S / task_s))
    each_s = 1 / len(tasks)
    cases = []
    for name, way in _maps(stack).items():
        goals = (Goal.times(1, LIBRARY), Goal.times(1, LOKY)) if "bsplib" in name else ()

        def sample(way: Map = way) -> float:
            return each_s * seconds_of(partial(way, tasks))

        cases.append(Case(name, sample, goals=goals))
    return cases


def _name(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.0f} ms"


SECTIONS = (
    Section(f"{TASKS} tasks of Pareto-distributed times, p = {NPROCS}", "loop", _uneven),
    *(
        Section(f"Tasks of {_name(seconds)}, p = {NPROCS}", "task", partial(_even, task_s=seconds))
        for seconds in TIMES_S
    ),
)

BENCHMARK = Benchmark("map", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
