"""Terms chosen by the program: those by which the larger measurements are predicted best.

The choice is the same for times that a user measured, for the computation of a program's cost
centres, and for what depends on its data. Each has some dozens of terms
(:mod:`bsplib.profiler.models.terms`). A formula is built up
term by term; the most promising formulas of each length are kept. A formula is judged by
folds that leave out the largest: it is fitted inside a region
(:mod:`bsplib.profiler.models.nested_regions`) and predicts the measurements outside. Its error is
the mean over the folds of the root mean square of log(predicted / measured), where the misfit to
all measurements counts as one fold. A fold counts by the square of the part of the measurements
that are inside: formulas with more terms need more measurements, and the last prediction has all of
them. The score is the error times exp(``PENALTY`` times the weight of the terms): a complicated or
unusual formula has to predict better than a simple one.

Where no term explains more of the times than it would of noise, they are constant
(:mod:`bsplib.profiler.models.borne`).

A term that grows faster than a size times its logarithm is used only where the growth of the
times still rises up to the largest size, or is near to it there
(:mod:`bsplib.profiler.models.growth`).

Among formulas that are nearly as good as the best, the one is taken whose predictions beyond
the measurements are nearest to the median of all of them; if several are, the best of these.
A formula counts in the median by
(its score / the least score) to the power of minus half the number of measurements, as if the
errors were noise; but at most of -``_SHARPEST``, since the errors of a formula that is not
exact are alike, and many of them tell no more than a few.
The mean of these formulas was tried, too, and predicted worse: one that grows too fast
spoils it. So did a fit in which the larger measurements count more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from bsplib.experiments.formula import FormulaError
from bsplib.profiler.models.borne import terms_borne
from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.nested_regions import regions
from bsplib.profiler.models.terms import Term, library, processes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Subsets = NDArray[np.intp]
    """One row for each formula, with the numbers of its terms."""

LEAST = 4
"""Least number of different points at which the times are needed to choose terms."""
_MOST_TERMS = 8
_MEASUREMENTS_FOR_EACH_TERM = 3
"""Measurements that are needed for each term beyond the second."""
_BEAM = 12
_EXCHANGES, _EXCHANGED_FORMULAS = 1, 4
"""How often, and in how many of the best formulas, each term is exchanged for each other one."""
PENALTY = 0.15
"""How much less the error has to be for each unit of weight, as a logarithm."""
_LEAST_PART = 1e-6
"""Least part of the times that a term has to be."""
_STEP = 0.02
"""Formulas are as near to the median if they are so in steps of this, as a logarithm."""
_EXACT = 1e-4
"""Errors below this do not make a formula better."""
_AS_GOOD = 0.05
"""Least weight of a formula that is nearly as good, where the best one has the weight 1."""
_SHARPEST = 4.0
"""Greatest power by which worse formulas count less."""
_MOST_AS_GOOD = 40
_BEYOND = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Multiples of the greatest value of each variable at which formulas are compared."""
_MOST_POINTS = 1000
_FAR_OFF = 1e-6
"""A prediction that is less than this times the measured time counts as this."""


@dataclass(frozen=True)
class Rival:
    """A formula that was considered."""

    terms: tuple[str, ...]
    """The light ones first."""
    coefficients: tuple[float, ...]
    """Coefficient of each term; none is negative."""
    score: float
    """The error of its predictions, times the penalty for its terms."""
    weight: float
    """How complicated and how unusual its terms are."""

    @property
    def formula(self) -> str:
        """The formula in the syntax of :mod:`bsplib.experiments.formula`."""
        return " + ".join(
            f"f[{place}]" if text == "1" else f"f[{place}]*{text}"
            for place, text in enumerate(self.terms)
        )

    @property
    def error(self) -> float:
        """The error of its predictions, as a logarithm."""
        return self.score / math.exp(PENALTY * self.weight)


@dataclass(frozen=True)
class Choice:
    """The terms that were chosen."""

    taken: Rival
    rivals: tuple[Rival, ...]
    """Other formulas that are nearly as good as the best, the better first."""
    considered: int
    """Number of formulas that were tried."""
    folds: int
    """Number of folds; 0 if there were too few values to leave out any."""

    @property
    def formula(self) -> str:
        """The formula that was taken."""
        return self.taken.formula

    def equals(self, factor: float, most: int) -> list[Rival]:
        """Return the rivals whose score is at most that of the best times a factor."""
        least = min(each.score for each in (self.taken, *self.rivals))
        return [each for each in self.rivals if each.score <= factor * least][:most]


def choose(values: Mapping[str, Vector], times: Vector, processes: str | None = None) -> Choice:
    """Choose the terms of a formula for times.

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
            f"formula: {points} different {'point is' if points == 1 else 'points are'} too few to "
            f"choose terms; measure at least {LEAST}, or give a formula"
        )
    processes = processes or processes_of(list(values))
    sizes = [name for name in values if name != processes and np.ptp(values[name]) > 0]
    growths = [Growth(values, times, name) for name in sizes]
    terms = library(values, processes, levels=True)
    grow = terms_borne(relative(terms, values, times), 2) > 1
    usable = [
        term
        for term in (terms if grow else terms[:1])
        if all(growth.allows(term.column(values)) for growth in growths)
    ]
    least = 2 if len(times) > LEAST else 1
    most = max(min(_MOST_TERMS, len(times) // _MEASUREMENTS_FOR_EACH_TERM), least)
    return Search(usable, values, times, most if grow else 1).choice()


def parts_of(folds: Sequence[NDArray[np.bool_]]) -> Vector:
    """Return how much the error of each fold counts; the last is the misfit to everything."""
    parts = np.array([inside.mean() ** 2 for inside in folds] + [1.0])
    return np.asarray(parts / parts.sum())


def relative(
    terms: Sequence[Term], values: Mapping[str, Vector], measured: Vector, *, rounded: bool = False
) -> Matrix:
    """Return the terms divided by the measurements: a row for each of these."""
    columns = [
        np.broadcast_to(term.column(values, rounded=rounded), measured.shape) for term in terms
    ]
    return np.asarray(np.stack(columns, axis=1) / measured[:, None])


class Search:
    """The search for a formula. Rows are divided by what was measured: so the value to fit is 1."""

    def __init__(
        self,
        terms: Sequence[Term],
        values: Mapping[str, Vector],
        measured: Vector,
        most: int,
        *,
        rounded: bool = False,
        alone: Collection[str] = (),
    ) -> None:
        """Prepare the columns of the terms.

        Args:
            terms: the terms.
            values: the variables, one element for each measurement.
            measured: greater than 0.
            most: greatest number of terms of a formula.
            rounded: whether log2(p) is rounded up.
            alone: terms of which a formula has at most one.
        """
        rows = relative(terms, values, measured, rounded=rounded)
        lengths = np.linalg.norm(rows, axis=0)
        usable = np.flatnonzero(np.isfinite(lengths) & (lengths > 0))
        self._values = values
        self._terms = [terms[number] for number in usable.tolist()]
        self._lengths = lengths[usable]
        self._rows = rows[:, usable] / self._lengths
        self._rounded = rounded
        self._weights = np.array([term.weight for term in self._terms])
        self._most = most
        self._alone = {place for place, each in enumerate(self._terms) if each.text in alone}
        self._folds = regions(values, LEAST)
        self._parts = parts_of(self._folds)
        self._seen: set[tuple[int, ...]] = set()

    def choice(self) -> Choice:
        """Search, and return the choice."""
        found = self._search()
        ordered = sorted(found, key=found.__getitem__)[:_MOST_AS_GOOD]
        scores = np.array([found[each] for each in ordered])
        counts = (scores / scores[0]) ** -min(len(self._rows) / 2, _SHARPEST)
        taken = ordered[self._in_the_middle(ordered, counts)]
        as_good = [each for each, count in zip(ordered, counts, strict=True) if count >= _AS_GOOD]
        return Choice(
            self._formula(taken, found[taken]),
            tuple(self._formula(each, found[each]) for each in as_good if each != taken),
            len(self._seen),
            len(self._folds),
        )

    def _in_the_middle(self, formulas: Sequence[tuple[int, ...]], counts: Vector) -> int:
        """Return which of the best formulas predicts what is nearest to the median of all.

        Args:
            formulas: the formulas, the best first.
            counts: how much each counts.
        """
        points = points_beyond(self._values)
        shape = next(iter(points.values()), np.empty(0)).shape
        columns = np.stack(
            [
                np.broadcast_to(term.column(points, rounded=self._rounded), shape)
                for term in self._terms
            ],
            axis=1,
        )
        columns = columns[(columns >= 0).all(axis=1)]
        if not len(columns):
            return 0
        predicted = np.empty((len(columns), len(formulas)))
        for number, chosen in enumerate(formulas):
            predicted[:, number] = columns[:, list(chosen)] @ self._coefficients(chosen)
        logs = np.log(np.maximum(predicted, np.finfo(float).tiny))
        away = np.sqrt(((logs - _medians(logs, counts)[:, None]) ** 2).mean(axis=0))
        steps = (away / _STEP).round()
        return int(np.argmin(np.where(counts >= _AS_GOOD, steps, np.inf)))

    def _search(self) -> dict[tuple[int, ...], float]:
        """Return the most promising formulas of each length, with their scores."""
        found: dict[tuple[int, ...], float] = {}
        front: list[tuple[int, ...]] = [()]
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
                    for chosen in list(kept)[:_EXCHANGED_FORMULAS]
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
        known: Mapping[tuple[int, ...], float] = MappingProxyType({}),
    ) -> dict[tuple[int, ...], float]:
        """Return the best of some formulas and of known ones, with their scores; best first."""
        kept = dict(known)
        formulas = {each for each in formulas if len(self._alone.intersection(each)) <= 1}
        if formulas:
            ordered = sorted(formulas)
            self._seen |= formulas
            scores = self._scores(np.array(ordered))
            best = np.argsort(scores, kind="stable")[:_BEAM].tolist()
            kept |= {ordered[each]: float(scores[each]) for each in best if scores[each] < np.inf}
        return dict(sorted(kept.items(), key=lambda item: item[1])[:_BEAM])

    def _scores(self, subsets: Subsets) -> Vector:
        """Return the score of each formula; infinite if it does not use all its terms."""
        errors, found = fold_errors(self._rows, subsets, self._folds)
        scores = (errors @ self._parts + _EXACT) * np.exp(
            PENALTY * self._weights[subsets].sum(axis=1)
        )
        return np.where((found > _LEAST_PART).all(axis=1), scores, np.inf)

    def _coefficients(self, chosen: Sequence[int]) -> Vector:
        places = list(chosen)
        (found,) = _solve(self._rows, np.array([places]))
        return np.asarray(found / self._lengths[places])

    def _formula(self, chosen: tuple[int, ...], score: float) -> Rival:
        by_weight = sorted(chosen, key=lambda number: self._terms[number].weight)
        return Rival(
            tuple(self._terms[number].text for number in by_weight),
            tuple(self._coefficients(by_weight).tolist()),
            score,
            sum(self._terms[number].weight for number in chosen),
        )


def fold_errors(
    rows: Matrix,
    subsets: Subsets,
    folds: Sequence[NDArray[np.bool_]],
    wanted: Vector | None = None,
) -> tuple[Matrix, Matrix]:
    """Return the errors of formulas in predictions from smaller regions.

    Args:
        rows: the terms, a row for each measurement, divided by it.
        subsets: the terms of each formula.
        folds: the regions, each as a mask.
        wanted: what the terms have to give for each measurement; default: 1.

    Returns:
        The root mean square of log(predicted / measured) of each formula outside of each fold and,
        last, of its misfit to everything; and the coefficients for everything.
    """
    wanted = np.ones(len(rows)) if wanted is None else wanted
    errors = []
    for inside in folds:
        found = _solve(rows[inside], subsets, wanted[inside])
        errors.append(_misfit(rows[~inside], subsets, found, wanted[~inside]))
    found = _solve(rows, subsets, wanted)
    errors.append(_misfit(rows, subsets, found, wanted))
    return np.stack(errors, axis=1), found


def points_beyond(values: Mapping[str, Vector]) -> dict[str, Vector]:
    """Return points of which at least one variable is greater than all that were measured."""
    axes, lengths = [], []
    for column in values.values():
        ordered, factors = np.sort(column), np.array(_BEYOND)
        middle = ordered[len(ordered) // 2]
        axes.append(np.unique([middle, *(ordered[-1] * factors)]))
        lengths.append(len(axes[-1]))
    every = np.arange(math.prod(lengths))
    every = every[:: -(-len(every) // _MOST_POINTS)]
    places = np.unravel_index(every, lengths) if lengths else ()
    points = {name: axis[at] for name, axis, at in zip(values, axes, places, strict=True)}
    beyond = np.zeros(len(every), bool)
    for name, column in points.items():
        beyond |= column > values[name].max()
    return {name: column[beyond] for name, column in points.items()}


def _medians(rows: Matrix, counts: Vector) -> Vector:
    """Return the median of each row, where each column has a weight."""
    order = np.argsort(rows, axis=1)
    sums = np.cumsum(counts[order], axis=1)
    middle = (sums < sums[:, -1:] / 2).sum(axis=1)
    each = np.arange(len(rows))
    return np.asarray(rows[each, order[each, middle]])


def fitted(rows: Matrix, wanted: Vector) -> Vector:
    """Return the coefficients of all columns, none of them negative, for what they have to give."""
    lengths = np.linalg.norm(rows, axis=0)
    lengths = np.where(lengths > 0, lengths, 1)
    (found,) = _solve(rows / lengths, np.arange(rows.shape[1])[None, :], wanted)
    return np.asarray(found / lengths)


def _solve(rows: Matrix, subsets: Subsets, wanted: Vector | None = None) -> Matrix:
    """Fit each subset of columns to what they have to give; no coefficient is negative.

    All subsets are solved at once by their normal equations. Where coefficients are negative,
    the most negative one is fixed at 0, and the rest is solved again.
    """
    products = rows.T @ rows
    sums = rows.sum(axis=0) if wanted is None else rows.T @ wanted
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


def _misfit(rows: Matrix, subsets: Subsets, found: Matrix, wanted: Vector) -> Vector:
    """Return the root mean square of log(predicted / measured) of each formula."""
    predicted = np.einsum("nbk,bk->bn", rows[:, subsets], found) + (1 - wanted)
    logs = np.log(np.maximum(predicted, _FAR_OFF))
    return np.asarray(np.sqrt((logs**2).mean(axis=1)))
