"""K-means by Lloyd's method: points are divided, centres are known to all.

Each process gives each of its points to the nearest centre, and adds up the points of each
centre. The sums of all processes give the new centres.

Cost: for n points in d dimensions and k centres, w = 2 k d n/p, and a sum of k (d + 1) numbers in
each round: (2 k d n/p + 8 k (d + 1) (p - 1) g + l), where this sum may cost
16 k (d + 1) (1 - 1/p) g + 2 l instead.
Teaches: ``scatter(x, axis=0)`` deals out blocks of an array, and ``allreduce`` adds arrays.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 100_000, clusters: int = 16, rounds: int = 90) -> Any:
    """Return the centres."""
    points = np.random.default_rng(1).random((size, 3)) if bsp.pid == 0 else None
    mine = bsp.scatter(points, axis=0)
    centres = bsp.broadcast(mine[:clusters])
    for _ in range(rounds):
        nearest = ((centres**2).sum(axis=1) - 2 * mine @ centres.T).argmin(axis=1)
        columns = [np.bincount(nearest, column, clusters) for column in mine.T]
        counts = np.bincount(nearest, minlength=clusters)
        sums = bsp.allreduce(np.column_stack([*columns, counts]))
        centres = sums[:, :-1] / np.maximum(sums[:, -1:], 1)
    return centres


if __name__ == "__main__":
    print(bsplib.run(main)[0])
