"""Cannon's multiplication in mpi4py, on a torus of ranks."""

from math import isqrt
from typing import Any

import numpy as np
from mpi4py import MPI


def main(comm: MPI.Intracomm, size: int = 3000) -> Any:
    """Return the product of two matrices in blocks, by rank of the torus, on rank 0."""
    q = isqrt(comm.size)
    working = comm.Split(0 if comm.rank < q * q else MPI.UNDEFINED)
    return None if working == MPI.COMM_NULL else multiply(working, size // q, q)


def multiply(comm: Any, width: int, q: int) -> Any:
    """Return the blocks of the product on rank 0 of q x q ranks."""
    torus = comm.Create_cart([q, q], periods=[True, True])
    row, column = torus.coords
    right, left = torus.Shift(1, -1)
    below, above = torus.Shift(0, -1)
    across, down, middle = (
        width * block + np.arange(width) for block in (row, column, (row + column) % q)
    )
    a = np.cos(np.outer(across, middle))
    b = np.sin(np.outer(middle, down))
    product = a @ b
    for _ in range(q - 1):
        torus.Sendrecv_replace(a, left, source=right)
        torus.Sendrecv_replace(b, above, source=below)
        product += a @ b
    return torus.gather(product)


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        print(result)
