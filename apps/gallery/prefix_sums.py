"""Where a random walk of many steps is highest, by prefix sums.

The place after a step is the sum of all steps until then. Each process adds up the steps of its
block, and the sums of the blocks before tell it where its block begins.

Cost: for n steps, w = 2 n/p, one number from each process to each later one, then two numbers from
each process: 2 n/p + 24 (p - 1) g + 2 l.
Teaches: ``exscan`` gives each process the sum of those before it (0 on process 0), here the place
where its block begins; an ``op`` may be any function of two values, such as ``max`` of tuples.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 20_000_000) -> Any:
    """Return how high the walk comes, and after how many steps for the first time."""
    first = size * bsp.pid // bsp.nprocs
    numbers = np.arange(first, size * (bsp.pid + 1) // bsp.nprocs, dtype=float)
    steps = np.where(np.sin(numbers * numbers) < 0, -1, 1)
    places = steps.cumsum()
    places += bsp.exscan(int(steps.sum()))
    highest = places.argmax()
    height, number = bsp.allreduce((int(places[highest]), -first - int(highest)), max)
    return height, 1 - number


if __name__ == "__main__":
    print(bsplib.run(main)[0])
