"""Formulas fitted to measured times, piece by piece where one does not hold.

A fit is least squares on the relative error: a time of 1 ms counts as much as one of
10 s. Coefficients are not negative unless asked, since no computation takes less than no
time. Where the errors are larger than they should be, the measurements are divided at
the value of one quantity that leaves the least error on both sides, and so on: a cache
that is full shows as such a boundary. Many of them show that the formula is wrong.

Source: Gonzalez et al., section 3, the analyzer llac: its intervals, split where the
error varies most; here where it becomes least, and only if that is no chance.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from profiler.models.formula import Formula, FormulaError, read_formula

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Values = Mapping[str, ArrayLike]
    Vector = NDArray[np.float64]

MANY_SEGMENTS = 3
"""More raise a warning."""

_MOST_SEGMENTS = 8


class FitWarning(UserWarning):
    """A formula holds only in many pieces."""


@dataclass(frozen=True)
class Segment:
    """A stretch of the measurements that one set of coefficients holds for."""

    low: float
    """The quantity that divides is above this, -inf for the first segment."""
    high: float
    """And at most this; inf for the last segment."""
    coefficients: dict[str, float]
    """By parameter."""
    measurements: int
    spread: float
    """Standard deviation of the relative errors."""
    worst: float
    """The greatest relative error."""
    covariance: NDArray[np.float64] = field(repr=False)
    """Of the coefficients, in the order of the formula; 0 for those that are 0 because
    they may not be negative."""
    freedom: int
    """Measurements more than coefficients that are not 0."""
    squares: float
    """Sum of the squares of log(predicted / measured), which tells a fit that is a
    thousand times too low from one that is ten times too low."""


@dataclass(frozen=True)
class Fit:
    """A formula with its coefficients."""

    formula: Formula
    divided_by: Formula | None
    """The quantity whose values bound the segments; None where there is one segment."""
    segments: tuple[Segment, ...]
    negative: bool
    """Coefficients may be negative."""

    def predict(self, values: Values) -> Vector:
        """Return the formula's value, by the segment that each element belongs to.

        Args:
            values: of the variables; numbers or arrays of one length.

        Raises:
            FormulaError: a variable is missing, or something is no finite number.
        """
        columns, rest = self.formula.columns(values)
        chosen = np.stack([list(segment.coefficients.values()) for segment in self.segments])
        predicted: Vector = (columns * chosen[self.segment_of(values)]).sum(axis=1) + rest
        return predicted

    def segment_of(self, values: Values) -> NDArray[np.intp]:
        """Return the position in ``segments`` for each element."""
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
        formula: in named parameters, as :mod:`profiler.models.formula` reads it.
        values: of its variables, an element for each measurement.
        times: what was measured, in seconds or any other unit; above 0.
        negative: coefficients may be negative.
        divide_by: quantities to look for boundaries in, such as ``N/P``; each of the
            variables if None; none of them if empty.
        tolerance: relative errors up to this are no reason to divide.

    Warns:
        FitWarning: more than ``MANY_SEGMENTS`` segments were needed.

    Raises:
        FormulaError: the formula cannot be read or evaluated, or there are fewer
            measurements than parameters, or times that are not above 0.
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
            f"{formula.text} holds only in {len(best)} pieces: it may be the wrong formula",
            FitWarning,
            stacklevel=2,
        )
    return Fit(formula, divided, tuple(best), negative)


@dataclass(frozen=True)
class _Data:
    """Measurements, each divided by its time: what is to come out is 1 for all."""

    formula: Formula
    times: Vector
    rows: NDArray[np.float64]
    """A column for each parameter."""
    ones: Vector
    """1, less what the terms without a parameter are of it."""
    negative: bool

    @classmethod
    def of(cls, formula: Formula, values: Values, times: ArrayLike, *, negative: bool) -> _Data:
        """Check the measurements and lay them out."""
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
            raise FormulaError(f"formula: a time is {wrong:g}; measured times are above 0")
        if len(measured) < columns.shape[1]:
            raise FormulaError(
                f"formula: {columns.shape[1]} parameters need as many measurements, and there are "
                f"{len(measured)}"
            )
        return cls(formula, measured, columns / measured[:, None], 1 - rest / measured, negative)

    def solve(self, chosen: NDArray[np.intp]) -> tuple[Vector, Vector]:
        """Return coefficients and relative errors of some measurements."""
        rows, ones = self.rows[chosen], self.ones[chosen]
        scale = np.linalg.norm(rows, axis=0)
        scale[scale == 0] = 1.0
        if self.negative:
            found = np.linalg.lstsq(rows / scale, ones, rcond=None)[0] / scale
        else:
            found = nnls(rows / scale, ones)[0] / scale
        return found, rows @ found - ones

    def segment(self, chosen: NDArray[np.intp], low: float, high: float) -> Segment:
        """Fit some measurements."""
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
        """Return the squares of a fit, as a segment has them."""
        return _squares(self.solve(chosen)[1])


class _Divider:
    """Divides measurements along one quantity, as long as it pays."""

    def __init__(self, data: _Data, quantity: Vector, tolerance: float) -> None:
        self._data = data
        self._quantity = np.broadcast_to(quantity, (len(data.times),))
        self._tolerance = tolerance
        self._least = data.rows.shape[1] + 2  # of a segment: two more than parameters

    def segments(self) -> list[Segment]:
        """Return the segments in the order of the quantity.

        Divides further than pays, since a second boundary may be what makes the first
        one pay, and returns the best on the way there.
        """
        members = [np.arange(len(self._data.times))]
        segments = [self._data.segment(members[0], -math.inf, math.inf)]
        best = list(segments)
        while len(segments) < _MOST_SEGMENTS:
            cuts = [self._cut(*part) for part in zip(members, segments, strict=True)]
            able = [place for place, cut in enumerate(cuts) if cut is not None]
            if not able:
                break
            place = max(able, key=lambda place: segments[place].worst)
            self._divide(members, segments, place, cuts[place])
            best = min(best, list(segments), key=lambda choice: _score(choice, self._data))
        return best

    def _divide(
        self,
        members: list[NDArray[np.intp]],
        segments: list[Segment],
        place: int,
        cut: float | None,
    ) -> None:
        """Divide one segment at a value of the quantity."""
        assert cut is not None
        below = self._quantity[members[place]] <= cut
        parts = [members[place][below], members[place][~below]]
        bounds = [(segments[place].low, cut), (cut, segments[place].high)]
        members[place : place + 1] = parts
        segments[place : place + 1] = [
            self._data.segment(part, *bound) for part, bound in zip(parts, bounds, strict=True)
        ]

    def _cut(self, chosen: NDArray[np.intp], segment: Segment) -> float | None:
        """Return where to divide a segment; None where it fits, or has too few to divide."""
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


def _price_of_a_cut(data: _Data) -> int:
    """Return how many parameters a boundary counts for.

    Its coefficients, its place, and two for having been chosen as the best of all places:
    with fewer, noise alone divides one set of measurements in ten.
    """
    return int(data.rows.shape[1]) + 3


def _score(segments: Sequence[Segment], data: _Data) -> float:
    """Return the information criterion of segments."""
    squares = sum(segment.squares for segment in segments)
    return _information(squares, len(data.times), (len(segments) - 1) * _price_of_a_cut(data))


def _read_quantity(text: str) -> Formula:
    """Read an expression without parameters."""
    return read_formula(f"({text})*quantity[0]")


def _quantity(quantity: Formula, values: Values) -> Vector:
    return quantity.columns(values)[0][:, 0]
