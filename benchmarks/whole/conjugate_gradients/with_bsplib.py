"""Conjugate gradients in bsplib: each process puts its piece of the direction into all others."""

import numpy as np

import bsplib
from benchmarks.whole.conjugate_gradients.problem import Problem, Vector, part


def main(bsp: bsplib.Group, problem: Problem) -> Vector:
    """Return this process's piece of the solution."""
    rows, right = part(problem, bsp.pid, bsp.nprocs)
    everywhere = bsp.zeros(problem.size)
    direction = everywhere[problem.mine(bsp.pid, bsp.nprocs)]
    others = set(range(bsp.nprocs)) - {bsp.pid}
    solution, residual = np.zeros_like(right), right.copy()
    direction[:] = right
    square = bsp.allreduce(residual @ residual)
    limit = problem.tolerance**2 * square
    while square > limit:
        for pid in others:
            bsp.hpput(pid, direction, direction)
        bsp.sync()
        image = rows @ everywhere
        step = square / bsp.allreduce(direction @ image)
        solution += step * direction
        residual -= step * image
        before, square = square, bsp.allreduce(residual @ residual)
        direction *= square / before
        direction += residual
    return solution


if __name__ == "__main__":
    print(np.concatenate(bsplib.run(main, Problem())))
