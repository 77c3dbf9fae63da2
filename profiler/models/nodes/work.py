"""Computation of a call chain: a formula fitted to typical times, with a band.

The formula has up to three of the terms of :mod:`bsplib.profiler.models.terms`, which
:mod:`bsplib.profiler.models.select` chooses. The trials of all chains tell how far it may be off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from bsplib.profiler.models.band import Reach, Trials, pooled, try_law
from bsplib.profiler.models.borne import allows, power_beside_constant, terms_borne
from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.laws import EXACT, FITTED, REFUSED, Law, Piece, Where
from bsplib.profiler.models.nodes.settle import more_values
from bsplib.profiler.models.nodes.spread import columns_of, forms_of
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.select import LEAST, Search, relative
from bsplib.profiler.models.terms import Term, library

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

T = TypeVar("T")

USUAL_GROWTH = 1.0
"""Where the runs are too few for trials: how far the logarithm of a computation is off beyond them,
for each width of their range. So it was in 90% of 67 predictions of sorts and Fourier transforms
at most one width beyond four or five runs of real processes: memory and caches behave otherwise
there."""
REAL_GROWTH = 0.2
"""The least growth where real processes were timed, even if trials inside of the runs show less:
these cannot show what caches, memory and the prediction of branches do beyond them. With it the
bands held the time of six of eight programs at 8 times the largest size of their runs."""
_MOST_TERMS = 3
_ENOUGH = 6
"""Runs of several processes that are enough to be fitted without those of one process."""
_MUCH_BETTER, _SLIGHT = 2.0, 0.05
"""How much greater a misfit has to be, as a factor and beyond it, to tell one process apart."""
_POINTS_FOR_EACH_TERM = 3
"""Points that are needed for each term beyond the first."""


class FittedWork(NamedTuple):
    """A law of computation, with the trials of its predictions."""

    law: Law
    trials: Trials


def fit_works(
    works: Mapping[T, Vector], values: Values, varied: Values, least_growth: float = 0.0
) -> dict[T, Law]:
    """Fit the computation of each chain of a program.

    Args:
        works: computation at each point, by chain.
        values: the variables, one element for each point.
        varied: the variables that have several values.
        least_growth: of the bands beyond the runs, as :attr:`Reach.growth` counts.
    """
    found = {chain: _fit(values, seconds, varied) for chain, seconds in works.items()}
    tried = {chain: fit for chain, fit in found.items() if isinstance(fit, FittedWork)}
    reaches = pooled([fit.trials for fit in tried.values()])
    laws = {chain: law for chain, law in found.items() if isinstance(law, Law)} | {
        chain: replace(fit.law, reach=_usual(reach, least_growth))
        for (chain, fit), reach in zip(tried.items(), reaches, strict=True)
    }
    return {chain: laws[chain] for chain in works}


def fit_work(values: Values, seconds: Vector, varied: Values) -> Law:
    """Fit the computation of a single chain; the arguments are those of :func:`fit_works`."""
    return fit_works({"": seconds}, values, varied)[""]


def _fit(values: Values, seconds: Vector, varied: Values) -> FittedWork | Law:
    if not seconds.any():
        return Law(EXACT, (Piece((ZERO,)),))
    used = seconds > 0
    if used.sum() < LEAST:
        return _of_few(values, seconds)
    inside = {name: array[used] for name, array in varied.items()}
    return _several_or_one(inside, seconds[used])


def _several_or_one(values: Values, seconds: Vector) -> FittedWork:
    """Fit one formula, or another one for one process alone, which may compute other things."""
    whole = _fitted(values, seconds)
    several = values.get(PROCESSES, np.ones(1)) > 1
    if several.all() or several.sum() < _ENOUGH or not several.any():
        return whole
    part = _fitted({name: column[several] for name, column in values.items()}, seconds[several])
    if part.trials.noise * _MUCH_BETTER + _SLIGHT > whole.trials.noise:
        return whole
    alone = {name: column[~several] for name, column in values.items() if name != PROCESSES}
    alone = {name: column for name, column in alone.items() if np.ptp(column) > 0}
    if len(seconds) - several.sum() < LEAST or not alone:
        form = Form((float(np.median(seconds[~several])),), ("1",), rounded=True, weight=1)
        own: tuple[Piece, ...] = (Piece((form,)),)
    else:
        own = _fitted(alone, seconds[~several]).law.pieces
    sides = (Where(PROCESSES, 1.0, 2.0, above=above) for above in (True, False))
    pieces = [
        replace(piece[0], where=(side,))
        for piece, side in zip((part.law.pieces, own), sides, strict=True)
    ]
    return part._replace(law=replace(part.law, pieces=tuple(pieces)))


def _fitted(values: Values, seconds: Vector) -> FittedWork:
    """Fit a formula to computation that is nowhere 0."""
    terms = library(values, PROCESSES, between=False)
    rows = relative(terms, values, seconds, rounded=True)
    most = terms_borne(rows, min(_MOST_TERMS, 1 + (len(seconds) - 1) // _POINTS_FOR_EACH_TERM))
    usable = supported(terms, values, seconds) if most > 1 else terms[:1]
    forms = forms_of(Search(usable, values, seconds, most, rounded=True).choice())
    none = np.zeros(len(seconds))
    trials = try_law(values, columns_of(forms[0], values, seconds), none)
    return FittedWork(Law(FITTED, (Piece(forms),)), trials)


def _usual(reach: Reach, least_growth: float) -> Reach:
    """Return a reach that widens as usual ones do, where trials were too few."""
    if not reach.calibrated:
        return replace(reach, growth=USUAL_GROWTH, factor=1.0)
    return replace(reach, growth=max(reach.growth, least_growth / reach.factor))


def supported(terms: Sequence[Term], values: Values, seconds: Vector) -> list[Term]:
    """Return the terms whose growth the differences between the largest runs allow.

    Args:
        terms: the terms.
        values: the variables that vary.
        seconds: computation at each point; greater than 0.
    """
    kept = list(terms)
    for size in values:
        growth = Growth(values, seconds, size)
        power = power_beside_constant(values, seconds, size)
        kept = [
            term for term in kept if allows(power, growth.of(term.column(values, rounded=True)))
        ]
    return kept


def _of_few(values: Values, seconds: Vector) -> Law:
    """Return the law of a chain that computes in few runs."""
    if len({*zip(*(array.tolist() for array in values.values()), strict=True)}) == 1:
        form = Form((float(seconds.mean()),), ("1",), rounded=True, weight=1)
        return Law(FITTED, (Piece((form,)),), Reach(calibrated=False))
    points = int((seconds > 0).sum())
    why = f"{points} different runs are too few to fit a formula; {LEAST} are needed"
    return Law(REFUSED, (), why=why, settle=more_values(values, seconds))
