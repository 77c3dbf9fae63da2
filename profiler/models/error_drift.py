"""Whether the errors of a fit drift: then the formula is wrong.

A formula with a wrong term is too low at one end of the measurements and too high at the
other, or at both ends against the middle. So quadratic polynomials of the logarithms of the
variables are added to the logarithm of the formula. If they explain more of the errors than
chance does (F test), the errors drift. A boundary, at which a constant of the machine jumps,
looks similar from afar: which of the two it is, :mod:`bsplib.profiler.models.segmentation` tells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.extras import optional_module
from bsplib.profiler.models.least_squares import information, logarithms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.models.least_squares import Data

    Vector = NDArray[np.float64]

# scipy.stats has the same functions, and takes a second to import.
special = optional_module("scipy.special")

_CHANCE = 0.002
"""Errors drift if the probability is at most this that chance makes them look so."""
_LEAST_FREEDOM = 3


@dataclass(frozen=True)
class Drift:
    """What polynomials explain of the errors of a fit."""

    chance: float
    """How often errors without a drift would look so."""
    information: float
    """The information criterion of the formula with the polynomials."""
    amplitude: float
    """The greatest factor that the polynomials explain, minus 1."""

    @property
    def is_clear(self) -> bool:
        """Whether it is more than chance."""
        return self.chance < _CHANCE


def find_drift(data: Data, parts: Sequence[NDArray[np.intp]]) -> Drift | None:
    """Look for a drift that is common to all parts, each of which is fitted by itself.

    Args:
        data: the measurements.
        parts: the measurements of each segment.

    Returns:
        The drift; None if there are too few measurements to tell.
    """
    errors, fitted, polynomials = [], [], []
    varied = [
        column
        for column in data.values.values()
        if (column > 0).all() and any(np.ptp(column[part]) > 0 for part in parts)
    ]
    for part in parts:
        coefficients, wrong = data.solve(part)
        used = coefficients != 0
        # How the logarithm of the prediction changes with the coefficients.
        fitted.append(data.rows[part][:, used] / np.maximum(1 + wrong, 1e-9)[:, None])
        errors.append(-logarithms(wrong))
        polynomials.append(_polynomials([column[part] for column in varied], len(part)))
    wrong = np.concatenate(errors)
    own = _blocks(fitted)
    both = np.concatenate([own, np.concatenate(polynomials)], axis=1)
    without, rank = _rest(own, wrong)
    rest, rank_of_both = _rest(both, wrong)
    more, freedom = rank_of_both - rank, len(wrong) - rank_of_both
    if more < 1 or freedom < _LEAST_FREEDOM:
        return None
    left, gained = float(rest @ rest), float(without @ without - rest @ rest)
    ratio = (gained / more) / max(left / freedom, 1e-30)
    return Drift(
        float(special.fdtrc(more, freedom, ratio)),
        information(left, len(wrong), more),
        math.expm1(min(float(np.abs(without - rest).max()), 100.0)),
    )


def _polynomials(columns: Sequence[Vector], count: int) -> NDArray[np.float64]:
    """Return the logarithms of the variables less their means, and the products of any two.

    A variable with a single value gives columns of zeros: the number of columns is always the same.
    """
    logs = [
        np.log(column / np.exp(np.log(column).mean())) if np.ptp(column) else np.zeros(count)
        for column in columns
    ]
    squares = [one * other for one, other in itertools.combinations_with_replacement(logs, 2)]
    return np.stack([*logs, *squares], axis=1) if logs else np.empty((count, 0))


def _blocks(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return a matrix with the parts on its diagonal."""
    width = sum(part.shape[1] for part in parts)
    rows, at = [], 0
    for part in parts:
        row = np.zeros((len(part), width))
        row[:, at : at + part.shape[1]] = part
        rows.append(row)
        at += part.shape[1]
    return np.concatenate(rows)


def _rest(columns: NDArray[np.float64], wrong: Vector) -> tuple[Vector, int]:
    """Return what the columns do not explain, and their rank."""
    if not columns.shape[1]:
        return wrong, 0
    lengths = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(lengths > 0, lengths, 1)
    found, _, rank, _ = np.linalg.lstsq(scaled, wrong, rcond=1e-9)
    return wrong - scaled @ found, int(rank)
