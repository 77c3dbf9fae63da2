"""Sorting by regular samples.

Each process sorts its keys and shows p of them, at regular distances. All sort these samples, and
take every p-th as the bound between two processes. Each process cuts its keys at the bounds, and
sends each piece to the process that merges it.

Cost: for n keys, w = O(n/p log n), with h = 8 p (p - 1) bytes of samples, then at most 16 n/p:
O(n/p log n) + (8 p^2 + 16 n/p) g + 2 l.
Teaches: parts of an ``alltoall`` may have any lengths, and nobody has to announce them. No process
gets more than twice its share, as regular samples promise.
Source: Bisseling, Parallel Scientific Computation, 2nd edition, section 1.8; Shi and Schaeffer.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 20_000_000) -> Any:
    """Return the keys in order, on process 0."""
    keys = np.sort(bsp.rng(seed=1).normal(size=size // bsp.nprocs))
    sample = keys[np.arange(bsp.nprocs) * len(keys) // bsp.nprocs]
    samples = np.sort(bsp.allgather(sample, axis=0))
    bounds = samples[bsp.nprocs :: bsp.nprocs]
    pieces = bsp.alltoall(np.split(keys, np.searchsorted(keys, bounds)))
    return bsp.gather(np.sort(np.concatenate(pieces), kind="stable"), axis=0)


if __name__ == "__main__":
    print(bsplib.run(main)[0])
