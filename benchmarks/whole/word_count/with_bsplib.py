"""Word count in bsplib: each word is added up on the process that its checksum names."""

from collections import Counter
from zlib import crc32

import bsplib
from benchmarks.whole.word_count.problem import Count, Problem, count, most_frequent, part


def main(bsp: bsplib.Group, problem: Problem) -> list[Count]:
    """Return the most frequent words of those that this process adds up."""
    parts: list[Counter[str]] = [Counter() for _ in range(bsp.nprocs)]
    for word, number in count(part(problem, bsp.pid, bsp.nprocs)).items():
        parts[crc32(word.encode()) % bsp.nprocs][word] = number
    total = sum(bsp.alltoall(parts), Counter())
    return most_frequent(total.items(), problem.wanted)


if __name__ == "__main__":
    print(Problem().join(bsplib.run(main, Problem())))
