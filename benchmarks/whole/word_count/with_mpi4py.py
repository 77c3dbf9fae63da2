"""Word count in mpi4py: each word is added up on the rank that its checksum names."""

from collections import Counter
from zlib import crc32

from mpi4py import MPI

from benchmarks.whole.word_count.problem import Count, Problem, count, most_frequent, part


def main(comm: MPI.Intracomm, problem: Problem) -> list[Count]:
    """Return the most frequent words of those that this rank adds up."""
    parts: list[Counter[str]] = [Counter() for _ in range(comm.size)]
    for word, number in count(part(problem, comm.rank, comm.size)).items():
        parts[crc32(word.encode()) % comm.size][word] = number
    total = sum(comm.alltoall(parts), Counter())
    return most_frequent(total.items(), problem.wanted)


if __name__ == "__main__":
    pieces = MPI.COMM_WORLD.gather(main(MPI.COMM_WORLD, Problem()))
    if pieces is not None:
        print(Problem().join(pieces))
