"""The laws of speedup that the methodology is compared with.

All are given the sequential time Seq(P) and the parallel time Par(N) on one processor, where the
simple laws take Seq(1).

Source: Chittor 1995, equations 1 to 4; Amdahl 1967; Gustafson 1988; Sun and Ni 1990.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

import numpy as np

from bsplib.apps.papers.steady.model import amdahl, gustafson


@dataclass(frozen=True)
class SequentialParts:
    """A sequential time that grows with P, and a parallel one that is divided by P."""

    start: float
    each: float
    """Sequential time of each processor."""

    def sequential(self, nprocs: int) -> float:
        """Return Seq(P)."""
        return self.start + self.each * nprocs

    def time(self, parallel: float, nprocs: int) -> float:
        """Return Seq(P) + Par(N)/P: equation 1."""
        return self.sequential(nprocs) + parallel / nprocs

    def speedup(self, parallel: float, nprocs: int) -> float:
        """Return the speedup by equations 1 to 4."""
        return self.time(parallel, 1) / self.time(parallel, nprocs)


def fit_parts(sequential: Mapping[int, float]) -> SequentialParts:
    """Fit a line to Seq(P), the times with no keys: her Table 3.

    Raises:
        ValueError: there are fewer than two numbers of processors.
    """
    if len(sequential) < 2:
        raise ValueError(f"a line takes two numbers of processors, and not {len(sequential)}")
    each, start = np.polyfit(list(sequential), list(sequential.values()), 1)
    return SequentialParts(float(start), float(each))


def memory_bounded(sequential: float, growth: float, nprocs: int) -> float:
    """Return the speedup of Sun and Ni, of a problem that fills the memory of P processors.

    Args:
        sequential: sequential fraction of the time of the smaller problem on one processor.
        growth: G(P), how many times as much parallel work the greater problem is; with
            G = 1 this is Amdahl's law, with G = P that of Gustafson.
        nprocs: P.
    """
    parallel = (1 - sequential) * growth
    return (sequential + parallel) / (sequential + parallel / nprocs)


def bitonic_growth(n: int, nprocs: int) -> float:
    """Return G(P) of a bitonic sort, of N log2(N)^2 comparisons, with P times as many keys."""
    return nprocs * (log2(n * nprocs) / log2(n)) ** 2


def all_laws(
    parts: SequentialParts, alone: float, parallel: float, n: int, nprocs: int
) -> dict[str, float]:
    """Return the speedup by each law.

    Args:
        parts: Seq(P), a line.
        alone: Seq(1) as it was measured, which the simple laws take.
        parallel: Par(N).
        n: number of keys, 2 or more.
        nprocs: P.
    """
    fraction = alone / (alone + parallel)
    return {
        "Seq(P) + Par(N)/P": parts.speedup(parallel, nprocs),
        "Amdahl": amdahl(fraction, nprocs),
        "Gustafson": gustafson(fraction, nprocs),
        "Sun and Ni": memory_bounded(fraction, bitonic_growth(n, nprocs), nprocs),
    }
