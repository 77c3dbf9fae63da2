"""Coefficients that a boundary does not concern keep one value on both sides of it.

:mod:`bsplib.profiler.models.segmentation` gives each segment coefficients of its own. But a
boundary, such as the end of a cache, concerns the terms that touch memory and no others. So here
each coefficient, at each boundary, is joined to one value if the information criterion gets no
worse: one parameter less may cost that much of the error, and no more.

Source: Gonzalez et al., section 2.1, Tables 1 and 2: of A0 + A1 N + A2 N^2 only A2 has two values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.least_squares import Data, FitSegment, information, squares_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

_Parts = tuple[tuple[int, ...], ...]
"""For each coefficient and each segment the number of its value, from 0 on, never falling."""


@dataclass(frozen=True)
class _Joint:
    """All measurements in one fit, in which a coefficient has several values."""

    data: Data
    """The measurements, with a column for each value of each coefficient."""
    parts: _Parts
    found: Vector
    errors: Vector

    @classmethod
    def of(cls, data: Data, member: NDArray[np.intp], parts: _Parts) -> _Joint:
        """Fit all measurements.

        Args:
            data: the measurements.
            member: the segment of each.
            parts: which segments have a value in common.
        """
        columns, owners = [], []
        for number, own in enumerate(parts):
            for value in range(own[-1] + 1):
                inside = np.array(own)[member] == value
                columns.append(np.where(inside, data.rows[:, number], 0))
                owners.append(number)
        several = replace(
            data,
            rows=np.stack(columns, axis=1),
            generators=_generators(data.generators, np.array(owners), parts),
        )
        found, errors = several.solve(np.arange(len(data.times)))
        return cls(several, parts, found, errors)

    def score(self) -> float:
        """Return the information criterion; less is better."""
        count = len(self.data.times)
        return information(squares_of(self.errors), count, self.data.rows.shape[1])

    def column(self, parameter: int, segment: int) -> int:
        """Return the column of the value that a coefficient has in a segment."""
        before = sum(own[-1] + 1 for own in self.parts[:parameter])
        return before + self.parts[parameter][segment]


def _generators(single: Matrix, owners: NDArray[np.intp], parts: _Parts) -> Matrix:
    """Return what must not be negative: each value, and combinations of undivided coefficients."""
    count = len(owners)
    found = [*np.eye(count)]
    for column in single.T:
        used = np.flatnonzero(column)
        if len(used) > 1 and all(not parts[number][-1] for number in used):
            combination = np.zeros(count)
            for number in used:
                combination[np.flatnonzero(owners == number)[0]] = column[number]
            found.append(combination)
    return np.stack(found, axis=1)


def share(data: Data, segments: Sequence[FitSegment], quantity: Vector) -> list[FitSegment]:
    """Return the segments, with one value for each coefficient that needs no second one.

    Args:
        data: the measurements.
        segments: at least two, each with coefficients of its own.
        quantity: what separates the segments, one element for each measurement.
    """
    bounds = [segment.high for segment in segments[:-1]]
    member = np.searchsorted(bounds, np.broadcast_to(quantity, (len(data.times),)))
    apart = tuple(range(len(segments)))
    first = best = _Joint.of(data, member, (apart,) * data.rows.shape[1])
    while True:
        joined = [_Joint.of(data, member, parts) for parts in _one_less(best.parts)]
        closest = min(joined, key=_Joint.score, default=best)
        if closest is best or closest.score() > best.score():
            break
        best = closest
    if best is first:  # each segment has its own noise
        return list(segments)
    return _merged(best, member, segments)


def _one_less(parts: _Parts) -> list[_Parts]:
    """Return all ways to join the values of one coefficient at one boundary."""
    found = []
    for number, own in enumerate(parts):
        for value in range(own[-1]):
            joined = tuple(each - (each > value) for each in own)
            found.append((*parts[:number], joined, *parts[number + 1 :]))
    return found


def _merged(
    joint: _Joint, member: NDArray[np.intp], segments: Sequence[FitSegment]
) -> list[FitSegment]:
    """Return segments between the boundaries at which a coefficient changes."""
    found: list[FitSegment] = []
    first = 0
    for number in range(len(segments)):
        is_last = number == len(segments) - 1
        if is_last or any(own[number] != own[number + 1] for own in joint.parts):
            chosen = (member >= first) & (member <= number)
            found.append(
                _segment(joint, chosen, number, (segments[first].low, segments[number].high))
            )
            first = number + 1
    return _with_freedom(joint, found)


def _segment(
    joint: _Joint, chosen: NDArray[np.bool_], number: int, bounds: tuple[float, float]
) -> FitSegment:
    """Return a segment of the joint fit."""
    names = joint.data.formula.parameters
    columns = [joint.column(parameter, number) for parameter in range(len(names))]
    errors = joint.errors[chosen]
    variance = float(errors @ errors) / max(len(errors) - len(names), 1)
    return FitSegment(
        *bounds,
        {name: float(joint.found[column]) for name, column in zip(names, columns, strict=True)},
        int(chosen.sum()),
        math.sqrt(variance),
        float(np.abs(errors).max()),
        _covariance(joint)[np.ix_(columns, columns)],
        0,  # see _with_freedom
        squares_of(errors),
    )


def _covariance(joint: _Joint) -> Matrix:
    """Return the covariance of all values."""
    used = np.ones(len(joint.found), bool) if joint.data.negative else joint.found != 0
    rows = joint.data.rows[:, used]
    freedom = max(len(rows) - int(used.sum()), 1)
    found = np.zeros((len(used), len(used)))
    square = np.linalg.pinv(rows.T @ rows)
    found[np.ix_(used, used)] = square * float(joint.errors @ joint.errors) / freedom
    return found


def _with_freedom(joint: _Joint, segments: Sequence[FitSegment]) -> list[FitSegment]:
    """Return the segments with degrees of freedom that add up to those of the joint fit."""
    used = int(np.count_nonzero(joint.found)) if not joint.data.negative else len(joint.found)
    share_of = [segment.measurements / len(joint.data.times) for segment in segments]
    taken = np.diff(np.round(np.cumsum([0.0, *share_of]) * used)).astype(int)
    return [
        replace(segment, freedom=segment.measurements - int(count))
        for segment, count in zip(segments, taken, strict=True)
    ]
