"""K-means in mpi4py: the sums of all ranks are added in each round."""

from mpi4py import MPI

from benchmarks.whole.kmeans.problem import Problem, Table, first_centres, means, part, tally


def main(comm: MPI.Intracomm, problem: Problem) -> Table:
    """Return the centres after all rounds."""
    points, centres = part(problem, comm.rank, comm.size), first_centres(problem)
    for _ in range(problem.rounds):
        sums = tally(points, centres)
        comm.Allreduce(MPI.IN_PLACE, sums)
        centres = means(sums)
    return centres


if __name__ == "__main__":
    found = main(MPI.COMM_WORLD, Problem())
    if MPI.COMM_WORLD.rank == 0:
        print(found)
