"""Sample sort in bsplib: all processes exchange their pieces of each column."""

import numpy as np

import bsplib
from benchmarks.whole.sample_sort.problem import Problem, Records, cuts, in_order, part, sample_of


def main(bsp: bsplib.Group, problem: Problem) -> Records:
    """Return this process's records in order."""
    records = in_order(part(problem, bsp.pid, bsp.nprocs))
    at = cuts(records.key, bsp.allgather(sample_of(records.key)))
    columns = [np.concatenate(bsp.alltoall(np.split(column, at))) for column in records]
    return in_order(Records(*columns), "stable")


if __name__ == "__main__":
    print(Problem().join(bsplib.run(main, Problem())))
