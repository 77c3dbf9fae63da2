"""Finds the pairs of rows of two relations that agree, on one process."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.sql.keys import Encoding, Keys, numbered

Rows = NDArray[np.intp]

_DENSE = 4
"""A table of keys is used if there are at most this many possible keys for each row."""
_LEAST = 1 << 16
"""A table is also used if there are no more possible keys than this."""


class Pairs(NamedTuple):
    """Pairs of rows, by position on either side."""

    left: Rows
    right: Rows


def equal_pairs(encoding: Encoding, left: Keys, right: Keys) -> Pairs:
    """Return all pairs of equal keys, in the order of the left side.

    Cost: w = O(left + right + pairs), with one random access each where the keys are dense, and
        two where they are not.
    """
    span = encoding.span
    if not encoding.packed or span > max(_DENSE * (len(left) + len(right)), _LEAST):
        firsts, numbers = numbered(np.concatenate([right, left]))
        right, left, span = numbers[: len(right)], numbers[len(right) :], len(firsts)
    table = np.full(span, -1, np.intp)
    table[right] = np.arange(len(right))
    if np.array_equal(table[right], np.arange(len(right))):  # no key stands twice there
        found = table[left]
        hit = np.flatnonzero(found >= 0)
        return Pairs(hit, found[hit])
    counts = np.bincount(right, minlength=span)
    starts = np.cumsum(counts) - counts
    return _spread(starts[left], counts[left], np.argsort(right, kind="stable"))


def _spread(starts: Rows, counts: Rows, order: Rows) -> Pairs:
    """Return each left row with ``counts`` right ones: from ``starts`` on in an order."""
    left = np.repeat(np.arange(len(counts)), counts)
    return Pairs(left, order[runs(starts, counts)])


def runs(starts: Rows, counts: Rows) -> Rows:
    """Return ``starts[0], starts[0] + 1, ...``, ``counts[0]`` of them, then the next run's."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
