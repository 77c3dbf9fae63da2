"""Conjugate gradients in Dask: tasks for the pieces of the vectors, scalars in the client."""

from operator import itemgetter

import numpy as np
from dask.distributed import Client, Future, wait
from scipy.sparse import csr_array

from benchmarks.whole.conjugate_gradients.problem import Problem, Vector, part


def multiply(given: tuple[csr_array, Vector], *directions: Vector) -> Vector:
    """Multiply some rows of the matrix with the direction, of which there are pieces."""
    return given[0] @ np.concatenate(directions)


def begin(given: tuple[csr_array, Vector]) -> tuple[Vector, Vector]:
    """Return a piece of the solution and of the residual at the beginning."""
    return np.zeros_like(given[1]), given[1]


def advance(
    state: tuple[Vector, Vector], direction: Vector, image: Vector, step: float
) -> tuple[Vector, Vector]:
    """Return a piece of the solution and of the residual after a step."""
    return state[0] + step * direction, state[1] - step * image


def square_of(state: tuple[Vector, Vector]) -> float:
    """Return the square of a piece of the residual."""
    return state[1] @ state[1]


def turn(state: tuple[Vector, Vector], direction: Vector, factor: float) -> Vector:
    """Return a piece of the next direction."""
    return state[1] + factor * direction


def main(client: Client, problem: Problem) -> list[Future]:
    """Return the pieces of the solution."""
    count = len(client.nthreads())
    parts = [client.submit(part, problem, place, count) for place in range(count)]
    states = client.map(begin, parts)
    directions = client.map(itemgetter(1), states)
    square = sum(client.gather(client.map(square_of, states)))
    limit = problem.tolerance**2 * square
    while square > limit:
        images = [client.submit(multiply, given, *directions, pure=False) for given in parts]
        products = client.gather(client.map(np.dot, directions, images, pure=False))
        step = square / sum(products)
        states = client.map(advance, states, directions, images, step=step, pure=False)
        before = square
        square = sum(client.gather(client.map(square_of, states, pure=False)))
        factor = square / before
        directions = client.map(turn, states, directions, factor=factor, pure=False)
    solution = client.map(itemgetter(0), states)
    wait(solution)
    return solution


if __name__ == "__main__":
    with Client(threads_per_worker=1) as client:
        print(np.concatenate(client.gather(main(client, Problem()))))
