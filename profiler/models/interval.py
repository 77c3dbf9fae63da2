"""Intervals for predictions, calibrated by extrapolation inside the measurements.

The theory of least squares gives a standard error for the predictions of a fit. It takes
into account the noise of the measurements, but not that the formula may be wrong beyond
them. So the same extrapolation is tried inside the measurements: all that are greater than
some size are held out, the formula is fitted to the smaller ones, and the errors of its
predictions for the held-out ones are counted in standard errors. The interval is the
standard error times a factor that would have covered the required part of these errors,
and at least the factor of Student's t distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import FormulaError
from bsplib.extras import optional_module
from bsplib.profiler.models.fit import Fit, fit_once

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Values = Mapping[str, ArrayLike]
    Vector = NDArray[np.float64]

stats = optional_module("scipy.stats")

_LEAST = 1e-6


@dataclass(frozen=True)
class Interval:
    """Predicted times, with the limits between which the true times are expected."""

    predicted: Vector
    low: Vector
    high: Vector
    confidence: float
    factor: float
    """Half the width of the interval of the first element, in standard errors."""
    held_out: int
    """Number of measurements that were held out and predicted, over all trials."""


@dataclass(frozen=True)
class Calibrated:
    """A fit with the errors of its extrapolation inside its own measurements."""

    fit: Fit
    misses: Vector
    """Errors of the predictions for held-out measurements, in standard errors."""

    def interval(self, values: Values, confidence: float = 0.95) -> Interval:
        """Predict times with an interval.

        Args:
            values: values of the variables; numbers, or arrays of equal length.
            confidence: the part of the true times that has to be inside, between 0 and 1.

        Raises:
            ValueError: the confidence is not between 0 and 1.
            FormulaError: a variable is missing, or a value is not a finite number.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"the confidence is {confidence}; it has to be between 0 and 1")
        predicted = self.fit.predict(values)
        error = standard_error(self.fit, values)
        factor = np.array(
            [self._factor(segment, confidence) for segment in self.fit.segment_of(values)]
        )
        reach = factor * error
        return Interval(
            predicted,
            np.maximum(predicted - reach, 0.0),
            predicted + reach,
            confidence,
            float(factor[0]),
            len(self.misses),
        )

    def _factor(self, segment: int, confidence: float) -> float:
        freedom = self.fit.segments[segment].freedom
        student = float(stats.t.ppf((1 + confidence) / 2, max(freedom, 1)))
        count = len(self.misses)
        if count == 0:
            return student
        # The quantile that covers one further error with this confidence (split conformal).
        level = min(math.ceil(confidence * (count + 1)) / count, 1.0)
        return max(student, float(np.quantile(self.misses, level, method="higher")))


def calibrate(fitted: Fit, values: Values, times: ArrayLike, *, size: str) -> Calibrated:
    """Try extrapolation inside the measurements of a fit.

    Args:
        fitted: the fit.
        values: the values that were given to :func:`bsplib.profiler.models.fit.fit`.
        times: the times that were given to it.
        size: the variable that predictions will extrapolate.

    Raises:
        FormulaError: there is no such variable.
    """
    measured = np.atleast_1d(np.asarray(times, np.float64))
    if size not in values:
        raise FormulaError(f"formula: {size} has no value; the variables are {', '.join(values)}")
    shape = measured.shape
    arrays = {name: np.broadcast_to(np.asarray(value), shape) for name, value in values.items()}
    misses = [np.empty(0)]
    for cut in np.unique(arrays[size])[:-1].tolist():
        inside = arrays[size] <= cut
        # With fewer than two measurements more than parameters the noise is unknown.
        if inside.sum() >= len(fitted.formula.parameters) + 2:
            misses.append(_misses(fitted, arrays, measured, inside))
    return Calibrated(fitted, np.concatenate(misses))


def _misses(fitted: Fit, arrays: Values, measured: Vector, inside: NDArray[np.bool_]) -> Vector:
    """Fit the measurements inside; return the errors for the others, in standard errors."""
    lesser = {name: np.asarray(value)[inside] for name, value in arrays.items()}
    trial = fit_once(fitted.formula, lesser, measured[inside], negative=fitted.negative)
    greater = {name: np.asarray(value)[~inside] for name, value in arrays.items()}
    error = standard_error(trial, greater)
    missed = np.abs(trial.predict(greater) - measured[~inside])
    return np.divide(missed, error, out=np.zeros_like(missed), where=error > 0)


def standard_error(fitted: Fit, values: Values) -> Vector:
    """Return the standard error of predictions, from the coefficients and from the noise.

    It is at least a millionth of the prediction, since no measurement is more accurate.
    """
    columns, _ = fitted.formula.columns(values)
    segments = fitted.segment_of(values)
    covariance = np.stack([segment.covariance for segment in fitted.segments])[segments]
    spread = np.array([segment.spread for segment in fitted.segments])[segments]
    own = np.einsum("ij,ijk,ik->i", columns, covariance, columns)
    predicted = fitted.predict(values)
    error: Vector = np.sqrt(own + (spread * predicted) ** 2)
    return np.maximum(error, _LEAST * np.abs(predicted))
