"""The equations of Roda et al. for their transform and their sort, and their printed figures.

An M-step is computation, and communication after it. The transform halves the processes that
combine in each step; of the sort process 0 has all keys, deals blocks of N/P, and receives the
sorted blocks. In both one process does most in every M-step, so that the models BSPWB
and MPM give the same time (section 2).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Network:
    """g and L of a platform."""

    g: float
    """Seconds for each word."""
    L: float
    """Seconds to start; some are fitted below zero, and are used as they are."""


def h_relation(
    sent: Sequence[int], received: Sequence[int], combine: Callable[[int, int], int] = operator.add
) -> int:
    """Return h of a superstep: the most that a process communicates.

    Args:
        sent: words that leave each process.
        received: words that arrive at it.
        combine: of both; the paper takes the sum, and Jarvis et al. the greater one (``max``).

    Source: Roda et al. 1999, equation 1.
    """
    return max(map(combine, received, sent))


def communication_time(h: int, network: Network) -> float:
    """Return the seconds of an h-relation, by the hypothesis of Valiant: equation 2."""
    return network.g * h


def superstep_time(work: Sequence[float], h: int, network: Network) -> float:
    """Return the seconds of a superstep: equation 3.

    Args:
        work: seconds of computation of each process.
        h: words.
        network: g and L.
    """
    return max(work) + communication_time(h, network) + network.L


def message_words(pattern: str, h: int, nprocs: int) -> int:
    """Return how many words a message of a pattern has, for an h-relation: equation 4.

    Args:
        pattern: ``E`` exchange, ``PP`` ping-pong, ``POA`` personalised one-to-all, ``AO``
            all-to-one, ``AA`` all-to-all.
        h: words in and out of the process that has most.
        nprocs: p.
    """
    parts = {"PP": 1, "E": 2, "POA": nprocs - 1, "AO": nprocs - 1, "AA": 2 * (nprocs - 1)}
    return h // parts[pattern]


def average(times: Mapping[str, Mapping[int, float]]) -> float:
    """Average times over numbers of processes, and then over patterns: equations 11 and 12."""
    return fmean(fmean(each.values()) for each in times.values())


@dataclass(frozen=True)
class Transform:
    """Computational constants of the transform, in seconds: Table 3."""

    D: float
    """To divide, for each value."""
    F: float
    """To transform, for each value and each halving."""
    R: float
    """To combine, for each pair."""


@dataclass(frozen=True)
class Sort:
    """Computational constants of the sort, in seconds; the paper does not print them."""

    B: float = 0.0
    """To sort a block."""
    C: float = 0.0
    """To take a sample."""
    D: float = 0.0
    """To merge the samples."""
    E: float = 0.0
    """To choose a pivot."""
    F: float = 0.0
    """To search a pivot."""
    H: float = 0.0
    """For an offset."""
    I: float = 0.0  # noqa: E741  # the name in the paper
    """To merge the fragments."""
    J: float = 0.0
    """For a displacement of process 0."""


def fft_time(n: int, nprocs: int, of: Transform, network: Network, words: int = 1) -> float:
    """Return the time of the transform: the last of the times of equations 15 to 17.

    Args:
        n: N, a power of two.
        nprocs: p, a power of two, and at most N.
        of: D, F and R.
        network: g and L.
        words: words of a value; equations 15 and 16 have g times the number of values.

    Raises:
        ValueError: a number is no power of two, or there are fewer values than processes.

    Source: Roda et al. 1999, equations 15 to 17.
    """
    for what, value in (("N", n), ("p", nprocs)):
        if value < 1 or value & (value - 1):
            raise ValueError(f"{what} is {value}; it is a power of two")
    if n < nprocs:
        raise ValueError(f"there are {n} values for {nprocs} processes; there is one for each")
    own = n // nprocs
    total = of.D * own + of.F * own * math.log2(own)  # equation 15, its computation
    for level in range(nprocs.bit_length() - 1):
        pairs = n * 2**level / nprocs
        total += network.L + network.g * words * pairs  # of equations 15 and 16
        total += of.R * pairs  # of equations 16 and 17: the last is R N/2
    return total


def psrs_time(n: int, nprocs: int, of: Sort, network: Network) -> list[float]:
    """Return T1 to T7 of parallel sorting by regular sampling, in seconds.

    Args:
        n: N, the number of keys, each of one word.
        nprocs: P, 2 or more.
        of: B to J.
        network: g and L.

    Raises:
        ValueError: there are fewer than P squared keys, or fewer than two processes.

    Source: Roda et al. 1999, equations 19 to 25.
    """
    p = nprocs
    if p < 2 or n < p * p:
        raise ValueError(f"{n} keys on {p} processes: it takes 2 processes, and p squared keys")
    block, others = n / p, p - 1
    steps = [
        (0.0, others * block),
        (of.B * block * math.log2(block) + of.C * p, p * others),
        (of.D * p**2 + of.E * others, others**2),
        (of.F * others * math.log2(block), 2 * others),
        (of.H * others, 2 * others * n / p**2),
        (of.I * block, others),
        (of.J * others, others * block),
    ]
    times, now = [], 0.0
    for work, h in steps:
        now += work + network.g * h + network.L
        times.append(now)
    return times


def error_percent(actual: float, model: float) -> float:
    """Return 100 (actual - model) / actual: equation 18."""
    return 100 * (actual - model) / actual


def actual_of(model: float, error: float) -> float:
    """Return the actual time that a printed error percentage belongs to: equation 18."""
    return model / (1 - error / 100)


# -- what the paper prints of its platforms: Tables 1 to 3, and the errors in the text ------------


PVM = {
    "Origin 2000": Network(4.88e-8, -1.53e-5),
    "IBM SP2": Network(1.38e-7, 8.08e-5),
    "UTP LAN": Network(6.04e-6, 3.82e-3),
    "Coaxial LAN": Network(1.01e-5, 1.26e-2),
}
"""Table 1."""
MPI = {"Cray T3E": Network(2.92e-8, -2.11e-5), "Origin 2000": Network(5.53e-8, -1.75e-3)}
"""Table 2."""
_LAN = Transform(2.65e-6, 6.04e-7, 1.44e-6)
CONSTANTS = {
    "Origin 2000": Transform(2.39e-7, 5.52e-7, 2.84e-7),
    "IBM SP2": Transform(5.86e-7, 4.81e-7, 8.69e-7),
    "UTP LAN": _LAN,
    "Coaxial LAN": _LAN,
}
"""Table 3; the workstations of both networks are the same."""
VALUES = 524_288
"""Complex values of Figures 9 to 11."""
ERRORS = {"UTP LAN": 34.30, "Origin 2000": 34.10}
"""Percent at p = 8: section 4.1."""
