"""Conjugate gradients in mpi4py: the pieces of the direction are gathered on all ranks."""

import numpy as np
from mpi4py import MPI

from benchmarks.whole.conjugate_gradients.problem import Problem, Vector, part


def main(comm: MPI.Intracomm, problem: Problem) -> Vector:
    """Return this rank's piece of the solution."""
    rows, right = part(problem, comm.rank, comm.size)
    places = [problem.mine(rank, comm.size) for rank in range(comm.size)]
    counts = [place.stop - place.start for place in places]
    everywhere = np.zeros(problem.size)
    direction = everywhere[places[comm.rank]]
    total = np.zeros(1)

    def dot(one: Vector, other: Vector) -> float:
        total[0] = one @ other
        comm.Allreduce(MPI.IN_PLACE, total)
        return total[0]

    solution, residual = np.zeros_like(right), right.copy()
    direction[:] = right
    square = dot(residual, residual)
    limit = problem.tolerance**2 * square
    while square > limit:
        comm.Allgatherv(MPI.IN_PLACE, [everywhere, counts])
        image = rows @ everywhere
        step = square / dot(direction, image)
        solution += step * direction
        residual -= step * image
        before, square = square, dot(residual, residual)
        direction *= square / before
        direction += residual
    return solution


if __name__ == "__main__":
    pieces = MPI.COMM_WORLD.gather(main(MPI.COMM_WORLD, Problem()))
    if pieces is not None:
        print(np.concatenate(pieces))
