"""Regions inside the measurements, from which the measurements outside can be predicted.

A region has all measurements up to a value of each variable. To fit in it and to predict
what is outside is the same as to fit all measurements and to predict beyond them, on a
smaller scale: so it shows which terms extrapolate well, and how far predictions are off.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Mask = NDArray[np.bool_]

_LEAST_KEPT = 3
"""Least number of values of each variable in a region, where the variable has as many."""
_LEFT_OUT = 3
"""Greatest number of values of a variable that are left out."""


def regions(values: Mapping[str, Vector], least: int) -> list[Mask]:
    """Return regions, each as a mask of the measurements inside; the largest first.

    The greatest values of one variable, or of several, are outside.

    Args:
        values: values of the variables, one element for each measurement.
        least: least number of measurements inside.
    """
    varied = [column for column in values.values() if np.ptp(column) > 0]
    cuts = [_cuts(column) for column in varied]
    found: dict[bytes, Mask] = {}
    for chosen in itertools.product(*cuts):
        inside = np.ones(len(varied[0]), bool) if varied else np.ones(0, bool)
        for column, cut in zip(varied, chosen, strict=True):
            inside &= column <= cut
        if least <= inside.sum() < len(inside):
            found[inside.tobytes()] = inside
    return sorted(found.values(), key=lambda inside: -int(inside.sum()))


def _cuts(column: Vector) -> list[float]:
    """Return the greatest value, and lesser ones at which a region may end."""
    distinct = np.unique(column)
    left_out = min(_LEFT_OUT, max(len(distinct) - _LEAST_KEPT, 0))
    return [float(distinct[-1 - number]) for number in range(left_out + 1)]


def distance(region: Mapping[str, Vector], asked: Mapping[str, Vector]) -> Vector:
    """Return how far each point is outside a region, in widths of the region.

    In each variable this is the logarithm of its ratio to the nearest value in the region,
    divided by the logarithm of the ratio of the region's extremes; over the variables, the
    root of the sum of the squares. Variables with one value in the region do not count if
    the point has it, and otherwise the distance is infinite.
    """
    count = max(len(column) for column in asked.values())
    squares = np.zeros(count)
    for name, column in region.items():
        squares += _widths(column, np.broadcast_to(asked[name], (count,))) ** 2
    return np.sqrt(squares)


def efolds(region: Mapping[str, Vector], asked: Mapping[str, Vector]) -> Vector:
    """Return how far each point is outside a region, as natural logarithms of ratios.

    Over the variables, it is the root of the sum of the squares. A variable that is not
    always greater than 0 counts by its widths instead.
    """
    count = max(len(column) for column in asked.values())
    squares = np.zeros(count)
    for name, column in region.items():
        points = np.broadcast_to(asked[name], (count,))
        low, high = float(column.min()), float(column.max())
        if low > 0:
            safe = np.maximum(points, np.finfo(float).tiny)
            squares += np.maximum(np.maximum(np.log(safe / high), np.log(low / safe)), 0) ** 2
        elif high > low:
            squares += _widths(column, points) ** 2
    return np.sqrt(squares)


def _widths(column: Vector, asked: Vector) -> Vector:
    low, high = float(column.min()), float(column.max())
    if low <= 0:  # no ratio: count in differences
        width, beyond = high - low, np.maximum(asked - high, low - asked)
    else:
        safe = np.maximum(asked, np.finfo(float).tiny)
        width = math.log(high / low)
        beyond = np.maximum(np.log(safe / high), np.log(low / safe))
    beyond = np.maximum(beyond, 0)
    if width > 0:
        return np.asarray(beyond / width)
    return np.where(beyond > 1e-12, np.inf, 0.0)
