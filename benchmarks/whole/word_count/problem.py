"""What all versions share: the text, the words of a part of it, and the order of the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from heapq import nlargest
from itertools import chain

import numpy as np

Count = tuple[str, int]


@dataclass(frozen=True)
class Problem:
    """A random text in paragraphs; few words are frequent, as in natural languages."""

    words: int = 13_000_000
    vocabulary: int = 100_000
    wanted: int = 100
    paragraph: int = 1000

    def __str__(self) -> str:
        return f"Word count, {self.words} words"

    def reference(self) -> list[Count]:
        """Return the most frequent words, counted by one process."""
        return most_frequent(count(part(self, 0, 1)).items(), self.wanted)

    def join(self, pieces: list[list[Count]]) -> list[Count]:
        """Return the most frequent words of all, of which each process has its own."""
        return most_frequent(chain(*pieces), self.wanted)

    def agrees(self, found: list[Count], expected: list[Count]) -> bool:
        """Tell whether a result is the reference."""
        return found == expected


@cache
def part(problem: Problem, pid: int, nprocs: int) -> list[str]:
    """Return the paragraphs of a process."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    random = np.random.default_rng(1)
    drawn = random.integers(26, size=(problem.vocabulary, 12))
    lengths = random.integers(3, 12, size=problem.vocabulary)
    words = ["".join(letters[row[:length]]) for row, length in zip(drawn, lengths, strict=True)]
    paragraphs = range(problem.words // problem.paragraph)
    mine = paragraphs[len(paragraphs) * pid // nprocs : len(paragraphs) * (pid + 1) // nprocs]
    return [_paragraph(problem, words, number) for number in mine]


def _paragraph(problem: Problem, words: list[str], number: int) -> str:
    random = np.random.default_rng([2, number])
    places = problem.vocabulary ** random.random(problem.paragraph)  # frequency 1 / place
    return " ".join([words[place - 1] for place in places.astype(int).tolist()])


def count(paragraphs: Iterable[str]) -> Counter[str]:
    """Count the words of some paragraphs."""
    counts: Counter[str] = Counter()
    for paragraph in paragraphs:
        counts.update(paragraph.split())
    return counts


def by_frequency(counted: Count) -> tuple[int, str]:
    """Return the key by which words are ordered."""
    word, number = counted
    return number, word


def most_frequent(counts: Iterable[Count], wanted: int) -> list[Count]:
    """Return the most frequent words, in order."""
    return nlargest(wanted, counts, by_frequency)
