"""Sample sort in mpi4py: all ranks exchange their pieces of each column."""

import numpy as np
from mpi4py import MPI

from benchmarks.whole.sample_sort.problem import Problem, Records, cuts, in_order, part, sample_of


def main(comm: MPI.Intracomm, problem: Problem) -> Records:
    """Return this rank's records in order."""
    records = in_order(part(problem, comm.rank, comm.size))
    sample = sample_of(records.key)
    samples = np.empty((comm.size, len(sample)))
    comm.Allgather(sample, samples)
    at = cuts(records.key, samples)
    out = np.diff(at, prepend=0, append=len(records.key))
    into = np.empty_like(out)
    comm.Alltoall(out, into)
    arrived = Records(*(np.empty(into.sum(), column.dtype) for column in records))
    for sent, received in zip(records, arrived, strict=True):
        comm.Alltoallv([sent, out], [received, into])
    return in_order(arrived, "stable")


if __name__ == "__main__":
    pieces = MPI.COMM_WORLD.gather(main(MPI.COMM_WORLD, Problem()))
    if pieces is not None:
        print(Problem().join(pieces))
