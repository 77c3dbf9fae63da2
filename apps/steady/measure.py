"""The six programs measured beside their models: calibrated at one size, predicted at another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import bsplib
from apps.steady.calibrate import Calibration, UnderestimatedError, calibrate
from apps.steady.model import ALGORITHMS, Setting
from apps.steady.programs import LIMIT, PROGRAMS, iterations

SIZES = {
    "sort": (200_000, 800_000),
    "slow-sort": (2_000, 6_000),
    "fractal": (150, 400),
    "monte-carlo": (20_000, 80_000),
    "matrices": (250, 600),
    "elimination": (120, 240),
}
"""Of each program: the size at which it is calibrated, and that which is predicted."""


@dataclass(frozen=True)
class Row:
    """A program at the size that was predicted."""

    name: str
    n: int
    """The greater size."""
    W: float
    u: float
    """Infinite where the small parallel run took no longer than its computation alone."""
    alone_s: float
    alone_predicted_s: float
    parallel_s: float
    parallel_predicted_s: float

    @property
    def error_percent(self) -> float:
        """Return 100 (measured - predicted) / measured of the parallel run."""
        return 100 * (self.parallel_s - self.parallel_predicted_s) / self.parallel_s


def measure(
    names: Iterable[str],
    nprocs: int,
    *,
    repeats: int = 5,
    advance: Callable[[], object] = lambda: None,
) -> list[Row]:
    """Calibrate W and u at a small size, and predict and measure a greater one.

    Nothing of the greater size is used for its prediction.

    Args:
        names: programs, from ``PROGRAMS``.
        nprocs: number of processes of the parallel runs, 2 or more.
        repeats: runs of each program and size; the fastest counts.
        advance: is called after each program.
    """
    rows = []
    for name in names:
        rows.append(_row(name, nprocs, repeats))
        advance()
    return rows


def _row(name: str, nprocs: int, repeats: int) -> Row:
    algorithm, (small, great) = ALGORITHMS[name], SIZES[name]
    took = {(n, p): seconds(name, n, p, repeats) for n in (small, great) for p in (1, nprocs)}
    setting = setting_of(name, small)
    alone_s = took[small, 1]
    try:
        found = calibrate(algorithm, setting, alone_s, {nprocs: took[small, nprocs]})
    except UnderestimatedError:
        found = Calibration(algorithm.sequential(setting).steps / alone_s, {nprocs: math.inf})
    there = setting_of(name, great).with_(P=nprocs, W=found.W)
    alone = algorithm.sequential(there).steps / found.W
    work = algorithm.parallel(there)
    predicted = work.steps / found.W + work.comm_bytes / found.lowest_u
    return Row(
        name=name,
        n=great,
        W=found.W,
        u=found.lowest_u,
        alone_s=took[great, 1],
        alone_predicted_s=alone,
        parallel_s=took[great, nprocs],
        parallel_predicted_s=predicted,
    )


def setting_of(name: str, n: int) -> Setting:
    """Return the problem of a program: its size and densities, without a computer.

    The size of a fractal is its number of pixels, and its density is counted with few of them.
    """
    if name != "fractal":
        return Setting(n=n)
    few = iterations(64, np.arange(64 * 64))
    return Setting(n=n * n, c=min(float(few.mean()) + 1, LIMIT))


def seconds(name: str, n: int, nprocs: int, repeats: int, **how: Any) -> float:
    """Return the least time of a program on real processes, from its start on all of them.

    Args:
        name: of the program.
        n: its size.
        nprocs: number of processes.
        repeats: number of runs; other work on the computer makes them longer, never shorter.
        **how: ``split`` of a fractal.
    """
    with bsplib.Pool(nprocs=nprocs) as pool:
        pool.run(_timed, name, min(n, 64), **how)
        return min(max(pool.run(_timed, name, n, **how)) for _ in range(repeats))


def _timed(bsp: bsplib.Group, name: str, n: int, **how: str) -> float:
    bsp.sync()
    began = bsp.time()
    PROGRAMS[name](bsp, n, **how)
    bsp.sync()
    return bsp.time() - began
