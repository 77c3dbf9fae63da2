"""How many terms measurements bear, and which powers of a size.

A term may be added only if it explains more of the misfit than the best of all terms would explain
of noise alone in nearly all series of noise: the first term in 97 of 100, further ones in 90. So a
series that is constant but for its noise keeps its constant, however many terms were tried. A power
of a size may be used only if the differences of the measurements grow like it: unlike the
measurements themselves, they have no constant part.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.growth import rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

_FIRST_LEVEL, _LEVEL = 0.97, 0.9
"""Part of the series of noise that a term has to exceed: the first beside the constant, which makes
measurements grow, and others."""
_SERIES = 400
_EXACT = 1e-6
"""A root mean square of relative errors below this is none."""
_DEPENDENT = 1e-6
_LEAST_RISE = 1.5
"""Least ratio of the measurements at the greatest and least of three sizes that tells a power."""
_NEAR = 0.5
_PROPORTIONAL = 1.3


def terms_borne(rows: Matrix, most: int) -> int:
    """Return how many terms the measurements bear, of which the first one is always there.

    Args:
        rows: the terms divided by the measurements: a row for each of these, a column for each
            term, first the constant. So what they have to add up to is 1.
        most: greatest number.
    """
    chosen = [0]
    while len(chosen) < min(most, len(rows) - 1):
        base = np.linalg.qr(rows[:, chosen])[0]
        left = 1 - base @ base.sum(axis=0)
        if float(left @ left) <= _EXACT**2 * len(rows):
            break
        columns = rows - base @ (base.T @ rows)
        lengths = np.linalg.norm(columns, axis=0)
        usable = lengths > _DEPENDENT * np.linalg.norm(rows, axis=0)
        columns = columns[:, usable] / lengths[usable]
        if not columns.shape[1]:
            break
        gains = np.maximum(columns.T @ left, 0) ** 2 / float(left @ left)
        level = _FIRST_LEVEL if len(chosen) == 1 else _LEVEL
        if gains.max() <= _of_noise(base, columns, level):
            break
        chosen.append(int(np.flatnonzero(usable)[gains.argmax()]))
    return len(chosen)


def _of_noise(base: Matrix, columns: Matrix, level: float) -> float:
    """Return the part of noise that the best of some columns exceeds in few series.

    Args:
        base: columns of the terms that are chosen, orthonormal.
        columns: of the other terms, of length 1 and orthogonal to the base.
        level: the part of the series in which it is not exceeded.
    """
    noise = _noise(len(base))
    noise = noise - (noise @ base) @ base.T
    gains = np.maximum(noise @ columns, 0) ** 2 / (noise**2).sum(axis=1, keepdims=True)
    return float(np.quantile(gains.max(axis=1), level))


@functools.cache
def _noise(count: int) -> Matrix:
    return np.random.default_rng(17).normal(size=(_SERIES, count))


def power_beside_constant(
    values: Mapping[str, Vector], measured: Vector, size: str
) -> float | None:
    """Return the power of a size with which the differences of measurements grow at its end.

    Args:
        values: the variables, one element for each measurement.
        measured: what grows; greater than 0.
        size: name of a variable.

    Returns:
        The power in the series, at equal other variables, that rises most; None if there is no
        series of three sizes in which the measurements rise clearly.
    """
    best: tuple[float, float] | None = None
    for row in rows_of(values, size):
        if len(row) < 3:
            continue
        sizes = [float(values[size][places[0]]) for places in row[-3:]]
        times = [float(np.median(measured[places])) for places in row[-3:]]
        first, second = times[1] - times[0], times[2] - times[1]
        rise = times[2] / times[0]
        if rise < _LEAST_RISE or min(first, second) <= 0:
            continue
        power = _power(sizes, second / first)
        if best is None or rise > best[0]:
            best = rise, power
    return None if best is None else best[1]


def _power(sizes: list[float], ratio: float) -> float:
    """Return the power whose values at three sizes have differences of this ratio."""
    low, high = 0.0, 6.0
    one, two, three = (math.log(size / sizes[0]) for size in sizes)
    for _ in range(40):
        middle = (low + high) / 2
        found = (math.exp(middle * three) - math.exp(middle * two)) / max(
            math.exp(middle * two) - math.exp(middle * one), 1e-12
        )
        low, high = (middle, high) if found < ratio else (low, middle)
    return low


def allows(power: float | None, own: float) -> bool:
    """Whether a term may be used that grows with a power of a size, by the power of differences."""
    return own <= _PROPORTIONAL or (power is not None and power >= own - _NEAR)
