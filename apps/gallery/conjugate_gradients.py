"""Conjugate gradients on a dense matrix: each process has a block of rows of the matrix.

The matrix says how alike two measurements are that are some distance apart; to solve it is the
main work of an interpolation (kriging). Each step multiplies the matrix by a direction, which all
processes need whole.

Cost: for n unknowns, w = 2 n^2/p, and 8 (n - n/p) bytes arrive in each step, with two sums of one
number: (2 n^2/p + 8 (1 - 1/p) n g + 3 l) each.
Teaches: ``allgather(x, axis=0)`` joins the pieces of a vector, of any lengths, on all processes.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 3000, tolerance: float = 1e-8) -> Any:
    """Return the solution, on process 0."""
    mine = np.array_split(np.arange(size), bsp.nprocs)[bsp.pid]
    rows = np.exp(-np.abs(mine[:, None] - np.arange(size)) / 20)
    solution, residual = np.zeros(len(mine)), np.sin(0.1 * mine)
    direction = residual
    square = first = bsp.allreduce(residual @ residual)
    while square > tolerance**2 * first:
        image = rows @ bsp.allgather(direction, axis=0)
        step = square / bsp.allreduce(direction @ image)
        solution += step * direction
        residual = residual - step * image
        before, square = square, bsp.allreduce(residual @ residual)
        direction = residual + square / before * direction
    return bsp.gather(solution, axis=0)


if __name__ == "__main__":
    print(bsplib.run(main)[0])
