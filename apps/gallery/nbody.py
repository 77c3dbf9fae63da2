"""N bodies that attract each other: each process moves its block of them.

The force on a body needs the places of all others. Each process has all places in a registered
array, and puts those of its own bodies into the same rows of everybody else's.

Cost: for n bodies, w = 20 n^2/p and h = 24 (n - n/p) bytes in each step:
(20 n^2/p + 24 (1 - 1/p) n g + l) each, where 24 (p - 1) n/p bytes leave a process, too.
Teaches: a put into a view, ``bsp.put(pid, mine, mine)``, writes the same rows on process pid.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 1600, steps: int = 10, seconds: float = 1e-3) -> Any:
    """Return the places of all bodies after some steps."""
    places = bsp.array(np.random.default_rng(1).random((size, 3)))
    mine = np.array_split(places, bsp.nprocs)[bsp.pid]
    speeds = np.zeros_like(mine)
    for _ in range(steps):
        apart = places - mine[:, None]
        cubes = ((apart**2).sum(axis=2) + 1e-4) ** 1.5
        speeds += seconds / size * (apart / cubes[:, :, None]).sum(axis=1)
        mine += seconds * speeds
        for pid in range(bsp.nprocs):
            bsp.put(pid, mine, mine)
        bsp.sync()
    return places


if __name__ == "__main__":
    print(bsplib.run(main)[0])
