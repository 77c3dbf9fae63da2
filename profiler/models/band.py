"""Bands around predictions, calibrated by trials on nested regions in all variables.

A trial fits inside a region (:mod:`profiler.models.nested`) as the whole fit was made, terms
chosen anew included, and predicts the measurements outside. Its errors are counted in
``sqrt(noise^2 + growth^2 distance^2)``: the noise is the misfit inside, the distance that of
the measurement from the region. The band is so many of these as would have covered the
required part of the errors (split conformal prediction), and at least what Student's t says
of the noise. Where no trial was possible, it is the latter alone, and not calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.extras import optional_module
from profiler.models.formula import FormulaError
from profiler.models.nested import distance, regions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from profiler.models.fit import Fit

    Values = Mapping[str, NDArray[np.float64]]
    Vector = NDArray[np.float64]

special = optional_module("scipy.special")

_LEAST_TRIALS = 5
"""Least number of predicted measurements to calibrate a band."""
_MOST_REGIONS = 8
_FAR_OFF = 1e-6


@dataclass(frozen=True)
class Band:
    """How far predictions may be off."""

    noise: float
    """Standard deviation of log(predicted / measured) of the fit."""
    freedom: int
    """Number of measurements minus the number of coefficients."""
    growth: float
    """How the error grows with the distance."""
    misses: Vector
    """Absolute errors of the predictions in trials, in their units."""
    errors: Vector
    """The same as log(predicted / measured)."""
    regions: int
    """Number of regions from which predictions were tried."""
    measured: Values
    """Values of the variables that were measured."""

    @property
    def is_calibrated(self) -> bool:
        """Whether predictions were tried."""
        return len(self.misses) >= _LEAST_TRIALS

    def reach(self, values: Mapping[str, ArrayLike], confidence: float) -> Vector:
        """Return how far log(predicted / true) may be off at some points.

        Args:
            values: values of the variables; numbers, or arrays of equal length.
            confidence: the part of the true times that has to be inside, between 0 and 1.

        Raises:
            ValueError: the confidence is not between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"the confidence is {confidence}; it has to be between 0 and 1")
        asked = {name: np.atleast_1d(np.asarray(value, float)) for name, value in values.items()}
        student = float(special.stdtrit(max(self.freedom, 1), (1 + confidence) / 2))
        least = student * self.noise * math.sqrt(1 + 1 / max(self.freedom, 1))
        count = max((len(column) for column in asked.values()), default=1)
        if not self.is_calibrated:
            return np.full(count, least)
        away = distance(self.measured, asked) if self.measured else np.zeros(count)
        number = len(self.misses)
        level = min(math.ceil(confidence * (number + 1)) / number, 1.0)
        factor = float(np.quantile(self.misses, level, method="higher"))
        return np.maximum(least, factor * _unit(self.noise, self.growth, away))


def calibrate_jointly(
    fitted: Fit, values: Values, times: Vector, refit: Callable[[Values, Vector], Fit]
) -> Band:
    """Try predictions from nested regions.

    Args:
        fitted: the fit to all measurements.
        values: values of the variables, one element for each measurement.
        times: the measured times.
        refit: fits the measurements of a region as all were fitted; may raise FormulaError.
    """
    inside = np.log(np.maximum(fitted.predict(values) / times, _FAR_OFF))
    freedom = max(sum(segment.freedom for segment in fitted.segments), 0)
    noise = math.sqrt(float(inside @ inside) / max(freedom, 1))
    least = len(fitted.formula.parameters) + 2
    errors, distances, tried = [np.empty(0)], [np.empty(0)], 0
    varied = {name: column for name, column in values.items() if np.ptp(column) > 0}
    for region in _spread(regions(varied, least) if varied else []):
        lesser, greater = (
            {name: column[mask] for name, column in values.items()} for mask in (region, ~region)
        )
        try:
            predicted = refit(lesser, times[region]).predict(greater)
        except FormulaError:
            continue
        away = distance({name: lesser[name] for name in varied}, greater)
        known = np.isfinite(away)
        found = np.log(np.maximum(predicted / times[~region], _FAR_OFF))
        errors.append(np.abs(found[known]))
        distances.append(away[known])
        tried += 1
    missed, away = np.concatenate(errors), np.concatenate(distances)
    growth = _growth(missed, away, noise)
    unit = np.maximum(_unit(noise, growth, away), 1e-9)
    return Band(noise, freedom, growth, missed / unit, missed, tried, varied)


def _spread(found: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
    """Return some of the regions, from the largest to the smallest."""
    if len(found) <= _MOST_REGIONS:
        return found
    chosen = np.linspace(0, len(found) - 1, _MOST_REGIONS).round().astype(int)
    return [found[number] for number in chosen]


def _growth(missed: Vector, away: Vector, noise: float) -> float:
    """Return by how much errors exceed the noise, for each width of the region."""
    if not len(missed):
        return 0.0
    more = np.maximum(missed**2 - noise**2, 0)
    return math.sqrt(float(more.mean() / max((away**2).mean(), 1e-12)))


def _unit(noise: float, growth: float, away: Vector) -> Vector:
    return np.sqrt(noise**2 + (growth * away) ** 2)
