"""A formula of times: chosen among sums of at most four usual terms, or given by the user.

Errors count in proportion to the time, and no coefficient is negative, since no computation takes a
negative time. Of all sums of terms each is scored by how well it fits, and by how many and how
usual terms it has. How well a sum predicts the largest measurements when it is fitted to the others
does not count: it chose no better formula of any table here. Scores are logarithms of probabilities
(as with the criterion of Schwarz for an unknown noise), so each sum has a weight. The formula has
the terms of all that have much weight, as far as they have at most four together, and is fitted
anew: where two sums are as good, both may be needed. The band holds most of all rivals.

At a break, such as the end of a cache, a term may begin: ``f[2]*n*above(n, 8192)``. It is one of
the terms to choose from, and less usual than the others.

Source: Gonzalez et al., section 3, the analyser llac, which fits a formula of the user, and
divides the measurements where the error varies most. Schwarz, Estimating the Dimension of a
Model, 1978.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bsplib.experiments.formula import Formula, FormulaError, read_formula
from bsplib.extras import optional_module
from bsplib.profiler.predict.laws import LEAST_VALUES
from bsplib.profiler.predict.terms import Term, column, library

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

MOST_TERMS = 4
CONFIDENCE = 0.9
"""The part of the true times that a band has to hold, unless another is asked for."""
_LEAST_NOISE = 0.01
"""No times are believed to be more exact than this: a formula of less misfit is no better."""
_BEAM = 40
"""How many sums of k terms go on to sums of k + 1, and are rivals in the end; with all, no table
here has another formula."""
_MUCH = 0.1
"""Weight from which on a sum is about as good as the best."""
_TERM = 2.0
"""By what score a sum loses for each term: there are dozens to choose it from."""
_STEEP = 8.0
"""By what score a sum loses that grows by one power more beyond the sizes than among them: what
bends only there was not seen."""
_PER_DOUBLING = 3.0
"""By how many times the noise the band grows for each doubling beyond the measurements: the one
number to which the bands are calibrated, on published, measured and simulated tables."""
_MOST_PER_DOUBLING = 0.25
"""By how much it grows at most: what more noise hides is in the hull of the rivals."""
_BREAK = 6.0
"""By what score a formula of the user with a break has to be better."""
_BEGINS = 4.0
"""How unusual a term is that begins at a break: its place was chosen, too."""


class Rival(NamedTuple):
    """A sum of terms with its weight among all."""

    formula: Formula
    coefficients: Vector
    weight: float

    def at(self, values: Values) -> Vector:
        """Return its value at some points."""
        columns, rest = self.formula.columns(values)
        shape = np.broadcast_shapes((1,), *(array.shape for array in values.values()))
        return np.broadcast_to(columns @ self.coefficients + rest, shape)


@dataclass(frozen=True)
class Fit:
    """A formula with its coefficients, and what it is worth."""

    formula: Formula
    coefficients: Vector
    noise: float
    """Standard deviation of the relative errors."""
    measured: dict[str, tuple[float, float]]
    """Least and greatest value of each variable."""
    rivals: tuple[Rival, ...] = field(default=(), repr=False)
    """The sums of terms of most weight, the best first; none for a formula of the user."""
    few: frozenset[str] = frozenset()
    """Variables with fewer than three values, by which no term is told from others."""
    covariance: Vector = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    """Of the coefficients."""
    breaks: tuple[str, ...] = ()
    """Where terms begin, as ``n > 8192``."""
    doubt: str = ""
    """Why a formula of the user may be wrong; otherwise empty."""
    misfit: float = 0.0
    """Root of the mean square of the relative errors."""
    worst: float = 0.0
    """Greatest relative error."""
    score: float = 0.0
    """Of the best of the rivals; the least of fits to equally many measurements is the best."""

    def predict(self, values: Mapping[str, ArrayLike]) -> Vector:
        """Return the value of the formula at some points.

        Raises:
            FormulaError: a variable has no value, or a term is not finite.
        """
        return Rival(self.formula, self.coefficients, 1.0).at(_arrays(values))

    def doublings(self, values: Mapping[str, ArrayLike]) -> Vector:
        """Return how many doublings lie between the measurements and some points.

        What is not known of the growth with one variable has nothing to do with that of another,
        and so their squares are added.
        """
        found: Any = np.zeros(1)
        for name, array in _arrays(values).items():
            low, high = self.measured.get(name, (0.0, 0.0))
            if low > 0:  # it is known, and what is fitted depends on it
                beyond = np.log2(np.maximum(array, 1e-300) / array.clip(low, high))
                found = np.hypot(found, beyond)
        return np.asarray(found)

    def band(
        self, values: Mapping[str, ArrayLike], confidence: float = CONFIDENCE
    ) -> tuple[Vector, Vector]:
        """Return the limits between which the true values are expected.

        Args:
            values: the points.
            confidence: the part of the true values that has to be inside.
        """
        arrays = _arrays(values)
        middle = np.log(np.maximum(self.predict(arrays), 1e-300))
        columns, _ = self.formula.columns(arrays)
        spread = np.einsum("nk,kl,nl->n", columns, self.covariance, columns) + 0 * middle
        known = self._few_are_within(arrays)
        each = np.where(
            known, min(_PER_DOUBLING * self.noise, _MOST_PER_DOUBLING), _MOST_PER_DOUBLING
        )
        reach = each * np.sqrt(1 + self.doublings(arrays) ** 2)
        reach = np.hypot(reach, np.log1p(2 * np.sqrt(np.maximum(spread, 0)) * np.exp(-middle)))
        reach *= NormalDist().inv_cdf((1 + confidence) / 2) / _NORMAL
        low, high = _hull(self.rivals, arrays, middle)
        below, above = np.hypot(middle - low, reach), np.hypot(high - middle, reach)
        return np.exp(middle - below), np.exp(np.minimum(middle + above, 700.0))

    def _few_are_within(self, values: Values) -> NDArray[np.bool_]:
        """Whether no variable with few values is beyond the measurements, at each point."""
        found: NDArray[np.bool_] = np.ones(1, bool)
        for name in self.few if self.rivals else ():
            found = found & (values[name] <= self.measured[name][1])
        return found


_NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def _hull(rivals: Sequence[Rival], values: Values, middle: Vector) -> tuple[Vector, Vector]:
    """Return the logarithms between which nine tenths of the weight of all rivals are."""
    low, high = middle.copy(), middle.copy()
    if not rivals:
        return low, high
    found = np.log(np.maximum([each.at(values) for each in rivals], 1e-300))
    weights = np.array([each.weight for each in rivals])
    order = np.argsort(found, axis=0)
    sums = np.cumsum(weights[order], axis=0) / weights.sum()
    for point in range(found.shape[1]):
        ends = np.searchsorted(sums[:, point], [0.05, 0.95]).clip(max=len(rivals) - 1)
        limits = found[order[ends, point], point]
        low[point], high[point] = min(low[point], limits[0]), max(high[point], limits[1])
    return low, high


def _arrays(values: Mapping[str, ArrayLike]) -> dict[str, Vector]:
    return {name: np.atleast_1d(np.asarray(each, float)) for name, each in values.items()}


# -- a formula whose terms are chosen -------------------------------------------------------------


def choose(values: Values, times: Vector, processes: str | None = None) -> Fit:
    """Choose a sum of terms for some measurements, and fit it.

    Args:
        values: values of the variables, one element for each measurement.
        times: what was measured, greater than 0.
        processes: the variable that is the number of processes, if one is.
    """
    terms = library(values, processes)
    if len(times) > MOST_TERMS:
        terms += _beginning(values, processes)
    rivals, text, score = _Search(values, times, terms, processes).scored()
    few = {name for name, array in values.items() if 1 < len(np.unique(array)) < LEAST_VALUES}
    fitted = _finished(read_formula(text), values, times, negative=False)
    return replace(fitted, rivals=rivals, few=frozenset(few), score=score)


class _Search:
    """Scores sums of terms, many at once: by the normal equations, where no coefficient is <= 0.

    Where the best coefficient of a term is not positive, the sum without it is as good.
    """

    def __init__(
        self, values: Values, times: Vector, terms: Sequence[Term], processes: str | None
    ) -> None:
        self._terms = terms
        columns = np.stack([column(term.text, values) for term in terms], axis=1)
        relative = columns / times[:, None]
        self._norm = np.linalg.norm(relative, axis=0)
        self._relative = relative / self._norm
        self._unusual = np.array([term.unusual for term in terms])
        self._beyond = [
            [_row(terms, values, name, factor) / self._norm for factor in (1.0, 1.1, 8.0, 8.8)]
            for name, array in values.items()
            if name != processes and np.ptp(array) > 0 and array.min() > 0
        ]

    def scored(self) -> tuple[tuple[Rival, ...], str, float]:
        """Return the sums of most weight, the sum of the terms of the best, and the least score."""
        found: list[tuple[float, tuple[int, ...], Vector]] = []
        sums = np.arange(len(self._terms))[:, None]
        for _ in range(1, min(MOST_TERMS, len(self._relative) - 1, len(self._terms)) + 1):
            factors = _solve(self._relative, sums)
            right = (factors > 0).all(axis=1)
            sums, factors = sums[right], factors[right]
            if not len(sums):
                break
            scores = self._scores(sums, factors)
            order = np.argsort(scores, kind="stable")
            found += [
                (scores[each], tuple(sums[each].tolist()), factors[each])
                for each in order[:_BEAM].tolist()
            ]
            best, every = sums[order[:_BEAM]], np.arange(len(self._terms))
            longer = np.insert(best.repeat(len(every), 0), 0, np.tile(every, len(best)), axis=1)
            longer.sort(axis=1)
            sums = np.unique(longer[(np.diff(longer) > 0).all(axis=1)], axis=0)
        if not found:  # a single measurement
            found = [(0.0, (0,), _solve(self._relative, np.array([[0]]))[0])]
        found.sort(key=lambda each: each[0])
        best_score = found[0][0]
        rivals = []
        together: set[int] = set()
        for score, chosen, factors in found[:_BEAM]:
            weight = math.exp((best_score - score) / 2)
            formula = read_formula(self._text(chosen))
            rivals.append(Rival(formula, factors / self._norm[[*chosen]], weight))
            if weight >= _MUCH and len({*together, *chosen}) <= MOST_TERMS:
                together.update(chosen)
        terms = sorted(together)
        fitted = optional_module("scipy.optimize").nnls(
            self._relative[:, terms], np.ones(len(self._relative))
        )[0]
        kept = itertools.compress(terms, fitted > 0)
        return tuple(rivals), self._text([*kept]), float(best_score)

    def _text(self, chosen: Sequence[int]) -> str:
        return _text([self._terms[term].text for term in chosen])

    def _scores(self, sums: NDArray[np.intp], factors: Vector) -> Vector:
        """Return the scores of some sums of equally many terms."""
        measurements, count = len(self._relative), sums.shape[1]
        errors = 1 - np.einsum("mk,nmk->mn", factors, self._relative[:, sums])
        squares = (errors**2).sum(axis=1)
        freedom = measurements - count + 1
        scores: Vector = freedom * np.log((squares + _LEAST_NOISE**2) / freedom)
        scores += _TERM * count + self._unusual[sums].sum(axis=1)
        for rows in self._beyond:
            sums_at = ((factors * row[sums]).sum(axis=1) for row in rows)
            here, near, far, farther = (np.log(np.maximum(each, 1e-300)) for each in sums_at)
            bend = (farther - far) - np.maximum(near - here, math.log(1.1))
            scores += _STEEP * np.maximum(bend / math.log(1.1), 0)
        return scores


def _solve(relative: Vector, sums: NDArray[np.intp]) -> Vector:
    """Return the coefficients of some sums of terms that fit best; 0 where there are none."""
    products, ones = relative.T @ relative, relative.sum(axis=0)
    matrix = products[sums[:, :, None], sums[:, None, :]]
    matrix = matrix + 1e-13 * np.eye(sums.shape[1])  # two terms may be equal at these points
    found = np.linalg.solve(matrix, ones[sums][..., None])[..., 0]
    return np.where(np.isfinite(found), found, 0.0)


def _row(terms: Sequence[Term], values: Values, name: str, factor: float) -> Vector:
    """Return all terms at the largest values, with one variable times a factor."""
    at = {
        other: np.array([array.max() * (factor if other == name else 1.0)])
        for other, array in values.items()
    }
    return np.array([column(term.text, at)[0] for term in terms])


def _text(terms: Sequence[str]) -> str:
    return " + ".join(
        f"f[{number}]"
        if term == "1"
        else f"f[{number}]*{term}"
        if not term.startswith("1/")
        else f"f[{number}]{term[1:]}"
        for number, term in enumerate(terms)
    )


def _beginning(values: Values, processes: str | None) -> Iterator[Term]:
    """Yield terms that begin at a break: what an element costs jumps to a new level there."""
    for name, array in values.items():
        if name == processes or np.ptp(array) == 0 or array.min() < 1:
            continue
        shared = processes is not None and np.ptp(values.get(processes, 0.0)) > 0
        of = f"({name}/{processes})" if shared else name
        distinct = np.unique(column(of, values))
        for place in distinct[1:-1]:
            for growth in (of, f"{of}*log2({of})"):
                yield Term(f"{growth}*above({of}, {place:.12g})", _BEGINS)


# -- a formula of the user ------------------------------------------------------------------------


def fit_formula(
    text: str,
    values: Values,
    times: Vector,
    *,
    negative: bool = False,
    divide: str | None = None,
    processes: str | None = None,
) -> Fit:
    """Fit a formula of the user.

    Args:
        text: the formula, as :mod:`bsplib.experiments.formula` reads it.
        values: values of the variables, one element for each measurement.
        times: what was measured, greater than 0.
        negative: whether coefficients may be negative.
        divide: a quantity, such as ``N/P``, at some value of which coefficients may change;
            default: any size, where the errors show a break.
        processes: the variable that is the number of processes, if one is.

    Raises:
        FormulaError: the formula cannot be read, or has more parameters than there are points.
    """
    formula = read_formula(text)
    if len(times) < len(formula.parameters):
        raise FormulaError(
            f"formula: {len(formula.parameters)} parameters need as many measurements, "
            f"and there are {len(times)}"
        )
    found = _finished(formula, values, times, negative=negative)
    quantities = [divide] if divide else _quantities(formula, processes)
    best, parts = found, [*formula.parts().values()]
    while len(best.coefficients) < len(times) - 1:
        rivals = [
            _finished(broken, values, times, negative=negative)
            for broken in _broken(best, parts, values, quantities)
        ]
        better = min(rivals, key=lambda each: _score(each, len(times)), default=best)
        if _score(better, len(times)) + (2.0 if best.breaks else _BREAK) > _score(best, len(times)):
            break
        best = better
    return _doubted(found, best, values, times, processes)


def _score(fitted: Fit, count: int) -> float:
    """Return the score of a fit without trials."""
    freedom = max(count - len(fitted.coefficients) + 1, 1)
    return 2 * freedom * math.log(fitted.noise) + len(fitted.coefficients)


def _quantities(formula: Formula, processes: str | None) -> list[str]:
    sizes = [name for name in formula.variables if name != processes]
    shared = processes is not None and processes in formula.variables
    return [*sizes, *(f"{size}/{processes}" for size in sizes if shared)]


def _broken(
    fitted: Fit, parts: Sequence[str], values: Values, quantities: Sequence[str]
) -> Iterator[Formula]:
    """Yield a formula with a further term that begins at a break.

    Once a term begins at a place, others may begin there only.
    """
    formula = fitted.formula
    number = max(int(name.rpartition("[")[2][:-1]) for name in formula.parameters) + 1
    stem = formula.parameters[0].rpartition("[")[0]
    for quantity in quantities:
        distinct = np.unique(read_formula(f"f[0]*({quantity})").columns(values)[0])
        for place, part in itertools.product(distinct[1:-2], parts):
            begins = f"({part})*above({quantity}, {place:.12g})"
            if begins not in formula.text and fitted.breaks in ((), _breaks(begins)):
                yield read_formula(f"{formula.text} + {stem}[{number}]*{begins}")


def _doubted(plain: Fit, best: Fit, values: Values, times: Vector, processes: str | None) -> Fit:
    """Return a fit of the user's formula: as it is with a doubt if other terms fit far better.

    These leave at most half of the errors: fewer terms alone are no reason to doubt a formula.

    Args:
        plain: the formula as it is.
        best: the same, perhaps with terms that begin at a break.
        values: values of the variables.
        times: what was measured.
        processes: the variable that is the number of processes, if one is.
    """
    other = choose(values, times, processes)
    is_better = _score(other, len(times)) + _BREAK <= _score(best, len(times))
    if not is_better or other.breaks or other.misfit > plain.misfit / 2:
        return best
    doubt = (
        f"it leaves errors of {plain.misfit:.1%}, and {other.formula.text} only {other.misfit:.1%}"
    )
    return replace(plain, doubt=doubt)


def _finished(
    formula: Formula,
    values: Values,
    times: Vector,
    *,
    negative: bool,
) -> Fit:
    """Fit the coefficients of a formula, and measure what is left."""
    columns, rest = formula.columns(values)
    columns = np.broadcast_to(columns, (len(times), columns.shape[1]))
    relative, wanted = columns / times[:, None], 1 - np.broadcast_to(rest, times.shape) / times
    norm = np.linalg.norm(relative, axis=0)
    norm[norm == 0] = 1.0
    if negative:
        found = np.linalg.lstsq(relative / norm, wanted, rcond=None)[0] / norm
    else:
        found = optional_module("scipy.optimize").nnls(relative / norm, wanted)[0] / norm
    errors = wanted - relative @ found
    used = np.flatnonzero(found)
    freedom = max(len(times) - len(used) + 1, 1)
    noise = math.sqrt((float(errors @ errors) + _LEAST_NOISE**2) / freedom)
    covariance = np.zeros((len(found), len(found)))
    inverse = np.linalg.pinv((relative / norm)[:, used])
    covariance[np.ix_(used, used)] = (
        noise**2 * (inverse @ inverse.T) / np.outer(norm, norm)[np.ix_(used, used)]
    )
    return Fit(
        formula,
        found,
        noise,
        {name: (float(array.min()), float(array.max())) for name, array in values.items()},
        covariance=covariance,
        breaks=_breaks(formula.text),
        misfit=math.sqrt(float(errors @ errors) / len(errors)),
        worst=float(np.abs(errors).max()),
    )


def _breaks(text: str) -> tuple[str, ...]:
    """Return where terms of a formula begin."""
    found = re.findall(r"above\((.+?), ([^ ()]+)\)", text)
    return tuple(dict.fromkeys(f"{quantity} > {place}" for quantity, place in found))
