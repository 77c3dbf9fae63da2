"""The time of bitonic merge sort as a linear function of terms in N and P.

Source: Chittor 1995, chapter 4, equations 9 and 14; ``log`` is that to base 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2

import numpy as np

TERMS = (
    "1",
    "N/P log(P)^2",
    "P log(P)",
    "P",
    "N/P log(N/P)^2",
    "log(P) N/P log(N/P)^2",
)
"""In the order of equation 14: communication, barriers, creation of processes, and merging."""

Times = Mapping[tuple[int, int], float]
"""Times by N and P."""


def values(n: int, nprocs: int) -> list[float]:
    """Return the values of ``TERMS``."""
    part, p = n / nprocs, nprocs
    merging = part * log2(part) ** 2
    return [1.0, part * log2(p) ** 2, p * log2(p), float(p), merging, log2(p) * merging]


@dataclass(frozen=True)
class Characterisation:
    """The coefficients of ``TERMS``."""

    coefficients: tuple[float, ...]

    def time(self, n: int, nprocs: int) -> float:
        """Return the time of N keys on P processors: equation 14."""
        pairs = zip(self.coefficients, values(n, nprocs), strict=True)
        return sum(coefficient * value for coefficient, value in pairs)

    def speedup(self, n: int, nprocs: int) -> float:
        """Return T(N, 1) / T(N, P); equations 8 and 10 print it upside down."""
        return self.time(n, 1) / self.time(n, nprocs)

    def roll_off(self, n: int, most: int = 512) -> int:
        """Return the P, a power of two, beyond which the predicted speedup falls."""
        return roll_off({p: self.time(n, p) for p in _powers(min(n, most))})


PRINTED = Characterisation((14773, 146, 899, -4486, 22.6, 0.811))
"""Equation 14, in units of the simulator Multi."""


def characterise(times: Times) -> Characterisation:
    """Find the coefficients by least squares.

    Args:
        times: of the characterisation region, with N >= P.

    Raises:
        ValueError: the times are too few to tell the terms apart, or one has N < P.

    Source: Chittor 1995, Figure 14: her coefficients are those of plain least squares.
    """
    if any(n < p for n, p in times):
        raise ValueError("characterise: each time is one of at least as many keys as processes")
    table = np.array([values(n, p) for n, p in times])
    if not len(times) or np.linalg.matrix_rank(table) < len(TERMS):
        raise ValueError(
            f"characterise: {len(times)} times of these N and P do not tell {len(TERMS)} terms "
            "apart; run more numbers of processes, P = 1, 2, 4 and 8 at least, and more sizes"
        )
    found = np.linalg.lstsq(table, np.array(list(times.values())), rcond=None)[0]
    return Characterisation(tuple(found.tolist()))


def roll_off(times: Mapping[int, float]) -> int:
    """Return the number of processors with the least time."""
    return min(times, key=times.__getitem__)


def cost_of(sizes: Iterable[float], region: Iterable[float], power: float) -> float:
    """Return the cost of the experiments of a region as a fraction of that of all sizes.

    Args:
        sizes: all sizes of interest.
        region: the sizes that are run.
        power: the time of a run grows with the size to this power.

    Source: Chittor 1995, chapter 7: sizes N to 10 N, of which N to 3 N are run.
    """
    return sum(n**power for n in region) / sum(n**power for n in sizes)


def _powers(most: int) -> list[int]:
    return [2**k for k in range(int(log2(most)) + 1)]
