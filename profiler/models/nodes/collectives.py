"""The laws of collectives that choose their stages: from formulas, not from a search.

What a reduction, a scan or a broadcast costs is known in closed form
(:mod:`bsplib.experiments.collective_costs`) from the bytes of its value, the number of processes
and the Machine's l / g. How many calls a cost centre makes, and how long their values are, follows
from the supersteps and bytes of each run. Only these two are searched as functions of the
variables. The result counts only if it gives the supersteps and h-relations of all runs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.experiments.collective_costs import COSTS, RADICES, most_received
from bsplib.profiler.models.nodes.forms import Form
from bsplib.profiler.models.nodes.values import PROCESSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]
    Find = Callable[[NDArray[np.bool_], Vector], list[Form]]

_KINDS = {
    "allreduce": ("combined",),
    "scan": ("combined",),
    "exscan": ("prefixed",),
    "reduce": ("reduced", "reduced_to_last"),
    "broadcast": ("spread", "spread_from_last"),
}
"""The cost functions that a collective may have, by its root."""
_CUT_IN_BYTES = frozenset({"spread", "spread_from_last"})
"""They send pieces of the bytes of pickles, too."""
_ELEMENTS = (8, 4, 1, 2, 16)
"""Bytes of an element, the most usual first."""
_MOST_CALLED = 3
"""Greatest number of forms of the calls, and of the bytes of a value, that are combined."""
_SAME = 1e-9
_FREE = 1e300
"""l / g in bytes of a Machine on which communication takes no time."""


class CollectiveCosts(NamedTuple):
    """What the runs have of a cost centre, one element for each point."""

    supersteps: Vector
    h: Vector
    moved: Vector
    """Bytes that all processes sent together."""


class _Calls(NamedTuple):
    """An explanation of one run."""

    calls: float
    nbytes: float
    """Of a value; not a number where one process alone sends nothing."""


def kinds_of(name: str) -> tuple[str, ...]:
    """Return which cost functions a cost centre may have, by its name."""
    return _KINDS.get(name.rpartition(" · ")[2], ()) if " · " in name else ()


def ratio_of(g: float | None, latency: float | None) -> float | None:
    """Return l / g of a Machine in bytes; None if it is not known."""
    if g is None or latency is None:
        return None
    return min(latency / g, _FREE) if g > 0 else _FREE


def forms_of(
    kind: str, values: Values, observed: CollectiveCosts, ratio: float, find: Find
) -> tuple[list[Form], list[Form]]:
    """Return the forms of supersteps and h of a collective; none if it is not as the formulas say.

    Args:
        kind: of :func:`kinds_of`.
        values: the variables, one element for each point.
        observed: what the runs have.
        ratio: l / g of the Machine of the runs.
        find: returns the exact forms of a quantity at some points.
    """
    for element in _ELEMENTS:
        calls = _explained(kind, values, observed, ratio, element)
        if calls is None:
            continue
        several = np.array([not math.isnan(each.nbytes) for each in calls])
        if not several.any():
            return [], []
        counts = find(np.ones(len(calls), bool), np.array([each.calls for each in calls]))
        nbytes = find(several, np.array([each.nbytes for each in calls])[several])
        chosen = list(itertools.product(_simplest(counts), _simplest(nbytes)))
        made = [
            (
                _form(f"steps_{kind}", count, size, element, ratio),
                _form(f"h_{kind}", count, size, element, ratio),
            )
            for count, size in chosen
        ]
        if element == 1 and kind not in _CUT_IN_BYTES:
            made = [_whole(count, size) for count, size in chosen] + made
        right = [pair for pair in made if _gives(pair, values, observed)]
        if right:
            return _distinct([pair[0] for pair in right]), _distinct([pair[1] for pair in right])
    return [], []


def _whole(count: Form, size: Form) -> tuple[Form, Form]:
    """Return supersteps and h of values that are no arrays, and so are always sent whole.

    These are pickles, whose bytes are not a whole number of longer elements.
    """
    h = Form((Fraction(1),), ("(p - 1)",), rounded=True).by(size)
    return count, replace(count.by(h), weight=count.weight + size.weight)


def _simplest(forms: Sequence[Form]) -> list[Form]:
    """Return the simplest forms: nobody gives a collective a size that is made for p."""
    least = min((form.weight for form in forms), default=0)
    return [form for form in forms if form.weight == least][:_MOST_CALLED]


def _distinct(forms: Sequence[Form]) -> list[Form]:
    return list({form.text: form for form in forms}.values())


def _gives(pair: tuple[Form, Form], values: Values, observed: CollectiveCosts) -> bool:
    return all(
        np.allclose(form.at(values), row, rtol=_SAME, atol=0)
        for form, row in zip(pair, observed[:2], strict=True)
    )


def _form(function: str, count: Form, size: Form, element: int, ratio: float) -> Form:
    """Return the form of ``count`` calls of the same cost."""
    cost = f"{function}({size.text}, {element}, {PROCESSES}, {ratio:.12g})"
    terms = tuple(cost if term == "1" else f"{term}*{cost}" for term in count.terms)
    return Form(count.coefficients, terms, rounded=True, weight=count.weight + size.weight)


def _explained(
    kind: str, values: Values, observed: CollectiveCosts, ratio: float, element: int
) -> list[_Calls] | None:
    """Return an explanation of each run, with as many calls in all as possible; None if none."""
    every = [
        _explanations(kind, int(p), row, ratio, element)
        for p, row in zip(values[PROCESSES].tolist(), zip(*observed, strict=True), strict=True)
    ]
    if not all(every):
        return None
    common = set.intersection(*({each.calls for each in found} for found in every))
    if common:
        wanted = max(common)
        return [next(each for each in found if each.calls == wanted) for found in every]
    return [found[0] for found in every]


def _explanations(
    kind: str, p: int, row: Sequence[float], ratio: float, element: int
) -> list[_Calls]:
    """Return numbers of calls, with the bytes of a value, that give what one run has."""
    supersteps, h, moved = row
    if p == 1:
        return [_Calls(supersteps, math.nan)] if not h else []
    found = []
    for steps in range(1, max(p.bit_length(), 2) + 1):
        count = supersteps / steps
        if count != int(count) or not count:
            continue
        for nbytes in _sizes(kind, p, h / count, moved / count, element):
            expected = COSTS[kind](nbytes, element, p, ratio)
            if expected[1] == steps and abs(expected[0] * count - h) <= _SAME * h:
                found.append(_Calls(count, nbytes))
                break
    return found


def _sizes(kind: str, p: int, h: float, moved: float, element: int) -> list[float]:
    """Return the bytes that the value of one call may have, by what it sends.

    Args:
        kind: of the cost function.
        p: number of processes.
        h: bytes of its h-relations.
        moved: bytes that all processes sent together.
        element: bytes of an element.
    """
    sums = [moved / (p - 1), moved / (2 * (p - 1)), moved * p / (p * p - 1)]
    if kind == "prefixed":
        sums.append(moved * p / ((2 * p - 1) * (p - 1)))
    if kind in ("combined", "prefixed") and h:
        # In stages each process sends the whole, and h is a whole number of values.
        sums += [h / (p - 1), *(h / sum(most_received(p, radix)) for radix in RADICES)]
    found = [round(nbytes / element) * element for nbytes in sums]
    near = [m for m, exact in zip(found, sums, strict=True) if abs(m - exact) < element]
    return list(dict.fromkeys(float(m) for m in near))
