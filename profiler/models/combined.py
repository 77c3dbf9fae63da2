"""Combined terms: which coefficients of a formula may be negative, and how far.

No part of a time is negative. But a formula may have a part in pieces: N (P-1)/P is N - N/P,
and then the coefficient of N/P is negative where that of N is positive. So two terms of a
formula may be combined into one, their difference, if that is 0 for one process and nowhere
negative. All coefficients of single and combined terms are not negative.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import Formula, FormulaError
from bsplib.profiler.models.terms import processes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

_COUNTS = np.array([1.0, 2, 3, 4, 6, 8, 16, 64, 1024, 2.0**20])
"""Numbers of processes at which a difference is checked; the first is one process."""
_MOST_POINTS = 64


def generators(formula: Formula, values: Mapping[str, Vector]) -> NDArray[np.float64]:
    """Return what must not be negative in a formula, as combinations of its parameters.

    Args:
        formula: the formula.
        values: values of its variables, one element for each measurement.

    Returns:
        An array with a row for each parameter and a column for each combination: first the
        parameters themselves, then the differences that may be taken for one term.
    """
    count = len(formula.parameters)
    found = [*np.eye(count)]
    columns = _columns(formula, values)
    if columns is not None:
        for one, other in itertools.permutations(range(count), 2):
            ratio = _ratio(columns[:, :, one], columns[:, :, other])
            if ratio is not None:
                combination = np.zeros(count)
                combination[one], combination[other] = 1.0, -ratio
                found.append(combination)
    return np.stack(found, axis=1)


def _columns(formula: Formula, values: Mapping[str, Vector]) -> NDArray[np.float64] | None:
    """Return the columns by number of processes and point; None if nothing can be combined."""
    processes = processes_of(formula.variables)
    if processes is None or len(formula.parameters) < 2:
        return None
    others = [name for name in formula.variables if name != processes]
    points = np.unique(np.stack([values[name] for name in (processes, *others)]), axis=1)
    points = points[:, :: max(points.shape[1] // _MOST_POINTS, 1)]
    grown = dict(zip(others, points[1:], strict=True))
    try:
        return np.stack([formula.columns({processes: count, **grown})[0] for count in _COUNTS])
    except FormulaError:  # a term is not defined for one process, such as 1/log2(P)
        return None


def _ratio(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Return how often the other term may be subtracted from the one; None if it may not.

    Args:
        one: a term, by number of processes and point.
        other: another.
    """
    if not (other > 0).all() or not (one[0] > 0).all():
        return None
    ratio = one[0] / other[0]
    if np.ptp(ratio) > 1e-9 * ratio[0]:
        return None
    least = one - ratio[0] * other
    if (least < -1e-9 * np.abs(one)).any() or not (least > 1e-9 * np.abs(one)).any():
        return None
    return float(ratio[0])
