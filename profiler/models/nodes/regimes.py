"""Quantities that have one form up to a bound and another beyond it.

So it is where a collective changes its stages, where a sample becomes as long as the block, or
where there is nothing to do. The bound is on a variable, or on a simple expression of them. A
part with a few runs may be constant; otherwise each part needs a form of its own that it tests.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bsplib.profiler.models.nodes.exact import ExactSearch
from bsplib.profiler.models.nodes.forms import ZERO, Form
from bsplib.profiler.models.nodes.laws import Piece, Where
from bsplib.profiler.models.nodes.values import PROCESSES
from bsplib.profiler.models.terms import column

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Masks = NDArray[np.bool_]

_LEAST_TESTED = 4
"""A part with fewer runs has to be constant."""
_SMALL_PART = 3
"""A part in which the quantity depends on the data has at most the points divided by this."""
_MOST_TERMS = 1
_OF_DATA = 8
_NEVER = 10**9


def quantities(sizes: Sequence[str], *, with_processes: bool) -> list[str]:
    """Return what may have a bound, the simplest first."""
    found = list(sizes)
    if with_processes:
        found.append(PROCESSES)
        for size in sizes:
            found += [f"{size}/p", f"{size}*(p - 2)", f"{size}*p", f"{size}/p**2", f"{size}/p**3"]
    found += [f"{one}/{other}" for one in sizes for other in sizes if one != other]
    return found


def divide(
    values: Mapping[str, Vector],
    rows: Matrix,
    loose: Masks,
    bounds: Sequence[str],
    search: Callable[[Mask], ExactSearch],
) -> list[tuple[Piece, ...]]:
    """Return the two pieces of each quantity; none if no bound gives exact forms on both sides.

    Args:
        values: the variables, one element for each point.
        rows: the quantities at the points, one row for each.
        loose: where each depends on the data: in no part, or in a few runs alone.
        bounds: what may have a bound.
        search: returns the search at some of the points.
    """
    best: list[tuple[int, tuple[Piece, ...]]] = [(_NEVER, ())] * len(rows)
    for mask, where in _masks(values, bounds):
        places = [
            place for place, row in enumerate(rows) if not _is_hopeless(row, mask, loose[place])
        ]
        sides = [_forms(rows, loose, side, search, places) for side in (~mask, mask)]
        for place, below, above in zip(places, *sides, strict=True):
            if not (below and above):
                continue
            weight = below[0].weight + above[0].weight
            if weight < best[place][0]:
                best[place] = (
                    weight,
                    (
                        Piece(tuple(below), tuple(_side(each, above=False) for each in where)),
                        Piece(tuple(above), tuple(where)),
                    ),
                )
    return [pieces for _, pieces in best]


def _masks(values: Mapping[str, Vector], bounds: Sequence[str]) -> list[tuple[Mask, list[Where]]]:
    """Return the ways to divide the points at a bound, with all bounds that do."""
    found: dict[bytes, tuple[Mask, list[Where]]] = {}
    for text in bounds:
        column_of = column(text, values, rounded=False)
        cuts = sorted(set(column_of.tolist()))
        for low, high in itertools.pairwise(cuts):
            mask = column_of >= high
            _, where = found.setdefault(mask.tobytes(), (mask, []))
            where.append(Where(text, low, high, above=True))
    return list(found.values())


def _side(where: Where, *, above: bool) -> Where:
    return Where(where.quantity, where.low, where.high, above)


def _is_hopeless(row: Vector, mask: Mask, loose: Mask) -> bool:
    """Whether a part is too small to test a form, or depends on the data and is not small."""
    sides = [side for side in (mask, ~mask) if row[side].any()]
    return any(
        side.sum() * _SMALL_PART > len(row)
        if loose[side].any()
        else side.sum() < _LEAST_TESTED and np.ptp(row[side]) > 0
        for side in sides
    )


def _forms(
    rows: Matrix,
    loose: Masks,
    side: Mask,
    search: Callable[[Mask], ExactSearch],
    places: Sequence[int],
) -> list[list[Form]]:
    """Return the forms of some quantities on one side of a bound."""
    found = {place: _simple(rows[place][side], loose[place][side]) for place in places}
    searched = [place for place, forms in found.items() if forms is None]
    if searched:
        every = search(side).find(rows[searched][:, side], _MOST_TERMS)
        found |= dict(zip(searched, every, strict=True))
    return [found[place] or [] for place in places]


def _simple(part: Vector, loose: Mask) -> list[Form] | None:
    """Return the form of a part that needs no search."""
    if not part.any():
        return [ZERO]
    if loose.any():
        return [Form((float(part.mean()),), ("1",), rounded=True, weight=_OF_DATA)]
    if len(part) < _LEAST_TESTED:
        return [_constant(float(part[0]))]
    return None


def _constant(value: float) -> Form:
    from fractions import Fraction  # noqa: PLC0415

    exact: Fraction = Fraction(value).limit_denominator(10**6)
    return Form((exact,), ("1",), rounded=True, weight=4)
