"""Divisions of measurements into segments, each with coefficients of its own.

A boundary is a jump in a constant of the machine, for example where the data no longer fit
into a cache. A division counts only if

- the remaining error is less than chance explains: by the Bayesian information criterion;
- each side of a boundary has at least ``_LEAST_VALUES`` values of the dividing quantity;
- inside the segments the errors do not drift (:mod:`bsplib.profiler.models.error_drift`);
- it pays: without the largest measurements, it predicts them better than one segment does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.error_drift import find_drift
from bsplib.profiler.models.least_squares import information, logarithms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.models.least_squares import Data, FitSegment

    Vector = NDArray[np.float64]

_MOST_SEGMENTS = 8
_LEAST_VALUES = 3
_MOST_LEFT_OUT = 2


class Divider:
    """Divides measurements into segments along one quantity."""

    def __init__(self, data: Data, quantity: Vector, tolerance: float) -> None:
        self._data = data
        self._quantity = np.broadcast_to(quantity, (len(data.times),))
        self._tolerance = tolerance
        # Least number of measurements in a segment: two more than parameters.
        self._least = len(data.formula.parameters) + 2

    def segments(self) -> list[FitSegment]:
        """Return the segments in the order of the quantity; one if it is not divided.

        A boundary may be an improvement only together with a second one. So divide up to
        the greatest number of segments, and take the best division that was found.
        """
        whole = self._data.segment(np.arange(len(self._data.times)), -math.inf, math.inf)
        best = self._best()
        return best if len(best) > 1 and self._are_jumps(best) and self._pays(best) else [whole]

    def _are_jumps(self, segments: Sequence[FitSegment]) -> bool:
        """Tell whether the division explains more than a drift does, and leaves none."""
        drift = find_drift(self._data, [np.arange(len(self._data.times))])
        if drift is not None and drift.information < score(segments, self._data):
            return False
        inside = find_drift(self._data, self._members(segments, self._quantity))
        return inside is None or not inside.is_clear

    def _pays(self, segments: Sequence[FitSegment]) -> bool:
        """Tell whether the division predicts the measurements with the greatest values better."""
        distinct = np.unique(self._quantity[self._quantity > segments[-1].low])
        count = len(self._data.formula.parameters)
        for left_out in range(min(_MOST_LEFT_OUT, len(distinct) - 2), 0, -1):
            limit = float(distinct[-1 - left_out])
            inside = np.flatnonzero(self._quantity <= limit)
            outside = np.flatnonzero(self._quantity > limit)
            last = inside[self._quantity[inside] > segments[-1].low]
            if len(last) >= count:
                return self._miss(last, outside) < self._miss(inside, outside)
        return False

    def _miss(self, inside: NDArray[np.intp], outside: NDArray[np.intp]) -> float:
        """Return the squares of the errors outside, of a fit to the measurements inside."""
        found, _ = self._data.solve(inside)
        logs = logarithms(self._data.rows[outside] @ found - self._data.ones[outside])
        return float(logs @ logs)

    @staticmethod
    def _members(segments: Sequence[FitSegment], quantity: Vector) -> list[NDArray[np.intp]]:
        return [
            np.flatnonzero((quantity > segment.low) & (quantity <= segment.high))
            for segment in segments
        ]

    def _best(self) -> list[FitSegment]:
        """Return the best division that was found, or one segment."""
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
            best = min(best, list(segments), key=lambda choice: score(choice, self._data))
        return best

    def _divide(
        self,
        members: list[NDArray[np.intp]],
        segments: list[FitSegment],
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

    def _cut(self, chosen: NDArray[np.intp], segment: FitSegment) -> float | None:
        """Return where to divide a segment; None if it fits or has too few measurements."""
        if segment.worst <= self._tolerance:
            return None
        quantity = self._quantity[chosen]
        squares = {
            cut: sum(self._data.squares(chosen[side]) for side in (quantity <= cut, quantity > cut))
            for cut in np.unique(quantity)[_LEAST_VALUES - 1 : -_LEAST_VALUES].tolist()
            if self._least <= (quantity <= cut).sum() <= len(chosen) - self._least
        }
        return min(squares, key=squares.__getitem__) if squares else None


def _parameters(data: Data, cuts: int) -> int:
    """Return the number of parameters that boundaries count for.

    For each these are the coefficients of the new segment, the position of the boundary, and
    three more, because the position is the best of all: with fewer, noise alone would divide
    one set of measurements in ten. A second boundary is tried in two segments, and has
    more chances to fit the noise: it counts for two more, and so does each further one.
    """
    return cuts * (int(data.rows.shape[1]) + 4) + 2 * max(cuts - 1, 0)


def score(segments: Sequence[FitSegment], data: Data) -> float:
    """Return the information criterion of a list of segments; less is better."""
    squares = sum(segment.squares for segment in segments)
    return information(squares, len(data.times), _parameters(data, len(segments) - 1))
