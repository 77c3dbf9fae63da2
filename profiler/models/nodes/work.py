"""Computation of a call chain: a formula fitted to the least times, with a band.

The formula has up to three terms, such as programs compute with sizes that processes share. They
are chosen as :mod:`bsplib.profiler.models.nodes.spread` chooses.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.borne import allows, power_beside_constant, terms_borne
from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.laws import (
    EXACT,
    FITTED,
    REFUSED,
    Law,
    Piece,
    Reach,
    Where,
)
from bsplib.profiler.models.nodes.settle import more_values
from bsplib.profiler.models.nodes.spread import LEAST, fit_terms, reach_of
from bsplib.profiler.models.nodes.terms import column
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

_ALONE = (
    ("{0}", 2),
    ("log2({0})", 3),
    ("sqrt({0})", 3),
    ("{0}*log2({0})", 2),
    ("{0}*sqrt({0})", 4),
    ("{0}**2", 4),
    ("{0}**3", 5),
)
"""Work of a size that every process does."""
_SHARED = (
    ("{0}/p", 1),
    ("({0}/p)*log2({0}/p)", 2),
    ("{0}*log2({0})/p", 2),
    ("({0}/p)*log2(p)", 2),
    ("({0}/p)*log2(p)*(log2(p) + 1)", 3),
    ("sqrt({0}/p)", 4),
    ("{0}*sqrt({0})/p", 4),
    ("{0}**2/p", 4),
    ("{0}**3/p", 5),
    ("{0}*log2(p)", 4),
)
"""Work of a size that the processes share."""
_OF_PROCESSES = (
    ("p", 2),
    ("log2(p)", 2),
    ("p*log2(p)", 3),
    ("p**2", 3),
    ("p**2*log2(p)", 4),
    ("log2(p)**2", 3),
)
USUAL_GROWTH = 1.0
"""Where the runs are too few for trials: how far the logarithm of a computation is off beyond them,
for each width of their range. So it was in 90% of 67 predictions of sorts and Fourier transforms
at most one width beyond four or five runs of real processes: memory and caches behave otherwise
there."""
_MOST_TERMS = 3
_ENOUGH = 6
"""Runs of several processes that are enough to be fitted without those of one process."""
_MUCH_BETTER, _SLIGHT = 2.0, 0.05
"""How much greater a misfit has to be, as a factor and beyond it, to tell one process apart."""
_POINTS_FOR_EACH_TERM = 3
"""Points that are needed for each term beyond the first."""


def fit_work(values: Values, seconds: Vector, varied: Values) -> Law:
    """Fit the computation of a chain.

    Args:
        values: the variables, one element for each point.
        seconds: computation at each point.
        varied: the variables that have several values.
    """
    if not seconds.any():
        return Law(EXACT, (Piece((ZERO,)),))
    used = seconds > 0
    if used.sum() < LEAST:
        return _of_few(values, seconds)
    inside = {name: array[used] for name, array in varied.items()}
    return _several_or_one(inside, seconds[used])


def _several_or_one(values: Values, seconds: Vector) -> Law:
    """Fit one formula, or another one for one process alone, which may compute other things."""
    whole = _fitted(values, seconds)
    several = values.get(PROCESSES, np.ones(1)) > 1
    if several.all() or several.sum() < _ENOUGH or not several.any():
        return whole
    part = _fitted({name: column[several] for name, column in values.items()}, seconds[several])
    if part.reach.noise * _MUCH_BETTER + _SLIGHT > whole.reach.noise:
        return whole
    alone = {name: column[~several] for name, column in values.items() if name != PROCESSES}
    alone = {name: column for name, column in alone.items() if np.ptp(column) > 0}
    if len(seconds) - several.sum() < LEAST or not alone:
        form = Form((float(np.median(seconds[~several])),), ("1",), rounded=True, weight=1)
        own: tuple[Piece, ...] = (Piece((form,)),)
    else:
        own = _fitted(alone, seconds[~several]).pieces
    sides = (Where(PROCESSES, 1.0, 2.0, above=above) for above in (True, False))
    pieces = [
        replace(piece[0], where=(side,))
        for piece, side in zip((part.pieces, own), sides, strict=True)
    ]
    return replace(part, pieces=tuple(pieces))


def _fitted(values: Values, seconds: Vector) -> Law:
    """Fit a formula to computation that is nowhere 0."""
    every = work_terms(values)
    terms = supported(every, values, seconds)
    columns = [np.broadcast_to(column(text, values, rounded=True), seconds.shape) for text in every]
    rows = np.stack(columns, axis=1) / seconds[:, None]
    most = terms_borne(rows, min(_MOST_TERMS, 1 + (len(seconds) - 1) // _POINTS_FOR_EACH_TERM))
    if most == 1:
        form = Form((float(1 / rows[:, 0].mean()),), ("1",), rounded=True, weight=1)
        noise = float(np.log(seconds).std(ddof=1))
        return _law((form,), reach_of(noise, np.empty(0), np.empty(0)))
    subsets = [
        np.array(list(itertools.combinations(range(len(terms)), count)), np.intp)
        for count in range(1, most + 1)
    ]
    found = fit_terms(values, seconds, terms, subsets, np.zeros(len(seconds)), simpler=True)
    assert found is not None  # the constant always fits
    return _law((found.form, *found.rivals), found.reach)


def _law(forms: tuple[Form, ...], reach: Reach) -> Law:
    """Return a fitted law; where trials were too few, its band widens as usual ones do."""
    if not reach.calibrated:
        reach = replace(reach, growth=USUAL_GROWTH, factor=1.0)
    return Law(FITTED, (Piece(forms),), reach)


def supported(terms: Mapping[str, int], values: Values, seconds: Vector) -> dict[str, int]:
    """Return the terms whose growth the differences between the largest runs allow.

    Args:
        terms: terms with their weights.
        values: the variables that vary.
        seconds: computation at each point; greater than 0.
    """
    kept = dict(terms)
    for size in values:
        growth = Growth(values, seconds, size)
        power = power_beside_constant(values, seconds, size)
        for text in terms:
            own = growth.of(column(text, values, rounded=True))
            if not allows(power, own):
                kept.pop(text, None)
    return kept


def _of_few(values: Values, seconds: Vector) -> Law:
    """Return the law of a chain that computes in few runs."""
    if len({*zip(*(array.tolist() for array in values.values()), strict=True)}) == 1:
        form = Form((float(seconds.mean()),), ("1",), rounded=True, weight=1)
        return Law(FITTED, (Piece((form,)),), Reach(calibrated=False))
    points = int((seconds > 0).sum())
    why = f"{points} different runs are too few to fit a formula; {LEAST} are needed"
    return Law(REFUSED, (), why=why, settle=more_values(values, seconds))


def work_terms(values: Values) -> dict[str, int]:
    """Return the terms of computation for some variables, with how complicated they are."""
    sizes = [name for name in values if name != PROCESSES]
    terms = {"1": 1}
    for size in sizes:
        positive = values[size].min() >= 1
        forms = [*_ALONE, *(_SHARED if PROCESSES in values else ())]
        terms |= {
            form.format(size): weight for form, weight in forms if positive or "log" not in form
        }
    for one, other in itertools.combinations(sizes, 2):
        terms |= {f"{one}*{other}": 3}
        terms |= {f"{one}*{other}/p": 2} if PROCESSES in values else {}
    if PROCESSES in values:
        terms |= dict(_OF_PROCESSES)
    return terms
