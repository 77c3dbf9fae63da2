"""What records cost the applications: each with and without ``profile=``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bsplib
from apps import fft, fft_barrier_free, fft_cyclic, sample_sort
from benchmarks.apps_fft import SIZE, transforms
from benchmarks.goals import Goal
from benchmarks.harness import Case, Section
from benchmarks.timing import seconds_each

NPROCS = 2
_OFF = "off"
_KEYS = 20_000_000
_SORTS = 3
"""Sorts of a sample, of which the median counts."""
_MOST = 1.03


def sorts(bsp: bsplib.Group, size: int) -> float:
    """Return the seconds of a sample sort of random int64 that are dealt out already."""
    numbers = np.random.default_rng(bsp.pid)
    block = numbers.integers(-(2**63), 2**63 - 1, size // bsp.nprocs, np.int64)

    def sort() -> None:
        sample_sort.sort_blocks(bsp, block)
        bsp.sync()

    return seconds_each(_SORTS, sort)


def on_and_off(
    program: Callable[..., float], args: tuple[Any, ...], stack: ExitStack
) -> Sequence[Case]:
    """Compare a program with records and without; it says how long it took."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

    def sample(**options: Any) -> float:
        seconds: float = bsplib.run(program, *args, nprocs=NPROCS, **options)[0]
        return seconds

    def recorded() -> float:
        path = folder / "trace.bsp"
        try:
            return sample(profile=path)
        finally:
            path.unlink()  # a program's second run would be added to it

    return [Case(_OFF, sample), Case("on", recorded, goals=(Goal.times(_MOST, _OFF),))]


def _section(what: str, program: Callable[..., float], *args: Any) -> Section:
    return Section(f"Recording of {what}, p = {NPROCS}", "run", partial(on_and_off, program, args))


def sections() -> list[Section]:
    """Return what is to be measured."""
    names = {fft_cyclic: "dealt out", fft: "recursive", fft_barrier_free: "barrier-free"}
    return [
        *(
            _section(f"the Fourier transform of 2^22 values, {name}", transforms, algorithm, SIZE)
            for algorithm, name in names.items()
        ),
        _section("the sample sort of 2 x 10^7 int64", sorts, _KEYS),
    ]
