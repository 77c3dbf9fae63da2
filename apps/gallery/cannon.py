"""Cannon's multiplication of matrices, on a square grid of processes.

A process of the grid begins with one block of each factor, such that the two can be multiplied.
After each product it puts the block of A into its left neighbour and that of B into the one above.
Where the number of processes is no square, those that find no place in the grid rest.

Cost: for n x n matrices and p = q^2, w = 2 n^3/p^1.5 and h = 2 * 8 n^2/p bytes in each of q steps:
2 n^3/p + 16 n^2/p^0.5 g + q l with the split, before the product is gathered.
Teaches: ``with bsp.split(colour)`` makes sub-groups, None is for processes that rest; a put copies
at the call, so that a block may be put over one that is itself put elsewhere.
"""

from math import isqrt
from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 3000) -> Any:
    """Return the product of two matrices in blocks, by process of the grid, on process 0."""
    q = isqrt(bsp.nprocs)
    with bsp.split(0 if bsp.pid < q * q else None) as grid:
        return None if grid is None else multiply(grid, size // q, q)


def multiply(grid: bsplib.Group, width: int, q: int) -> Any:
    """Return the blocks of the product on process 0 of a grid of q x q processes."""
    row, column = divmod(grid.pid, q)
    across, down, middle = (
        width * block + np.arange(width) for block in (row, column, (row + column) % q)
    )
    a = grid.array(np.cos(np.outer(across, middle)))
    b = grid.array(np.sin(np.outer(middle, down)))
    product = a @ b
    for _ in range(q - 1):
        grid.put(q * row + (column - 1) % q, a, a)
        grid.put((row - 1) % q * q + column, b, b)
        grid.sync()
        product += a @ b
    return grid.gather(product)


if __name__ == "__main__":
    print(bsplib.run(main)[0])
