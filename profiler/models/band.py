"""Bands around predictions, calibrated by trials on nested regions in all variables.

A trial fits inside a region (:mod:`bsplib.profiler.models.nested_regions`) as the whole fit was
made, terms chosen anew included, and predicts the measurements outside. Its errors are counted in
units, whose square is the sum of the squares of

- the misfit inside,
- ``growth`` times the distance of the measurement from the region, in widths of the region:
  the growth is such that these units explain the errors of all trials,
- ``_POWER_MORE`` or ``_POWER_LESS`` times the same distance as a logarithm: no growth is known
  more exactly.
  Where there are more data or processes, caches end and overheads grow, and hardly anything
  becomes cheaper: so a time is allowed to exceed its prediction by more than to fall below,
- the spread, at this point, of the formulas that are nearly as good as the one taken.

How large a unit is, the trials say: their errors have some mean square. Predictions of one
trial are alike, so each trial counts as one observation of it. Trials are few; so ``_UNIT_TRIALS``
more observations of 1, which the units were made for, are added to them, and the band is the
root of the mean times Student's t for all of them. This is the prediction of a value with the
normal distribution whose variance has an inverse gamma distribution before the trials. Where
no trial was possible, only the latter is known, and the band is not calibrated.

Source: Gelman et al., Bayesian Data Analysis, section 2.6 (a normal distribution with known
mean and unknown variance). The number of observations was chosen by generated laws, counted
programs, and programs other than those of ``benchmarks/prediction``, and so were
``_POWER_MORE`` and ``_POWER_LESS``: there, of 100 predictions of programs on one process 19
exceeded a band that has 0.05 for both, and none fell below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.experiments.formula import FormulaError
from bsplib.extras import optional_module
from bsplib.profiler.models.nested_regions import distance, efolds, origins, regions
from bsplib.profiler.models.select import fitted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from bsplib.profiler.models.fit import Fit

    Values = Mapping[str, NDArray[np.float64]]
    Vector = NDArray[np.float64]

special = optional_module("scipy.special")

CONFIDENCE = 0.9
"""Share of the measurements that a band should hold."""
_LEAST_PREDICTIONS = 5
"""Least number of predicted measurements to calibrate a band."""
_POWER_LESS, _POWER_MORE = 0.05, 0.11
"""The time grows with a power of a size: the true power may be smaller by the first figure at
least, and greater by the second."""
_UNIT_TRIALS = 3
"""Number of trials that the units themselves count for."""
_MOST_REGIONS = 8
_FAR_OFF = 1e-6
_LEAST_UNIT = 1e-9


@dataclass(frozen=True)
class Reach:
    """How far a law's predictions may be off: a part of the value that grows with the distance."""

    least: float = 0.0
    noise: float = 0.0
    growth: float = 0.0
    factor: float = 0.0
    calibrated: bool = True
    """Whether trials inside the runs gave growth and factor; else they are usual ones, or 0."""

    def at(self, distance: float) -> float:
        """Return how far the logarithm may be off at a distance from the runs."""
        if not math.isfinite(distance):
            return self.least
        return max(self.least, self.factor * math.hypot(self.noise, self.growth * distance))


class Attempt(NamedTuple):
    """A fit, and others that are nearly as good."""

    fit: Fit
    rivals: Sequence[Fit] = ()


@dataclass(frozen=True)
class Band:
    """How far predictions may be off."""

    attempt: Attempt
    """What predicts."""
    noise: float
    """Standard deviation of log(predicted / measured) of the fit."""
    freedom: int
    """Number of measurements minus the number of coefficients."""
    growth: float
    """How the error grows with the distance."""
    misses: Vector
    """Absolute errors of the predictions in trials, in their units."""
    mean_square: float
    """Mean over the trials of the mean square of the misses."""
    errors: Vector
    """Absolute errors of the predictions in trials, as log(predicted / measured)."""
    regions: int
    """Number of regions from which predictions were tried."""
    measured: Values
    """Values of the variables that were measured."""

    @property
    def is_calibrated(self) -> bool:
        """Whether predictions were tried."""
        return len(self.misses) >= _LEAST_PREDICTIONS

    def reach(self, values: Mapping[str, ArrayLike], confidence: float) -> tuple[Vector, Vector]:
        """Return how far log(true / predicted) may be below 0 and above it at some points.

        Args:
            values: values of the variables; numbers, or arrays of equal length. The distance
                counts in those that are given.
            confidence: the part of the true times that has to be inside, between 0 and 1.

        Raises:
            ValueError: the confidence is not between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"the confidence is {confidence}; it has to be between 0 and 1")
        asked = {name: np.atleast_1d(np.asarray(value, float)) for name, value in values.items()}
        factor = student(self.freedom, confidence)
        least = factor * self.noise * math.sqrt(1 + 1 / max(self.freedom, 1))
        region = {name: column for name, column in self.measured.items() if name in asked}
        points = _Points.of(self.attempt, region, asked)
        factor = self._factor(confidence)
        below, above = (
            np.maximum(least, factor * points.unit(self.noise, self.growth, exponent))
            for exponent in (_POWER_LESS, _POWER_MORE)
        )
        return below, above

    def _factor(self, confidence: float) -> float:
        """Return the number of units."""
        trials = self.regions if self.is_calibrated else 0
        together = trials + _UNIT_TRIALS
        mean_square = (trials * self.mean_square + _UNIT_TRIALS) / together
        return student(together, confidence) * math.sqrt(mean_square)


@dataclass(frozen=True)
class _Points:
    """Points outside a region."""

    away: Vector
    """Distances from the region, in widths of the region."""
    efolds: Vector
    """As a logarithm."""
    spread: Vector
    """Root mean square of log(rival / predicted)."""

    @classmethod
    def of(cls, attempt: Attempt, region: Values, asked: Values) -> _Points:
        count = max((len(column) for column in asked.values()), default=1)
        if not region:
            return cls(np.zeros(count), np.zeros(count), np.zeros(count))
        spread = _spread(attempt, asked, count)
        return cls(distance(region, asked), efolds(region, asked), spread)

    def unit(self, noise: float, growth: float, exponent: float | Vector) -> Vector:
        """Return the units in which errors count."""
        squares = noise**2 + (exponent * self.efolds) ** 2 + self.spread**2
        known = np.isfinite(self.away)
        squares += np.where(known, (growth * np.where(known, self.away, 0)) ** 2, np.inf)
        return np.maximum(np.sqrt(squares), _LEAST_UNIT)


def _spread(attempt: Attempt, asked: Values, count: int) -> Vector:
    """Return the root mean square of log(rival / predicted) at some points."""
    taken = np.broadcast_to(np.log(np.maximum(attempt.fit.predict(asked), _TINY)), (count,))
    squares = [np.zeros(count)]
    for rival in attempt.rivals:
        try:
            other = rival.predict(asked)
        except FormulaError:  # it has a variable that the formula lacks and nobody gave
            continue
        squares.append((np.log(np.maximum(other, _TINY)) - taken) ** 2)
    return np.asarray(np.sqrt(np.mean(squares, axis=0)))


_TINY = np.finfo(float).tiny


def calibrate_jointly(
    attempt: Attempt,
    values: Values,
    times: Vector,
    refit: Callable[[Values, Vector], Attempt],
    least: int = 0,
) -> Band:
    """Try predictions from nested regions.

    Args:
        attempt: the fit to all measurements, with its rivals.
        values: values of the variables, one element for each measurement.
        times: the measured times.
        refit: fits the measurements of a region as all were fitted; may raise FormulaError.
        least: least number of measurements in a region; default: two more than the formula
            has parameters.
    """
    fitted = attempt.fit
    noise, freedom = _noise(fitted, values, times)
    varied = {name: column for name, column in values.items() if np.ptp(column) > 0}
    found = regions(varied, least or len(fitted.formula.parameters) + 2) if varied else []
    trials = []
    for region in _some(found):
        try:
            trials.append(_Trial.of(values, times, region, refit))
        except FormulaError:
            continue
    trials = [trial for trial in trials if np.isfinite(trial.points.away).all()]
    # The growth that a few predictions show is as uncertain as they are.
    enough = sum(len(trial.errors) for trial in trials) >= _LEAST_PREDICTIONS
    growth = _growth(trials) if enough else 0.0
    misses = [np.abs(trial.errors) / trial.unit(growth) for trial in trials]
    return Band(
        attempt,
        noise,
        freedom,
        growth,
        np.concatenate([np.empty(0), *misses]),
        float(np.mean([np.mean(each**2) for each in misses])) if misses else 0.0,
        np.concatenate([np.empty(0), *(np.abs(trial.errors) for trial in trials)]),
        len(trials),
        varied,
    )


@dataclass(frozen=True)
class _Trial:
    """Predictions from one region."""

    errors: Vector
    """log(predicted / measured)."""
    noise: float
    points: _Points

    def unit(self, growth: float) -> Vector:
        """Return the units in which the errors count: how far each may go to its side."""
        exponent = np.where(self.errors > 0, _POWER_LESS, _POWER_MORE)
        return self.points.unit(self.noise, growth, exponent)

    @classmethod
    def of(
        cls,
        values: Values,
        times: Vector,
        region: NDArray[np.bool_],
        refit: Callable[[Values, Vector], Attempt],
    ) -> _Trial:
        lesser, greater = (
            {name: column[mask] for name, column in values.items()} for mask in (region, ~region)
        )
        attempt = refit(lesser, times[region])
        predicted = attempt.fit.predict(greater)
        errors = np.log(np.maximum(predicted / times[~region], _FAR_OFF))
        varied = {name: each for name, each in lesser.items() if np.ptp(values[name]) > 0}
        noise, _ = _noise(attempt.fit, lesser, times[region])
        return cls(errors, noise, _Points.of(attempt, varied, greater))


def _noise(fitted: Fit, values: Values, times: Vector) -> tuple[float, int]:
    """Return the standard deviation of log(predicted / measured), and its degrees of freedom."""
    inside = np.log(np.maximum(fitted.predict(values) / times, _FAR_OFF))
    freedom = max(sum(segment.freedom for segment in fitted.segments), 0)
    return math.sqrt(float(inside @ inside) / max(freedom, 1)), freedom


def _some(found: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
    """Return some of the regions, from the largest to the smallest."""
    if len(found) <= _MOST_REGIONS:
        return found
    chosen = np.linspace(0, len(found) - 1, _MOST_REGIONS).round().astype(int)
    return [found[number] for number in chosen]


def _growth(trials: Sequence[_Trial]) -> float:
    """Return by how much errors exceed the rest of their units, for each width of the region."""
    errors = np.concatenate([trial.errors for trial in trials])
    rest = np.concatenate([trial.unit(0.0) for trial in trials])
    away = np.concatenate([trial.points.away for trial in trials])
    more = max(float((errors**2 - rest**2).mean()), 0.0)
    return math.sqrt(more / max(float((away**2).mean()), 1e-12))


def student(freedom: int, confidence: float) -> float:
    """Return how many standard errors hold a part of the errors, with some degrees of freedom."""
    return float(special.stdtrit(max(freedom, 1), (1 + confidence) / 2))


# -- laws of cost centres: the terms are kept, and the errors of all laws are counted together -----


_LEAST_TRIALS = 3
"""Number of trials in runs of three sizes on four numbers of processes."""
_LEAST_POOLED = 30
"""Least number of trials of all laws of a program that are counted together."""


_NOISE_INSIDE = 1.645
"""Standard deviations that hold 90% of normally distributed noise."""
_MEDIAN_SQUARE = 0.455
"""Median of the square of a normally distributed value with mean 0 and variance 1."""


class Trials(NamedTuple):
    """Predictions of a law from smaller runs, each prefix of the values of a variable for the next.

    The terms are those of the law; their coefficients are fitted anew.
    """

    noise: float
    """Relative standard deviation of the observations."""
    errors: Vector
    """Absolute errors, as logarithms."""
    distances: Vector
    """Distance of each predicted point from the runs that predict it, in units of the range of
    these runs."""

    def units(self, growth: float) -> Vector:
        """Return the errors in units of what noise and the distance explain."""
        return self.errors / np.maximum(np.hypot(self.noise, growth * self.distances), _LEAST_UNIT)


def try_law(
    values: Values, rows: NDArray[np.float64], deviations: Vector, wanted: Vector | None = None
) -> Trials:
    """Try the predictions of a law from smaller runs.

    Args:
        values: the variables, one element for each point.
        rows: the terms, a row for each point, divided by what was observed there.
        deviations: relative standard deviation of the observations at each point.
        wanted: what the terms have to give; default: 1.
    """
    return try_sum(values, [(rows, np.ones(len(rows)) if wanted is None else wanted)], deviations)


def try_sum(
    values: Values, parts: Sequence[tuple[NDArray[np.float64], Vector]], deviations: Vector
) -> Trials:
    """Try the predictions of a sum of laws, each of which is fitted to its own part.

    Args:
        values: the variables, one element for each point.
        parts: the terms of each law, a row for each point, and what they have to give there, both
            divided by what was observed of the sum. What no part gives is known.
        deviations: relative standard deviation of the observations at each point.
    """
    everything = np.ones(len(deviations), bool)
    misfit = _errors(parts, everything, everything)
    noise = math.hypot(math.sqrt((misfit**2).mean()), math.sqrt((deviations**2).mean()))
    errors, distances = [np.empty(0)], [np.empty(0)]
    most = max(rows.shape[1] for rows, _ in parts)
    for inside, following in origins(values, most + 1):
        errors.append(np.abs(_errors(parts, inside, following)))
        lesser, greater = (
            {name: column[side] for name, column in values.items()} for side in (inside, following)
        )
        distances.append(distance(lesser, greater))
    away = np.concatenate(distances)
    known = np.isfinite(away)
    return Trials(noise, np.concatenate(errors)[known], away[known])


def _errors(
    parts: Sequence[tuple[NDArray[np.float64], Vector]],
    inside: NDArray[np.bool_],
    outside: NDArray[np.bool_],
) -> Vector:
    """Return log(predicted / observed) outside, by coefficients that are fitted inside."""
    predicted = np.ones(int(outside.sum()))
    for rows, wanted in parts:
        found = fitted(rows[inside], wanted[inside])
        predicted += rows[outside] @ found - wanted[outside]
    return np.asarray(np.log(np.maximum(predicted, _FAR_OFF)))


def reach_of(trials: Trials) -> Reach:
    """Return the reach that covers 90% of the errors of the trials of one law."""
    if len(trials.errors) < _LEAST_TRIALS:
        return Reach(_NOISE_INSIDE * trials.noise, trials.noise, calibrated=False)
    return _reach([trials], trials.noise)


def pooled(found: Sequence[Trials]) -> list[Reach]:
    """Return the reaches of laws of one program, from the trials of all of them.

    A law has few trials, so the greatest of them says little of how far it may be off. Laws of one
    program are wrong in similar ways: so how errors grow with the distance, and how many units of
    them a band needs, are counted over all laws; only the noise is that of each.
    """
    if sum(len(trials.errors) for trials in found) < _LEAST_POOLED:
        return [reach_of(trials) for trials in found]
    return [_reach(found, trials.noise) for trials in found]


def _reach(found: Sequence[Trials], noise: float) -> Reach:
    errors, distances = (np.concatenate([trials[place] for trials in found]) for place in (1, 2))
    noises = np.concatenate([np.full(len(trials.errors), trials.noise) for trials in found])
    growth = _usual_growth(errors, noises, distances)
    units = np.concatenate([trials.units(growth) for trials in found])
    level = min(math.ceil(CONFIDENCE * (len(units) + 1)) / len(units), 1.0)
    return Reach(
        _NOISE_INSIDE * noise, noise, growth, float(np.quantile(units, level, method="higher"))
    )


def _usual_growth(errors: Vector, noises: Vector, distances: Vector) -> float:
    """Return the growth with the distance that explains what errors usually exceed noise by.

    It is that of medians: one law that is wrong should not widen the bands of all.
    """
    more = float(np.median(errors**2)) / _MEDIAN_SQUARE - float(np.median(noises**2))
    return math.sqrt(max(more, 0.0) / max(float(np.median(distances**2)), 1e-12))
