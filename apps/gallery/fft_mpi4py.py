"""The Fourier transform in mpi4py, with one exchange of blocks."""

from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, rows: int = 3072, columns: int = 2048) -> Any:
    """Return the transform of a random signal of rows * columns values, on rank 0."""
    signal = np.random.default_rng(1).random((rows, columns))
    mine = np.array_split(np.arange(columns), comm.size)[comm.rank]
    half = np.fft.fft(signal[:, mine], axis=0)
    half *= np.exp(np.outer(np.arange(rows), mine) * (-2j * np.pi / signal.size))
    blocks = comm.alltoall(np.array_split(half, comm.size))
    pieces = comm.gather(np.fft.fft(np.concatenate(blocks, axis=1), axis=1))
    return None if pieces is None else np.concatenate(pieces).T.ravel()


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if result is not None:
        print(result)
