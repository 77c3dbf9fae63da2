"""The laws of collectives of which each process has a part: from formulas and recorded sizes.

A gather, a scatter, an allgather and an alltoall take one superstep, and their h-relations are
known in closed form from the sizes of the parts, which the runs have recorded. So only these sizes
are searched as functions of the variables, by five rules: parts of equal size; whole elements of a
block or of a matrix; rows that are divided as evenly as possible, where the first processes have
one row more; elements of which the last process has the rest; and parts that are longer by the same
with each process. A law counts only if it gives the h-relations of all runs.

=============  ===================  ====================  ==============================
collective     h                    of T rows of d bytes  of a + b i bytes on process i
=============  ===================  ====================  ==============================
gather, to 0   all parts but the    d (T - ceil(T / p))   (p - 1) a + p (p - 1) b / 2
and scatter    root's
... p - 1      likewise             d (T - floor(T / p))  (p - 1) a + (p - 1) (p - 2) b / 2
allgather,     p - 1 times the      (p - 1) d             (p - 1) a + (p - 1)**2 b
alltoall       longest part         ceil(T / p)
=============  ===================  ====================  ==============================

Source: :mod:`bsplib.primitives.exchanges`.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler.models.nodes.forms import ZERO, Form, product
from bsplib.profiler.models.nodes.spread import added_terms
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.terms import Term, column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]
    Find = Callable[[NDArray[np.bool_], Vector], list[Form]]

ONE_ROOT, ALL, PAIRS = "one root", "all", "pairs"
_KINDS = {
    "gather": ONE_ROOT,
    "scatter": ONE_ROOT,
    "allgather": ALL,
    "split": ALL,
    "alltoall": PAIRS,
}
_SAME = 1e-9
_FEWEST = 3
"""Least number of runs that show what h is a multiple of."""
_MOST_TERMS = 2
"""Greatest number of terms of the size of equal parts: a program gives no longer formulas."""
_DENOMINATOR = 240
_ELEMENTS = (8, 4, 1, 2, 16)
"""Bytes of an element, the most usual first."""
_WHOLE_ELEMENTS = (
    "(p - 1)*floor({0}/p**2)",
    "(p - 1)*ceil({0}/p**2)",
    "(p - 1)*{1}*floor({0}/p)",
    "(p - 1)*{1}*ceil({0}/p)",
    "(p - 1)*floor({0}/p)*floor({1}/p)",
    "(p - 1)*ceil({0}/p)*ceil({1}/p)",
    "ceil({0}/p)*({1} - ceil({1}/p))",
    "ceil({0}/p)*({1} - floor({1}/p))",
)
"""What h may be a multiple of: parts of the block of a process, columns of its rows, and blocks of
a matrix in rows that becomes one in columns."""
_MOST_TRIED = 3
"""Greatest number of forms of each size that are combined."""
OTHERS = Form((Fraction(1),), ("(p - 1)",), rounded=True, weight=1)
"""Number of the other processes."""
_SHARES = (
    ("1", 1),
    ("{0}/p", 1),
    ("{0}", 2),
    ("{0}/p**2", 2),
    ("{0}**2/p", 3),
    ("log2({0})", 3),
    ("{0}**2", 4),
    ("{0}**2/p**2", 4),
)
"""What parts may be a fraction of, where their sizes depend on data; with weights."""
_LONGER = ("sqrt({0}/p)*log2(p)**0.75", "{0}*log2(p)**0.75/p")
"""By what the longest of p parts is longer than the mean: the greatest of p numbers by chance."""


class RecordedParts(NamedTuple):
    """What the runs have of a cost centre, one element for each point."""

    supersteps: Vector
    h: Vector
    moved: Sequence[NDArray[np.float64] | None]
    """What each process sends and receives in a superstep; None where supersteps differ."""


class _Runs(NamedTuple):
    """What the rules are given: the arguments of :func:`forms_of_parts`."""

    kind: str
    values: Values
    used: NDArray[np.bool_]
    """Where several processes call the collective."""
    h: Vector
    """Of one call."""
    moved: Sequence[NDArray[np.float64] | None]
    find: Find


class _Row(NamedTuple):
    """Two numbers that describe the parts of one run; not numbers where it does not tell."""

    first: float
    second: float


_UNTOLD = _Row(math.nan, math.nan)


def parts_of(name: str) -> str | None:
    """Return whose parts a cost centre moves, by its name: of one root, of all, or of all pairs."""
    return _KINDS.get(name.rpartition(" · ")[2]) if " · " in name else None


def forms_of_parts(kind: str, values: Values, observed: RecordedParts, find: Find) -> list[Form]:
    """Return the exact forms of h; none if no rule gives the h-relations of all runs.

    Args:
        kind: of :func:`parts_of`.
        values: the variables with p, one element for each point.
        observed: what the runs have.
        find: returns the exact forms of a quantity at some points, the simplest first.
    """
    calls = observed.supersteps
    counts = _simplest(find(np.ones(len(calls), bool), calls))
    used = (values[PROCESSES] > 1) & (calls > 0)
    runs = _Runs(kind, values, used, observed.h / np.maximum(calls, 1), observed.moved, find)
    for rule in (_equal, _whole, _rows, _rest, _rising):
        found = [count.by(each) for each in rule(runs) for count in counts]
        right = [form for form in found if _gives(form, values, observed.h)]
        if right:
            return list({form.text: form for form in right}.values())
    return []


def _simplest(forms: Sequence[Form]) -> list[Form]:
    """Return the simplest forms: nobody gives a collective a size that is made for p."""
    least = min((form.weight for form in forms), default=0)
    return [form for form in forms if form.weight == least][:_MOST_TRIED]


def _gives(form: Form, values: Values, row: Vector) -> bool:
    return bool(np.allclose(form.at(values), row, rtol=_SAME, atol=0))


# -- the rules ------------------------------------------------------------------------------------


def _equal(runs: _Runs) -> Iterator[Form]:
    """Yield h of parts of equal size, or of those whose mean, or longest, has a form."""
    used = runs.used
    if used.any():
        size = runs.h[used] / (runs.values[PROCESSES][used] - 1)
        forms = _simplest(runs.find(used, size))
        yield from (OTHERS.by(form) for form in forms if len(form.terms) <= _MOST_TERMS)


def _whole(runs: _Runs) -> Iterator[Form]:
    """Yield h that is a multiple of one number of whole elements."""
    used = runs.used
    if used.sum() < _FEWEST:
        return
    inside = {name: row[used] for name, row in runs.values.items()}
    sizes = [name for name in inside if name != PROCESSES]
    pairs = itertools.product(_WHOLE_ELEMENTS, sizes, sizes)
    h = runs.h[used]
    for text in dict.fromkeys(text.format(*names) for text, *names in pairs):
        unit = column(text, inside)
        if np.ptp(unit) > 0 and np.array_equal(unit > 0, h > 0):
            factor = Fraction(float(h.sum() / unit.sum())).limit_denominator(_DENOMINATOR)
            if np.allclose(float(factor) * unit, h, rtol=_SAME, atol=0):
                yield Form((factor,), (text,), rounded=True, weight=3)


def _rows(runs: _Runs) -> Iterator[Form]:
    """Yield h of rows that are divided as evenly as possible, the longer parts first."""
    for sizes in _candidates(runs):
        for length, count in _described(sizes, _divided, runs.find):
            whole = _bracketed(count)
            text = f"({whole} - {'floor' if _root(sizes) else 'ceil'}({whole}/p))"
            if runs.kind != ONE_ROOT:
                text = f"(p - 1)*ceil({whole}/p)"
            yield length.by(Form((Fraction(1),), (text,), rounded=True, weight=count.weight + 2))


def _rest(runs: _Runs) -> Iterator[Form]:
    """Yield h of elements that are divided so that the last process has the rest.

    To and from one root, these are as if rows were divided as evenly as possible.
    """
    if runs.kind == ONE_ROOT:
        return
    for sizes, element in itertools.product(_candidates(runs), _ELEMENTS):
        for _, count in _described(sizes, functools.partial(_with_rest, element), runs.find):
            whole = _bracketed(count)
            text = f"(p - 1)*({whole} - (p - 1)*floor({whole}/p))"
            yield Form((Fraction(element),), (text,), rounded=True, weight=count.weight + 2)


def _rising(runs: _Runs) -> Iterator[Form]:
    """Yield h of parts that are longer, or shorter, by the same with each process."""
    for sizes in _candidates(runs):
        for first, step in _described(sizes, _linear, runs.find):
            text = "(p - 1)*(p - 2)" if _root(sizes) else "p*(p - 1)"
            steps = Form((Fraction(1, 2),), (text,), rounded=True, weight=2)
            if runs.kind != ONE_ROOT:
                is_longer = float(step.at(runs.values)[-1]) > 0
                steps = Form((Fraction(1),), ("(p - 1)**2",), rounded=True) if is_longer else ZERO
            yield OTHERS.by(first).plus(step.by(steps))


def _bracketed(form: Form) -> str:
    return form.text if re.fullmatch(r"\w+", form.text) else f"({form.text})"


def _candidates(runs: _Runs) -> Iterator[list[Vector]]:
    """Yield the sizes of parts by pid at each point: by sender, and by receiver.

    Where one process has the root's place, its size is not a number. Nothing is yielded where a run
    does not tell them.
    """
    moved = [each for each in runs.moved if each is not None]
    if len(moved) < len(runs.moved):
        return
    for side in (0, 1):
        rows = [each[side] for each in moved]
        if runs.kind != ONE_ROOT:
            yield [row / max(len(row) - 1, 1) for row in rows]
            continue
        for root in (0, -1):
            if all(row[root] == 0 for row in rows) and any(row.any() for row in rows):
                known = [row.copy() for row in rows]
                for row in known:
                    row[root] = math.nan
                yield known


def _root(sizes: Sequence[Vector]) -> int:
    """Return 0 if process 0 has no recorded part, or -1 if the last process has none."""
    return -1 if all(math.isnan(row[-1]) for row in sizes if len(row) > 1) else 0


def _described(
    sizes: Sequence[Vector], describe: Callable[[Vector], _Row | None], find: Find
) -> Iterator[tuple[Form, Form]]:
    """Yield the forms of the two numbers that describe the parts of all runs."""
    rows = [describe(row) for row in sizes]
    if any(row is None for row in rows):
        return
    told = np.array([row is not None and not math.isnan(row.first) for row in rows])
    if not told.any():
        return
    columns = np.array([row for row in rows if row is not None])[told].T
    found = [_simplest(find(told, column)) for column in columns]
    yield from itertools.product(*found)


def _divided(sizes: Vector) -> _Row | None:
    """Return the bytes of a row, and how many there are; None if parts are no rows."""
    known = np.flatnonzero(~np.isnan(sizes))
    parts = sizes[known]
    if len(known) < 1 or np.ptp(parts) == 0:
        return _UNTOLD
    length = float(np.ptp(parts))
    fewest = float(parts.min()) / length
    longer = int((parts == parts.max()).sum()) + bool(math.isnan(sizes[0]))
    if fewest != int(fewest) or not np.array_equal(parts, parts.min() + length * (known < longer)):
        return None
    return _Row(length, fewest * len(sizes) + longer)


def _with_rest(element: int, sizes: Vector) -> _Row | None:
    """Return the bytes of an element, and how many there are; None if the last has not the rest."""
    total = float(sizes.sum()) / element
    share = element * (total // len(sizes))
    if (sizes[:-1] != share).any():
        return None
    return _Row(element, total) if len(sizes) > 1 else _UNTOLD


def _linear(sizes: Vector) -> _Row | None:
    """Return the size of process 0's part, and by how much others are longer; None if not so."""
    known = np.flatnonzero(~np.isnan(sizes))
    if len(known) < 3:
        return _UNTOLD
    parts = sizes[known]
    step = float(parts[1] - parts[0]) / float(known[1] - known[0])
    first = float(parts[0]) - step * float(known[0])
    return _Row(first, step) if step and np.array_equal(parts, first + step * known) else None


# -- parts whose sizes depend on data -------------------------------------------------------------


def fractions_of(kind: str, sizes: Sequence[str]) -> tuple[list[Term], list[str]]:
    """Return what an h-relation may be a fraction of, and what random sizes add to it.

    Args:
        kind: of :func:`parts_of`. Where a process moves one part to or from all others, h is
            divided by their number.
        sizes: names of the sizes.
    """
    terms = {
        text.format(size): weight
        for size in sizes or [""]
        for text, weight in (_SHARES if sizes else _SHARES[:1])
    }
    if kind == ALL:
        longer = [text.format(size) for size in sizes for text in _LONGER]
        return [Term(text, weight) for text, weight in terms.items()], longer
    multiples = [Term(product("(p - 1)", text), weight) for text, weight in terms.items()]
    return multiples, added_terms(sizes, with_processes=True) if kind == PAIRS else []
