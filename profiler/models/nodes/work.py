"""Computation of a call chain: a formula fitted to the least times, with a band."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from profiler.models.band import calibrate_jointly
from profiler.models.fit import Fit, fit_once
from profiler.models.formula import FormulaError, read_formula
from profiler.models.nodes.forms import ZERO, Form
from profiler.models.nodes.laws import EXACT, FITTED, REFUSED, Law, Piece, Reach
from profiler.models.nodes.settle import more_values
from profiler.models.nodes.values import PROCESSES
from profiler.models.select import LEAST, choose
from profiler.models.terms import Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

_SMALL = 0.02
"""Chains with at most this part of the computation of each run get a formula from few terms."""
_TRIALS = 3
_CONFIDENCE = 0.9


def fit_work(values: Values, seconds: Vector, part: float, varied: Values) -> Law:
    """Fit the computation of a chain.

    Args:
        values: the variables, one element for each point.
        seconds: computation at each point.
        part: the greatest part of the computation of a run that the chain has.
        varied: the variables that have several values.
    """
    if not seconds.any():
        return Law(EXACT, (Piece((ZERO,)),))
    used = seconds > 0
    if used.sum() < LEAST:
        settle = more_values(values, seconds)
        why = f"{int(used.sum())} runs with computation are too few to fit a formula; {LEAST} are not"
        return Law(REFUSED, (), why=why, settle=settle)
    inside = {name: array[used] for name, array in varied.items()}
    times = seconds[used]
    terms = _few_terms(inside) if part <= _SMALL else None
    try:
        found = _fit(inside, times, terms)
    except FormulaError as error:
        return Law(REFUSED, (), why=str(error).removeprefix("formula: "))
    reach = Reach(least=2 * found.segments[0].spread, calibrated=False)
    if part > _SMALL:
        reach = _reach(found, inside, times)
    return Law(FITTED, (Piece((_form(found),)),), reach)


def _fit(values: Values, times: Vector, terms: list[Term] | None) -> Fit:
    processes = PROCESSES if PROCESSES in values else None
    if not values:
        return fit_once(read_formula("f[0]"), {"p": np.ones(len(times))}, times)
    chosen = choose(values, times, processes, terms)
    return fit_once(read_formula(chosen.formula), values, times)


def _few_terms(values: Values) -> list[Term]:
    """Return terms for what hardly counts."""
    terms = [Term("1", 1)]
    sizes = [name for name in values if name != PROCESSES]
    if PROCESSES in values:
        terms += [Term("log2(p)", 2), Term("p", 2), Term("p**2", 3)]
        terms += [Term(f"{name}/p", 3) for name in sizes]
    return [*terms, *(Term(name, 2) for name in sizes)]


def _form(found: Fit) -> Form:
    factors, terms = [], []
    segment = found.segments[0]
    for name, text in _terms_of(found.formula.text, found.formula.parameters):
        if segment.coefficients[name] > 0:
            factors.append(float(segment.coefficients[name]))
            terms.append(text)
    return Form(tuple(factors), tuple(terms), rounded=False, weight=len(terms))


def _terms_of(formula: str, parameters: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return each parameter with its term; formulas of ``choose`` are sums of ``f[i]*term``."""
    starts = [formula.index(name) for name in parameters]
    ends = [*(start - 3 for start in starts[1:]), len(formula)]
    parts = [formula[start:end] for start, end in zip(starts, ends, strict=True)]
    return [
        (name, part.removeprefix(name).removeprefix("*") or "1")
        for name, part in zip(parameters, parts, strict=True)
    ]


def _reach(found: Fit, values: Values, times: Vector) -> Reach:
    tried = iter(range(_TRIALS))

    def again(lesser: Values, taken: Vector) -> Fit:
        if next(tried, None) is None:
            raise FormulaError("formula: enough was tried")
        return _fit(lesser, taken, None)

    band = calibrate_jointly(found, values, times, again)
    least = float(band.reach({name: array[:1] for name, array in values.items()}, _CONFIDENCE)[0])
    if not band.is_calibrated:
        return Reach(least, band.noise, calibrated=False)
    factor = float(np.quantile(band.misses, _CONFIDENCE, method="higher"))
    return Reach(least, band.noise, band.growth, factor)
