"""Quantities that depend on the data: a form for what is the same, and terms that data add.

Where keys are divided at random pivots, the greatest part is longer than n/p. By how much
follows from statistics: the greatest of p sums of random pieces grows with the square root of
their number and of log p. Where the processes have about as much each, and the standard deviation
of what they have grows as chance lets it, the h-relation follows from both. Otherwise one of
BSP's own terms is taken with up to two of such terms, none of them negative: those that
:mod:`bsplib.profiler.models.select` chooses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.models.band import Reach, reach_of, try_law
from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.nested_regions import regions
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.select import LEAST, Choice, Rival, Search, fold_errors, parts_of
from bsplib.profiler.models.terms import Term, column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

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
_MOST_ADDED = 2
_HEAVIEST = 4
_ADDED_WEIGHT = 4
_SAME_GROWTH = 0.25
"""Greatest difference of the powers of a size with which a quantity and its main term grow."""
_NAMED = (*range(1, 11), 12, 14, 16, 20, 24, 32, 48, 64)
"""How many random elements an element may name."""
_FAR_OFF = 1e-6
_RIVAL_SCORE = 1.15
"""Greatest score of a form that is about as good: that of the best one times this."""
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
    terms: Sequence[Term],
    added: Sequence[str],
    *,
    named: bool = True,
) -> Spread | None:
    """Fit a form to means over seeds.

    Args:
        values: the variables, one element for each point.
        means: of the quantity at each point, over the seeds; greater than 0.
        deviations: relative standard deviation over the seeds at each point.
        terms: BSP's own terms.
        added: terms that data add.
        named: whether elements may name random elements, of which a process needs each once.

    Returns:
        The form; None if there are too few points.
    """
    if len(means) < LEAST:
        return None
    mains = _mains(terms, added, values, means, named=named)
    most = 1 + min(_MOST_ADDED, max((len(means) - 2) // 3, 0))
    every = [Term(text, weight) for text, weight in mains.items()]
    every += [Term(text, _ADDED_WEIGHT) for text in added]
    choice = Search(every, values, means, most, rounded=True, alone=mains).choice()
    forms = forms_of(choice)
    reach = reach_of(try_law(values, columns_of(forms[0], values, means), deviations))
    return Spread(forms[0], reach, choice.taken.error, forms[1:])


def forms_of(choice: Choice) -> tuple[Form, ...]:
    """Return the form that was taken, and others that are about as good."""
    rivals = choice.equals(_RIVAL_SCORE, _MOST_RIVALS)
    return tuple(_form(each) for each in (choice.taken, *rivals))


def _form(chosen: Rival) -> Form:
    return Form(chosen.coefficients, chosen.terms, rounded=True, weight=chosen.weight)


def columns_of(form: Form, values: Mapping[str, Vector], means: Vector) -> NDArray[np.float64]:
    """Return the terms of a form, divided by what was observed."""
    columns = [column(text, values, rounded=True) for text in form.terms]
    return np.asarray(np.stack(columns, axis=1) / means[:, None])


def _mains(
    terms: Sequence[Term],
    added: Sequence[str],
    values: Mapping[str, Vector],
    means: Vector,
    *,
    named: bool,
) -> dict[str, float]:
    """Return BSP's own terms that grow with each size as the quantity does, with their weights.

    What data decide is a part of a size. Where a process needs what c random elements for each
    of its own name, it needs several of them once only: of each other process a part of
    1 - exp(-c / p).
    """
    light = {t.text: t.weight for t in terms if t.weight <= _HEAVIEST and _is_smooth(t.text)}
    sizes = [name for name in values if name != PROCESSES]
    if named and PROCESSES in values:
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
    terms: Sequence[Term],
    added: Sequence[str],
    *,
    named: bool = True,
) -> Spread | None:
    """Fit an h-relation as what a process sends in the mean, and how far the greatest is above.

    The mean hardly depends on the data: it is one of BSP's own terms. Where chance divides the
    data, the shares of the processes are about normally distributed. Their standard deviation is
    known from all processes, and therefore much better than the greatest share of a few runs; the
    greatest of p is above the mean by about 0.6 log2(p)^0.75 of it.

    Args:
        values: the variables, one element for each point.
        means: of the h-relation at each point, over the seeds; greater than 0.
        deviations: relative standard deviation of the h-relation over the seeds at each point.
        shares: of the processes.
        terms: BSP's own terms.
        added: terms that data add.
        named: as for :func:`fit_spread`.

    Returns:
        The form; None if there are too few points, or if it is not so, and no term alone gives
        the h-relation either.
    """
    if len(means) < LEAST or PROCESSES not in values:
        return None
    mains = _mains(terms, added, values, means, named=named)
    found = _above_the_mean(values, means, deviations, shares, mains)
    return found or _one_term(values, means, deviations, mains)


def _above_the_mean(
    values: Mapping[str, Vector],
    means: Vector,
    deviations: Vector,
    shares: Shares,
    mains: Mapping[str, float],
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
    more = _with_one(values, means, text, deviations, known=shares.means)
    if more is None or abs(math.log(max(ratio, _FAR_OFF))) > _MOST_LOG_EXCESS:
        return None
    form = Form(
        (*mean.form.coefficients, factor * ratio),
        (*mean.form.terms, text),
        rounded=True,
        weight=mean.form.weight + _ADDED_WEIGHT,
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


def _with_one(
    values: Mapping[str, Vector],
    means: Vector,
    text: str,
    deviations: Vector,
    known: Vector | None = None,
) -> Spread | None:
    """Fit one term to the means less their known part; None if its coefficient is not positive."""
    wanted = np.ones(len(means)) if known is None else 1 - known / means
    rows = (column(text, values, rounded=True) / means)[:, None]
    folds = regions(values, LEAST)
    errors, found = fold_errors(rows, np.zeros((1, 1), np.intp), folds, wanted)
    if not found[0, 0] > 0:
        return None
    reach = reach_of(try_law(values, rows, deviations, wanted))
    form = Form((float(found[0, 0]),), (text,), rounded=True)
    return Spread(form, reach, float(errors[0] @ parts_of(folds)))


def _one_term(
    values: Mapping[str, Vector], means: Vector, deviations: Vector, terms: Mapping[str, float]
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
    found = _with_one(values, means, text, deviations)
    if found is None:
        return None
    if round(factor) and abs(round(factor) / factor - 1) <= max(off, _FAR_OFF):  # bytes of a word
        found = found._replace(form=replace(found.form, coefficients=(float(round(factor)),)))
    return found._replace(form=replace(found.form, weight=terms[text]))
