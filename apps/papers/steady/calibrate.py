"""W and u from the times of a few runs.

W is customised: how many of the algorithm's own steps a processor does in a second, with all
that its caches and compiler do. So is u: what remains of the time of a parallel run when its
computation is taken off belongs to the communication.

``T_sync`` of equation 2.3 is the time of rounds: a round hands out work and gathers results. What
a round takes beside its steps and bytes, in the interpreter and to wait for all processors, is
measured with a problem that has next to none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bsplib.apps.papers.steady.model import Algorithm, Setting


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

    def seconds(self, algorithm: Algorithm, setting: Setting, rounds: int = 0) -> float:
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
    setting: Setting,
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
