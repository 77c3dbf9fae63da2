"""Where it pays that all processes sort the sample of a sample sort, in place of one: a map.

With s p samples of each of p processes, samples of c bytes, and K = k (k + 1)/2, k = log2 p:

======== ========== ================ =================================
who      supersteps h in bytes       comparisons
======== ========== ================ =================================
one      1          (p - 1) s p c    s p^2 log2 p, on this process
all      K          s p c each       s p in each superstep
======== ========== ================ =================================

So all of them always compare less. They send less from p = 8 on where h is the greater of in and
out, and from p = 32 on where it is their sum, since then it counts twice in the network. They pay
K - 1 times l. What both do alike is left out.

Source: Jarvis et al. 2002, section 4.3; :mod:`bsplib.apps.sorting.sample_sort` for the costs.
"""

from __future__ import annotations

import math

from bsplib.apps.sorting.oversampling import theoretical_oversampling
from bsplib.apps.work import COMPARISON_S, SPEED
from bsplib.machine import Machine

SAMPLE_BYTES = 16
"""A key of 8 B and its origin."""


def saved_s(machine: Machine, nprocs: int, size: int) -> tuple[float, float]:
    """Return what the network saves in computation and transfers, and how often it pays l more.

    Args:
        machine: gives g, its rule for h, and the speed; without one that of here.
        nprocs: p, a power of two.
        size: number of keys, which determines the theoretical factor.
    """
    own = theoretical_oversampling(size, nprocs) * nprocs
    k = round(math.log2(nprocs))
    steps = k * (k + 1) // 2
    ratio = 1.0 if machine.speed is None else SPEED / machine.speed
    compared = own * (nprocs * k - steps)
    both_ways = 2 if machine.h == "sum" else 1
    moved = SAMPLE_BYTES * own * (nprocs - 1 - both_ways * steps)
    return ratio * COMPARISON_S * compared + machine.g * moved, steps - 1.0


def gain_s(machine: Machine, nprocs: int, size: int) -> float:
    """Return the seconds by which the network is faster; negative where it is slower."""
    saved, more = saved_s(machine, nprocs, size)
    return saved - more * machine.need("l")


def greatest_l(machine: Machine, nprocs: int, size: int) -> float:
    """Return the l up to which the network pays; 0 where it does with none."""
    saved, more = saved_s(machine, nprocs, size)
    if not more:
        return math.inf if saved > 0 else 0.0
    return max(saved / more, 0.0)
