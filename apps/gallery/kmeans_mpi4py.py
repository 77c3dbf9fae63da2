"""K-means in mpi4py: the sums of all ranks are added in each round."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, size: int = 100_000, clusters: int = 16, rounds: int = 90) -> Any:
    """Return the centres."""
    counts = [len(block) for block in np.array_split(np.arange(size), comm.size)]
    points = np.random.default_rng(1).random((size, 3)) if comm.rank == 0 else None
    mine = np.empty((counts[comm.rank], 3))
    comm.Scatterv([points, np.multiply(counts, 3)], mine)
    centres = mine[:clusters].copy()
    comm.Bcast(centres)
    for _ in range(rounds):
        nearest = ((centres**2).sum(axis=1) - 2 * mine @ centres.T).argmin(axis=1)
        columns = [np.bincount(nearest, column, clusters) for column in mine.T]
        sums = np.column_stack([*columns, np.bincount(nearest, minlength=clusters)])
        comm.Allreduce(MPI.IN_PLACE, sums)
        centres = sums[:, :-1] / np.maximum(sums[:, -1:], 1)
    return centres


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(result)
