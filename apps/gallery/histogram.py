"""A histogram whose bins, since they are many, are divided among the processes.

Each process draws its own values, in batches. The bin of a value is on some process; one call of
``put_at`` adds 1 to the bins of all values of a batch, wherever they are.

Cost: for n values in a batch, w = O(n/p), and h is about 8 (1 - 1/p) n/p bytes of ones, with as
many of places: O(n/p) + 16 (1 - 1/p) n/p g + l for each batch.
Teaches: ``put_at(pids, indices, values, x, op=np.add)`` is for irregular writes: no loop, no
sorting by process, and words for one place are added instead of overwritten.
"""

from typing import Any

import numpy as np

import bsplib


def main(
    bsp: bsplib.Group, batch: int = 2_000_000, batches: int = 20, bins: int = 1_000_000
) -> Any:
    """Return the number of values in each bin, on process 0."""
    counts = bsp.zeros(-(-bins // bsp.nprocs), int)
    random = bsp.rng(seed=1)
    for _ in range(batches):
        values = random.random(batch // bsp.nprocs) ** 2
        owners, places = np.divmod((bins * values).astype(int), len(counts))
        bsp.put_at(owners, places, 1, counts, op=np.add)
        bsp.sync()
    whole = bsp.gather(counts, axis=0)
    return None if whole is None else whole[:bins]


if __name__ == "__main__":
    print(bsplib.run(main)[0])
