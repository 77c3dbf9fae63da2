"""PageRank in joblib: a call for the pages of each block in each step."""

import numpy as np
from joblib import Parallel, delayed

from benchmarks.whole.pagerank.problem import Problem, Ranks, follow, part


def step(problem: Problem, place: int, count: int, ranks: Ranks) -> Ranks:
    """Return the ranks of the pages of a block after a step from those of all pages."""
    return follow(*part(problem, place, count), ranks)


def main(parallel: Parallel, problem: Problem) -> Ranks:
    """Return the ranks of all pages."""
    count = parallel.n_jobs
    ranks, change = np.full(problem.pages, 1 / problem.pages), 1.0
    while change > problem.tolerance:
        calls = (delayed(step)(problem, place, count, ranks) for place in range(count))
        before, ranks = ranks, np.concatenate(parallel(calls))
        change = np.abs(ranks - before).sum()
    return ranks


if __name__ == "__main__":
    with Parallel(n_jobs=2) as parallel:
        print(main(parallel, Problem()))
