"""Quantities that depend on the data: a form for what is the same, and terms that data add.

Where keys are divided at random pivots, the greatest part is longer than n/p. By how much
follows from statistics: the greatest of p sums of random pieces grows with the square root of
their number and of log p. Where the processes have about as much each, and the standard deviation
of what they have grows as chance lets it, the h-relation follows from both. Otherwise one of
BSP's own terms is taken with up to two of such terms, none of them negative. They are chosen by
folds that leave out the largest runs, as :mod:`bsplib.profiler.models.select` does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.nested_regions import distance, regions
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.laws import Reach
from bsplib.profiler.models.nodes.terms import NodeTerm, column
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

ADDED = (
    "sqrt({0}/p)",
    "sqrt({0}*log2(p)/p)",
    "sqrt({0})",
    "sqrt({0}*log2(p))",
    "sqrt({0})*log2(p)",
    "{0}*sqrt(log2(p)/p)/p",
    "{0}*sqrt(log2(p))/p",
    "{0}*log2(p)/p",
    "{0}/p**1.5",
)
"""What random data add to a size that the processes share."""
LEAST = 4
_LEAST_TRIALS = 3
"""Number of trials in runs of three sizes on four numbers of processes."""
_MOST_ADDED = 2
_HEAVIEST = 4
_AS_GOOD = 1.05
_SAME_GROWTH = 0.25
"""Greatest difference of the powers of a size with which a quantity and its main term grow."""
_NAMED = (*range(1, 11), 12, 14, 16, 20, 24, 32, 48, 64)
"""How many random elements an element may name."""
_MOST_MISFIT_OF_SIMPLER = 1.5
"""A simpler form may fit all runs at most so much worse than the best one."""
_FAR_OFF = 1e-6
_RIVAL_SCORE, _RIVAL_MISFIT = 1.1, 1.1
"""Greatest errors of a form that fits about as well: those of the form taken times this."""
_MOST_RIVALS = 5
_LEAST_VALUE = 1e-300
_DEVIATIONS = ("sqrt({0}/p)", "{0}/p**1.5", "sqrt({0})", "{0}/p")
"""Standard deviations of shares of the data: of random goals, between pivots from a random sample
with as many elements for each process, between pivots from a regular sample, of other kinds."""
_GREATEST = "log2(p)**0.75"
_GREATEST_OF_TWO = 0.6
_MOST_LOG_EXCESS = 0.5
"""Greatest difference of the logarithm of the excess from that of normally distributed shares."""
_MOST_MISFIT = 2.0
"""Greatest mean square, in units of what chance explains."""
_ONE_TERM_DEVIATION = 0.02
"""Standard deviation of the logarithm of values that one term still describes."""


class Spread(NamedTuple):
    """A form fitted to quantities that depend on the data."""

    form: Form
    reach: Reach
    score: float
    """Mean over the folds of the root mean square of log(predicted / observed)."""
    rivals: tuple[Form, ...] = ()
    """Others that fit about as well."""


def added_terms(sizes: Sequence[str], *, with_processes: bool) -> list[str]:
    """Return the terms that data add."""
    if not with_processes:
        return [text for size in sizes for text in (f"sqrt({size})", f"sqrt({size}*log2({size}))")]
    return [form.format(size) for size in sizes for form in ADDED]


def fit_spread(
    values: Mapping[str, Vector],
    means: Vector,
    deviations: Vector,
    terms: Sequence[NodeTerm],
    added: Sequence[str],
) -> Spread | None:
    """Fit a form to means over seeds.

    Args:
        values: the variables, one element for each point.
        means: of the quantity at each point, over the seeds; greater than 0.
        deviations: relative standard deviation over the seeds at each point.
        terms: BSP's own terms.
        added: terms that data add.

    Returns:
        The form; None if there are too few points.
    """
    if len(means) < LEAST:
        return None
    mains = _mains(terms, added, values, means)
    most = min(_MOST_ADDED, max((len(means) - 2) // 3, 0))
    subsets = [_with_added(len(mains), len(mains) + len(added), count) for count in range(most + 1)]
    every = {**mains, **dict.fromkeys(added, 4)}
    return fit_terms(values, means, every, subsets, deviations, simpler=True)


def _mains(
    terms: Sequence[NodeTerm], added: Sequence[str], values: Mapping[str, Vector], means: Vector
) -> dict[str, int]:
    """Return BSP's own terms that grow with each size as the quantity does, with their weights.

    What data decide is a part of a size. Where a process needs what c random elements for each
    of its own name, it needs several of them once only: of each other process a part of
    1 - exp(-c / p).
    """
    light = {t.text: t.weight for t in terms if t.weight <= _HEAVIEST and _is_smooth(t.text)}
    sizes = [name for name in values if name != PROCESSES]
    if PROCESSES in values:
        light |= {
            f"{size}*(p - 1)*(1 - exp(-{named}/p))/p": _HEAVIEST
            for size in sizes
            for named in _NAMED
        }
    growths = [Growth(values, means, size) for size in sizes]
    return {
        text: weight
        for text, weight in light.items()
        if text not in added and all(_grows_so(text, values, each) for each in growths)
    }


def _is_smooth(text: str) -> bool:
    return not any(function in text for function in ("sqrt", "ceil", "floor", "min"))


def _grows_so(text: str, values: Mapping[str, Vector], growth: Growth) -> bool:
    if growth.power is None:
        return True
    own = growth.of(column(text, values, rounded=True))
    return abs(own - growth.power) <= _SAME_GROWTH


class Shares(NamedTuple):
    """How what is communicated is divided among the processes, one element for each point."""

    means: Vector
    """What a process sends in the mean."""
    deviations: Vector
    """Standard deviation of what the processes send or receive, in the same unit."""
    seeds: int
    """Number of runs at each point."""


def fit_shares(
    values: Mapping[str, Vector],
    means: Vector,
    deviations: Vector,
    shares: Shares,
    terms: Sequence[NodeTerm],
    added: Sequence[str],
) -> Spread | None:
    """Fit an h-relation as what a process sends in the mean, and how far the greatest is above.

    The mean hardly depends on the data: it is one of BSP's own terms. Where chance divides the
    data, the shares of the processes are about normally distributed. Their standard deviation is
    known from all processes, so much better than the greatest share of a few runs; the greatest
    of p is above the mean by about 0.6 log2(p)^0.75 of it.

    Args:
        values: the variables, one element for each point.
        means: of the h-relation at each point, over the seeds; greater than 0.
        deviations: relative standard deviation of the h-relation over the seeds at each point.
        shares: of the processes.
        terms: BSP's own terms.
        added: terms that data add.

    Returns:
        The form; None if there are too few points, or if it is not so, and no term alone gives
        the h-relation either.
    """
    if len(means) < LEAST or PROCESSES not in values:
        return None
    mains = _mains(terms, added, values, means)
    found = _above_the_mean(values, means, deviations, shares, mains)
    return found or _one_term(values, means, deviations, mains)


def _above_the_mean(
    values: Mapping[str, Vector],
    means: Vector,
    deviations: Vector,
    shares: Shares,
    mains: Mapping[str, int],
) -> Spread | None:
    """Return the mean of the shares and what the greatest one adds; None if it is not by chance."""
    if not (shares.means * shares.deviations).all():
        return None
    mean = _one_term(values, shares.means, deviations, mains)
    deviation = _of_chance(values, shares)
    if mean is None or deviation is None:
        return None
    factor, text = deviation
    usual = factor * column(text, values, rounded=True)
    weights = values[PROCESSES] - 1
    ratio = float(((means - shares.means) / usual) @ weights / weights.sum())
    more = fit_terms(values, means, {text: 4}, [_subsets(1, 1)], deviations, known=shares.means)
    if more is None or abs(math.log(max(ratio, _FAR_OFF))) > _MOST_LOG_EXCESS:
        return None
    form = Form(
        (*mean.form.coefficients, factor * ratio),
        (*mean.form.terms, text),
        rounded=True,
        weight=mean.form.weight + more.form.weight,
    )
    return more._replace(form=form)


def _of_chance(values: Mapping[str, Vector], shares: Shares) -> tuple[float, str] | None:
    """Return by how much the greatest share is usually above the mean, as a factor and a term.

    The logarithm of a standard deviation of p values is off by 1 / sqrt(2 (p - 1)).

    Returns:
        None if the standard deviation grows in none of the ways in which that of chance does.
    """
    weights = 2 * (values[PROCESSES] - 1) * shares.seeds
    found = []
    for size in (name for name in values if name != PROCESSES):
        for text in (form.format(size) for form in _DEVIATIONS):
            logs = np.log(shares.deviations / column(text, values, rounded=True))
            middle = float(logs @ weights / weights.sum())
            found.append((float((logs - middle) ** 2 @ weights), math.exp(middle), text))
    misfit, factor, text = min(found, default=(math.inf, 0.0, ""))
    if misfit > _MOST_MISFIT * len(weights):
        return None
    return _GREATEST_OF_TWO * factor, f"{text}*{_GREATEST}"


def fit_terms(
    values: Mapping[str, Vector],
    means: Vector,
    terms: Mapping[str, int],
    subsets: Sequence[NDArray[np.intp]],
    deviations: Vector,
    *,
    simpler: bool = False,
    known: Vector | None = None,
) -> Spread | None:
    """Choose terms with positive coefficients, by folds that leave out the largest runs.

    Args:
        values: the variables, one element for each point.
        means: the quantity at each point; greater than 0.
        terms: terms with their weights.
        subsets: numbers of the terms that are tried together, one row for each.
        deviations: relative standard deviation at each point.
        simpler: whether a simpler form is taken that is as good up to one standard error.
        known: the part of the means at each point that is known, to which the terms add.
    """
    wanted = np.ones(len(means)) if known is None else 1 - known / means
    texts, weights = list(terms), list(terms.values())
    rows = np.stack([column(text, values, rounded=True) for text in texts], axis=1) / means[:, None]
    folds = regions(values, LEAST)
    part = np.array([inside.mean() ** 2 for inside in folds] + [1.0])
    part /= part.sum()
    found: list[tuple[float, int, tuple[int, ...], Vector]] = []
    for some in subsets:
        errors = _scores(rows, wanted, some, folds)
        found += [
            (score, sum(weights[number] for number in chosen), tuple(chosen), error)
            for score, chosen, error in zip(
                (errors @ part).tolist(), some.tolist(), errors, strict=True
            )
            if math.isfinite(score)
        ]
    if not found:
        return None
    if simpler:
        most = min(float(error[-1]) for *_, error in found) * _MOST_MISFIT_OF_SIMPLER + _FAR_OFF
        found = [each for each in found if float(each[3][-1]) <= most]
    score, _, _, lead = min(found, key=lambda each: each[0])
    limit = score * _AS_GOOD
    score, weight, chosen, _ = min(
        (
            each
            for each in found
            if each[0] <= limit + simpler * _standard_error(each[3] - lead, part)
        ),
        key=lambda each: (each[1], each[0]),
    )

    def form_of(chosen: tuple[int, ...], weight: int) -> Form:
        factors = _solved(rows[:, list(chosen)], wanted)
        return Form(
            tuple(factors.tolist()), tuple(texts[n] for n in chosen), rounded=True, weight=weight
        )

    misfit = next(float(error[-1]) for _, _, some, error in found if some == chosen)
    rivals = [
        each
        for each in sorted(found, key=lambda each: each[0])
        if each[2] != chosen
        and each[0] <= score * _RIVAL_SCORE
        and float(each[3][-1]) <= misfit * _RIVAL_MISFIT + _FAR_OFF
    ]
    reach = _reach(values, rows[:, list(chosen)], wanted, folds, deviations)
    others = tuple(form_of(each[2], each[1]) for each in rivals[:_MOST_RIVALS])
    return Spread(form_of(chosen, weight), reach, score, others)


def _one_term(
    values: Mapping[str, Vector], means: Vector, deviations: Vector, terms: Mapping[str, int]
) -> Spread | None:
    """Return the term that gives all values but for a few percent; None if there is none."""
    best: tuple[float, float, str] | None = None
    for text in terms:
        ratios = np.log(means / np.maximum(column(text, values, rounded=True), _LEAST_VALUE))
        off, factor = float(ratios.std()), math.exp(float(ratios.mean()))
        if off <= _ONE_TERM_DEVIATION and (best is None or off < best[0]):
            best = off, factor, text
    if best is None:
        return None
    off, factor, text = best
    found = fit_terms(values, means, {text: terms[text]}, [_subsets(1, 1)], deviations)
    assert found is not None
    if round(factor) and abs(round(factor) / factor - 1) <= max(off, _FAR_OFF):  # bytes of a word
        found = found._replace(form=replace(found.form, coefficients=(float(round(factor)),)))
    return found


def _subsets(every: int, count: int) -> NDArray[np.intp]:
    return np.array(list(itertools.combinations(range(every), count)), np.intp)


def _standard_error(differences: Vector, part: Vector) -> float:
    """Return the standard error of the mean of the differences between two forms."""
    spread = part @ (differences - differences @ part) ** 2
    return float(np.sqrt(spread / max(len(differences) - 1, 1)))


def _with_added(mains: int, every: int, count: int) -> NDArray[np.intp]:
    """Return each of the main terms with so many of the others."""
    chosen = [
        (main, *more)
        for more in itertools.combinations(range(mains, every), count)
        for main in range(mains)
    ]
    return np.array(chosen, np.intp).reshape(-1, count + 1)


def _scores(
    rows: Matrix, wanted: Vector, subsets: NDArray[np.intp], folds: Sequence[NDArray[np.bool_]]
) -> Matrix:
    """Return the error of each subset in each fold and over all; infinite where one is not used."""
    errors = []
    everything = np.ones(len(rows), bool)
    for inside in [*folds, everything]:
        outside = everything if inside is everything else ~inside
        factors, used = _solved_all(rows[inside], wanted[inside], subsets)
        predicted = np.einsum("mkt,kt->km", rows[outside][:, subsets], factors)
        logs = np.log(np.maximum(predicted + (1 - wanted[outside]), _FAR_OFF))
        error = np.sqrt((logs**2).mean(axis=1))
        errors.append(np.where(used, error, np.inf) if inside is everything else error)
    return np.stack(errors, axis=1)


def _solved_all(
    rows: Matrix, wanted: Vector, subsets: NDArray[np.intp]
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Fit each subset of columns; return coefficients, and whether all are positive."""
    lengths = np.linalg.norm(rows, axis=0)
    scaled = rows / np.where(lengths > 0, lengths, 1)
    products, sums = scaled.T @ scaled, scaled.T @ wanted
    count = subsets.shape[1]
    square = products[subsets[:, :, None], subsets[:, None, :]] + 1e-11 * np.eye(count)
    factors = np.linalg.solve(square, sums[subsets][:, :, None])[:, :, 0]
    used = np.asarray((factors > 1e-6).all(axis=1))
    return np.maximum(factors, 0) / np.where(lengths > 0, lengths, 1)[subsets], used


def _solved(rows: Matrix, wanted: Vector) -> Vector:
    return np.asarray(_solved_all(rows, wanted, np.arange(rows.shape[1])[None, :])[0][0])


def _reach(
    values: Mapping[str, Vector],
    rows: Matrix,
    wanted: Vector,
    folds: Sequence[NDArray[np.bool_]],
    deviations: Vector,
) -> Reach:
    """Return how far predictions may be off, from those of the folds and from the seeds."""
    misfit = np.log(np.maximum(rows @ _solved(rows, wanted) + (1 - wanted), _FAR_OFF))
    noise = math.hypot(float(np.sqrt((misfit**2).mean())), float(np.sqrt((deviations**2).mean())))
    errors, distances = [], []
    for inside in folds:
        predicted = rows[~inside] @ _solved(rows[inside], wanted[inside]) + (1 - wanted[~inside])
        errors.append(np.abs(np.log(np.maximum(predicted, _FAR_OFF))))
        lesser, greater = (
            {name: array[side] for name, array in values.items()} for side in (inside, ~inside)
        )
        distances.append(distance(lesser, greater))
    return reach_of(noise, np.concatenate([[], *errors]), np.concatenate([[], *distances]))


def reach_of(noise: float, errors: Vector, distances: Vector) -> Reach:
    """Return the reach that covers 90% of the errors of trials.

    Args:
        noise: relative standard deviation of the observations.
        errors: absolute errors of trials, as logarithms.
        distances: of the points of the trials.
    """
    known = np.isfinite(distances)
    errors, distances = errors[known], distances[known]
    least = 2.0 * noise
    if len(errors) < _LEAST_TRIALS:
        return Reach(least, noise, calibrated=False)
    more = np.maximum(errors**2 - noise**2, 0).mean()
    growth = math.sqrt(float(more / max((distances**2).mean(), 1e-12)))
    units = errors / np.maximum(np.hypot(noise, growth * distances), 1e-9)
    level = min(math.ceil(0.9 * (len(units) + 1)) / len(units), 1.0)
    return Reach(least, noise, growth, float(np.quantile(units, level, method="higher")))
