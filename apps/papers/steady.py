"""The models of the six algorithms of Shi, and the laws of Amdahl and Gustafson.

A program is described by its densities, which do not depend on a computer: steps of computation,
bytes that are communicated, and bytes of the disk. A computer is described by capacities: W steps a
second of each of P processors, u bytes a second of the network that all share, and B of the disk.
The time is the sum of work divided by capacity.

``lg`` is the logarithm to base 2. Where the scan has lost an equation, the comment beside it
says what it follows from.

Source: Shi, Program scalability analysis by steady-state timing models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

KEY_BYTES = 8
"""Bytes of a sort key: section 3.1."""
NUMBER_BYTES = 8
"""Bytes of a number in double precision: sections 6 and 7."""


@dataclass(frozen=True)
class SteadySetting:
    """A problem, a computer and an algorithm's densities.

    Raises:
        ValueError: a value is not valid.
    """

    n: float = 1e6
    """Size of the problem."""
    P: float = 4
    """Number of processors, 1 or more."""
    W: float = 1e8
    """Steps a second of each processor."""
    u: float = 1e8
    """Bytes a second of the network, while all processors transmit."""
    B: float = 1e7
    """Bytes a second of the disk."""
    c: float = 32_000
    """Computing density: steps for each input, where the algorithm does not determine them."""
    d: float = 8
    """Communication density: bytes for each input, likewise."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 1 if field.name in "nP" else 0
            if not (math.isfinite(value) and value >= least and value > 0):
                what = "1 or more" if least else "above 0"
                raise ValueError(f"{field.name} is {value:g}; it is a finite number, {what}")

    def with_(self, **values: float) -> SteadySetting:
        """Return the setting with some values replaced."""
        return replace(self, **values)


@dataclass(frozen=True)
class WorkAmounts:
    """What a run of a program does; all processors together, but for the steps."""

    steps: float
    """Steps of the processor that does most."""
    disk_bytes: float = 0.0
    comm_bytes: float = 0.0

    def seconds(self, setting: SteadySetting) -> float:
        """Return the time: equations 2.2 and 2.3, without dynamic waiting."""
        return self.steps / setting.W + self.disk_bytes / setting.B + self.comm_bytes / setting.u


@dataclass(frozen=True)
class Algorithm:
    """A sequential and a parallel program for one problem."""

    title: str
    sequential: Callable[[SteadySetting], WorkAmounts]
    parallel: Callable[[SteadySetting], WorkAmounts]
    source: str
    compact: bool
    """Whether it is search space compact: no parallel program of it takes fewer steps."""

    def speedup(self, setting: SteadySetting) -> float:
        """Return the sequential time divided by the parallel one: equation 2.4."""
        return self.sequential(setting).seconds(setting) / self.parallel(setting).seconds(setting)

    def efficiency(self, setting: SteadySetting) -> float:
        """Return the speedup for each processor: equation 2.5."""
        return self.speedup(setting) / setting.P

    def steps_saved(self, setting: SteadySetting) -> float:
        """Return sequential steps less those of all processors; above 0 only if not compact."""
        one, many = self.sequential(setting).steps, self.parallel(setting).steps
        serial = _serial_steps(self, setting)
        return one - (serial + setting.P * (many - serial))


def _serial_steps(algorithm: Algorithm, setting: SteadySetting) -> float:
    """Return the steps of the parallel program that only one processor does."""
    return _split_and_merge(setting) if algorithm in (ALGORITHMS["sort"], SLOW) else 0.0


def lg(x: float) -> float:
    """Return the logarithm to base 2."""
    return math.log2(x)


# -- sorting: section 3 -----------------------------------------------------------------------


def _sort(s: SteadySetting) -> WorkAmounts:
    """Equations 1.2 and 3.1: n lg n / W + 2 x 8 n / B; Tables 1 to 3 follow to the last digit."""
    return WorkAmounts(s.n * lg(s.n), 2 * KEY_BYTES * s.n)


def _split_and_merge(s: SteadySetting) -> float:
    return s.n + s.n * lg(s.P)


def _parallel_sort(s: SteadySetting) -> WorkAmounts:
    """Equation 3.2, lost: splitting, the sort of a part, and merging; disk; network.

    Splitting reads each key once. To merge P parts takes lg P comparisons for each key:
    equation 2.1, which has to hold for all n > P > 2, does with n lg P, and does not with n P,
    of which n = P + 1 is a counterexample. Every key goes out and comes back.
    """
    part = s.n / s.P
    own = part * lg(max(part, 1))
    return WorkAmounts(own + _split_and_merge(s), 2 * KEY_BYTES * s.n, 2 * KEY_BYTES * s.n)


def _slow_sort(s: SteadySetting) -> WorkAmounts:
    """Equation 3.4, lost: as 3.1 with n squared comparisons."""
    return WorkAmounts(s.n**2, 2 * KEY_BYTES * s.n)


def _parallel_slow_sort(s: SteadySetting) -> WorkAmounts:
    """Equation 3.5, lost: as 3.2 with (n/P) squared comparisons."""
    steps = (s.n / s.P) ** 2 + _split_and_merge(s)
    return WorkAmounts(steps, 2 * KEY_BYTES * s.n, 2 * KEY_BYTES * s.n)


# -- fractals and Monte Carlo: sections 4 and 5 -------------------------------------------------


def _fractal(s: SteadySetting) -> WorkAmounts:
    """Equation 4.1: c n / W."""
    return WorkAmounts(s.c * s.n)


def _parallel_fractal(s: SteadySetting) -> WorkAmounts:
    """Equation 4.2: c n / (P W) + d n / u.

    So the efficiency, 4.4, is 1 / (1 + d P W / (c u)). With the values of Figure 3 it is 0.886;
    the paper prints 87%.
    """
    return WorkAmounts(s.c * s.n / s.P, 0.0, s.d * s.n)


# -- matrices: sections 6 and 7 -----------------------------------------------------------------


def _matrices(s: SteadySetting) -> WorkAmounts:
    """Equation 6.1, lost: n^3 / W, since line 4 is executed n^3 times."""
    return WorkAmounts(s.n**3)


def _parallel_matrices(s: SteadySetting) -> WorkAmounts:
    """Equation 6.2, lost: A is distributed, B is sent to all, in numbers of 8 bytes.

    By the text these are n^2 and at most P n^2 items; that of section 9 agrees: with
    P = n^2 the communication is of the order n^4. The text counts no result.
    """
    return WorkAmounts(s.n**3 / s.P, 0.0, NUMBER_BYTES * (s.P + 1) * s.n**2)


def _squares(n: float) -> float:
    """Return the sum of (n - i)^2 over the waves i = 1 .. n - 1."""
    return (n - 1) * n * (2 * n - 1) / 6


def _elimination(s: SteadySetting) -> WorkAmounts:
    """Equation 7.1, lost: wave i changes n - i rows, by 3 (n - i) multiplications each."""
    return WorkAmounts(3 * _squares(s.n))


def _parallel_elimination(s: SteadySetting) -> WorkAmounts:
    """Equation 7.2, lost: in wave i 2 x 8 (n - i)^2 bytes, since rows go out and come back.

    The speedup is P / (1 + 16 P W / (3 u)), so that u has to be far above P W, as the text says.
    """
    squares = _squares(s.n)
    return WorkAmounts(3 * squares / s.P, 0.0, 2 * NUMBER_BYTES * squares)


ALGORITHMS = {
    "sort": Algorithm("sort, n lg n", _sort, _parallel_sort, "equations 3.1, 3.2", True),
    "slow-sort": Algorithm(
        "sort, n squared", _slow_sort, _parallel_slow_sort, "equations 3.4, 3.5", False
    ),
    "fractal": Algorithm("fractal", _fractal, _parallel_fractal, "equations 4.1 to 4.4", True),
    "monte-carlo": Algorithm(
        "Monte Carlo", _fractal, _parallel_fractal, "equations 5.1 to 5.4, as 4.1 to 4.4", True
    ),
    "matrices": Algorithm(
        "matrix multiplication", _matrices, _parallel_matrices, "equations 6.1 to 6.3", True
    ),
    "elimination": Algorithm(
        "Gaussian elimination", _elimination, _parallel_elimination, "equations 7.1 to 7.3", False
    ),
}
"""The steps of one time slice cancel out of a speedup: a Monte Carlo simulation has that of a
fractal (section 5)."""
SLOW = ALGORITHMS["slow-sort"]


def best_processors(
    algorithm: Algorithm, setting: SteadySetting, most: int = 4096
) -> tuple[int, float]:
    """Return the number of processors with the greatest speedup, and this speedup.

    Args:
        algorithm: the algorithm.
        setting: all but P.
        most: greatest number to look at.
    """
    found = {p: algorithm.speedup(setting.with_(P=p)) for p in range(1, most + 1)}
    best = max(found, key=found.__getitem__)
    return best, found[best]


def merge_sort_table(
    sizes: list[int], speed: float, disk: float
) -> list[tuple[float, float, float]]:
    """Return processor, disk and whole seconds of a sequential sort by its size: Table 1.

    Args:
        sizes: numbers of keys.
        speed: W.
        disk: B.

    Source: Shi, equation 1.2, Tables 1 to 3.
    """
    rows = []
    for n in sizes:
        setting = SteadySetting(n=n, W=speed, B=disk)
        work = _sort(setting)
        rows.append((work.steps / speed, work.disk_bytes / disk, work.seconds(setting)))
    return rows


def numbers(setting: SteadySetting) -> dict[str, Any]:
    """Return the values of a setting by name."""
    return {field.name: getattr(setting, field.name) for field in fields(setting)}


# -- the laws of Amdahl and Gustafson, which are the same law: section 1 of the paper -------------


def amdahl(sequential: float, nprocs: float) -> float:
    """Return the speedup, from the sequential fraction of the time on one processor."""
    _check(sequential)
    return nprocs / (sequential * nprocs + 1 - sequential)


def gustafson(sequential: float, nprocs: float) -> float:
    """Return the speedup, from the sequential fraction of the time on P processors."""
    _check(sequential)
    return nprocs - sequential * (nprocs - 1)


def on_one(sequential: float, nprocs: float) -> float:
    """Return the sequential fraction on one processor, from that on P.

    On one processor the parallel part takes P times as long.
    """
    _check(sequential)
    return sequential / (sequential + (1 - sequential) * nprocs)


def _check(sequential: float) -> None:
    if not 0 <= sequential <= 1:
        raise ValueError(f"a sequential fraction is 0 to 1, and not {sequential:g}")
