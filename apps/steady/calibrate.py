"""W and u from the times of a few runs.

W is customised: how many of the algorithm's own steps a processor does in a second, with all
that its caches and compiler do. So is u: what remains of the time of a parallel run when its
computation is taken off belongs to the communication.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apps.steady.model import Algorithm, Setting


class UnderestimatedError(ValueError):
    """The sequential run was disturbed, so that W is too low and u would be negative."""


@dataclass(frozen=True)
class Calibration:
    """Capacities of a computer for one algorithm."""

    W: float
    u: Mapping[int, float]
    """By the number of processors: the paper's u_2 to u_p, its upper and lower bounds."""

    @property
    def lowest_u(self) -> float:
        """The least u."""
        return min(self.u.values())


def calibrate(
    algorithm: Algorithm, setting: Setting, alone_s: float, parallel_s: Mapping[int, float]
) -> Calibration:
    """Return W from a sequential run and u from parallel ones, of one size.

    Args:
        algorithm: what ran.
        setting: its size and densities; P, W, u and B are not used, and nothing is read from
            or written to disk.
        alone_s: seconds of the sequential run.
        parallel_s: seconds of parallel runs, by the number of processors.

    Raises:
        ValueError: a time is not above 0.
        UnderestimatedError: a parallel run took no longer than its computation: for an
            algorithm that is search space compact W is too low then.

    Source: Shi, section 10.
    """
    if min(alone_s, *parallel_s.values()) <= 0:
        raise ValueError("calibrate: the times of runs are above 0")
    rate = algorithm.sequential(setting).steps / alone_s
    u = {}
    for nprocs, seconds in parallel_s.items():
        work = algorithm.parallel(setting.with_(P=nprocs))
        left = seconds - work.steps / rate
        if left <= 0:
            raise UnderestimatedError(
                f"calibrate: the run on {nprocs} processes took {seconds:.3g} s, and its "
                f"computation alone {work.steps / rate:.3g} s by the sequential run: "
                f"W = {rate:.3g} is too low; measure the sequential run again, "
                "without other work on the computer"
            )
        u[nprocs] = work.comm_bytes / left
    return Calibration(rate, u)
