"""The runs that would settle what the runs at hand do not tell: the smallest that do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import FormulaError
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.laws import Point, Where
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

_DIFFERENT = 1e-6
_LONG = 2**17
_ENOUGH_VALUES = 5
"""Number of values of a variable that tell forms of three terms from others."""


def between_forms(forms: Sequence[Form], values: Mapping[str, Vector]) -> tuple[Point, ...]:
    """Return the smallest new run at which forms differ; nothing if none is found."""
    known = {name: set(array.tolist()) for name, array in values.items()}
    candidates = sorted(
        _candidates(values),
        key=lambda point: (sum(point[name] not in known[name] for name in point), _cost(point)),
    )
    for point in candidates:
        arrays = {name: np.array([value]) for name, value in point.items()}
        try:
            found = [float(form.at(arrays)[0]) for form in forms]
        except FormulaError:
            continue
        if _all_differ(found):
            return (point,)
    return ()


def _all_differ(found: Sequence[float]) -> bool:
    least = _DIFFERENT * max(map(abs, found))
    return all(abs(one - other) > least for one, other in itertools.combinations(found, 2))


def more_values(values: Mapping[str, Vector], row: Vector) -> tuple[Point, ...]:
    """Return runs with further values of the variables on which a quantity depends."""
    found: list[Point] = []
    smallest = {name: float(array.min()) for name, array in values.items()}
    for name, array in values.items():
        known = sorted(set(array.tolist()))
        if len(known) < _ENOUGH_VALUES and depends(values, row, name):
            new = list(dict.fromkeys(_further(name, known)))[: _ENOUGH_VALUES - len(known)]
            found += [{**smallest, name: value} for value in new]
    return tuple(found)


def depends(values: Mapping[str, Vector], row: Vector, name: str) -> bool:
    """Whether a quantity changes with a variable while the others stay the same."""
    if len(set(values[name].tolist())) == 1:
        return True
    others = [array.tolist() for other, array in values.items() if other != name]
    by_rest: dict[tuple[float, ...], list[float]] = {}
    rests = list(zip(*others, strict=True)) if others else [()] * len(row)
    for rest, value in zip(rests, row.tolist(), strict=True):
        by_rest.setdefault(rest, []).append(value)
    return any(max(found) > min(found) for found in by_rest.values())


def _candidates(values: Mapping[str, Vector]) -> list[Point]:
    each = {}
    for name, array in values.items():
        known = sorted(set(array.tolist()))
        each[name] = [known[0], *_further(name, known)]
    here = set(zip(*(array.tolist() for array in values.values()), strict=True))
    points = itertools.product(*each.values())
    return [dict(zip(each, point, strict=True)) for point in points if point not in here]


def _further(name: str, known: Sequence[float]) -> list[float]:
    """Return values of a variable that no run has, those between first."""
    between = [
        2.0 ** round(math.log2(math.sqrt(low * high)))
        for low, high in itertools.pairwise(known)
        if low > 0
    ]
    beyond = [2 * known[-1], 4 * known[-1], 8 * known[-1]]
    below = [known[0] / 2] if name != PROCESSES and known[0] >= 4 else []
    return [value for value in (*between, *beyond, *below) if value not in known and value >= 1]


def at_a_bound(bounds: Sequence[Where], values: Mapping[str, Vector]) -> tuple[Point, ...]:
    """Return the smallest new runs that tell more of a bound.

    One is between the runs on both sides of it. If the runs can be divided by bounds of several
    quantities, the other is on one side of some of them, and on the other side of the others.

    Args:
        bounds: the bounds by which the runs can be divided.
        values: the variables of the runs.
    """
    fine = {
        name: [
            factor * 2.0**power
            for power in range(_power(array.min()), _power(array.max()) + 4)
            for factor in (1.0, 1.5)
            if factor == 1.0 or name != PROCESSES
        ]
        for name, array in values.items()
    }
    points = [dict(zip(fine, point, strict=True)) for point in itertools.product(*fine.values())]
    found: list[Point] = []
    for wanted in ({None}, {True, False}):
        for point in sorted(points, key=_cost):
            sides = {where.holds(point) for where in bounds}
            if sides >= wanted:
                found += [point] if point not in found else []
                break
    return tuple(found)


def _power(value: float) -> int:
    return math.floor(math.log2(max(value, 1.0)))


def _cost(point: Point) -> float:
    return math.prod(max(value, 1.0) for value in point.values())


def words(points: Sequence[Point]) -> str:
    """Return runs as text, as in ``n = 1024, p = 8; n = 1024, p = 16``."""
    return "; ".join(
        ", ".join(f"{name} = {number(value)}" for name, value in point.items()) for point in points
    )


def number(value: float) -> str:
    """Return a value of a variable as text; large powers of two as in ``2^30``."""
    if not value.is_integer():
        return f"{value:g}"
    whole = int(value)
    if whole >= _LONG and whole & (whole - 1) == 0:
        return f"2^{whole.bit_length() - 1}"
    return str(whole)
