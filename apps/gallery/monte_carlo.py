"""The price of an Asian option by Monte Carlo, to a given standard error.

A price wanders at random; the option pays what its mean is above a bound. Each process draws paths
from a stream of its own until the error of the mean of all is small enough.

Cost: for b paths of d days in a round, w = O(b d/p) and three numbers from each process:
(O(b d/p) + 24 (p - 1) g + l) in each round.
Teaches: ``bsp.rng(seed)`` gives each process an independent stream, the same in every run; what
decides about the next round comes from ``allreduce``, so that all processes decide the same.
"""

from typing import Any

import numpy as np

import bsplib


def main(bsp: bsplib.Group, error: float = 0.007, batch: int = 20_000, days: int = 64) -> Any:
    """Return the price, its standard error, and the number of paths."""
    random = bsp.rng(seed=1)
    total = np.zeros(3)
    while total[0] == 0 or deviation(total) > error:
        steps = random.normal(-0.02 / days, 0.2 / days**0.5, (batch // bsp.nprocs, days))
        pays = np.maximum(100 * np.exp(steps.cumsum(axis=1)).mean(axis=1) - 100, 0)
        total += bsp.allreduce(np.array([len(pays), pays.sum(), pays @ pays]))
    return total[1] / total[0], deviation(total), int(total[0])


def deviation(total: Any) -> float:
    """Return the standard error of a mean, from a number of values, their sum and squares."""
    count, sums, squares = total
    return float(((squares / count - (sums / count) ** 2) / count) ** 0.5)


if __name__ == "__main__":
    print(bsplib.run(main)[0])
