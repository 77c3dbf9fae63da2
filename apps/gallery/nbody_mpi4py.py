"""N bodies in mpi4py: the places of all bodies are gathered on all ranks in each step."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, size: int = 1600, steps: int = 10, seconds: float = 1e-3) -> Any:
    """Return the places of all bodies after some steps."""
    places = np.random.default_rng(1).random((size, 3))
    blocks = np.array_split(places, comm.size)
    mine, counts = blocks[comm.rank], [block.size for block in blocks]
    speeds = np.zeros_like(mine)
    for _ in range(steps):
        apart = places - mine[:, None]
        cubes = ((apart**2).sum(axis=2) + 1e-4) ** 1.5
        speeds += seconds / size * (apart / cubes[:, :, None]).sum(axis=1)
        mine += seconds * speeds
        comm.Allgatherv(MPI.IN_PLACE, [places, counts])
    return places


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(result)
