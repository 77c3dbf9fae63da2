"""The Fourier transform of the paper's Figure 7: half of the processes leave in each step.

Every process has all values at first. It takes every p-th of them, transforms these, and then
the transforms are combined in pairs, until process 0 has the whole. All processes sync in each
step, as an M-step demands, and the constants of the equations can count the work:
:mod:`bsplib.apps.fourier.fft_barrier_free` is the program to use.

Cost for p and N powers of two, with the constants D, F and R of Table 3:

============ ============ ================= =============================
part         supersteps   h in values       w
============ ============ ================= =============================
transform    0            0                 D N/p + F N/p log2(N/p)
level i      1            N 2^i/p           R N 2^i/p, after the exchange
============ ============ ================= =============================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import bsplib
from bsplib.apps.fourier.common import Values, reversed_bits
from bsplib.apps.papers.msteps.model import Transform

WORDS = 4
"""Words of 32 bits of a value here; the paper counts one."""


def main(bsp: bsplib.Group, values: Values, of: Transform | None = None) -> Values | None:
    """Return the transform on process 0, and None elsewhere.

    Args:
        bsp: the group; p is a power of two.
        values: N of them, a power of two, the same on all processes.
        of: constants by which virtual processors count the work; without them they measure it.

    Raises:
        ValueError: N or p is no power of two, or N is less than p.

    Supersteps: log2 p.
    Source: Roda et al. 1999, Figure 7 and equations 13 to 17.
    """
    n, p = len(values), bsp.nprocs
    if n < p or n & (n - 1) or p & (p - 1):
        raise ValueError(f"{n} values on {p} processes: both are powers of two, p at most N")
    levels = p.bit_length() - 1
    own = values[reversed_bits(bsp.pid, levels) :: p].copy()
    if of is not None:
        bsp.charge(of.D * len(own) + of.F * len(own) * math.log2(len(own)))
    mine: Values | None = np.fft.fft(own)
    for level in range(levels):
        mine = _combined(bsp, mine, level, of)
    return mine


def _combined(
    bsp: bsplib.Group, mine: Values | None, level: int, of: Transform | None
) -> Values | None:
    """Send to the process whose number has a 0 as this bit, or combine what has come."""
    sends = mine is not None and bsp.pid >> level & 1
    if sends:
        bsp.send(bsp.pid ^ 1 << level, mine)
    bsp.sync()
    if mine is None or sends:
        return None
    ((_, _, odd),) = bsp.messages()
    if of is not None:
        bsp.charge(of.R * len(mine))
    return combine(mine, odd)


def combine(even: Values, odd: Any) -> Values:
    """Return the transform of values from those of the even and of the odd ones: equation 14."""
    turned = np.exp(-1j * np.pi * np.arange(len(even)) / len(even)) * odd
    return np.concatenate([even + turned, even - turned])
