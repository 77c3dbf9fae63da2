"""Formulas that fit equally, combined to one where this predicts what was left out better.

Of a table with several variables many formulas fit about equally, and each has terms that the
others lack. Then a formula with the terms of all of them is fitted, without negative coefficients,
so that most of its terms drop out. It is taken where it predicts measurements that were left out
better than the formula that :mod:`bsplib.profiler.models.select` took, and where it goes on beyond
the measurements as these formulas do: a sum of many terms may rise faster than each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.extras import optional_module
from bsplib.profiler.models.select import Choice, Rival, choose, points_beyond
from bsplib.profiler.models.terms import column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Values = Mapping[str, Vector]

optimize = optional_module("scipy.optimize")
_FEWEST = 16
"""Least number of measurements of which formulas are combined."""
_MOST_PARTS = 40
"""Greatest number of parts of the measurements that are left out in turn."""
_INSIDE = 0.9
"""Part of the points beyond the measurements at which the combination has to be between the least
and the greatest of the formulas that it combines."""
_LEAST = 1e-6
"""A prediction that is less than this times what was measured counts as this."""
_MOST_STEPS = 10_000


def choose_combined(values: Values, times: Vector, processes: str | None = None) -> Choice:
    """Choose the terms of a formula for times, from one formula or from all that fit equally.

    Args:
        values: values of the variables, one element for each measurement.
        times: the measured times, greater than 0.
        processes: the variable that is the number of processes; default: by its name.

    Raises:
        FormulaError: there are too few different points.
        MissingExtraError: scipy is not installed.
    """
    choice = choose(values, times, processes)
    varied = [name for name in values if np.ptp(values[name]) > 0]
    if len(varied) < 2 or len(times) < _FEWEST or not choice.rivals:
        return choice
    every = (choice.taken, *choice.rivals)
    texts = list(dict.fromkeys(term for rival in every for term in rival.terms))
    try:
        combination = _combination(every, texts, values, times)
    except RuntimeError:  # the fit did not end, as with many terms
        return choice
    if combination is None:
        return choice
    return replace(choice, taken=combination, rivals=every)


def _combination(
    every: Sequence[Rival], texts: list[str], values: Values, times: Vector
) -> Rival | None:
    """Return the formula with the terms of others, of which the first is to be exceeded."""
    taken = every[0]
    rows = _columns(texts, values, len(times)) / times[:, None]
    own = [texts.index(term) for term in taken.terms]
    known, found = (_error_of_left_out(some) for some in (rows[:, own], rows))
    if found >= known:
        return None
    coefficients = _fitted(rows)
    used = np.flatnonzero(coefficients)
    beyond = points_beyond(values)
    count = len(next(iter(beyond.values())))
    predicted = _columns(texts, beyond, count) @ coefficients
    others = np.stack([_columns(each.terms, beyond, count) @ each.coefficients for each in every])
    inside = (predicted >= others.min(axis=0)) & (predicted <= others.max(axis=0))
    if inside.mean() < _INSIDE:
        return None
    return Rival(
        tuple(texts[place] for place in used.tolist()),
        tuple(coefficients[used].tolist()),
        taken.score * found / known,
        taken.weight,
    )


def _columns(texts: Sequence[str], values: Values, count: int) -> Matrix:
    columns = [np.broadcast_to(column(text, values), (count,)) for text in texts]
    return np.stack(columns, axis=1)


def _error_of_left_out(rows: Matrix) -> float:
    """Return the root mean square of log(predicted / measured) of what is left out in turn.

    Args:
        rows: the terms divided by the measurements, a row for each of these.
    """
    parts = min(len(rows), _MOST_PARTS)
    part = np.random.default_rng(len(rows)).permutation(len(rows)) % parts
    logs = np.zeros(len(rows))
    for left_out in range(parts):
        outside = part == left_out
        predicted = rows[outside] @ _fitted(rows[~outside])
        logs[outside] = np.log(np.maximum(predicted, _LEAST))
    return float(np.sqrt((logs**2).mean()))


def _fitted(rows: Matrix) -> Vector:
    """Return the coefficients, none of them negative, with which the terms add up to 1.

    Raises:
        RuntimeError: the search does not end.
    """
    lengths = np.linalg.norm(rows, axis=0)
    lengths = np.where(lengths > 0, lengths, 1)
    found = optimize.nnls(rows / lengths, np.ones(len(rows)), maxiter=_MOST_STEPS)[0]
    return np.asarray(found / lengths)
