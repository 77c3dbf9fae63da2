"""The Fourier transforms of 2^22 complex values beside numpy's on one core.

What is timed: from a sync at which the signal is where the algorithm wants it (all of
it everywhere, or dealt out) to a sync at which the transform is where it leaves it.
What depends on the length alone is made before: our roots of unity, as numpy keeps
its own from the call before. All write into memory that has been written before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from types import ModuleType

import numpy as np

import bsplib
from apps import fft, fft_barrier_free, fft_cyclic, fourier
from benchmarks.harness import Case, Section

SIZE = 2**22
QUICK_SIZE = 2**16
NPROCS = 2
_WARM_UP = 3
"""Transforms until all memory that takes turns has been written."""


def numpy_alone(size: int, *, into: bool) -> float:
    """Return the seconds of numpy's transform in this process."""
    values = fourier.signal(size, 0)
    out = np.fft.fft(values)
    return timed(partial(np.fft.fft, values, out=out if into else None))


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def replicated(bsp: bsplib.Group, algorithm: ModuleType, size: int) -> float:
    """Time a transform of a signal that all processes have."""
    values, out = fourier.signal(size, 0), np.empty(size, np.complex128)
    return _transform(bsp, algorithm, values, out, size)


def dealt(bsp: bsplib.Group, algorithm: ModuleType, size: int) -> float:
    """Time a transform of a signal that is dealt out."""
    values = fourier.signal(size, 0)[bsp.pid :: bsp.nprocs].copy()
    return _transform(bsp, algorithm, values, np.empty_like(values), size)


def _transform(
    bsp: bsplib.Group,
    algorithm: ModuleType,
    values: fourier.Values,
    out: fourier.Values,
    size: int,
) -> float:
    plan = algorithm.prepare(bsp, size)

    def transform() -> None:
        algorithm.transform(bsp, out, values, plan)
        bsp.sync()

    for _ in range(_WARM_UP):
        transform()
    return timed(transform)


def parallel(program: Callable[..., float], algorithm: ModuleType, size: int) -> float:
    """Return what process 0 measured, which begins and ends with the others."""
    return bsplib.run(program, algorithm, size, nprocs=NPROCS)[0]


def transforms(size: int, _: ExitStack) -> Sequence[Case]:
    """Compare our transforms with numpy's."""
    new, old = "numpy.fft.fft(x)", "numpy.fft.fft(x, out=y)"
    cases = [
        Case(new, partial(numpy_alone, size, into=False)),
        Case(old, partial(numpy_alone, size, into=True)),
    ]
    for name, program, algorithm in (
        ("dealt out, one exchange", dealt, fft_cyclic),
        ("recursive, everything everywhere", replicated, fft),
        ("barrier-free, to process 0", replicated, fft_barrier_free),
    ):
        sample = partial(parallel, program, algorithm, size)
        cases.append(Case(f"{name}, p = {NPROCS}", sample, (old, new)))
    return cases


def sections(*, quick: bool = False) -> list[Section]:
    """Return what is to be measured; little of it if it is only to be seen to work."""
    size, repeats = (QUICK_SIZE, 3) if quick else (SIZE, 9)
    title = f"Fourier transform of 2^{size.bit_length() - 1} complex128"
    return [Section(title, "transform", partial(transforms, size), repeats)]
