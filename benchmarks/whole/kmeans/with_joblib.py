"""K-means in joblib: a call for each block in each round, whose sums the caller adds."""

from joblib import Parallel, delayed

from benchmarks.whole.kmeans.problem import Problem, Table, first_centres, means, part, tally


def tally_part(problem: Problem, place: int, count: int, centres: Table) -> Table:
    """Return the sums of a block, which stays in the processes."""
    return tally(part(problem, place, count), centres)


def main(parallel: Parallel, problem: Problem) -> Table:
    """Return the centres after all rounds."""
    count, centres = parallel.n_jobs, first_centres(problem)
    for _ in range(problem.rounds):
        calls = (delayed(tally_part)(problem, place, count, centres) for place in range(count))
        centres = means(sum(parallel(calls)))
    return centres


if __name__ == "__main__":
    with Parallel(n_jobs=2) as parallel:
        print(main(parallel, Problem()))
