"""What all versions share: a sparse matrix, its right side, and when the iteration ends.

The matrix is an implicit time step of the heat equation on a square. The programs use only that
it is sparse, symmetric and positive definite, and that each process has a block of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import cg

from benchmarks.whole.parts import cut

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """A grid of unknowns, the time step, and the residual at which to stop.

    The time step is in units of the square of the distance of two unknowns. The residual is
    relative to the right side.
    """

    width: int = 1200
    time: float = 17.0
    tolerance: float = 1e-8

    def __str__(self) -> str:
        return f"Conjugate gradients, {self.size} unknowns"

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.width**2

    def mine(self, pid: int, nprocs: int) -> slice:
        """Return which unknowns are those of a process."""
        return cut(self.size, pid, nprocs)

    def reference(self) -> Vector:
        """Return the solution, computed by SciPy in one process."""
        matrix, right = part(self, 0, 1)
        solution, failed = cg(matrix, right, rtol=self.tolerance)
        if failed:
            raise RuntimeError("SciPy has found no solution")
        return solution

    def join(self, pieces: list[Vector]) -> Vector:
        """Return the solution, of which each process has a piece."""
        return np.concatenate(pieces)

    def agrees(self, found: Vector, expected: Vector) -> bool:
        """Tell whether two solutions agree as far as the residual says."""
        return bool(np.linalg.norm(found - expected) <= 1e-5 * np.linalg.norm(expected))


@cache
def _matrix(problem: Problem) -> sparse.csr_array:
    shape, step = (problem.width, problem.width), problem.time
    one = sparse.eye_array(problem.width)
    line = one / 2 + sparse.diags_array([-step, 2 * step, -step], offsets=[-1, 0, 1], shape=shape)
    return sparse.csr_array(sparse.kron(line, one) + sparse.kron(one, line))


@cache
def part(problem: Problem, pid: int, nprocs: int) -> tuple[sparse.csr_array, Vector]:
    """Return a process's rows of the matrix and of the right side."""
    mine = problem.mine(pid, nprocs)
    right = np.random.default_rng(1).random(problem.size)
    return _matrix(problem)[mine], right[mine]
