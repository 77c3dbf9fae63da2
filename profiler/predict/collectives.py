"""The laws of collectives that choose their stages: from formulas, not from a search.

What a reduction, a scan or a broadcast costs is known in closed form
(:mod:`bsplib.experiments.collective_costs`) from the bytes of its value, the number of processes
and the Machine's l / g. How many calls a cost centre makes, and how long their values are, follows
from the supersteps and bytes of each run; only these two have laws that are searched. The result
counts only if it gives the supersteps and h-relations of all runs. A broadcast whose stages the
program gives is none of these: its form is the same everywhere, and the search finds it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.experiments.collective_costs import COSTS, RADICES, most_received
from bsplib.profiler.predict.laws import EXACT, Law, laws_of
from bsplib.profiler.predict.values import PROCESSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.predict.observed import Quantities

    Vector = NDArray[np.float64]
    Values = Mapping[str, Vector]

_KINDS = {
    "allreduce": ("combined",),
    "scan": ("combined",),
    "exscan": ("prefixed",),
    "reduce": ("reduced", "reduced_to_last"),
    "broadcast": ("spread", "spread_from_last"),
}
"""The cost functions that a collective may have, by its root."""
_ELEMENTS = (8, 4, 1, 2, 16)
"""Bytes of an element, the most usual first."""
_FREE = 1e300
"""l / g in bytes of a Machine on which communication takes no time."""


class CollectiveLaws(NamedTuple):
    """The laws of a cost centre that calls a collective."""

    laws: dict[str, tuple[Law, ...]]
    """Of supersteps, h and h_sum of one call."""
    calls: Vector
    """The calls of each run."""


class _Calls(NamedTuple):
    """An explanation of one run."""

    calls: float
    nbytes: float
    """Of a value; not a number where one process alone sends nothing."""


def ratio_of(g: float | None, latency: float | None) -> float | None:
    """Return l / g of a Machine in bytes; None if it is not known."""
    if g is None or latency is None:
        return None
    return min(latency / g, _FREE) if g > 0 else _FREE


def laws_of_collective(
    name: str, values: Values, observed: Sequence[Quantities], ratio: float
) -> CollectiveLaws | None:
    """Return the laws of a collective; None if no formula holds.

    Args:
        name: of the cost centre.
        values: the variables, one element for each run.
        observed: what the runs have.
        ratio: l / g of the Machine of the runs.

    In sub-groups the number of processes is a law of its own.
    """
    kinds = _KINDS.get(name.rpartition(" · ")[2], ()) if " · " in name else ()
    sizes = np.array([row.members / max(row.supersteps, 1) for row in observed])
    groups = (Law(PROCESSES, 1),) if (sizes == values[PROCESSES]).all() else laws_of(values, sizes)
    whole = bool(groups) and bool((sizes == np.floor(sizes)).all())
    for kind, element in itertools.product(kinds if whole else (), _ELEMENTS):
        found = _laws(kind, element, values, observed, ratio, (sizes, groups[0].text))
        if found is not None:
            return found
    return None


def _laws(
    kind: str,
    element: int,
    values: Values,
    observed: Sequence[Quantities],
    ratio: float,
    groups: tuple[Vector, str],
) -> CollectiveLaws | None:
    """Return the laws of a kind of collective in groups of some sizes, which have a law."""
    every = [
        _explanations(kind, int(p), row, ratio, element)
        for p, row in zip(groups[0].tolist(), observed, strict=True)
    ]
    if not all(every):
        return None
    common = set.intersection(*({each.calls for each in found} for found in every))
    chosen = [
        next((each for each in found if each.calls == max(common, default=-1.0)), found[0])
        for found in every
    ]
    several = np.array([not math.isnan(each.nbytes) for each in chosen])
    if not several.any():
        return None
    called = np.array([each.calls for each in chosen])
    sizes = laws_of(
        {name: array[several] for name, array in values.items()},
        np.array([each.nbytes for each in chosen])[several],
    )
    found: dict[str, list[Law]] = {"supersteps": [], "h": [], "h_sum": []}
    wanted = {name: np.array([getattr(row, name) for row in observed]) / called for name in found}
    for size in sizes:
        cost = f"_{kind}({size.text}, {element}, {groups[1]}, {ratio:.12g})"
        steps, h = Law(f"steps{cost}", size.weight), Law(f"h{cost}", size.weight)
        if _gives(steps, values, wanted["supersteps"]) and _gives(h, values, wanted["h"]):
            found["supersteps"].append(steps)
            found["h"].append(h)
            found["h_sum"] += _sums_of(h, steps, values, wanted["h_sum"])
    if not found["supersteps"]:
        return None
    laws = {quantity: tuple(laws) for quantity, laws in found.items() if laws}
    return CollectiveLaws(laws, called)


def _gives(law: Law, values: Values, wanted: Vector) -> bool:
    points = ({name: array[row] for name, array in values.items()} for row in range(len(wanted)))
    return all(
        abs(law.at(point) - value) <= EXACT * max(value, 1)
        for point, value in zip(points, wanted, strict=True)
    )


def _sums_of(h: Law, steps: Law, values: Values, wanted: Vector) -> list[Law]:
    """Return the laws of in and out together: h, twice h, or that of some supersteps.

    Of two supersteps with pieces of one value, one is an exchange and the other one to or from the
    root alone; and a scan is an exchange only in stages.
    """
    often = ("1", "2", f"(1 + {steps.text})/2", f"min({steps.text}, 2)")
    texts = [f"{h.text}*{each}".removesuffix("*1") for each in often]
    laws = [Law(text, h.weight) for text in texts]
    return [law for law in laws if _gives(law, values, wanted)]


def _explanations(kind: str, p: int, row: Quantities, ratio: float, element: int) -> list[_Calls]:
    """Return numbers of calls, with the bytes of a value, that give what one run has."""
    supersteps, h = row.supersteps, row.h
    if p == 1:
        return [_Calls(supersteps, math.nan)] if not h else []
    found = []
    for steps in range(1, max(p.bit_length(), 2) + 1):
        count = supersteps / steps
        if count != int(count) or not count:
            continue
        for nbytes in _sizes(kind, p, h / count, row.moved / count, element):
            expected = COSTS[kind](nbytes, element, p, ratio)
            if expected[1] == steps and abs(expected[0] * count - h) <= EXACT * h:
                found.append(_Calls(count, nbytes))
                break
    return found


def _sizes(kind: str, p: int, h: float, moved: float, element: int) -> list[float]:
    """Return the bytes that the value of one call may have, by what it sends."""
    sums = [moved / (p - 1), moved / (2 * (p - 1)), moved * p / (p * p - 1)]
    if kind == "prefixed":
        sums.append(moved * p / ((2 * p - 1) * (p - 1)))
    if kind in ("combined", "prefixed") and h:
        # In stages each process sends the whole, and h is a whole number of values.
        sums += [h / (p - 1), *(h / sum(most_received(p, radix)) for radix in RADICES)]
    found = [round(nbytes / element) * element for nbytes in sums]
    near = [m for m, exact in zip(found, sums, strict=True) if abs(m - exact) < element]
    return list(dict.fromkeys(float(m) for m in near))
