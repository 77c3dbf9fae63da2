"""Sorting by regular samples, in mpi4py: the lengths of the pieces are exchanged first."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, size: int = 20_000_000) -> Any:
    """Return the keys in order, on rank 0."""
    random = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(comm.rank,)))
    keys = np.sort(random.normal(size=size // comm.size))
    samples = np.empty((comm.size, comm.size))
    comm.Allgather(keys[np.arange(comm.size) * len(keys) // comm.size], samples)
    bounds = np.sort(samples, axis=None)[comm.size :: comm.size]
    sent = np.diff(np.searchsorted(keys, bounds), prepend=0, append=len(keys))
    received = np.empty_like(sent)
    comm.Alltoall(sent, received)
    mine = np.empty(received.sum())
    comm.Alltoallv([keys, sent], [mine, received])
    pieces = comm.gather(np.sort(mine, kind="stable"))
    return None if pieces is None else np.concatenate(pieces)


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if result is not None:
        print(result)
