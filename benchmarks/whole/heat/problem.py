"""What all versions share: the grid at the beginning, and one step of a block of rows.

The grid is the surface of a tube. Its first and last columns are the ends of the tube, which
keep their temperatures. Its rows go around the tube: the first row is next to the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.whole.parts import cut

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A square grid, and the number of time steps."""

    size: int = 1152
    steps: int = 360

    def __str__(self) -> str:
        return f"Heat equation, {self.steps} steps of {self.size} x {self.size} values"

    def reference(self) -> Rows:
        """Return the grid after all steps, computed by one process."""
        old = np.pad(part(self, 0, 1), ((1, 1), (0, 0)))
        new = old.copy()
        for _ in range(self.steps):
            old[0], old[-1] = old[-2], old[1]
            relax(old, new)
            old, new = new, old
        return old[1:-1]

    def join(self, pieces: list[Rows]) -> Rows:
        """Return the grid of which each process has some rows."""
        return np.concatenate(pieces)

    def agrees(self, found: Rows, expected: Rows) -> bool:
        """Tell whether a result is the reference."""
        return np.array_equal(found, expected)


@cache
def part(problem: Problem, pid: int, nprocs: int) -> Rows:
    """Return the rows of a process at the beginning."""
    around = np.arange(problem.size)[cut(problem.size, pid, nprocs), np.newaxis]
    along = np.linspace(0.0, 1.0, problem.size)
    return np.sin(2 * np.pi * around / problem.size) * np.cos(np.pi * along)


def relax(old: Rows, new: Rows) -> None:
    """Compute the inner rows after a step; the outer ones belong to the neighbours."""
    inner = new[1:-1, 1:-1]
    np.add(old[:-2, 1:-1], old[2:, 1:-1], out=inner)
    inner += old[1:-1, :-2]
    inner += old[1:-1, 2:]
    inner *= 0.25
