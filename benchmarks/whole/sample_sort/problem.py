"""What all versions share: the records, and the sequential steps.

A record is a key and a value, in two arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.whole.parts import cut

Keys = NDArray[np.float64]
SAMPLES = 1024
"""Number of keys of each process by which the records are divided."""


class Records(NamedTuple):
    """Keys, and the values that belong to them."""

    key: Keys
    value: NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """A number of records in random order."""

    records: int = 16_000_000

    def __str__(self) -> str:
        return f"Sample sort of {self.records} records"

    def reference(self) -> Records:
        """Return the records in order, sorted by one process."""
        return in_order(part(self, 0, 1))

    def join(self, pieces: list[Records]) -> Records:
        """Return the records, of which each process has a piece."""
        return Records(
            np.concatenate([piece.key for piece in pieces]),
            np.concatenate([piece.value for piece in pieces]),
        )

    def agrees(self, found: Records, expected: Records) -> bool:
        """Tell whether a result is the reference; no two keys are equal."""
        return all(map(np.array_equal, found, expected))


@cache
def part(problem: Problem, pid: int, nprocs: int) -> Records:
    """Return the records of a process."""
    mine = cut(problem.records, pid, nprocs)
    keys = np.random.default_rng(1).random(problem.records)[mine].copy()
    return Records(keys, np.arange(mine.start, mine.stop))


def in_order(records: Records, kind: str | None = None) -> Records:
    """Return records in the order of their keys; ``kind="stable"`` is quick for sorted runs."""
    order = np.argsort(records.key, kind=kind)
    return Records(records.key[order], records.value[order])


def sample_of(keys: Keys) -> Keys:
    """Return some keys of a sorted array, at equal distances."""
    return keys[np.linspace(0, len(keys) - 1, SAMPLES).astype(int)]


def cuts(keys: Keys, samples: Sequence[Keys] | Keys) -> NDArray[np.intp]:
    """Return where sorted keys are to be cut into one piece for each process.

    Args:
        keys: the keys of this process, in order.
        samples: some keys of each process.
    """
    sample = np.sort(np.concatenate(samples))
    at = np.arange(1, len(samples)) * len(sample) // len(samples)
    return np.searchsorted(keys, sample[at])
