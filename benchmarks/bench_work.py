"""The seconds that sorts and relational operators charge on virtual processors.

``python -m benchmarks.bench_work`` writes ``benchmarks/results/work.json``; the constants in
``apps/work.py`` are its medians.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

from benchmarks.command import Benchmark, run
from benchmarks.harness import Case, Section

ROWS = 2**17
"""Rows of a process: 1 MiB in a column of 8 B, about the share of a core in the caches."""
_GROUPS = 2**14


def _seconds_of_each(operation: Callable[[], object], count: float) -> float:
    began = time.perf_counter()
    operation()
    return (time.perf_counter() - began) / count


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def _copies(_: ExitStack) -> Sequence[Case]:
    """Copy values in random order, as an operator does that selects or moves rows."""
    values, order = _random().random(ROWS), _random().permutation(ROWS)
    return [Case("numpy take", partial(_seconds_of_each, lambda: values.take(order), ROWS))]


def _comparisons(_: ExitStack) -> Sequence[Case]:
    """Sort the positions of rows by their keys, as a sort of records does."""
    keys = _random().integers(0, 2**62, ROWS)
    sort = partial(keys.argsort, kind="stable")
    return [Case("numpy argsort", partial(_seconds_of_each, sort, ROWS * math.log2(ROWS)))]


def _sums(_: ExitStack) -> Sequence[Case]:
    """Add values to the sums of their groups."""
    groups = _random().integers(0, _GROUPS, ROWS)
    values, sums = np.ones(ROWS, np.int64), np.zeros(_GROUPS, np.int64)
    add = partial(np.add.at, sums, groups, values)
    return [Case("numpy add.at", partial(_seconds_of_each, add, ROWS))]


SECTIONS = (
    Section(f"Copy {ROWS} values of 8 B in random order", "value", _copies),
    Section(f"Sort {ROWS} keys of 8 B, divided by n log2 n", "comparison", _comparisons),
    Section(f"Add {ROWS} values of 8 B to {_GROUPS} sums", "value", _sums),
)

BENCHMARK = Benchmark("work", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
