"""Heat on a tube, in Dask: a task for each step of a block, which needs its neighbours' edges."""

import numpy as np
from dask.distributed import Client, Future, wait

from benchmarks.whole.heat.problem import Problem, Rows, part, relax


def edges(block: Rows) -> tuple[Rows, Rows]:
    """Return what the neighbours of a block need: its first and its last row."""
    return block[0].copy(), block[-1].copy()


def step(block: Rows, above: tuple[Rows, Rows], below: tuple[Rows, Rows]) -> Rows:
    """Return a block after one step."""
    old = np.vstack([above[1], block, below[0]])
    new = old.copy()
    relax(old, new)
    return new[1:-1]


def main(client: Client, problem: Problem) -> list[Future]:
    """Return the blocks after all steps."""
    count = len(client.nthreads())
    blocks = [client.submit(part, problem, place, count) for place in range(count)]
    for _ in range(problem.steps):
        outer = client.map(edges, blocks, pure=False)
        above, below = outer[-1:] + outer[:-1], outer[1:] + outer[:1]
        blocks = client.map(step, blocks, above, below, pure=False)
    wait(blocks)
    return blocks


if __name__ == "__main__":
    with Client(threads_per_worker=1) as client:
        print(np.concatenate(client.gather(main(client, Problem()))))
