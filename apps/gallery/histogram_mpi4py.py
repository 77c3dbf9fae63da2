"""A histogram in mpi4py: each rank counts its values, and the counts are added and divided."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(
    comm: MPI.Intracomm, batch: int = 2_000_000, batches: int = 20, bins: int = 1_000_000
) -> Any:
    """Return the number of values in each bin, on rank 0."""
    random = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(comm.rank,)))
    counts = np.empty(-(-bins // comm.size), int)
    local = np.zeros(len(counts) * comm.size, int)
    for _ in range(batches):
        values = random.random(batch // comm.size) ** 2
        local += np.bincount((bins * values).astype(int), minlength=len(local))
    comm.Reduce_scatter_block(local, counts)
    whole = np.empty(len(counts) * comm.size, int) if comm.rank == 0 else None
    comm.Gather(counts, whole)
    return None if whole is None else whole[:bins]


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if result is not None:
        print(result)
