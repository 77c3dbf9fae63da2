"""Word count in mpi4py: each word is added up on the rank that its checksum names."""

from collections import Counter
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np
from mpi4py import MPI


def text(size: int = 8_000_000) -> Any:
    """Return words in an array, of which the first numbers occur most often."""
    return (np.random.default_rng(1).zipf(1.3, size) % 50_000).astype("S6")


def main(comm: MPI.Intracomm, words: Any) -> Any:
    """Return the ten most frequent words with their numbers, on rank 0, which has the text."""
    mine = comm.scatter(np.array_split(words, comm.size) if comm.rank == 0 else None)
    parts: list[Counter[bytes]] = [Counter() for _ in range(comm.size)]
    for word, number in Counter(mine.tolist()).items():
        parts[crc32(word) % comm.size][word] = number
    total: Counter[bytes] = sum(comm.alltoall(parts), Counter())
    best = comm.gather(sorted(total.items(), key=rank)[:10])
    return None if best is None else sorted(chain(*best), key=rank)[:10]


def rank(item: tuple[bytes, int]) -> tuple[int, bytes]:
    """Return by what words are sorted: the most frequent first, equal ones by the alphabet."""
    return -item[1], item[0]


if __name__ == "__main__":
    result = main(MPI.COMM_WORLD, text() if MPI.COMM_WORLD.rank == 0 else None)
    if result is not None:
        print(result)
