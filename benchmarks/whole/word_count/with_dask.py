"""Word count in Dask: a bag."""

import dask.bag
from dask.distributed import Client

from benchmarks.whole.word_count.problem import Count, Problem, by_frequency, part


def main(client: Client, problem: Problem) -> list[Count]:
    """Return the most frequent words."""
    count = len(client.nthreads())
    text = dask.bag.from_delayed(
        [dask.delayed(part)(problem, place, count) for place in range(count)]
    )
    words = text.str.split().flatten()
    return list(words.frequencies().topk(problem.wanted, by_frequency).compute())


if __name__ == "__main__":
    with Client(threads_per_worker=1) as client:
        print(main(client, Problem()))
