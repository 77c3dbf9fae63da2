"""Heat on a plate whose upper edge is hot: each process has a block of rows, and two more.

The temperature of each inner point becomes the mean of its four neighbours, again and again. A
process needs the rows next to its own, so its array has a row more at each end, the halo, into
which its neighbours put theirs.

Cost: for n x n points, w = 4 n^2/p and h = 2 * 8 n bytes in each step: (4 n^2/p + 16 n g + l) each.
Teaches: ``bsp.on(pid, x)[i] = values`` is a put, and names a row of the array that is there.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, size: int = 1024, steps: int = 200) -> Any:
    """Return the temperatures after some steps, on process 0."""
    rows = len(np.array_split(np.arange(size), bsp.nprocs)[bsp.pid])
    old = bsp.zeros((rows + 2, size))
    if bsp.pid == 0:
        old[0] = 100.0
    new = bsp.array(old)
    for _ in range(steps):
        if bsp.pid > 0:
            bsp.on(bsp.pid - 1, old)[-1] = old[1]
        if bsp.pid < bsp.nprocs - 1:
            bsp.on(bsp.pid + 1, old)[0] = old[-2]
        bsp.sync()
        new[1:-1, 1:-1] = (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]) / 4
        old, new = new, old
    return bsp.gather(old[1:-1], axis=0)


if __name__ == "__main__":
    print(bsplib.run(main)[0])
