"""LU decomposition with partial pivoting, of a matrix that is dealt out by rows and by columns.

The processes form a grid. Row i belongs to row i mod R of the grid, and column j to column j mod C:
so all processes have work until the end. In step k the largest value of column k is found, its
row changes places with row k, and column k and row k go to all processes that subtract their
product.

Cost: for n x n values on a square grid, 3 supersteps in each of n steps:
2 n^3/(3 p) + (8 (1 + 1/p^0.5) n^2 + 16 p n) g + 3 n l.
Teaches: a cyclic distribution is a slice, ``a[s::R, t::C]``. Two puts of one superstep exchange two
rows, since a put takes its values at the call.
Source: Bisseling, Parallel Scientific Computation, section 2.4.
"""

from math import isqrt
from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 1000) -> Any:
    """Return L and U in one matrix, and the order of the rows, on process 0."""
    height = max(r for r in range(1, isqrt(bsp.nprocs) + 1) if bsp.nprocs % r == 0)
    width = bsp.nprocs // height
    t, s = divmod(bsp.pid, height)
    a = bsp.array(np.random.default_rng(1).random((size, size))[s::height, t::width])
    best = bsp.zeros((height, 2))
    lower, upper = bsp.zeros(len(a)), bsp.zeros(a.shape[1])
    rows, columns, order = np.arange(s, size, height), np.arange(t, size, width), np.arange(size)
    for k in range(size):
        down, right = np.searchsorted(rows, k), np.searchsorted(columns, k)
        best[:] = 0
        if t == k % width and down < len(rows):
            largest = down + np.abs(a[down:, right]).argmax()
            for pid in range(bsp.nprocs):
                bsp.put(pid, [a[largest, right], rows[largest]], best, at=s)
        bsp.sync()
        pivot, swapped = best[np.abs(best[:, 0]).argmax()]
        other = int(swapped)
        order[[k, other]] = order[[other, k]]
        for one, two in ((k, other), (other, k)):
            if s == one % height and k != other:
                bsp.on(height * t + two % height, a)[two // height] = a[one // height]
        bsp.sync()
        if t == k % width:
            a[np.searchsorted(rows, k, "right") :, right] /= pivot
            for pid in range(s, bsp.nprocs, height):
                bsp.put(pid, a[down:, right], lower[down:])
        if s == k % height:
            for pid in range(height * t, height * (t + 1)):
                bsp.put(pid, a[down, right:], upper[right:])
        bsp.sync()
        down, right = np.searchsorted(rows, k, "right"), np.searchsorted(columns, k, "right")
        a[down:, right:] -= np.outer(lower[down:], upper[right:])
    blocks = bsp.gather(a)
    return None if blocks is None else (joined(blocks, size, height), order)


def joined(blocks: list[Any], size: int, height: int) -> Any:
    """Return the matrix whose blocks are dealt out."""
    whole = np.empty((size, size))
    for pid, block in enumerate(blocks):
        t, s = divmod(pid, height)
        whole[s::height, t :: len(blocks) // height] = block
    return whole


if __name__ == "__main__":
    print(bsplib.run(main)[0])
