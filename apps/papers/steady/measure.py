"""The six programs measured beside their models: calibrated at one size, predicted at another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import bsplib
from bsplib.apps.papers.steady.model import ALGORITHMS, Algorithm, SteadySetting
from bsplib.apps.papers.steady.programs import LIMIT, PROBLEMS, PROGRAMS, iterations, rounds
from bsplib.apps.spans import Span, keep_memory, least, timed, waiting

SIZES = {
    "sort": (1_000_000, 4_000_000),
    "slow-sort": (10_000, 30_000),
    "fractal": (400, 1_000),
    "monte-carlo": (40_000, 160_000),
    "matrices": (800, 1_600),
    "elimination": (240, 480),
}
"""For each program the size at which it is calibrated, and the size that is predicted."""
TINY = 4
"""The size of a problem whose steps and bytes are next to none, to measure an empty round."""
_SPLIT = {"fractal": {"split": "column"}}
"""The models suppose that no processor waits for another: parts of a fractal are uneven."""


@dataclass(frozen=True)
class PredictedProgram:
    """A program at the size that was predicted."""

    name: str
    n: int
    """The greater size."""
    W: float
    u: float
    """Infinite where the small parallel run took no longer than its computation alone."""
    round_s: float
    """Seconds of an empty round of the parallel program."""
    alone_s: float
    alone_predicted_s: float
    parallel_s: float
    parallel_predicted_s: float
    unsynced_s: float
    """The prediction of the parallel run without ``T_sync``: calibrated and computed by W and u."""

    @property
    def error_percent(self) -> float:
        """Return 100 (measured - predicted) / measured of the parallel run."""
        return 100 * (self.parallel_s - self.parallel_predicted_s) / self.parallel_s

    @property
    def alone_error_percent(self) -> float:
        """Return the same of the sequential run."""
        return 100 * (self.alone_s - self.alone_predicted_s) / self.alone_s

    @property
    def unsynced_error_percent(self) -> float:
        """Return the same of the parallel run, predicted without ``T_sync``."""
        return 100 * (self.parallel_s - self.unsynced_s) / self.parallel_s


def measure(
    names: Iterable[str],
    nprocs: int,
    *,
    repeats: int = 5,
    advance: Callable[[], object] = lambda: None,
) -> list[PredictedProgram]:
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


def _row(name: str, nprocs: int, repeats: int) -> PredictedProgram:
    small, great = SIZES[name]
    how = _SPLIT.get(name, {})
    took = {
        (n, p): seconds(name, n, p, repeats, **how)
        for n in (TINY, small, great)
        for p in (1, nprocs)
    }
    empty = {p: took[TINY, p] / rounds(name, TINY) for p in (1, nprocs)}
    at = took[small, 1], {nprocs: took[small, nprocs]}
    found = _calibrated(name, small, *at, empty)
    plain = _calibrated(name, small, *at, {})
    there = setting_of(name, great)
    of, many = ALGORITHMS[name], rounds(name, great)
    return PredictedProgram(
        name=name,
        n=great,
        W=found.W,
        u=found.lowest_u,
        round_s=empty[nprocs],
        alone_s=took[great, 1],
        alone_predicted_s=found.seconds(of, there.with_(P=1), many),
        parallel_s=took[great, nprocs],
        parallel_predicted_s=found.seconds(of, there.with_(P=nprocs), many),
        unsynced_s=plain.seconds(of, there.with_(P=nprocs), many),
    )


def _calibrated(
    name: str, n: int, alone_s: float, parallel_s: dict[int, float], empty: dict[int, float]
) -> Calibration:
    algorithm, setting, many = ALGORITHMS[name], setting_of(name, n), rounds(name, n)
    try:
        return calibrate(algorithm, setting, alone_s, parallel_s, rounds=many, round_s=empty)
    except UnderestimatedError:
        rate = algorithm.sequential(setting).steps / (alone_s - many * empty.get(1, 0.0))
        return Calibration(rate, dict.fromkeys(parallel_s, math.inf), empty)


def setting_of(name: str, n: int) -> SteadySetting:
    """Return the problem of a program: its size and densities, without a computer.

    The size of a fractal is its number of pixels, and its density is counted with few of them.
    """
    if name != "fractal":
        return SteadySetting(n=n)
    few = iterations(64, np.arange(64 * 64))
    return SteadySetting(n=n * n, c=min(float(few.mean()) + 1, LIMIT))


def seconds(name: str, n: int, nprocs: int, repeats: int, **how: Any) -> float:
    """Return the least time of a program on real processes, from its start on all of them.

    Process 0 has the problem before, as in the model: only the result is computed.

    Args:
        name: of the program.
        n: its size.
        nprocs: number of processes.
        repeats: number of runs; other work on the computer makes them longer, never shorter.
        **how: ``split`` of a fractal.
    """
    return least(bsplib.run(_runs, name, n, repeats, how, nprocs=nprocs, wait=waiting(nprocs)))


def _runs(bsp: bsplib.Group, name: str, n: int, repeats: int, how: dict[str, str]) -> list[Span]:
    keep_memory()
    given = PROBLEMS[name](n) if name in PROBLEMS and bsp.pid == 0 else None
    work = partial(PROGRAMS[name], bsp, n, given, **how)
    return [timed(bsp, work) for _ in range(repeats + 1)][1:]


# -- W and u from the times of a few runs ---------------------------------------------------------
#
# W is customised: how many of the algorithm's own steps a processor does in a second, with all
# that its caches and compiler do. So is u: what remains of the time of a parallel run when its
# computation is taken off belongs to the communication.
#
# ``T_sync`` of equation 2.3 is the time of rounds: a round hands out work and gathers results. What
# a round takes beside its steps and bytes, in the interpreter and to wait for all processors, is
# measured with a problem that has next to none of them.


class UnderestimatedError(ValueError):
    """The sequential run was disturbed, so that W is too low and u would be negative."""


@dataclass(frozen=True)
class Calibration:
    """Capacities of a computer for one algorithm."""

    W: float
    u: Mapping[int, float]
    """By the number of processors: the paper's u_2 to u_p, its upper and lower bounds."""
    round_s: Mapping[int, float] = field(default_factory=dict)
    """Seconds of an empty round, by the number of processors; 0 for those that are not there."""

    @property
    def lowest_u(self) -> float:
        """The least u."""
        return min(self.u.values())

    def seconds(self, algorithm: Algorithm, setting: SteadySetting, rounds: int = 0) -> float:
        """Return the predicted time on ``setting.P`` processors: equation 2.3, without a disk."""
        on = int(setting.P)
        if on == 1:
            time = algorithm.sequential(setting).steps / self.W
        else:
            work = algorithm.parallel(setting)
            time = work.steps / self.W + work.comm_bytes / self.u[on]
        return time + rounds * self.round_s.get(on, 0.0)


def calibrate(
    algorithm: Algorithm,
    setting: SteadySetting,
    alone_s: float,
    parallel_s: Mapping[int, float],
    *,
    rounds: int = 0,
    round_s: Mapping[int, float] | None = None,
) -> Calibration:
    """Return W from a sequential run and u from parallel ones, of one size.

    Args:
        algorithm: what ran.
        setting: its size and densities; P, W, u and B are not used, and nothing is read from
            or written to disk.
        alone_s: seconds of the sequential run.
        parallel_s: seconds of parallel runs, by the number of processors.
        rounds: of each run.
        round_s: seconds of an empty round, by the number of processors; 0 where there is none.

    Raises:
        ValueError: a time is not above 0, or the rounds alone take longer than the
            sequential run.
        UnderestimatedError: a parallel run took no longer than its computation: for an
            algorithm that is search space compact W is too low then.

    Source: Shi, section 10.
    """
    if min(alone_s, *parallel_s.values()) <= 0:
        raise ValueError("calibrate: the times of runs are above 0")
    each = dict(round_s or {})
    left = alone_s - rounds * each.get(1, 0.0)
    if left <= 0:
        raise ValueError(
            f"calibrate: the sequential run took {alone_s:.3g} s, and {rounds} empty rounds take "
            f"{rounds * each.get(1, 0.0):.3g} s: calibrate with a greater problem"
        )
    rate = algorithm.sequential(setting).steps / left
    u = {}
    for nprocs, seconds in parallel_s.items():
        work = algorithm.parallel(setting.with_(P=nprocs))
        left = seconds - work.steps / rate - rounds * each.get(nprocs, 0.0)
        if left <= 0:
            raise UnderestimatedError(
                f"calibrate: the run on {nprocs} processes took {seconds:.3g} s, and its "
                f"computation alone {work.steps / rate:.3g} s by the sequential run: "
                f"W = {rate:.3g} is too low; measure the sequential run again, "
                "without other work on the computer"
            )
        u[nprocs] = work.comm_bytes / left
    return Calibration(rate, u, each)
