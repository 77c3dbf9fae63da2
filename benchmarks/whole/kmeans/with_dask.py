"""K-means in Dask: a task for each block in each round, whose sums the client adds."""

from dask.distributed import Client, wait

from benchmarks.whole.kmeans.problem import Problem, Table, first_centres, means, part, tally


def main(client: Client, problem: Problem) -> Table:
    """Return the centres after all rounds."""
    count, centres = len(client.nthreads()), first_centres(problem)
    blocks = [client.submit(part, problem, place, count) for place in range(count)]
    wait(blocks)
    for _ in range(problem.rounds):
        sums = client.map(tally, blocks, centres=centres, pure=False)
        centres = means(sum(client.gather(sums)))
    return centres


if __name__ == "__main__":
    with Client(threads_per_worker=1) as client:
        print(main(client, Problem()))
