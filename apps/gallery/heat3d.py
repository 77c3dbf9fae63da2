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
    place, apart = np.unravel_index(bsp.pid, grid), (grid[1] * grid[2], grid[2], 1)
    spans = [slice(size * i // q, size * (i + 1) // q) for i, q in zip(place, grid, strict=True)]
    old = bsp.zeros([span.stop - span.start + 2 for span in spans])
    if place[0] == 0:
        old[0] = 100.0
    new = bsp.array(old)
    for _ in range(steps):
        for axis in range(3):
            for way, own, halo in ((-1, 1, -1), (1, -2, 0)):
                if 0 <= place[axis] + way < grid[axis]:
                    there = bsp.on(bsp.pid + way * apart[axis], old)
                    there[side(axis, halo)] = old[side(axis, own)]
        bsp.sync()
        new[1:-1, 1:-1, 1:-1] = mean(old)
        old, new = new, old
    whole = bsp.zeros((size,) * 3 if bsp.pid == 0 else (0,) * 3)
    bsp.sync()
    bsp.put(0, old[1:-1, 1:-1, 1:-1], whole, at=tuple(spans))
    bsp.sync()
    return whole if bsp.pid == 0 else None


def near_cube(nprocs: int) -> tuple[int, int, int]:
    """Return the three factors of a number whose sum is smallest."""
    sides = [k for k in range(1, nprocs + 1) if nprocs % k == 0]
    pairs = [(a, b) for a in sides for b in sides if nprocs % (a * b) == 0]
    return min(((a, b, nprocs // (a * b)) for a, b in pairs), key=sum)


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
