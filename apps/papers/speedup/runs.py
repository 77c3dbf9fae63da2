"""Bitonic merge sort as a program whose work is counted, on up to 512 virtual processors.

Every process sorts its block by a sequential bitonic network, of m log(m)^2 steps for a block of
m = N/P keys. For each merge of two lists, blocks are compared key by key with those of partners,
and at the end of the merge each block is sorted by the sequential network again. So the terms of
equation 9 occur as they stand there.

The virtual computer has the costs of the simulator Multi as far as she prints them: creating a
process takes 9.00 P + 6.8 units and a barrier 20.08 P + 0.8, the lines through her Tables 1 and 2.
A step of a network counts one unit, and so does moving a key. A unit is a microsecond here.

Source: Chittor 1995, sections 3 and 4, Figures 5 and 6, without their slips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bsplib
from bsplib.machine import Machine

Keys = NDArray[np.int32]
UNIT_S = 1e-6


def main(bsp: bsplib.Group, n: int, *, created: bool = True) -> tuple[Keys, float]:
    """Sort n random keys; return this process's block, and the time in units.

    Args:
        bsp: the group; P is a power of two.
        n: a power of two, P or more; or 0 to do nothing but create processes and wait.
        created: whether to count the creation of the processes.

    Raises:
        ValueError: N or P is no power of two, or N is less than P.

    Supersteps: log P (log P + 1) / 2 with h = N/P keys, and log P barriers.
    """
    p = bsp.nprocs
    if p & (p - 1) or n & (n - 1) or 0 < n < p:
        raise ValueError(f"{n} keys on {p} processes: both are powers of two, P at most N")
    bsp.charge(created * (9.00 * p + 6.8) * UNIT_S)
    block = np.random.default_rng(n).integers(0, 2**30, n, np.int32)
    block = block[bsp.pid * n // p : (bsp.pid + 1) * n // p]
    block = sort_block(bsp, block, descending=bool(bsp.pid & 1))
    for level in range(p.bit_length() - 1):
        descending = bool(bsp.pid >> (level + 1) & 1)
        for distance in range(level, -1, -1):
            block = compare(bsp, block, 1 << distance, descending)
        block = sort_block(bsp, block, descending)
        bsp.charge(barrier(p) * UNIT_S)  # at the end of a merge
    return block, round(bsp.time() / UNIT_S, 3)


def barrier(nprocs: int) -> float:
    """Return the units of a barrier, if there is more than one process."""
    return 20.08 * nprocs + 0.8 if nprocs > 1 else 0.0


def sort_block(bsp: bsplib.Group, block: Keys, descending: bool) -> Keys:
    """Sort a block; counts the steps of a bitonic network."""
    bsp.charge(network_steps(len(block)) * UNIT_S)
    return in_order(block, descending=descending)


def network_steps(m: int) -> float:
    """Return the steps of a bitonic network of m keys, m lg m (lg m + 1) / 4."""
    return m * log2(m) * (log2(m) + 1) / 4 if m > 1 else 0.0


def in_order(block: Keys, *, descending: bool) -> Keys:
    """Return the keys of a block in order."""
    ordered = np.sort(block)
    return ordered[::-1].copy() if descending else ordered


def compare(bsp: bsplib.Group, block: Keys, distance: int, descending: bool) -> Keys:
    """Keep the lesser or the greater keys of this block and a partner's: 1 superstep."""
    partner = bsp.pid ^ distance
    bsp.send(partner, block)
    bsp.sync()
    if not len(block):
        return block
    ((_, _, other),) = bsp.messages()
    bsp.charge(len(block) * UNIT_S)
    keeps_lesser = (bsp.pid < partner) != descending
    return np.minimum(block, other) if keeps_lesser else np.maximum(block, other)


MULTI = Machine(
    "like Multi", "Chittor 1995, Tables 1 and 2; a unit is 1 us", g=UNIT_S / 4, l=0.0, p=None
)
"""A key of 4 bytes takes a unit; barriers are charged by the program, at the end of a merge."""


def time_of(n: int, nprocs: int, **how: Any) -> float:
    """Return the time of a run in units: that of the slowest process."""
    results = bsplib.run(main, n, nprocs=nprocs, backend="sim", machine=MULTI, **how)
    return max(took for _, took in results)


def times(
    sizes: Iterable[int], counts: Iterable[int], advance: Callable[[], object] = lambda: None
) -> dict[tuple[int, int], float]:
    """Return the times of all N and P with P at most N.

    Args:
        sizes: N, each a power of two.
        counts: P, likewise.
        advance: is called after each run.
    """
    found = {}
    for n in sizes:
        for p in counts:
            if p <= n:
                found[n, p] = time_of(n, p)
                advance()
    return found
