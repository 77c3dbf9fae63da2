"""Both programs on this computer: constants from one process, and the times of several."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import bsplib
from apps.msteps import fft, psrs
from apps.msteps.model import Network, Sort, Transform, error_percent, fft_time, psrs_time

_ROUNDS = 9


@dataclass(frozen=True)
class Row:
    """A predicted and a measured time."""

    nprocs: int
    model_s: float
    actual_s: float

    @property
    def error_percent(self) -> float:
        """The error by equation 18."""
        return error_percent(self.actual_s, self.model_s)


def constants(n: int) -> Transform:
    """Return D, F and R of this computer, from n values in one process.

    Args:
        n: a power of two, 4 or more.
    """
    values = signal(n)
    part = values[::2].copy()
    return Transform(
        _least(values[1::2].copy) / (n // 2),
        _least(lambda: np.fft.fft(values)) / (n * math.log2(n)),
        _least(lambda: fft.combine(part, part)) / (n // 2),
    )


def _least(work: Callable[[], object]) -> float:
    took = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


def signal(n: int) -> fft.Values:
    """Return random complex values."""
    random = np.random.default_rng(n)
    return random.random(n) + 1j * random.random(n)


def compare(
    n: int, counts: Sequence[int], of: Transform, network: Network, repeats: int = 5
) -> list[Row]:
    """Predict and measure the transform with several numbers of processes.

    Args:
        n: number of values.
        counts: numbers of processes.
        of: constants of this computer.
        network: g and L of this computer.
        repeats: runs of each; the fastest counts.

    Source: Roda et al. 1999, equations 15 to 18, Figures 9 to 11.
    """
    values = bsplib.shared(signal(n))
    rows = []
    for nprocs in counts:
        took = max(bsplib.run(_timed, values, repeats, nprocs=nprocs))
        rows.append(Row(nprocs, fft_time(n, nprocs, of, network, fft.WORDS), took))
    return rows


def sort_constants(n: int, nprocs: int) -> Sort:
    """Return B and I of this computer, for blocks of n/p keys: they depend on p, as the paper says.

    The other constants are for P or P squared words, and count as nothing here.

    Args:
        n: number of keys.
        nprocs: P.
    """
    block = keys(n // nprocs)
    runs = np.concatenate([np.sort(part) for part in np.array_split(block, nprocs)])
    return Sort(
        B=_least(lambda: np.sort(block)) / (len(block) * math.log2(len(block))),
        I=_least(lambda: np.sort(runs, kind="stable")) / len(block),
    )


def keys(n: int) -> psrs.Keys:
    """Return random keys."""
    return np.random.default_rng(n).integers(0, 2**31 - 1, n, np.int32)


def compare_sorts(n: int, counts: Sequence[int], network: Network, repeats: int = 5) -> list[Row]:
    """Predict and measure the sort with several numbers of processes.

    Args:
        n: number of keys.
        counts: numbers of processes.
        network: g and L of this computer.
        repeats: runs of each; the fastest counts.

    Source: Roda et al. 1999, equations 18 to 25, Figure 12.
    """
    given = bsplib.shared(keys(n))
    rows = []
    for nprocs in counts:
        predicted = psrs_time(n, nprocs, sort_constants(n, nprocs), network)[-1]
        took = max(bsplib.run(_timed, given, repeats, psrs.main, nprocs=nprocs))
        rows.append(Row(nprocs, predicted, took))
    return rows


def _timed(
    bsp: bsplib.Group, values: Any, repeats: int, program: Callable[..., object] = fft.main
) -> float:
    took = []
    for _ in range(repeats + 1):
        bsp.sync()
        began = bsp.time()
        program(bsp, values)
        bsp.sync()
        took.append(bsp.time() - began)
    return min(took[1:])
