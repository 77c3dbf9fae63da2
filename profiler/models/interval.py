"""How far a prediction may be off: an interval that has been tried on what was measured.

The theory of least squares gives a standard error for what a fit predicts. It knows the
noise of the measurements, but not that the formula may be wrong beyond them. So the
same extrapolation is practised on the measurements: all beyond some size are kept back,
the formula is fitted to the smaller ones, and it is seen by how many standard errors it
misses those kept back. The interval is the standard error times a factor that would
have covered the wanted part of these misses, and never less than Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from profiler.models.fit import Fit, fit
from profiler.models.formula import FormulaError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Values = Mapping[str, ArrayLike]
    Vector = NDArray[np.float64]


_LEAST = 1e-6


@dataclass(frozen=True)
class Interval:
    """Predicted times, and between what they are expected."""

    predicted: Vector
    low: Vector
    high: Vector
    confidence: float
    factor: float
    """Standard errors that the interval reaches to either side, at the first element."""
    practised: int
    """Measurements kept back and predicted, over all trials."""


@dataclass(frozen=True)
class Calibrated:
    """A fit that has been tried on its own measurements."""

    fit: Fit
    misses: Vector
    """By how many standard errors what was kept back was missed."""

    def interval(self, values: Values, confidence: float = 0.95) -> Interval:
        """Predict times with an interval.

        Args:
            values: of the variables; numbers or arrays of one length.
            confidence: the part of true times that is to lie inside, 0 to 1.

        Raises:
            ValueError: the confidence is none.
            FormulaError: a variable is missing, or something is no finite number.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"a confidence is between 0 and 1, and not {confidence}")
        predicted = self.fit.predict(values)
        error = standard_error(self.fit, values)
        factor = np.array(
            [self._factor(place, confidence) for place in self.fit.segment_of(values)]
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
        # The quantile that holds for one more miss of the kind (split conformal).
        level = min(math.ceil(confidence * (count + 1)) / count, 1.0)
        return max(student, float(np.quantile(self.misses, level, method="higher")))


def calibrate(fitted: Fit, values: Values, times: ArrayLike, *, size: str) -> Calibrated:
    """Practise extrapolation on the measurements that a fit was made of.

    Args:
        fitted: the fit.
        values: as they were given to it.
        times: likewise.
        size: the variable that predictions will go beyond.

    Raises:
        FormulaError: there is no such variable.
    """
    measured = np.atleast_1d(np.asarray(times, np.float64))
    if size not in values:
        raise FormulaError(f"formula: {size} is no variable here; there are {', '.join(values)}")
    shape = measured.shape
    arrays = {name: np.broadcast_to(np.asarray(value), shape) for name, value in values.items()}
    misses = [np.empty(0)]
    for cut in np.unique(arrays[size])[:-1].tolist():
        inside = arrays[size] <= cut
        # Two measurements more than parameters, else the noise cannot be told.
        if inside.sum() >= len(fitted.formula.parameters) + 2:
            misses.append(_misses(fitted, arrays, measured, inside))
    return Calibrated(fitted, np.concatenate(misses))


def _misses(fitted: Fit, arrays: Values, measured: Vector, inside: NDArray[np.bool_]) -> Vector:
    """Fit some measurements; return by how many standard errors the others are missed."""
    lesser = {name: np.asarray(value)[inside] for name, value in arrays.items()}
    trial = fit(fitted.formula, lesser, measured[inside], negative=fitted.negative, divide_by=())
    greater = {name: np.asarray(value)[~inside] for name, value in arrays.items()}
    error = standard_error(trial, greater)
    missed = np.abs(trial.predict(greater) - measured[~inside])
    return np.divide(missed, error, out=np.zeros_like(missed), where=error > 0)


def standard_error(fitted: Fit, values: Values) -> Vector:
    """Return the standard error of predictions: of the coefficients, and of the noise.

    It is a millionth of the prediction at least: nothing is measured better than that.
    """
    columns, _ = fitted.formula.columns(values)
    place = fitted.segment_of(values)
    covariance = np.stack([segment.covariance for segment in fitted.segments])[place]
    spread = np.array([segment.spread for segment in fitted.segments])[place]
    own = np.einsum("ij,ijk,ik->i", columns, covariance, columns)
    predicted = fitted.predict(values)
    error: Vector = np.sqrt(own + (spread * predicted) ** 2)
    return np.maximum(error, _LEAST * np.abs(predicted))
