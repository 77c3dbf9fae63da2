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

from bsplib.profiler.models.growth import Growth
from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.laws import EXACT, FITTED, REFUSED, Law, Piece, Reach
from bsplib.profiler.models.nodes.settle import more_values
from bsplib.profiler.models.nodes.spread import LEAST, fit_terms
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
_NEAR = 0.2
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
    few = int(used.sum()) < _ENOUGH
    terms = supported(work_terms(inside), inside, seconds[used], few=few)
    most = min(_MOST_TERMS, 1 + (int(used.sum()) - 1) // _POINTS_FOR_EACH_TERM)
    subsets = _together(len(terms), most, few=few)
    found = fit_terms(
        inside, seconds[used], terms, subsets, np.zeros(int(used.sum())), simpler=True
    )
    assert found is not None  # the constant always fits
    reach = found.reach
    if not reach.calibrated:
        reach = replace(reach, growth=USUAL_GROWTH, factor=1.0)
    return Law(FITTED, (Piece((found.form,)),), reach)


def _together(count: int, most: int, *, few: bool) -> list[NDArray[np.intp]]:
    """Return the terms that are tried together; the constant is the first of them.

    Args:
        count: number of terms.
        most: greatest number of terms in a formula.
        few: there are so few points that one term beside the constant is enough to fit any.
    """
    found = [
        list(itertools.combinations(range(count), together)) for together in range(1, most + 1)
    ]
    if few:
        found = [
            [chosen for chosen in some if len(chosen) == 1 or chosen[0] == 0] for some in found[:2]
        ]
    return [np.array(some, np.intp) for some in found if some]


def supported(
    terms: Mapping[str, int], values: Values, seconds: Vector, *, few: bool
) -> dict[str, int]:
    """Return the terms that the growth between the largest runs allows.

    Computation has a constant part in every superstep, so that a rise of the growth says nothing
    of powers. With few runs, a term that grows slower than a size is not used either, since a
    constant beside a proportional term looks the same.

    Args:
        terms: terms with their weights.
        values: the variables that vary.
        seconds: computation at each point; greater than 0.
        few: there are few points.
    """
    kept = dict(terms)
    for size in (name for name in values if name != PROCESSES):
        growth = Growth(values, seconds, size)
        if growth.power is None:
            continue
        for text in terms:
            grown = column(text, values, rounded=True)
            is_slow = 0 < growth.of(grown) < 1 - _NEAR
            if not growth.allows(grown, by_rise=False) or (few and is_slow):
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
