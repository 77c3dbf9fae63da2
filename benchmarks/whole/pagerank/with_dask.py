"""PageRank in Dask: a task for the pages of each block in each step."""

import numpy as np
from dask.distributed import Client, Future, wait
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.whole.pagerank.problem import Problem, Ranks, follow, part


def step(given: tuple[csr_array, NDArray[np.intp]], *ranks: Ranks) -> Ranks:
    """Return the ranks of the pages of a block after a step from those of all blocks."""
    return follow(*given, np.concatenate(ranks))


def change_of(new: Ranks, old: Ranks) -> float:
    """Return how much the ranks of a block have changed."""
    return np.abs(new - old).sum()


def main(client: Client, problem: Problem) -> list[Future]:
    """Return the ranks of the pages of each block."""
    count, change = len(client.nthreads()), 1.0
    parts = [client.submit(part, problem, place, count) for place in range(count)]
    places = [problem.mine(place, count) for place in range(count)]
    new = client.scatter([np.full(mine.stop - mine.start, 1 / problem.pages) for mine in places])
    while change > problem.tolerance:
        old, new = new, [client.submit(step, given, *new, pure=False) for given in parts]
        change = sum(client.gather(client.map(change_of, new, old, pure=False)))
    wait(new)
    return new


if __name__ == "__main__":
    with Client(threads_per_worker=1) as client:
        print(np.concatenate(client.gather(main(client, Problem()))))
