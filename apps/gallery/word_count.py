"""How often each word occurs in a text, and which words occur most often.

Each process counts the words of its part, and sends each word with its number to the process that
a checksum of the word names. That one adds up the numbers, and offers its ten most frequent words.

Cost: for n words, u of them different, w = O(n/p + u) and h is the bytes of at most u words with
their numbers, then of 10 from each process: O(n/p + u) + (u + 10 p) b g + 2 l for words of b bytes.
Teaches: ``bsplib.shared`` gives all processes one copy of a large input; ``alltoall`` takes any
objects that can be pickled, such as Counters.
"""

from collections import Counter
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np

import bsplib


def text(size: int = 8_000_000) -> Any:
    """Return words in an array, of which the first numbers occur most often."""
    return bsplib.shared((np.random.default_rng(1).zipf(1.3, size) % 50_000).astype("S6"))


def main(bsp: bsplib.Group, words: Any) -> Any:
    """Return the ten most frequent words with their numbers, on process 0."""
    parts: list[Counter[bytes]] = [Counter() for _ in range(bsp.nprocs)]
    for word, number in Counter(np.array_split(words, bsp.nprocs)[bsp.pid].tolist()).items():
        parts[crc32(word) % bsp.nprocs][word] = number
    total = sum(bsp.alltoall(parts), Counter())
    best = bsp.gather(sorted(total.items(), key=rank)[:10])
    return None if best is None else sorted(chain(*best), key=rank)[:10]


def rank(item: tuple[bytes, int]) -> tuple[int, bytes]:
    """Return by what words are sorted: the most frequent first, equal ones by the alphabet."""
    return -item[1], item[0]


if __name__ == "__main__":
    print(bsplib.run(main, text())[0])
