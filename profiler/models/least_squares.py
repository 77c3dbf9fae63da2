"""Least squares on relative errors, and the result for a range of the measurements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import Formula, FormulaError
from bsplib.extras import optional_module
from bsplib.profiler.models.terms import processes_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, ArrayLike]


optimize = optional_module("scipy.optimize")


@dataclass(frozen=True)
class FitSegment:
    """A range of the measurements with one set of coefficients."""

    low: float
    """The dividing quantity is greater than this; -inf for the first segment."""
    high: float
    """The dividing quantity is at most this; inf for the last segment."""
    coefficients: dict[str, float]
    """By name of the parameter."""
    measurements: int
    """Number of measurements in the segment."""
    spread: float
    """Standard deviation of the relative errors."""
    worst: float
    """The greatest relative error."""
    covariance: NDArray[np.float64] = field(repr=False)
    """Covariance of the coefficients, in the order of the formula; 0 for a coefficient
    that is 0 because it must not be negative."""
    freedom: int
    """Number of measurements minus the number of coefficients that are not 0."""
    squares: float
    """Sum of the squares of log(predicted / measured). Unlike relative errors, these
    distinguish a fit that is 1000 times too low from one that is 10 times too low."""


@dataclass(frozen=True)
class Data:
    """Measurements divided by their times, so that the value to fit is 1 for all."""

    formula: Formula
    values: dict[str, Vector]
    """Values of the variables of the formula, one element for each measurement."""
    times: Vector
    rows: NDArray[np.float64]
    """One row for each measurement, one column for each parameter."""
    ones: Vector
    """The value to fit: 1 minus the terms without a parameter, divided by the time."""
    negative: bool
    generators: NDArray[np.float64]
    """Combinations of the parameters, a column each, that must not be negative."""

    @classmethod
    def of(cls, formula: Formula, values: Values, times: ArrayLike, *, negative: bool) -> Data:
        """Check the measurements and arrange them."""
        measured = np.atleast_1d(np.asarray(times, np.float64))
        columns, rest = formula.columns(values)
        if len(columns) == 1 < len(measured):
            columns, rest = (np.repeat(array, len(measured), axis=0) for array in (columns, rest))
        if measured.ndim != 1 or len(measured) != len(columns):
            raise FormulaError(
                f"formula: there are {len(columns)} values of the variables and times of shape "
                f"{measured.shape}"
            )
        check_times(measured)
        if len(measured) < columns.shape[1]:
            raise FormulaError(
                f"formula: {columns.shape[1]} parameters need as many measurements, and there are "
                f"{len(measured)}"
            )
        named = {
            name: np.broadcast_to(np.asarray(values[name], np.float64), measured.shape)
            for name in formula.variables
        }
        return cls(
            formula,
            named,
            measured,
            columns / measured[:, None],
            1 - rest / measured,
            negative,
            generators(formula, named),
        )

    def solve(self, chosen: NDArray[np.intp]) -> tuple[Vector, Vector]:
        """Return the coefficients and relative errors of a fit to the chosen measurements."""
        rows, ones = self.rows[chosen], self.ones[chosen]
        if self.negative:
            scale = _lengths(rows)
            found = np.linalg.lstsq(rows / scale, ones, rcond=None)[0] / scale
        else:
            combined = rows @ self.generators
            scale = _lengths(combined)
            found = self.generators @ (optimize.nnls(combined / scale, ones)[0] / scale)
        return found, rows @ found - ones

    def segment(self, chosen: NDArray[np.intp], low: float, high: float) -> FitSegment:
        """Return a segment that is fitted to the chosen measurements."""
        found, errors = self.solve(chosen)
        used = np.ones(len(found), bool) if self.negative else found != 0
        freedom = len(chosen) - int(used.sum())
        variance = float(errors @ errors) / max(freedom, 1)
        covariance = np.zeros((len(found), len(found)))
        rows = self.rows[chosen][:, used]
        covariance[np.ix_(used, used)] = np.linalg.pinv(rows.T @ rows) * variance
        return FitSegment(
            low,
            high,
            dict(zip(self.formula.parameters, found.tolist(), strict=True)),
            len(chosen),
            math.sqrt(variance),
            float(np.abs(errors).max()),
            covariance,
            freedom,
            squares_of(errors),
        )

    def squares(self, chosen: NDArray[np.intp]) -> float:
        """Return ``Segment.squares`` for a fit to the chosen measurements."""
        return squares_of(self.solve(chosen)[1])


def check_times(measured: Vector) -> None:
    """Check that all times are numbers greater than 0.

    Raises:
        FormulaError: one is not.
    """
    right = np.isfinite(measured) & (measured > 0)
    if not right.all():
        raise FormulaError(
            f"formula: a time is {measured[~right][0]:g}; times have to be greater than 0"
        )


def logarithms(errors: Vector) -> Vector:
    """Return log(predicted / measured) for relative errors."""
    return np.asarray(np.log(np.maximum(1 + errors, 1e-9)))


def squares_of(errors: Vector) -> float:
    """Return the sum of the squares of log(predicted / measured)."""
    logs = logarithms(errors)
    return float(logs @ logs)


def information(squares: float, count: int, parameters: int) -> float:
    """Return the Bayesian information criterion of a fit; less is better."""
    return count * math.log(max(squares / count, 1e-30)) + parameters * math.log(count)


def _lengths(rows: NDArray[np.float64]) -> Vector:
    lengths = np.linalg.norm(rows, axis=0)
    return np.where(lengths > 0, lengths, 1.0)


# -- combined terms: which coefficients of a formula may be negative, and how far -----------------
#
# No part of a time is negative. But one part may be written as two terms: N (P-1)/P is N - N/P,
# so that the coefficient of N/P is negative while that of N is positive. Therefore the difference
# of two terms of a formula is a term, too, if it is 0 for one process and never negative. The
# coefficients of single terms and of differences are never negative.


_COUNTS = np.array([1.0, 2, 3, 4, 6, 8, 16, 64, 1024, 2.0**20])
"""Numbers of processes at which a difference is checked; the first is one process."""
_MOST_POINTS = 64


def generators(formula: Formula, values: Mapping[str, Vector]) -> NDArray[np.float64]:
    """Return what must not be negative in a formula, as combinations of its parameters.

    Args:
        formula: the formula.
        values: values of its variables, one element for each measurement.

    Returns:
        An array with a row for each parameter and a column for each combination: first the
        parameters themselves, then the differences that may be taken for one term.
    """
    count = len(formula.parameters)
    found = [*np.eye(count)]
    columns = _columns(formula, values)
    if columns is not None:
        for one, other in itertools.permutations(range(count), 2):
            ratio = _ratio(columns[:, :, one], columns[:, :, other])
            if ratio is not None:
                combination = np.zeros(count)
                combination[one], combination[other] = 1.0, -ratio
                found.append(combination)
    return np.stack(found, axis=1)


def _columns(formula: Formula, values: Mapping[str, Vector]) -> NDArray[np.float64] | None:
    """Return the columns by number of processes and point; None if nothing can be combined."""
    processes = processes_of(formula.variables)
    if processes is None or len(formula.parameters) < 2:
        return None
    others = [name for name in formula.variables if name != processes]
    points = np.unique(np.stack([values[name] for name in (processes, *others)]), axis=1)
    points = points[:, :: max(points.shape[1] // _MOST_POINTS, 1)]
    grown = dict(zip(others, points[1:], strict=True))
    try:
        return np.stack([formula.columns({processes: count, **grown})[0] for count in _COUNTS])
    except FormulaError:  # a term is not defined for one process, such as 1/log2(P)
        return None


def _ratio(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Return how often the other term may be subtracted from the one; None if it may not.

    Args:
        one: a term, by number of processes and point.
        other: another.
    """
    if not (other > 0).all() or not (one[0] > 0).all():
        return None
    ratio = one[0] / other[0]
    if np.ptp(ratio) > 1e-9 * ratio[0]:
        return None
    least = one - ratio[0] * other
    if (least < -1e-9 * np.abs(one)).any() or not (least > 1e-9 * np.abs(one)).any():
        return None
    return float(ratio[0])
