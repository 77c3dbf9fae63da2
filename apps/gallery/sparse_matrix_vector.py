"""A sparse matrix times a vector, repeatedly: the power method.

The values of the matrix are dealt out at random; element i of each vector is on process i mod p. A
process gets the elements that its columns need (the fan-out), multiplies, and adds its sums of
rows to the elements on other processes (the fan-in).

Cost: for z values in a matrix of n columns, w = 2 z/p, and h is 16 bytes for each column, then for
each row, that a process has values in, at most min(n, z/p) (1 - 1/p) of each: a round is
2 z/p + 32 min(n, z/p) (1 - 1/p) g + 3 l.
Teaches: ``get_at`` reads elements from many processes in one call; what it returns is there after
the sync. ``put_at(..., op=np.add)`` adds what comes from several processes.
Source: Bisseling, Parallel Scientific Computation, section 4.3.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 100_000, count: int = 2_000_000, rounds: int = 60) -> Any:
    """Return the vector after some rounds, on process 0."""
    random = bsp.rng(seed=1)
    of_row, of_column = random.integers(size, size=(2, count // bsp.nprocs))
    values = random.random(count // bsp.nprocs)
    columns, column = np.unique(of_column, return_inverse=True)
    rows, row = np.unique(of_row, return_inverse=True)
    vector = bsp.full(-(-size // bsp.nprocs), 1.0)
    product = bsp.zeros_like(vector)
    for _ in range(rounds):
        needed = bsp.get_at(columns % bsp.nprocs, columns // bsp.nprocs, vector)
        product[:] = 0
        bsp.sync()
        sums = np.bincount(row, values * needed[column])
        bsp.put_at(rows % bsp.nprocs, rows // bsp.nprocs, sums, product, op=np.add)
        bsp.sync()
        vector[:] = product / bsp.allreduce(product.max(), "max")
    pieces = bsp.gather(vector)
    return None if pieces is None else np.stack(pieces, axis=1).ravel()[:size]


if __name__ == "__main__":
    print(bsplib.run(main)[0])
