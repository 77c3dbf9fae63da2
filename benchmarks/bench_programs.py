"""The time that whole programs take.

``python -m benchmarks.bench_programs`` writes ``benchmarks/results/programs.json``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

import bsplib
from benchmarks import programs_against
from benchmarks.command import Benchmark, run
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_of
from bsplib.apps.broadcast import broadcast
from bsplib.apps.sorting import bitonic_sort


def _figure_3(_: ExitStack) -> Sequence[Case]:
    """Measure the whole run of Jarvis et al., Figure 3: 1500 supersteps, 4096 values."""
    return [
        Case(f"p = {p}", partial(seconds_of, partial(bsplib.run, broadcast.main, nprocs=p)))
        for p in (2, 16)
    ]


def _real_sort(_: ExitStack) -> Sequence[Case]:
    """Compare the whole run of a sort with numpy's sort in one process."""
    keys = np.random.default_rng(0).random(2**22)

    def sort(bsp: bsplib.Group) -> float:
        bsp.sync()
        began = time.perf_counter()
        bitonic_sort.main(bsp, keys)
        bsp.sync()
        return time.perf_counter() - began

    def sample(nprocs: int) -> float:
        seconds: float = bsplib.run(sort, nprocs=nprocs)[0]
        return seconds

    library = "np.sort"
    return [
        Case(library, partial(seconds_of, partial(np.sort, keys))),
        *(Case(f"bitonic_sort, p = {p}", partial(sample, p), (library,)) for p in (1, 2, 4)),
    ]


def _virtual_sort(_: ExitStack) -> Sequence[Case]:
    """Measure the whole run of a sort on virtual processors."""
    whole = partial(bsplib.run, bitonic_sort.main, 2**16, nprocs=512, backend="sim")
    return [Case("sim, p = 512", partial(seconds_of, whole))]


SECTIONS = (
    *programs_against.sections(),
    Section("Broadcasts of Jarvis et al. (2002), Figure 3", "run", _figure_3, 5),
    Section("Bitonic sort of 2^22 float64", "sort", _real_sort, 5),
    Section("Bitonic sort of 2^16 float64 on virtual processors", "run", _virtual_sort, 3, 0),
)

BENCHMARK = Benchmark("programs", SECTIONS)

if __name__ == "__main__":
    run([BENCHMARK])
