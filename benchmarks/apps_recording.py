"""The cost of recording for the applications: each with and without ``profile=``.

The same part is timed as in the other tables of the applications: in process 0, from sync
to sync, with the data already distributed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bsplib
from benchmarks.apps_fft import SIZE, transforms
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_each, seconds_of
from bsplib.apps.fourier import fft, fft_barrier_free, fft_cyclic
from bsplib.apps.sorting import external_sort, keycheck, keyfile, sample_sort
from bsplib.apps.sorting.blockwork import Files
from bsplib.apps.sorting.workspace import workspace
from bsplib.apps.sql.plan import plan_of
from bsplib.apps.sql.program import read_inputs
from bsplib.apps.sql.queries import sql_process

NPROCS = 2
_OFF = "off"
_COUNT = 3
"""Number of runs for a sample, which is their median."""
_GOAL = Goal.times(1.03, _OFF)

Sample = Callable[..., float]
"""A function that measures once; its argument is ``profile=`` or nothing."""


# -- the programs ---------------------------------------------------------------------------------


def sorts(bsp: bsplib.Group, size: int) -> float:
    """Return the seconds of a sample sort of random int64 that are distributed already."""
    numbers = np.random.default_rng(bsp.pid)
    block = numbers.integers(-(2**63), 2**63 - 1, size // bsp.nprocs, np.int64)

    def sort() -> None:
        sample_sort.sort_blocks(bsp, block)
        bsp.sync()

    return seconds_each(_COUNT, sort)


def queries(bsp: bsplib.Group, rows: int) -> float:
    """Return the seconds of the six queries over relations that are distributed already."""
    inputs, plan = read_inputs(bsp, rows), plan_of("owner")

    def evaluate() -> None:
        sql_process(bsp, inputs, plan)
        bsp.sync()

    return seconds_each(_COUNT, evaluate)


def sorts_files(bsp: bsplib.Group, files: Files, memory: int) -> float:
    """Return the seconds of a sort of a file."""

    def sort() -> None:
        external_sort.main(bsp, files, memory=memory)
        bsp.sync()

    bsp.sync()
    return seconds_of(sort)


# -- with and without -----------------------------------------------------------------------------


def _run(program: Callable[..., float], *args: Any, **options: Any) -> float:
    seconds: float = bsplib.run(program, *args, nprocs=NPROCS, **options)[0]
    return seconds


def _on_and_off(prepare: Callable[[Path], Sample], stack: ExitStack) -> Sequence[Case]:
    """Compare a program with and without recording; it returns its own seconds."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    sample = prepare(folder)

    def recorded() -> float:
        path = folder / "trace.bsp"
        try:
            return sample(profile=path)
        finally:
            path.unlink()  # otherwise the next run would be added to it

    return [Case(_OFF, sample), Case("on", recorded, goals=(_GOAL,))]


def _of_files(nbytes: int, memory: int, folder: Path) -> Sample:
    """Make a file of keys, and return a function that sorts it."""
    keys = keycheck.make_keys(folder / "keys.npy", nbytes // 8, lambda _: None)

    def sample(**options: Any) -> float:
        with workspace(keyfile.find_keys(keys.path), folder / "sorted.npy") as files:
            return _run(sorts_files, files, memory, **options)

    return sample


def _section(
    what: str, prepare: Callable[[Path], Sample], repeats: int = Section.repeats
) -> Section:
    title = f"Recording of {what}, p = {NPROCS}"
    return Section(title, "run", partial(_on_and_off, prepare), repeats)


def _program(what: str, program: Callable[..., float], *args: Any) -> Section:
    return _section(what, lambda _: partial(_run, program, *args))


def sections() -> list[Section]:
    """Return what is to be measured."""
    names = {fft_cyclic: "dealt out", fft: "recursive", fft_barrier_free: "barrier-free"}
    return [
        *(
            _program(f"the Fourier transform of 2^22 values, {name}", transforms, algorithm, SIZE)
            for algorithm, name in names.items()
        ),
        _program("the sample sort of 2 x 10^7 int64", sorts, 20_000_000),
        _program("the six queries, 10^7 rows of TRAN", queries, 10_000_000),
        _section("the external sort of 256 MiB", partial(_of_files, 256 << 20, 32 << 20), 5),
    ]
