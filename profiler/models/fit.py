"""Formulas fitted to measured times, in several segments where one set of coefficients fails.

A fit minimises the squares of the relative errors: a time of 1 ms counts as much as one of
10 s. By default neither coefficients nor what they are combined to
(:mod:`bsplib.profiler.models.least_squares`) are negative, since no computation takes a negative
time.

Where the errors are too large, there are two explanations. A constant of the machine may
jump at a boundary, for example where the data no longer fit into a cache: then the
measurements are divided there (:mod:`bsplib.profiler.models.segmentation`), and the coefficients
that do not jump keep one value (:mod:`bsplib.profiler.models.shared_coefficients`). Or the errors
drift: then the formula is wrong (:mod:`bsplib.profiler.models.error_drift`), and a warning says so.

Source: Gonzalez et al., section 3, the analyser llac. It splits intervals where the error
varies most; here they are split where the remaining error is least, and only if the
division predicts larger measurements better.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.experiments.formula import Formula, read_formula
from bsplib.profiler.models.error_drift import find_drift
from bsplib.profiler.models.least_squares import Data, FitSegment
from bsplib.profiler.models.segmentation import Divider, score
from bsplib.profiler.models.shared_coefficients import share
from bsplib.profiler.models.terms import processes_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Values = Mapping[str, ArrayLike]
    Vector = NDArray[np.float64]

__all__ = ["MANY_SEGMENTS", "CoefficientInterval", "Fit", "FitSegment", "FitWarning", "fit"]

MANY_SEGMENTS = 3
"""If more segments are needed, a warning is issued."""


class FitWarning(UserWarning):
    """A formula fits the measurements only in many segments, or its errors drift."""


class CoefficientInterval(NamedTuple):
    """A value of a coefficient."""

    low: float
    """The dividing quantity is greater than this; -inf if there is no bound."""
    high: float
    """The dividing quantity is at most this; inf if there is no bound."""
    value: float
    error: float
    """Standard deviation of the value."""


@dataclass(frozen=True)
class Fit:
    """A formula with its coefficients."""

    formula: Formula
    divided_by: Formula | None
    """The quantity whose values separate the segments; None if there is one segment."""
    segments: tuple[FitSegment, ...]
    negative: bool
    """Whether coefficients may be negative."""
    doubt: str = ""
    """A sentence that says why the formula may be wrong; empty if nothing speaks against it."""
    is_tested: bool = False
    """Whether there were enough measurements to find out if the errors drift."""

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

    @property
    def intervals(self) -> dict[str, list[CoefficientInterval]]:
        """The values of each coefficient, with the range of the dividing quantity of each.

        Source: Gonzalez et al., section 2.1, the sets of Table 2.
        """
        found: dict[str, list[CoefficientInterval]] = {}
        for number, name in enumerate(self.formula.parameters):
            own: list[CoefficientInterval] = []
            for each in self.segments:
                value = each.coefficients[name]
                error = math.sqrt(max(float(each.covariance[number, number]), 0))
                if own and own[-1].value == value:
                    own[-1] = own[-1]._replace(high=each.high)
                else:
                    own.append(CoefficientInterval(each.low, each.high, value, error))
            found[name] = own
        return found

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
        formula: a formula, as :mod:`bsplib.experiments.formula` reads it.
        values: values of its variables, one element for each measurement.
        times: the measured times, in seconds or any other unit; greater than 0.
        negative: whether coefficients may be negative.
        divide_by: quantities that may have boundaries, such as ``N/P``; default: each
            variable, and each other one divided by the number of processes if a variable
            has such a name as P; if empty, the measurements are not divided.
        tolerance: a segment is divided, and a drift is told, only if a relative error is
            greater than this.

    Warns:
        FitWarning: more than ``MANY_SEGMENTS`` segments were needed, or the errors drift.

    Raises:
        FormulaError: the formula cannot be read or evaluated, there are fewer measurements
            than parameters, or a time is not greater than 0.
        MissingExtraError: scipy is not installed.
    """
    formula = read_formula(formula) if isinstance(formula, str) else formula
    data = Data.of(formula, values, times, negative=negative)
    best = [data.segment(np.arange(len(data.times)), -math.inf, math.inf)]
    divided: Formula | None = None
    for text in _quantities(formula) if divide_by is None else divide_by:
        quantity = _read_quantity(text)
        segments = Divider(data, _quantity(quantity, values), tolerance).segments()
        if score(segments, data) < score(best, data):
            best, divided = segments, quantity
    if divided is not None:
        best = share(data, best, _quantity(divided, values))
    doubt, is_tested = _doubt(data, best, tolerance)
    if doubt:
        warnings.warn(f"{formula.text}: {doubt}", FitWarning, stacklevel=2)
    return Fit(formula, divided, tuple(best), negative, doubt, is_tested)


def fit_once(formula: Formula, values: Values, times: ArrayLike, *, negative: bool = False) -> Fit:
    """Fit a formula in one segment, and look neither for boundaries nor for a drift.

    The arguments and errors are those of :func:`fit`.
    """
    data = Data.of(formula, values, times, negative=negative)
    whole = data.segment(np.arange(len(data.times)), -math.inf, math.inf)
    return Fit(formula, None, (whole,), negative)


def _doubt(data: Data, segments: Sequence[FitSegment], tolerance: float) -> tuple[str, bool]:
    """Return why the formula may be wrong, and whether this could be found out."""
    if len(segments) > 1:
        many = len(segments) > MANY_SEGMENTS
        return (f"fits only in {len(segments)} segments: it may be wrong" if many else ""), True
    drift = find_drift(data, [np.arange(len(data.times))])
    if drift is None or not drift.is_clear or drift.amplitude <= tolerance:
        return "", drift is not None
    far = (
        f"{drift.amplitude:.0%}"
        if drift.amplitude < 1
        else f"a factor of {1 + drift.amplitude:.1f}"
    )
    return f"the errors drift by up to {far}: it may be the wrong formula", True


def _quantities(formula: Formula) -> list[str]:
    """Return what may have boundaries: the variables, and what each process has of them."""
    processes = processes_of(formula.variables)
    own = [f"{name}/{processes}" for name in formula.variables if processes not in (None, name)]
    return [*formula.variables, *own]


def _read_quantity(text: str) -> Formula:
    """Read an expression without parameters."""
    return read_formula(f"({text})*quantity[0]")


def _quantity(quantity: Formula, values: Values) -> Vector:
    return quantity.columns(values)[0][:, 0]
