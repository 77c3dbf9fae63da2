"""PageRank in mpi4py: the ranks of all pages are gathered on all ranks of the communicator."""

import numpy as np
from mpi4py import MPI

from benchmarks.whole.pagerank.problem import Problem, Ranks, follow, part


def main(comm: MPI.Intracomm, problem: Problem) -> Ranks:
    """Return the ranks of this process's pages."""
    links, dangling = part(problem, comm.rank, comm.size)
    places = [problem.mine(rank, comm.size) for rank in range(comm.size)]
    counts = [place.stop - place.start for place in places]
    ranks = np.full(problem.pages, 1 / problem.pages)
    mine, change = ranks[places[comm.rank]], np.ones(1)
    while change[0] > problem.tolerance:
        new = follow(links, dangling, ranks)
        change[0] = np.abs(new - mine).sum()
        comm.Allreduce(MPI.IN_PLACE, change)
        mine[:] = new
        comm.Allgatherv(MPI.IN_PLACE, [ranks, counts])
    return mine


if __name__ == "__main__":
    pieces = MPI.COMM_WORLD.gather(main(MPI.COMM_WORLD, Problem()))
    if pieces is not None:
        print(np.concatenate(pieces))
