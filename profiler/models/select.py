"""Terms chosen by the program: those by which the larger measurements are predicted best.

The library (:mod:`profiler.models.terms`) has about a hundred terms. A formula is built up
term by term; the most promising formulas of each length are kept. A formula is judged by
folds that leave out the largest: it is fitted inside a region (:mod:`profiler.models.nested`)
and predicts the measurements outside. Its score is the mean over the folds of the root mean
square of log(predicted / measured), where the misfit to all measurements counts as one fold.
A fold counts by the square of the part of the measurements that are inside: formulas with
more terms need more measurements, and the last prediction has all of them.
Among formulas that are as good as the best, up to one standard error of the difference, the
simplest is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from profiler.models.formula import FormulaError
from profiler.models.nested import regions
from profiler.models.terms import Term, library, processes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Subsets = NDArray[np.intp]
    """One row for each formula, with the numbers of its terms."""

LEAST = 4
"""Least number of different points at which the times are needed to choose terms."""
_MOST_TERMS = 6
_FOR_EACH_TERM = 4
"""So many measurements are needed for each term beyond the second."""
_BEAM = 12
_EXCHANGES, _EXCHANGED = 1, 4
"""So often, in so many of the best formulas, each term is exchanged for each other one."""
_AS_GOOD = 1.05
_FAR_OFF = 1e-6
"""A prediction that is less than this times the measured time counts as this."""


@dataclass(frozen=True)
class Rival:
    """A formula that was considered."""

    formula: str
    score: float
    """Mean over the folds of the root mean square of log(predicted / measured)."""
    weight: int
    """How complicated it is."""


@dataclass(frozen=True)
class Choice:
    """The terms that were chosen."""

    formula: str
    """In the syntax of :mod:`profiler.models.formula`."""
    score: float
    """As in :class:`Rival`."""
    rivals: tuple[Rival, ...]
    """Other formulas that are as good as the best, the better first."""
    considered: int
    """Number of formulas that were tried."""
    folds: int
    """Number of folds; 0 if there were too few values to leave out any."""


def choose(values: Mapping[str, Vector], times: Vector, processes: str | None = None) -> Choice:
    """Choose the terms of a formula.

    Args:
        values: values of the variables, one element for each measurement.
        times: the measured times, greater than 0.
        processes: the variable that is the number of processes; default: by its name.

    Raises:
        FormulaError: there are fewer than ``LEAST`` different points.
    """
    columns = [*values.values(), np.zeros(len(times))]
    points = np.unique(np.stack(columns), axis=1).shape[1]
    if points < LEAST:
        raise FormulaError(
            f"formula: {points} different points are too few to choose terms; measure at least "
            f"{LEAST}, or give a formula"
        )
    terms = library(values, processes or processes_of(list(values)))
    return _Search(terms, values, times).choice()


class _Search:
    """The search for a formula. Rows are divided by the times: so the value to fit is 1."""

    def __init__(self, terms: Sequence[Term], values: Mapping[str, Vector], times: Vector) -> None:
        columns = [np.broadcast_to(term.column(values), times.shape) for term in terms]
        rows = np.stack(columns, axis=1) / times[:, None]
        lengths = np.linalg.norm(rows, axis=0)
        usable = np.flatnonzero(np.isfinite(lengths) & (lengths > 0)).tolist()
        self._terms = [terms[number] for number in usable]
        self._rows = rows[:, usable] / lengths[usable]
        least = 2 if len(times) > LEAST else 1
        self._most = max(min(_MOST_TERMS, len(times) // _FOR_EACH_TERM), least)
        self._folds = regions(values, LEAST)
        weights = np.array([inside.mean() ** 2 for inside in self._folds] + [1.0])
        self._weights = weights / weights.sum()

    def choice(self) -> Choice:
        """Search, and return the choice."""
        found = self._search()
        best = min(found, key=lambda chosen: self._mean(found[chosen]))
        limit, lead = self._mean(found[best]) * _AS_GOOD, found[best]
        as_good = [
            chosen
            for chosen, folds in found.items()
            if self._mean(folds) <= limit + self._standard_error(folds - lead)
        ]
        taken = min(as_good, key=lambda each: (self._weight(each), self._mean(found[each])))
        rivals = sorted(
            (each for each in as_good if each != taken), key=lambda c: self._mean(found[c])
        )
        return Choice(
            self._formula(taken),
            self._mean(found[taken]),
            tuple(
                Rival(self._formula(each), self._mean(found[each]), self._weight(each))
                for each in rivals
            ),
            len(self._seen),
            len(self._folds),
        )

    def _search(self) -> dict[tuple[int, ...], Vector]:
        """Return the most promising formulas of each length, with their errors by fold."""
        found: dict[tuple[int, ...], Vector] = {}
        front: list[tuple[int, ...]] = [()]
        self._seen: set[tuple[int, ...]] = set()
        everything = range(len(self._terms))
        for _ in range(self._most):
            longer = {
                tuple(sorted((*chosen, number)))
                for chosen in front
                for number in everything
                if number not in chosen
            }
            kept = self._best(longer)
            for _ in range(_EXCHANGES):
                # A term that was the best one alone may not be among the best together.
                others = {
                    tuple(sorted((*chosen[:place], *chosen[place + 1 :], number)))
                    for chosen in list(kept)[:_EXCHANGED]
                    for place in range(len(chosen))
                    for number in everything
                    if number not in chosen
                }
                kept = self._best(others - self._seen, kept)
            front = list(kept)
            found |= kept
            if not front:
                break
        return found

    def _best(
        self,
        formulas: set[tuple[int, ...]],
        known: Mapping[tuple[int, ...], Vector] = MappingProxyType({}),
    ) -> dict[tuple[int, ...], Vector]:
        """Return the best of some formulas and of known ones, with their errors; best first."""
        kept = dict(known)
        if formulas:
            ordered = sorted(formulas)
            self._seen |= formulas
            errors, all_used = self._errors(np.array(ordered))
            means = np.where(all_used, errors @ self._weights, np.inf)
            best = np.argsort(means, kind="stable")[:_BEAM].tolist()
            kept |= {ordered[number]: errors[number] for number in best if all_used[number]}
        return dict(sorted(kept.items(), key=lambda item: self._mean(item[1]))[:_BEAM])

    def _mean(self, errors: Vector) -> float:
        return float(errors @ self._weights)

    def _standard_error(self, differences: Vector) -> float:
        """Return the standard error of the mean of the differences between two formulas."""
        spread = self._weights @ (differences - self._mean(differences)) ** 2
        return float(np.sqrt(spread / max(len(differences) - 1, 1)))

    def _errors(self, subsets: Subsets) -> tuple[Matrix, NDArray[np.bool_]]:
        """Return the error of each formula in each fold, and whether it uses all its terms."""
        errors = []
        for inside in self._folds:
            found = _solve(self._rows[inside], subsets)
            errors.append(_misfit(self._rows[~inside], subsets, found))
        found = _solve(self._rows, subsets)
        errors.append(_misfit(self._rows, subsets, found))
        return np.stack(errors, axis=1), np.asarray((found > 0).all(axis=1))

    def _weight(self, chosen: tuple[int, ...]) -> int:
        return sum(self._terms[number].weight for number in chosen)

    def _formula(self, chosen: tuple[int, ...]) -> str:
        by_weight = sorted(chosen, key=lambda number: self._terms[number].weight)
        texts = [self._terms[number].text for number in by_weight]
        return " + ".join(
            f"f[{place}]" if text == "1" else f"f[{place}]*{text}"
            for place, text in enumerate(texts)
        )


def _solve(rows: Matrix, subsets: Subsets) -> Matrix:
    """Fit each subset of columns to ones; coefficients that would be negative are 0.

    All subsets are solved at once by their normal equations. Where coefficients are negative,
    the most negative one is fixed at 0, and the rest is solved again.
    """
    products, sums = rows.T @ rows, rows.sum(axis=0)
    square = products[subsets[:, :, None], subsets[:, None, :]]
    right = sums[subsets]
    count = subsets.shape[1]
    ridge = 1e-12 * np.trace(square, axis1=1, axis2=2)[:, None, None] / count * np.eye(count)
    used = np.ones(right.shape, bool)
    each = np.arange(len(subsets))
    for _ in range(count + 1):
        both = used[:, :, None] & used[:, None, :]
        matrix = np.where(both, square, 0) + np.where(used, 0, 1)[:, :, None] * np.eye(count)
        found = np.linalg.solve(matrix + ridge, np.where(used, right, 0)[:, :, None])[:, :, 0]
        found = np.where(used, found, 0)
        worst = found.argmin(axis=1)
        negative = found[each, worst] < 0
        if not negative.any():
            break
        used[each[negative], worst[negative]] = False
    return np.asarray(np.maximum(found, 0))


def _misfit(rows: Matrix, subsets: Subsets, found: Matrix) -> Vector:
    """Return the root mean square of log(predicted / measured) of each formula."""
    predicted = np.einsum("nbk,bk->bn", rows[:, subsets], found)
    logs = np.log(np.maximum(predicted, _FAR_OFF))
    return np.asarray(np.sqrt((logs**2).mean(axis=1)))
