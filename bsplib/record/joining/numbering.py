"""Numbers for equal things, by sorting."""

from __future__ import annotations

import numpy as np

from bsplib.record.joining.ranks import Ints


def distinct_numbers(rows: Ints) -> Ints:
    """Number the distinct columns of some rows."""
    if rows.shape[1] == 0:
        return np.zeros(0, np.int64)
    order = np.lexsort(rows)
    changed = np.zeros(rows.shape[1] - 1, bool)
    for row in rows:  # not at once: there can be millions of columns
        ordered = row[order]
        changed |= ordered[1:] != ordered[:-1]
    numbers = np.empty(rows.shape[1], np.int64)
    numbers[order] = np.append(0, np.cumsum(changed))
    return numbers


def nth_of_key(keys: Ints) -> Ints:
    """Return which of the elements with its key each element is, from 0 on."""
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    lengths = np.diff(np.append(begins, len(keys)))
    nth = np.empty(len(keys), np.int64)
    nth[order] = np.arange(len(keys)) - np.repeat(begins, lengths)
    return nth
