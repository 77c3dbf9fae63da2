"""Heat in a cube whose upper side is hot: each process has a block, with a halo on all six sides.

The processes form a grid in three dimensions. In each step a process puts the six outer layers of
its block into the halos of its neighbours, and then each point becomes the mean of its six
neighbours.

Cost: for n^3 points on a grid of q^3 processes, w = 6 n^3/p and h = 6 * 8 (n/q)^2 bytes in each
step: (6 n^3/p + 48 (n/q)^2 g + l) each; in slices of one dimension h would be 16 n^2 bytes.
Teaches: blocks of three dimensions send less than slices do, and a side of the array of another
process is named by its index there: ``bsp.on(pid, x)[:, -1] = values``.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 128, steps: int = 60) -> Any:
    """Return the temperatures after some steps, on process 0."""
    grid = near_cube(bsp.nprocs)
    pids = np.arange(bsp.nprocs).reshape(grid)
    place = [int(i) for i in np.unravel_index(bsp.pid, grid)]
    spans = [slice(size * i // q, size * (i + 1) // q) for i, q in zip(place, grid, strict=True)]
    old = bsp.zeros([span.stop - span.start + 2 for span in spans])
    if place[0] == 0:
        old[0] = 100.0
    new = bsp.array(old)
    for _ in range(steps):
        for axis in range(3):
            for way, own, halo in ((-1, 1, -1), (1, -2, 0)):
                there = place.copy()
                there[axis] += way
                if 0 <= there[axis] < grid[axis]:
                    bsp.on(int(pids[*there]), old)[side(axis, halo)] = old[side(axis, own)]
        bsp.sync()
        new[1:-1, 1:-1, 1:-1] = mean(old)
        old, new = new, old
    blocks = bsp.gather((spans, old[1:-1, 1:-1, 1:-1].copy()))
    if blocks is None:
        return None
    whole = np.empty((size, size, size))
    for where, block in blocks:
        whole[*where] = block
    return whole


def near_cube(nprocs: int) -> list[int]:
    """Return three factors of a number that are near to each other."""
    grid, left = [1, 1, 1], nprocs
    while left > 1:
        factor = max(k for k in range(2, left + 1) if left % k == 0 and is_prime(k))
        grid[grid.index(min(grid))] *= factor
        left //= factor
    return grid


def is_prime(k: int) -> bool:
    """Tell whether a number has no divisor."""
    return all(k % d for d in range(2, int(k**0.5) + 1))


def side(axis: int, number: int) -> Any:
    """Return the index of a layer of a block, without its edges."""
    index: list[Any] = [slice(1, -1)] * 3
    index[axis] = number
    return tuple(index)


def mean(x: Any) -> Any:
    """Return the mean of the six neighbours of each inner point."""
    sums = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    return (sums + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]) / 6


if __name__ == "__main__":
    print(bsplib.run(main)[0])
