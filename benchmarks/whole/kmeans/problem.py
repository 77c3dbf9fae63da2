"""What all versions share: the points, and one round over some of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.whole.parts import cut

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Points in overlapping clouds, and the number of rounds."""

    points: int = 70_000
    dimensions: int = 8
    clusters: int = 16
    rounds: int = 330

    def __str__(self) -> str:
        return f"K-means, {self.rounds} rounds over {self.points} points"

    def reference(self) -> Table:
        """Return the centres after all rounds, computed by one process."""
        points, centres = part(self, 0, 1), first_centres(self)
        for _ in range(self.rounds):
            centres = means(tally(points, centres))
        return centres

    def join(self, pieces: list[Table]) -> Table:
        """Return the centres, which every process has."""
        return pieces[0]

    def agrees(self, found: Table, expected: Table) -> bool:
        """Tell whether a result is the reference but for the order of additions."""
        return np.allclose(found, expected, rtol=1e-9, atol=1e-9)


@cache
def _points(problem: Problem) -> Table:
    random = np.random.default_rng(1)
    clouds = random.normal(0.0, 2.0, (problem.clusters, problem.dimensions))
    cloud = clouds[random.integers(problem.clusters, size=problem.points)]
    return cloud + random.normal(0.0, 1.0, cloud.shape)


@cache
def part(problem: Problem, pid: int, nprocs: int) -> Table:
    """Return the points of a process."""
    return _points(problem)[cut(problem.points, pid, nprocs)].copy()


def first_centres(problem: Problem) -> Table:
    """Return the centres before the first round: some of the points."""
    return _points(problem)[: problem.clusters]


def tally(points: Table, centres: Table) -> Table:
    """Give each point to the nearest centre.

    Returns:
        For each centre the sum of its points and, in the last column, their number.
    """
    distances = points @ (-2.0 * centres.T)
    distances += np.einsum("ij,ij->i", centres, centres)
    nearest = distances.argmin(axis=1)
    columns = [np.bincount(nearest, column, len(centres)) for column in points.T]
    return np.column_stack([*columns, np.bincount(nearest, minlength=len(centres))])


def means(sums: Table) -> Table:
    """Return the centres of points of which the sums and the number are known."""
    return sums[:, :-1] / np.maximum(sums[:, -1:], 1.0)
