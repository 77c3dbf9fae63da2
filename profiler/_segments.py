"""Segments of sorted columns: where a new key begins, and the extremes between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Stats = NDArray[np.float64]
"""Costs of cells, supersteps or groups: one column for each of them, and these rows."""

TOP = slice(0, 5)
"""Rows of the greatest value of each metric, and of the number of supersteps."""
LOW = slice(5, 9)
"""Rows of the least value of each metric."""
ROWS = 9


def merge(top: Stats, low: Stats, begins: NDArray[np.intp]) -> Stats:
    """Return the greatest and the least of each segment of columns.

    Args:
        top: the rows of the greatest values.
        low: the rows of the least values.
        begins: where the segments begin.
    """
    merged = np.maximum.reduceat(top, begins, axis=1), np.minimum.reduceat(low, begins, axis=1)
    return np.vstack(merged)


def changes(*keys: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Mark, in sorted keys, where the combination differs from the one before."""
    marks = np.ones(len(keys[0]), bool)
    marks[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return marks


def starts(*keys: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the positions, in sorted keys, where a new combination begins."""
    return np.flatnonzero(changes(*keys))
