"""The highest place of a random walk in mpi4py."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, size: int = 20_000_000) -> Any:
    """Return how high the walk comes, and after how many steps for the first time."""
    first = size * comm.rank // comm.size
    numbers = np.arange(first, size * (comm.rank + 1) // comm.size, dtype=float)
    steps = np.where(np.sin(numbers * numbers) < 0, -1, 1)
    places = steps.cumsum()
    before = comm.exscan(int(steps.sum()))
    places += before or 0  # rank 0 has nothing before it, and MPI leaves its result undefined
    highest = places.argmax()
    height, number = comm.allreduce((int(places[highest]), -first - int(highest)), MPI.MAX)
    return height, 1 - number


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(result)
