"""PageRank in bsplib: each process puts the ranks of its pages into all others."""

import numpy as np

import bsplib
from benchmarks.whole.pagerank.problem import Problem, Ranks, follow, part


def main(bsp: bsplib.Group, problem: Problem) -> Ranks:
    """Return the ranks of this process's pages."""
    links, dangling = part(problem, bsp.pid, bsp.nprocs)
    ranks = bsp.array(np.full(problem.pages, 1 / problem.pages))
    mine = ranks[problem.mine(bsp.pid, bsp.nprocs)]
    others, change = set(range(bsp.nprocs)) - {bsp.pid}, 1.0
    while change > problem.tolerance:
        new = follow(links, dangling, ranks)
        change = bsp.allreduce(np.abs(new - mine).sum())
        mine[:] = new
        for pid in others:
            bsp.hpput(pid, mine, mine)
        bsp.sync()
    return mine


if __name__ == "__main__":
    print(np.concatenate(bsplib.run(main, Problem())))
