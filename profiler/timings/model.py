"""A formula fitted to a table of times, with a band around what it predicts."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bsplib.console import Console
from bsplib.experiments.formula import FormulaError, read_formula
from bsplib.profiler.models.band import CONFIDENCE, Attempt, Band, calibrate_jointly
from bsplib.profiler.models.combined import choose_combined
from bsplib.profiler.models.fit import Fit, FitWarning, fit, fit_once
from bsplib.profiler.models.missing import MissingTerms, find_missing
from bsplib.profiler.models.select import LEAST, Choice
from bsplib.profiler.models.terms import processes_of
from bsplib.profiler.timings.table import Timings, TimingsError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from bsplib.profiler.models.fit import CoefficientInterval, FitSegment

    Values = Mapping[str, NDArray[np.float64]]
    Vector = NDArray[np.float64]


_RIVALS = 15
"""Number of formulas, nearly as good, whose predictions are compared."""


@dataclass(frozen=True)
class Predicted:
    """Predicted times, with the limits between which the true times are expected."""

    values: dict[str, Vector]
    times: Vector
    low: Vector
    high: Vector
    confidence: float
    is_calibrated: bool
    """Whether the limits come from trials; otherwise they cover little more than the noise."""

    def __str__(self) -> str:
        rows = zip(self.times, self.low, self.high, strict=True)
        shown = [f"{time:.4g} ({low:.4g} to {high:.4g})" for time, low, high in rows]
        return ", ".join(shown) + ("" if self.is_calibrated else "; the band is not calibrated")


@dataclass(frozen=True)
class TimingModel:
    """A formula fitted to a table of times; ``print`` shows it."""

    timings: Timings = field(repr=False)
    fit: Fit
    band: Band = field(repr=False)
    choice: Choice | None = field(repr=False)
    """How the terms were chosen; None for a formula of the user."""
    missing: MissingTerms | None = field(default=None, repr=False)
    """What a formula of the user seems to lack; None if nothing speaks against it."""

    @property
    def variables(self) -> list[str]:
        """The variables that a prediction needs."""
        known = self.timings.values
        return [name for name in known if name in self.fit.formula.variables]

    def predict(
        self,
        values: Mapping[str, ArrayLike] | None = None,
        /,
        *,
        confidence: float = CONFIDENCE,
        **more: ArrayLike,
    ) -> Predicted:
        """Predict times.

        Args:
            values: values of the variables; numbers, or arrays of equal length.
            confidence: the part of the true times that has to be inside the band.
            **more: further variables by name, as in ``predict(N=2**20, P=64)``.

        Raises:
            TimingsError: a variable has no value, or a value cannot stand in the formula.
            ValueError: the confidence is not between 0 and 1.
        """
        given = {**(values or {}), **more}
        for name in (*self.variables, *given):
            if name not in given:
                raise TimingsError(f"a prediction needs a value of {name}")
            if name not in self.timings.values:
                raise TimingsError(
                    f"there is no variable {name}; the variables are {', '.join(self.variables)}"
                )
        arrays = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(value, float)) for value in given.values())
        )
        asked = dict(zip(given, arrays, strict=True))
        try:
            times = self.fit.predict(asked)
        except FormulaError as error:
            raise TimingsError(str(error)) from None
        # A variable that is not in the formula may be left out: it is where it was measured.
        below, above = self.band.reach(asked, confidence)
        times = np.broadcast_to(times, below.shape)
        return Predicted(
            asked,
            times,
            times * np.exp(-below),
            times * np.exp(np.minimum(above, 700)),
            confidence,
            self.band.is_calibrated,
        )

    @property
    def untried(self) -> list[str]:
        """What the measurements cannot tell, a sentence each."""
        return list(_untried(self))

    def beyond(self, factor: float) -> dict[str, float]:
        """Return a point beyond the measurements: this times the greatest of each variable."""
        return {
            name: factor * float(self.timings.values[name].max())
            for name in self.timings.varied
            if name in self.fit.formula.variables
        } | {
            name: value
            for name, value in self.timings.constant.items()
            if name in self.fit.formula.variables
        }

    def rivals_at(self, point: Mapping[str, float]) -> tuple[float, float] | None:
        """Return the least and greatest time that formulas as good as this one predict."""
        found = []
        for rival in self.band.attempt.rivals:
            try:
                found.append(float(rival.predict(point)[0]))
            except FormulaError:
                continue
        return (min(found), max(found)) if found else None

    def as_json(self, points: Mapping[str, Predicted] | None = None) -> dict[str, Any]:
        """Return everything as numbers and text that JSON holds.

        Args:
            points: predictions to add, by name.
        """
        return document(self, points or {})

    def plot(self, path: str | Path, *, force: bool = False) -> None:
        """Draw the measurements, the formula and its band into a file.

        Args:
            path: the file; its suffix names the format.
            force: replace a file that exists.

        Raises:
            ValueError: the file cannot be written, or its suffix names no format.
        """
        from bsplib.profiler.timings.plot import plot_model  # noqa: PLC0415  # matplotlib is an extra

        plot_model(self, path, force=force)

    def __str__(self) -> str:
        from bsplib.profiler.timings.show import show  # noqa: PLC0415  # it imports this module

        with io.StringIO() as text:
            show(self, Console(file=text, width=100, no_color=True))
            return text.getvalue().rstrip()


def fit_timings(
    timings: Timings,
    formula: str | None = None,
    *,
    processes: str | None = None,
    negative: bool = False,
    on_trial: Callable[[int, int], object] = lambda _done, _all: None,
) -> TimingModel:
    """Fit a formula to a table of times.

    Args:
        timings: the table.
        formula: a formula, as :mod:`bsplib.experiments.formula` reads it; default: its terms
            are chosen by :mod:`bsplib.profiler.models.select`.
        processes: the variable that is the number of processes; default: by its name.
        negative: whether coefficients of ``formula`` may be negative.
        on_trial: is called before each trial with how many are done, and how many there
            will be at most.

    Raises:
        TimingsError: the formula cannot be read or fitted, or there are too few points.
        MissingExtraError: scipy is not installed.
    """
    values, times = _of(timings)
    if processes is not None and processes not in timings.values:
        raise TimingsError(
            f"there is no variable {processes}; the variables are {', '.join(timings.values)}"
        )
    count = processes or processes_of(list(values))
    try:
        on_trial(0, 9)
        choice = choose_combined(timings_varied(timings), times, count) if formula is None else None
        found = _fitted(choice.formula if choice else formula or "", values, times, negative)
        done = iter(range(1, 100))

        def again(lesser: Values, taken: Vector) -> Attempt:
            on_trial(next(done), 9)
            if choice is None:
                return Attempt(fit_once(found.formula, lesser, taken, negative=negative))
            other = choose_combined(lesser, taken, count)
            return Attempt(
                fit_once(read_formula(other.formula), lesser, taken),
                _rivals(other, lesser, taken),
            )

        last = _last_segment(found, values, times)
        attempt = Attempt(found, _rivals(choice, *last) if choice else ())
        band = calibrate_jointly(attempt, *last, again, LEAST if choice else 0)
        missing = None
        if found.doubt and formula is not None and not negative:
            missing = find_missing(formula, values, times, count)
    except FormulaError as error:
        raise TimingsError(_with_way_out(str(error), timings)) from None
    return TimingModel(timings, found, band, choice, missing)


def _rivals(choice: Choice, values: Values, times: Vector) -> list[Fit]:
    """Fit the formulas that are nearly as good."""
    found = []
    for rival in choice.rivals[:_RIVALS]:
        try:
            found.append(fit_once(read_formula(rival.formula), values, times))
        except FormulaError:  # a segment may have fewer measurements than it has parameters
            continue
    return found


def _of(timings: Timings) -> tuple[dict[str, Vector], Vector]:
    return timings.values, timings.times


def timings_varied(timings: Timings) -> dict[str, Vector]:
    """Return the variables that have more than one value."""
    return {name: timings.values[name] for name in timings.varied}


def _fitted(formula: str, values: Values, times: Vector, negative: bool) -> Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the result has it as its doubt
        return fit(formula, values, times, negative=negative)


def _last_segment(found: Fit, values: Values, times: Vector) -> tuple[Values, Vector]:
    """Return the measurements from which those beyond are predicted."""
    if found.divided_by is None:
        return values, times
    last = found.segment_of(values) == len(found.segments) - 1
    return {name: column[last] for name, column in values.items()}, times[last]


def _with_way_out(text: str, timings: Timings) -> str:
    place = f"{timings.source}: " if timings.source else ""
    return place + text.removeprefix("formula: ")


def _untried(model: TimingModel) -> list[str]:
    timings, choice, used = model.timings, model.choice, model.fit.formula.variables
    found = [
        f"{name} is {value:g} in all measurements: how the time depends on it is not known"
        for name, value in timings.constant.items()
    ]
    found += [
        f"{name} varies and is not in the formula" for name in timings.varied if name not in used
    ]
    if choice is not None:
        found += [
            f"{name} has values below 1: logarithms of it were not tried"
            for name in timings.varied
            if timings.values[name].min() < 1
        ]
        if not choice.folds:
            found.append(
                "no variable has more than 3 values: the terms were chosen by the misfit alone"
            )
    if not model.band.is_calibrated:
        found.append(
            "too few predictions from smaller regions are possible: the band is not calibrated, "
            "and covers no more than the noise and formulas that are as good"
        )
    if not model.fit.is_tested:
        found.append("there are too few measurements to see whether the errors drift")
    return found


# -- a fitted formula as JSON ---------------------------------------------------------------------


VERSION = 1


def document(model: TimingModel, points: Mapping[str, Predicted]) -> dict[str, Any]:
    """Return a fitted formula and predictions as numbers and text that JSON holds."""
    fitted, timings, band = model.fit, model.timings, model.band
    predicted = fitted.predict(timings.values)
    rivals = model.choice.rivals if model.choice else ()
    return {
        "format": "bsp fit",
        "version": VERSION,
        "source": timings.source,
        "time": timings.time,
        "formula": fitted.formula.text,
        "chosen_by": "the user" if model.choice is None else "the program",
        "divided_by": _quantity(model),
        "coefficients": {
            name: [_interval(each) for each in own] for name, own in fitted.intervals.items()
        },
        "segments": [_segment(segment) for segment in fitted.segments],
        "misfit": {"root_mean_square": band.noise, "greatest": _worst(model)},
        "trials": {
            "regions": band.regions,
            "predictions": len(band.errors),
            "errors": [float(error) for error in band.errors],
        },
        "band_is_calibrated": band.is_calibrated,
        "doubt": fitted.doubt,
        "missing": None if model.missing is None else asdict(model.missing),
        "not_tried": model.untried,
        "as_good": [{"formula": each.formula, "score": each.score} for each in rivals],
        "measured": [
            {
                **{name: float(column[row]) for name, column in timings.values.items()},
                "time": float(timings.times[row]),
                "fitted": float(np.broadcast_to(predicted, timings.times.shape)[row]),
            }
            for row in range(len(timings))
        ],
        "predicted": [_predicted(name, each) for name, each in points.items()],
    }


def _quantity(model: TimingModel) -> str | None:
    """Return what separates the segments."""
    divided = model.fit.divided_by
    return None if divided is None else divided.text.rpartition("*")[0][1:-1]


def _worst(model: TimingModel) -> float:
    return max(segment.worst for segment in model.fit.segments)


def _interval(interval: CoefficientInterval) -> dict[str, Any]:
    return {
        "above": interval.low if math.isfinite(interval.low) else None,
        "up_to": interval.high if math.isfinite(interval.high) else None,
        "value": interval.value,
        "standard_deviation": interval.error,
    }


def _segment(segment: FitSegment) -> dict[str, Any]:
    return {
        "above": segment.low if math.isfinite(segment.low) else None,
        "up_to": segment.high if math.isfinite(segment.high) else None,
        "coefficients": segment.coefficients,
        "measurements": segment.measurements,
        "spread": segment.spread,
        "greatest_error": segment.worst,
    }


def _predicted(name: str, predicted: Predicted) -> dict[str, Any]:
    return {
        "name": name,
        "values": {each: column.tolist() for each, column in predicted.values.items()},
        "times": predicted.times.tolist(),
        "low": predicted.low.tolist(),
        "high": predicted.high.tolist(),
        "confidence": predicted.confidence,
        "is_calibrated": predicted.is_calibrated,
    }
