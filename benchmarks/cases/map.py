"""A loop in parallel: ``Pool.map`` of bsplib and of multiprocessing, and how even the shares are.

A task does nothing but look at the clock until its time is over, so that it takes as long as it is
told on a core of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

import bsplib
from benchmarks import peers
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_of

NPROCS = 2
LIBRARY = "multiprocessing.Pool.map"

Map = Callable[[Sequence[float]], object]


def task(seconds: float) -> float:
    """Keep a core busy for a time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return seconds


def pareto(count: int = 1000, shape: float = 1.5, least_s: float = 2e-4) -> list[float]:
    """Return the times of tasks of which a few take much longer than most."""
    random = np.random.default_rng(1)
    times: list[float] = (least_s * (1 + random.pareto(shape, count))).tolist()
    return times


def _maps(stack: ExitStack) -> dict[str, Map]:
    """Return ways to call a function for each item, in processes that run already."""
    ours = stack.enter_context(bsplib.Pool(NPROCS))  # first, because it forks
    theirs = stack.enter_context(peers.FORK.Pool(NPROCS))
    return {
        LIBRARY: partial(theirs.map, task),
        "bsplib.Pool.map": partial(ours.map, task),
    }


def _uneven(stack: ExitStack) -> Sequence[Case]:
    """Compare ways to share tasks of uneven times with the least time that there can be."""
    tasks = pareto()
    limit_s = max(*tasks, sum(tasks) / NPROCS)
    return [
        Case("max(longest task, sum / p)", lambda: limit_s),
        *(
            Case(name, partial(seconds_of, partial(way, tasks)))
            for name, way in _maps(stack).items()
        ),
    ]


def _even(stack: ExitStack) -> Sequence[Case]:
    """Compare ways to share tasks that take all the same time."""
    tasks = [1e-4] * 2000

    def sample(way: Map) -> float:
        return seconds_of(partial(way, tasks)) / len(tasks)

    return [Case(name, partial(sample, way)) for name, way in _maps(stack).items()]


SECTIONS = (
    Section(f"1000 tasks of Pareto-distributed times, p = {NPROCS}", "loop", _uneven),
    Section(f"Tasks of 100 us, p = {NPROCS}", "task", _even),
)
