"""K-means in bsplib: the sums of all processes are added in each round."""

import bsplib
from benchmarks.whole.kmeans.problem import Problem, Table, first_centres, means, part, tally


def main(bsp: bsplib.Group, problem: Problem) -> Table:
    """Return the centres after all rounds."""
    points, centres = part(problem, bsp.pid, bsp.nprocs), first_centres(problem)
    for _ in range(problem.rounds):
        centres = means(bsp.allreduce(tally(points, centres)))
    return centres


if __name__ == "__main__":
    print(bsplib.run(main, Problem())[0])
