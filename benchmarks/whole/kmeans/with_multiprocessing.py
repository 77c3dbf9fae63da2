"""K-means in multiprocessing: a call for each block in each round, whose sums the caller adds."""

from multiprocessing import Pool
from multiprocessing.pool import Pool as Processes

from benchmarks.whole.kmeans.problem import Problem, Table, first_centres, means, part, tally


def tally_part(problem: Problem, place: int, count: int, centres: Table) -> Table:
    """Return the sums of a block, which stays in the processes."""
    return tally(part(problem, place, count), centres)


def main(pool: Processes, count: int, problem: Problem) -> Table:
    """Return the centres after all rounds."""
    centres = first_centres(problem)
    for _ in range(problem.rounds):
        calls = [(problem, place, count, centres) for place in range(count)]
        centres = means(sum(pool.starmap(tally_part, calls, chunksize=1)))
    return centres


if __name__ == "__main__":
    with Pool(2) as pool:
        print(main(pool, 2, Problem()))
