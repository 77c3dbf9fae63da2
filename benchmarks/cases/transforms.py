"""The Fourier transforms of 2^22 complex values, compared with numpy's on one core.

Besides, short signals are compared with scipy's transform: from which length on do two processes
win?

The time is measured from a sync at which the signal is distributed as the algorithm needs
it (all of it on every process, or cyclically) to a sync at which the transform is complete.
The roots of unity, which depend only on the length, are computed before, since numpy keeps
its own from the call before. All algorithms write into memory that has been written before,
except ``numpy.fft.fft(x)``, which allocates its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from types import ModuleType

import numpy as np
import scipy.fft

import bsplib
from benchmarks.cases.primitives import sampler
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_each
from bsplib.apps.fourier import common, fft, fft_barrier_free, fft_cyclic

SIZE = 2**22
NPROCS = 2
_COUNT = 5
"""Number of transforms for a sample, which is their median."""
_SHORT_COUNT = 100
_WARM_UP = 2
"""Number of transforms after which all memory of the transform has been written."""
_ALGORITHMS = {
    "dealt out, one exchange": fft_cyclic,
    "recursive, all values everywhere": fft,
    "barrier-free, to process 0": fft_barrier_free,
}


def transforms(bsp: bsplib.Group, algorithm: ModuleType, size: int, count: int = _COUNT) -> float:
    """Return the seconds of a transform from sync to sync."""
    values = common.signal(size, 0)
    if algorithm is fft_cyclic:
        values = values[bsp.pid :: bsp.nprocs].copy()
    out = np.zeros_like(values)
    plan = algorithm.prepare(bsp, size)

    def transform() -> None:
        algorithm.transform(bsp, out, values, plan)
        bsp.sync()

    for _ in range(_WARM_UP):
        transform()
    return seconds_each(count, transform)


def _of_numpy(*, into: bool) -> float:
    values = common.signal(SIZE, 0)
    out = np.fft.fft(values)
    transform: Callable[[], object] = partial(np.fft.fft, values, out=out if into else None)
    return seconds_each(_COUNT, transform)


def _of_ours(algorithm: ModuleType) -> float:
    seconds: float = bsplib.run(transforms, algorithm, SIZE, nprocs=NPROCS)[0]
    return seconds


def _cases(_: ExitStack) -> Sequence[Case]:
    """Compare our transforms with numpy's."""
    return [
        Case("numpy.fft.fft(x)", partial(_of_numpy, into=False)),
        Case("numpy.fft.fft(x, out=y)", partial(_of_numpy, into=True)),
        *(Case(name, partial(_of_ours, algorithm)) for name, algorithm in _ALGORITHMS.items()),
    ]


def _short(exponent: int, stack: ExitStack) -> Sequence[Case]:
    """Compare the transform of a short distributed signal with scipy's of the whole signal."""
    ours = partial(sampler(stack, NPROCS), transforms, fft_cyclic, 2**exponent, _SHORT_COUNT)
    theirs = partial(scipy.fft.fft, common.signal(2**exponent, 0))
    return [
        Case("scipy.fft.fft(x)", partial(seconds_each, _SHORT_COUNT, theirs)),
        Case("dealt out, one exchange", ours),
    ]


def _section(exponent: int, prepare: Callable[[ExitStack], Sequence[Case]]) -> Section:
    title = f"Fourier transform of 2^{exponent} complex128, p = {NPROCS}"
    return Section(title, "transform", prepare)


SECTIONS = (
    _section(22, _cases),
    *(_section(exponent, partial(_short, exponent)) for exponent in (12, 15)),
)
