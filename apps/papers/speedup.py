"""Speedup predicted from a few small runs, beside the laws of speedup.

The time of bitonic merge sort is a linear function of terms in N and P. A few runs of small
problems on few processors, the *characterisation region*, give its coefficients; the function then
predicts larger ones, and the *roll-off*: the number of processors beyond which speedup falls.

Source: Chittor 1995, chapter 4, equations 6, 9 and 11, and 13 to 18; ``log`` is that to base 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


def _alone(n: int, nprocs: int) -> list[float]:
    """Return the values of the terms of equation 6, where N = P."""
    return [1.0, nprocs * log2(nprocs), float(nprocs), log2(n) ** 2]


def _buffered(n: int, nprocs: int) -> list[float]:
    """Return the values of the terms of equation 11; print leaves out its P and B in the end."""
    part, squared = n / nprocs, log2(n) ** 2
    return [1.0, part, float(nprocs), part * squared, nprocs * squared]


@dataclass(frozen=True)
class TermSum:
    """A sum of terms in N and P, of which experiments give the coefficients."""

    equation: int
    """Number of the equation of the paper that has the general form."""
    terms: tuple[str, ...]
    values: Callable[[int, int], list[float]]
    """Returns the values of the terms for N and P."""


GENERAL = TermSum(9, TERMS, values)
ALONE = TermSum(6, ("1", "N log(N)", "N", "log(N)^2"), _alone)
"""One key on each processor: N = P."""
BUFFERED = TermSum(11, ("1", "N/P", "P", "N/P log(N)^2", "P log(N)^2"), _buffered)
"""A buffer of limited size."""


@dataclass(frozen=True)
class Characterisation:
    """The coefficients of a form."""

    coefficients: tuple[float, ...]
    form: TermSum = GENERAL

    def time(self, n: int, nprocs: int) -> float:
        """Return the time of N keys on P processors, as in equations 13 to 18."""
        pairs = zip(self.coefficients, self.form.values(n, nprocs), strict=True)
        return sum(coefficient * value for coefficient, value in pairs)

    def speedup(self, n: int, nprocs: int) -> float:
        """Return T(N, 1) / T(N, P); equations 8 and 10 print it upside down."""
        return self.time(n, 1) / self.time(n, nprocs)

    def roll_off(self, n: int, most: int = 512) -> int:
        """Return the P, a power of two, beyond which the predicted speedup falls."""
        return roll_off({p: self.time(n, p) for p in _powers(min(n, most))})


PRINTED = Characterisation((14773, 146, 899, -4486, 22.6, 0.811))
"""Equation 14, in units of the simulator Multi."""
PRINTED_ALONE = Characterisation((341, 31.23, -210.81, 403.2), ALONE)
"""Equation 13, in units of Multi."""
EIGHT_EACH = {16: 5418.0, 32: 8672.0, 64: 13357.0, 128: 21097.0}
"""T(N, N/8) of Table 6 by N, which equation 13 goes through."""
PRINTED_BUFFERED = {
    4: Characterisation((23041, -2748, -2470, 285, 45), BUFFERED),
    16: Characterisation((13573, -1952, -4126, 87.34, 80.26), BUFFERED),
}
"""Equations 15 and 16 by the keys of a buffer, in units of Multi."""
PRINTED_PVM = Characterisation((161.9, 0.23, 25.36, 167.5, 0.0025, -0.00047))
"""Equation 17, in milliseconds on PVM; its last coefficient makes it negative for large N/P."""
PRINTED_PVM_BUFFERED = Characterisation((2921, -41.72, -2424.6, 0.63, 46.03), BUFFERED)
"""Equation 18, in milliseconds on PVM, with buffers of 16 keys."""


def characterise(times: Times, form: TermSum = GENERAL) -> Characterisation:
    """Find the coefficients by least squares.

    Args:
        times: of the characterisation region, with N >= P.
        form: terms to find the coefficients of.

    Raises:
        ValueError: the times are too few to tell the terms apart, or one has N < P.

    Source: Chittor 1995, Figure 14: her coefficients are those of plain least squares.
    """
    if any(n < p for n, p in times):
        raise ValueError("characterise: each time is one of at least as many keys as processes")
    table = np.array([form.values(n, p) for n, p in times])
    if not len(times) or np.linalg.matrix_rank(table) < len(form.terms):
        raise ValueError(
            f"characterise: {len(times)} times of these N and P do not tell {len(form.terms)} "
            "terms apart; run more numbers of processes, P = 1, 2, 4 and 8 at least, and more sizes"
        )
    found = np.linalg.lstsq(table, np.array(list(times.values())), rcond=None)[0]
    return Characterisation(tuple(found.tolist()), form)


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


# -- what she prints of creation of processes and barriers: Tables 1 and 2 -------------------------

_COUNTS = [2**k for k in range(10)]
CREATION = dict(zip(_COUNTS, (15, 28, 42, 78, 150, 298, 582, 1158, 2310, 4618), strict=True))
"""Units of Multi by P: Table 1."""
BARRIER = dict(zip(_COUNTS, (30, 40, 70, 130, 300, 660, 1310, 2590, 5150, 10270), strict=True))
"""Units of Multi by P: Table 2."""
CREATION_PVM_MS = {1: 50, 2: 50, 4: 100, 8: 200, 16: 500}
"""Milliseconds on PVM: Table 1; more processes than 16 did not run."""
BARRIER_PVM_MS = {1: 50, 2: 100, 4: 250, 8: 500, 16: 1100}
"""Milliseconds on PVM: Table 2."""


# -- the laws of speedup that the methodology is compared with: equations 1 to 4 -------------------


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
