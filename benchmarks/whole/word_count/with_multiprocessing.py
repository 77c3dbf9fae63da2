"""Word count in multiprocessing: each process counts a part, and the caller adds up."""

from collections import Counter
from multiprocessing import Pool
from multiprocessing.pool import Pool as Processes

from benchmarks.whole.word_count.problem import Count, Problem, count, most_frequent, part


def count_part(problem: Problem, place: int, places: int) -> Counter[str]:
    """Count the words of a part, which stays in the processes."""
    return count(part(problem, place, places))


def main(pool: Processes, count: int, problem: Problem) -> list[Count]:
    """Return the most frequent words."""
    calls = [(problem, place, count) for place in range(count)]
    total, *others = pool.starmap(count_part, calls, chunksize=1)
    for other in others:
        total.update(other)
    return most_frequent(total.items(), problem.wanted)


if __name__ == "__main__":
    with Pool(2) as pool:
        print(main(pool, 2, Problem()))
