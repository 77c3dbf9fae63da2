"""Creating processes and waiting at a barrier on this computer, against the number of processes.

Source: Chittor 1995, section 4.1, Tables 1 and 2: both grow in proportion to P.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import bsplib

_SYNCS = 100

CREATION = {1: 15, 2: 28, 4: 42, 8: 78, 16: 150, 32: 298, 64: 582, 128: 1158, 256: 2310, 512: 4618}
"""Units of Multi, as printed in Table 1."""
BARRIER = {
    1: 30,
    2: 40,
    4: 70,
    8: 130,
    16: 300,
    32: 660,
    64: 1310,
    128: 2590,
    256: 5150,
    512: 10270,
}
"""Units of Multi, as printed in Table 2."""
CREATION_PVM_MS = {1: 50, 2: 50, 4: 100, 8: 200, 16: 500}
"""Milliseconds on PVM, as printed in Table 1; more processes than 16 did not run."""
BARRIER_PVM_MS = {1: 50, 2: 100, 4: 250, 8: 500, 16: 1100}
"""Milliseconds on PVM, as printed in Table 2."""


@dataclass(frozen=True)
class Overhead:
    """Seconds with one number of processes."""

    nprocs: int
    creation_s: float
    """From the call of ``bsplib.run`` to its return, of a program that does nothing."""
    barrier_s: float
    """Mean time of a sync, over many of them."""


def measure(counts: Iterable[int], repeats: int = 5) -> list[Overhead]:
    """Measure processes of this computer.

    Args:
        counts: numbers of processes.
        repeats: runs of each; the fastest counts.
    """
    found = []
    for nprocs in counts:
        created, waited = [], []
        for _ in range(repeats):
            began = time.perf_counter()
            bsplib.run(_nothing, nprocs=nprocs)
            created.append(time.perf_counter() - began)
            waited.append(max(bsplib.run(_barriers, nprocs=nprocs)))
        found.append(Overhead(nprocs, min(created), min(waited)))
    return found


def _nothing(_: bsplib.Group) -> None:
    pass


def _barriers(bsp: bsplib.Group) -> float:
    bsp.sync()
    began = bsp.time()
    for _ in range(_SYNCS):
        bsp.sync()
    return (bsp.time() - began) / _SYNCS
