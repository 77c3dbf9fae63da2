"""What the first use of memory takes in a computation, told apart by the pages that were counted.

A page that the system gives to a process takes it some microseconds on a virtual machine. In small
runs the C library keeps memory that was freed, and uses it again; from some size on it gives it
back each time, so that the number of pages jumps, and the time with it. A formula that has to
follow the jump grows by far too high a power. So one time of a page is estimated for all chains of
a program: the one with which the rest of the computation of each chain fits a formula best. What
the pages take is then fitted apart. It grows no faster than the computation, which uses each page
at least once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.select import relative

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.models.terms import Term

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

_TRIED_S = (0.0, *np.geomspace(1e-7, 5e-6, 24).tolist())
"""Seconds of a page that are tried."""
_MOST_OF_IT = 0.8
"""Greatest part of a computation that its pages take."""
_FEWEST = 1000
"""Fewest pages by which the runs differ in a chain that tells the time of a page: 4 MB."""
_CLEAR = 4.0
"""How much greater the logarithm of the likelihood has to be with the time of a page."""
_LEAST_MISFIT = 0.02
"""A misfit below this is noise."""


class Paged(NamedTuple):
    """A computation, and the pages that the process with most got meanwhile, at each point."""

    seconds: Vector
    pages: Vector


def page_seconds(found: Iterable[Paged], terms: Sequence[Term], values: Values) -> float:
    """Return how long a page takes in the computations of a program; 0 where they do not tell.

    Args:
        found: the computations; those that are somewhere 0, or have few pages, are left out.
        terms: the terms that a computation may have, first the constant.
        values: the variables, one element for each point.
    """
    usable = [
        each
        for each in found
        if (each.seconds > 0).all() and (each.pages > 0).all() and np.ptp(each.pages) >= _FEWEST
    ]
    if not usable:
        return 0.0
    likelihoods = np.sum([_likelihoods(each, terms, values) for each in usable], axis=0)
    best = int(np.argmax(likelihoods))
    return _TRIED_S[best] if likelihoods[best] > likelihoods[0] + _CLEAR else 0.0


def page_share(each: Paged, page_s: float) -> Vector:
    """Return the seconds that pages take of a computation, never more than most of it."""
    if not page_s or not (each.pages > 0).all():
        return np.zeros(len(each.seconds))
    most = float((_MOST_OF_IT * each.seconds / each.pages).min())
    return min(page_s, most) * each.pages


def page_forms(values: Values, taken: Vector, terms: Sequence[Term]) -> tuple[Form, ...]:
    """Return how what pages take may grow: with the computation, and not beyond the runs.

    The largest values count most, since small runs use memory again.

    Args:
        values: the variables, one element for each point.
        taken: seconds at each point.
        terms: those by which the computation grows.
    """
    constant = Form((float(taken.max()),), ("1",), rounded=True, weight=1)
    found = []
    for term in terms:
        column = np.broadcast_to(term.column(values, rounded=True), taken.shape).astype(float)
        if not np.ptp(column):
            continue
        rows = np.stack([np.ones(len(taken)), column], axis=1)
        factors, *_ = np.linalg.lstsq(rows, taken, rcond=None)
        if factors[1] <= 0:
            continue
        if factors[0] < 0:
            factors = np.array([0.0, float(column @ taken / (column @ column))])
        found.append(Form(tuple(factors.tolist()), ("1", term.text), rounded=True, weight=2))
    return (*found, constant)


def slower_forms(values: Values, each: Paged, terms: Sequence[Term]) -> list[Form]:
    """Return forms that go on from the longest computation in proportion to their terms.

    Where the runs differ by many pages, the time may have jumped with them, so that a power of a
    size fits which no longer holds beyond. Elsewhere nothing is returned.

    Args:
        values: the variables, one element for each point.
        each: a computation.
        terms: parts of the sizes that are proportional to them.
    """
    if not (each.pages > 0).all() or np.ptp(each.pages) < _FEWEST:
        return []
    longest = int(np.argmax(each.seconds))
    found = []
    for term in terms:
        column = np.broadcast_to(term.column(values, rounded=True), each.seconds.shape)
        factor = float(each.seconds[longest] / column[longest])
        found.append(Form((factor,), (term.text,), rounded=True, weight=1))
    return found


def _likelihoods(each: Paged, terms: Sequence[Term], values: Values) -> Vector:
    """Return the logarithm of the likelihood of a computation for each time of a page."""
    rows = relative(terms, values, each.seconds, rounded=True)
    most = float((_MOST_OF_IT * each.seconds / each.pages).min())
    errors = [_misfit(rows, 1 - min(tried, most) * each.pages / each.seconds) for tried in _TRIED_S]
    return -len(rows) / 2 * np.log(np.array(errors) / len(rows) + _LEAST_MISFIT**2)


def _misfit(rows: NDArray[np.float64], wanted: Vector) -> float:
    """Return the least sum of squares of a constant with one term, none of them negative."""
    one = rows[:, 0]
    other = rows[:, 1:]
    a, b, c = one @ one, one @ other, (other**2).sum(axis=0)
    x, y = one @ wanted, other.T @ wanted
    divisor = np.maximum(a * c - b**2, 1e-12 * a * c)
    first, second = (c * x - b * y) / divisor, (a * y - b * x) / divisor
    first = np.where(second < 0, x / a, np.where(first < 0, 0.0, first))
    second = np.where(second < 0, 0.0, np.where(first <= 0, y / c, second))
    left = wanted[:, None] - one[:, None] * first - other * second
    return float((left**2).sum(axis=0).min(initial=float(((wanted - one * (x / a)) ** 2).sum())))
