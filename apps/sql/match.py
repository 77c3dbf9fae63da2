"""Finds the pairs of rows of two relations that agree, on one process."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bsplib.apps.sql.keys import Encoding, Keys
from bsplib.apps.sql.numbering import Numbering

Rows = NDArray[np.intp]


class Pairs(NamedTuple):
    """Pairs of rows, by position on either side."""

    left: Rows
    right: Rows


def equal_pairs(encoding: Encoding, left: Keys, right: Keys) -> Pairs:
    """Return all pairs of equal keys, in the order of the left side.

    Cost: w = O(left + right + pairs), with one random access each.
    """
    if encoding.is_dense(len(left) + len(right)):
        table = np.full(encoding.span, -1, np.intp)
        table[right] = np.arange(len(right))
        if np.array_equal(table[right], np.arange(len(right))):  # no key stands twice there
            return _single(table[left])
        span = encoding.span
    else:
        numbering = Numbering(encoding.dtype)
        right, left = numbering.number(right), numbering.find(left)
        span = numbering.count
        if span == len(right):  # the number of a key is its row there
            return _single(left)
    counts = np.bincount(right, minlength=span + 1)  # the last is 0: that of a key without number
    starts = np.cumsum(counts) - counts
    return _spread(starts[left], counts[left], np.argsort(right, kind="stable"))


def _single(found: Rows) -> Pairs:
    """Return the pairs of rows that have one partner, or none: -1."""
    hit = np.flatnonzero(found >= 0)
    return Pairs(hit, found[hit])


def _spread(starts: Rows, counts: Rows, order: Rows) -> Pairs:
    """Return each left row with ``counts`` right ones: from ``starts`` on in an order."""
    left = np.repeat(np.arange(len(counts)), counts)
    return Pairs(left, order[runs(starts, counts)])


def runs(starts: Rows, counts: Rows) -> Rows:
    """Return ``starts[0], starts[0] + 1, ...``, ``counts[0]`` of them, then the next run's."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
