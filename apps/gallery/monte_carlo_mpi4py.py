"""The price of an Asian option in mpi4py."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, error: float = 0.007, batch: int = 20_000, days: int = 64) -> Any:
    """Return the price, its standard error, and the number of paths."""
    random = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(comm.rank,)))
    total = np.zeros(3)
    while total[0] == 0 or deviation(total) > error:
        steps = random.normal(-0.02 / days, 0.2 / days**0.5, (batch // comm.size, days))
        pays = np.maximum(100 * np.exp(steps.cumsum(axis=1)).mean(axis=1) - 100, 0)
        part = np.array([len(pays), pays.sum(), pays @ pays])
        comm.Allreduce(MPI.IN_PLACE, part)
        total += part
    return total[1] / total[0], deviation(total), int(total[0])


def deviation(total: Any) -> float:
    """Return the standard error of a mean, from a number of values, their sum and squares."""
    count, sums, squares = total
    return float(((squares / count - (sums / count) ** 2) / count) ** 0.5)


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(result)
