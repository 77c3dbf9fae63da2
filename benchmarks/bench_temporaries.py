"""A loop over arrays of numpy, in a process of bsplib and in a process of Python alone.

``python -m benchmarks.bench_temporaries`` writes ``benchmarks/results/temporaries.json``. Each
operation has a new array for its result. A process of a run keeps the memory of those before.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

import bsplib
from benchmarks.command import Benchmark, run
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section

SIZES = (10_000, 80_000, 400_000, 1_000_000)
_ROUNDS, _PASSES = 30, 3
_ALONE = "Python"


def relaxation(count: int) -> float:
    """Return the seconds of a relaxation of so many values, the least of several passes."""
    x = np.linspace(0.0, 1.0, count)
    passes = []
    for _ in range(_PASSES):
        began = time.perf_counter()
        for _ in range(_ROUNDS):
            x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[:-2] + x[2:])
        passes.append(time.perf_counter() - began)
    return min(passes) / _ROUNDS


def _in_a_run(count: int) -> float:
    seconds: float = bsplib.run(lambda _: relaxation(count), nprocs=1)[0]
    return seconds


def _alone(count: int) -> float:
    program = f"from benchmarks.bench_temporaries import relaxation; print(relaxation({count}))"
    folder = Path(__file__).parents[1]
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    return float(told.stdout)


def _cases(count: int, _: ExitStack) -> Sequence[Case]:
    alone = Case(_ALONE, partial(_alone, count))
    goals = (Goal.times(1.1, _ALONE),)
    return [alone, Case("bsplib", partial(_in_a_run, count), goals=goals)]


SECTIONS = tuple(
    Section(f"Relaxation of {count} values of 8 B, p = 1", "pass", partial(_cases, count))
    for count in SIZES
)

BENCHMARK = Benchmark("temporaries", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
