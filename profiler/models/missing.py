"""Terms that a formula of the user seems to lack.

If the errors of a formula drift, terms of the library (:mod:`bsplib.profiler.models.terms`) are
added to it, one after the other: each time the one with which the larger measurements are predicted
best from the smaller ones, by the same score as in :mod:`bsplib.profiler.models.select`. The
formula stays the user's own: nothing is taken out of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import FormulaError, read_formula
from bsplib.profiler.models.least_squares import Data, logarithms
from bsplib.profiler.models.nested_regions import regions
from bsplib.profiler.models.select import PENALTY, parts_of
from bsplib.profiler.models.terms import Term, library

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Mask = NDArray[np.bool_]

_MOST = 3
"""Greatest number of terms that are added."""


@dataclass(frozen=True)
class MissingTerms:
    """Terms with which a formula predicts better."""

    terms: tuple[str, ...]
    formula: str
    """The formula with these terms, each with a parameter."""
    error: float
    """How far predictions from smaller regions are off without them, as a logarithm."""
    error_with: float
    """The same with them."""


def find_missing(
    text: str, values: Mapping[str, Vector], times: Vector, processes: str | None
) -> MissingTerms | None:
    """Look for terms that a formula lacks.

    Args:
        text: the formula; its coefficients are not negative.
        values: values of the variables, one element for each measurement.
        times: the measured times, greater than 0.
        processes: the variable that is the number of processes, if one is.

    Returns:
        The terms; None if none helps, or there are too few measurements to tell.
    """
    varied = {name: column for name, column in values.items() if np.ptp(column) > 0}
    if not varied:
        return None
    first = read_formula(text)
    folds = regions(varied, len(first.parameters) + _MOST + 1)
    if not folds:
        return None
    before = error = _error(text, values, times, folds)
    added: list[Term] = []
    terms = library(varied, processes)
    while len(added) < _MOST:
        tried = [
            (_error(_with(text, [*added, term]), values, times, folds), term)
            for term in terms
            if term not in added
        ]
        least, term = min(tried, key=lambda each: each[0] * math.exp(PENALTY * each[1].weight))
        if not least * math.exp(PENALTY * term.weight) < error:
            break
        added, error = [*added, term], least
    if not added:
        return None
    return MissingTerms(tuple(term.text for term in added), _with(text, added), before, error)


def _with(text: str, terms: Sequence[Term]) -> str:
    """Return a formula with further terms, whose parameters are named as the last one is."""
    name, _, number = read_formula(text).parameters[-1].rstrip("]").partition("[")
    taken = [
        int(each.rstrip("]").partition("[")[2])
        for each in read_formula(text).parameters
        if each.startswith(f"{name}[")
    ]
    following = max([int(number), *taken]) + 1
    more = [
        f"{name}[{following + place}]" + ("" if term.text == "1" else f"*{term.text}")
        for place, term in enumerate(terms)
    ]
    return " + ".join([text, *more])


def _error(text: str, values: Mapping[str, Vector], times: Vector, folds: Sequence[Mask]) -> float:
    """Return how far predictions from smaller regions are off, as in the choice of terms."""
    try:
        data = Data.of(read_formula(text), values, times, negative=False)
    except FormulaError:  # a term is not finite somewhere, or there are too many of them
        return math.inf
    every = np.arange(len(times))
    errors = [_miss(data, every[inside], every[~inside]) for inside in folds]
    errors.append(_miss(data, every, every))
    return float(np.array(errors) @ parts_of(folds))


def _miss(data: Data, inside: NDArray[np.intp], outside: NDArray[np.intp]) -> float:
    found, _ = data.solve(inside)
    logs = logarithms(data.rows[outside] @ found - data.ones[outside])
    return math.sqrt(float(logs @ logs) / len(logs))
