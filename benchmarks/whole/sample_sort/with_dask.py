"""A sort in Dask: a data frame."""

import pandas as pd
from dask.dataframe import from_map
from dask.distributed import Client, Future, futures_of, wait

from benchmarks.whole.sample_sort.problem import Problem, part


def frame(place: int, count: int, problem: Problem) -> pd.DataFrame:
    """Return the records of a block as a data frame."""
    return pd.DataFrame(part(problem, place, count)._asdict(), copy=False)


def main(client: Client, problem: Problem) -> list[Future]:
    """Return the sorted records in blocks."""
    count = len(client.nthreads())
    records = from_map(frame, range(count), count=count, problem=problem)
    in_order = records.sort_values("key").persist()
    wait(in_order)
    return futures_of(in_order)


if __name__ == "__main__":
    with Client(threads_per_worker=1) as client:
        print(Problem().join(client.gather(main(client, Problem()))))
