"""Formulas fitted to measured times, in several segments where one set of coefficients fails.

A fit minimises the squares of the relative errors: a time of 1 ms counts as much as one of
10 s. Coefficients are not negative by default, since no computation takes a negative time.
Where the errors are too large, the measurements are divided at a value of one quantity:
the value for which the errors on both sides are least. This is repeated. Such a boundary
appears, for example, where the data no longer fit into a cache. Many boundaries show that
the formula is wrong.

Source: Gonzalez et al., section 3, the analyser llac. It splits intervals where the error
varies most; here they are split where the remaining error is least, and only if this
improvement is more than chance.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bsplib.extras import optional_module
from profiler.models.formula import Formula, FormulaError, read_formula

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Values = Mapping[str, ArrayLike]
    Vector = NDArray[np.float64]

optimize = optional_module("scipy.optimize")

MANY_SEGMENTS = 3
"""If more segments are needed, a warning is issued."""

_MOST_SEGMENTS = 8


class FitWarning(UserWarning):
    """A formula fits the measurements only in many segments."""


@dataclass(frozen=True)
class Segment:
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
class Fit:
    """A formula with its coefficients."""

    formula: Formula
    divided_by: Formula | None
    """The quantity whose values separate the segments; None if there is one segment."""
    segments: tuple[Segment, ...]
    negative: bool
    """Whether coefficients may be negative."""

    def predict(self, values: Values) -> Vector:
        """Return the value of the formula, with the coefficients of the segment of each element.

        Args:
            values: values of the variables; numbers, or arrays of equal length.

        Raises:
            FormulaError: a variable is missing, or a value is not a finite number.
        """
        columns, rest = self.formula.columns(values)
        chosen = np.stack([list(segment.coefficients.values()) for segment in self.segments])
        predicted: Vector = (columns * chosen[self.segment_of(values)]).sum(axis=1) + rest
        return predicted

    def segment_of(self, values: Values) -> NDArray[np.intp]:
        """Return for each element the position of its segment in ``segments``."""
        columns, _ = self.formula.columns(values)
        if self.divided_by is None:
            return np.zeros(len(columns), np.intp)
        bounds = [segment.high for segment in self.segments[:-1]]
        quantity = np.broadcast_to(_quantity(self.divided_by, values), (len(columns),))
        return np.searchsorted(bounds, quantity)


def fit(
    formula: str | Formula,
    values: Values,
    times: ArrayLike,
    *,
    negative: bool = False,
    divide_by: Sequence[str] | None = None,
    tolerance: float = 0.02,
) -> Fit:
    """Fit a formula to measured times.

    Args:
        formula: a formula, as :mod:`profiler.models.formula` reads it.
        values: values of its variables, one element for each measurement.
        times: the measured times, in seconds or any other unit; greater than 0.
        negative: whether coefficients may be negative.
        divide_by: quantities that may have boundaries, such as ``N/P``; default: each
            variable; if empty, the measurements are not divided.
        tolerance: a segment is divided only if a relative error is greater than this.

    Warns:
        FitWarning: more than ``MANY_SEGMENTS`` segments were needed.

    Raises:
        FormulaError: the formula cannot be read or evaluated, there are fewer measurements
            than parameters, or a time is not greater than 0.
        MissingExtraError: scipy is not installed.
    """
    formula = read_formula(formula) if isinstance(formula, str) else formula
    data = _Data.of(formula, values, times, negative=negative)
    wanted = formula.variables if divide_by is None else divide_by
    best = [data.segment(np.arange(len(data.times)), -math.inf, math.inf)]
    divided: Formula | None = None
    for text in wanted:
        quantity = _read_quantity(text)
        segments = _Divider(data, _quantity(quantity, values), tolerance).segments()
        if _score(segments, data) < _score(best, data):
            best, divided = segments, quantity
    if len(best) > MANY_SEGMENTS:
        warnings.warn(
            f"{formula.text} fits only in {len(best)} segments: it may be the wrong formula",
            FitWarning,
            stacklevel=2,
        )
    return Fit(formula, divided, tuple(best), negative)


@dataclass(frozen=True)
class _Data:
    """Measurements divided by their times, so that the value to fit is 1 for all."""

    formula: Formula
    times: Vector
    rows: NDArray[np.float64]
    """One row for each measurement, one column for each parameter."""
    ones: Vector
    """The value to fit: 1 minus the terms without a parameter, divided by the time."""
    negative: bool

    @classmethod
    def of(cls, formula: Formula, values: Values, times: ArrayLike, *, negative: bool) -> _Data:
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
        if not (np.isfinite(measured).all() and (measured > 0).all()):
            wrong = measured[~(np.isfinite(measured) & (measured > 0))][0]
            raise FormulaError(f"formula: a time is {wrong:g}; times have to be greater than 0")
        if len(measured) < columns.shape[1]:
            raise FormulaError(
                f"formula: {columns.shape[1]} parameters need as many measurements, and there are "
                f"{len(measured)}"
            )
        return cls(formula, measured, columns / measured[:, None], 1 - rest / measured, negative)

    def solve(self, chosen: NDArray[np.intp]) -> tuple[Vector, Vector]:
        """Return the coefficients and relative errors of a fit to the chosen measurements."""
        rows, ones = self.rows[chosen], self.ones[chosen]
        scale = np.linalg.norm(rows, axis=0)
        scale[scale == 0] = 1.0
        if self.negative:
            found = np.linalg.lstsq(rows / scale, ones, rcond=None)[0] / scale
        else:
            found = optimize.nnls(rows / scale, ones)[0] / scale
        return found, rows @ found - ones

    def segment(self, chosen: NDArray[np.intp], low: float, high: float) -> Segment:
        """Return a segment that is fitted to the chosen measurements."""
        found, errors = self.solve(chosen)
        used = np.ones(len(found), bool) if self.negative else found > 0
        freedom = len(chosen) - int(used.sum())
        variance = float(errors @ errors) / max(freedom, 1)
        covariance = np.zeros((len(found), len(found)))
        rows = self.rows[chosen][:, used]
        covariance[np.ix_(used, used)] = np.linalg.pinv(rows.T @ rows) * variance
        return Segment(
            low,
            high,
            dict(zip(self.formula.parameters, found.tolist(), strict=True)),
            len(chosen),
            math.sqrt(variance),
            float(np.abs(errors).max()),
            covariance,
            freedom,
            _squares(errors),
        )

    def squares(self, chosen: NDArray[np.intp]) -> float:
        """Return ``Segment.squares`` for a fit to the chosen measurements."""
        return _squares(self.solve(chosen)[1])


class _Divider:
    """Divides measurements into segments along one quantity."""

    def __init__(self, data: _Data, quantity: Vector, tolerance: float) -> None:
        self._data = data
        self._quantity = np.broadcast_to(quantity, (len(data.times),))
        self._tolerance = tolerance
        # Least number of measurements in a segment: two more than parameters.
        self._least = data.rows.shape[1] + 2

    def segments(self) -> list[Segment]:
        """Return the segments in the order of the quantity.

        A boundary may be an improvement only together with a second one. So divide up to
        the greatest number of segments, and return the best division that was found.
        """
        members = [np.arange(len(self._data.times))]
        segments = [self._data.segment(members[0], -math.inf, math.inf)]
        best = list(segments)
        while len(segments) < _MOST_SEGMENTS:
            cuts = [self._cut(*part) for part in zip(members, segments, strict=True)]
            divisible = [number for number, cut in enumerate(cuts) if cut is not None]
            if not divisible:
                break
            worst = max(divisible, key=lambda number: segments[number].worst)
            self._divide(members, segments, worst, cuts[worst])
            best = min(best, list(segments), key=lambda choice: _score(choice, self._data))
        return best

    def _divide(
        self,
        members: list[NDArray[np.intp]],
        segments: list[Segment],
        number: int,
        cut: float | None,
    ) -> None:
        """Divide the segment of a number at a value of the quantity."""
        assert cut is not None
        below = self._quantity[members[number]] <= cut
        parts = [members[number][below], members[number][~below]]
        bounds = [(segments[number].low, cut), (cut, segments[number].high)]
        members[number : number + 1] = parts
        segments[number : number + 1] = [
            self._data.segment(part, *bound) for part, bound in zip(parts, bounds, strict=True)
        ]

    def _cut(self, chosen: NDArray[np.intp], segment: Segment) -> float | None:
        """Return where to divide a segment; None if it fits or has too few measurements."""
        if segment.worst <= self._tolerance:
            return None
        quantity = self._quantity[chosen]
        squares = {
            cut: sum(self._data.squares(chosen[side]) for side in (quantity <= cut, quantity > cut))
            for cut in np.unique(quantity)[:-1].tolist()
            if self._least <= (quantity <= cut).sum() <= len(chosen) - self._least
        }
        return min(squares, key=squares.__getitem__) if squares else None


def _squares(errors: Vector) -> float:
    logs = np.log(np.maximum(1 + errors, 1e-9))
    return float(logs @ logs)


def _information(squares: float, count: int, parameters: int) -> float:
    """Return the Bayesian information criterion of a fit; less is better."""
    return count * math.log(max(squares / count, 1e-30)) + parameters * math.log(count)


def _parameters_of_a_cut(data: _Data) -> int:
    """Return the number of parameters that a boundary counts for.

    These are the coefficients of the new segment, the position of the boundary, and two
    more, because the position is the best of all: with fewer, noise alone would divide
    one set of measurements in ten.
    """
    return int(data.rows.shape[1]) + 3


def _score(segments: Sequence[Segment], data: _Data) -> float:
    """Return the information criterion of a list of segments; less is better."""
    squares = sum(segment.squares for segment in segments)
    return _information(squares, len(data.times), (len(segments) - 1) * _parameters_of_a_cut(data))


def _read_quantity(text: str) -> Formula:
    """Read an expression without parameters."""
    return read_formula(f"({text})*quantity[0]")


def _quantity(quantity: Formula, values: Values) -> Vector:
    return quantity.columns(values)[0][:, 0]
