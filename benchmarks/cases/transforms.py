"""The Fourier transform of 2^22 complex values, compared with numpy's on one core.

Besides, a short signal is compared with scipy's transform.

The time is measured from a sync at which the signal is distributed as the algorithm needs
it (all of it on every process, or cyclically) to a sync at which the transform is complete.
The roots of unity, which depend only on the length, are computed before, since numpy keeps
its own from the call before. Ours write into memory that has been written before; numpy allocates
its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from types import ModuleType

import numpy as np
import scipy.fft

import bsplib
from benchmarks.cases.primitives import sampler
from benchmarks.measure import Case, Section
from benchmarks.timing import seconds_each
from bsplib.apps.fourier import common, fft_cyclic

SIZE = 2**22
NPROCS = 2
_COUNT = 5
"""Number of transforms for a sample, which is their median."""
_SHORT, _SHORT_COUNT = 2**15, 100
_WARM_UP = 2
"""Number of transforms after which all memory of the transform has been written."""
_OURS = "dealt out, one exchange"


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


def _of_numpy() -> float:
    return seconds_each(_COUNT, partial(np.fft.fft, common.signal(SIZE, 0)))


def _cases(_: ExitStack) -> Sequence[Case]:
    """Compare our transform with numpy's."""

    def ours() -> float:
        seconds: float = bsplib.run(transforms, fft_cyclic, SIZE, nprocs=NPROCS)[0]
        return seconds

    return [Case("numpy.fft.fft(x)", _of_numpy), Case(_OURS, ours)]


def _short(stack: ExitStack) -> Sequence[Case]:
    """Compare the transform of a short distributed signal with scipy's of the whole signal."""
    ours = partial(sampler(stack, NPROCS), transforms, fft_cyclic, _SHORT, _SHORT_COUNT)
    theirs = partial(scipy.fft.fft, common.signal(_SHORT, 0))
    return [
        Case("scipy.fft.fft(x)", partial(seconds_each, _SHORT_COUNT, theirs)),
        Case(_OURS, ours),
    ]


SECTIONS = tuple(
    Section(f"Fourier transform of 2^{exponent} complex128, p = {NPROCS}", "transform", prepare)
    for exponent, prepare in ((22, _cases), (15, _short))
)
