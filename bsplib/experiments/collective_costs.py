"""What the collectives that choose their stages cost, as functions for formulas of laws.

Each function has four arguments: the bytes ``m`` of a value, the bytes ``k`` of one element, the
number of processes ``p``, and ``r``, the Machine's l / g in bytes, on which the choice depends.
Those with ``h_`` give the bytes of the h-relations of a call, added over its supersteps, those with
``steps_`` the number of its supersteps. Pieces of an array are of whole elements: where p does not
divide them, some pieces are longer by one; that of the last process is, and not that of process 0.

====================  ============================================================
``combined``          allreduce and scan
``prefixed``          exscan
``reduced``           reduce to process 0
``reduced_to_last``   reduce to process p - 1
``spread``            broadcast from process 0
``spread_from_last``  broadcast from process p - 1
====================  ============================================================

The tests compare what they say with the supersteps of calls.

Source: Jarvis et al. 2002, section 3.2, and :mod:`bsplib.primitives.combinations`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

ONE_STAGE_MOST = 8
"""Greatest number of processes of which each sends its value to all others in one superstep. In
larger groups these messages would take longer than more supersteps."""
LEAST_BYTES = 256
"""A shorter message costs as much as one of this length: the time to send and to deliver it."""
RADICES = (8, 4, 2)
"""How many blocks may exchange their results in one stage, of which the cheapest is chosen. Of
equals the first one has fewer supersteps."""


@lru_cache(maxsize=4096)
def most_received(p: int, radix: int) -> tuple[int, ...]:
    """Return how many values a process receives or sends at most in each stage of a combination.

    In a stage, up to ``radix`` blocks of processes come together. The last block may be short:
    then one of its processes sends to several of each other block.
    """
    found: list[int] = []
    size = 1
    while not found or size < p:
        blocks = -(-p // size)
        together = min(radix, blocks)
        with_last = (blocks - 1) % radix
        short = p - (blocks - 1) * size
        found.append(max(together - 1, with_last * -(-size // short)))
        size *= radix
    return tuple(found)


def _piece(m: float, k: float, p: int) -> float:
    """Return the bytes of the longest of p pieces of a value."""
    return math.ceil(m / k / p - 1e-9) * k


def _shortest(m: float, k: float, p: int) -> float:
    """Return the bytes of the shortest piece, which is that of process 0."""
    return math.floor(m / k / p + 1e-9) * k


def _pays(nbytes: float, p: int, r: float) -> bool:
    return p > 2 and nbytes * (p - 2) > r


def _stages(m: float, k: float, p: int, r: float) -> tuple[int, ...] | None:
    """Return how many values a process gets at most in each stage; None if values are cut."""
    nbytes = 8 * m / k
    counts: tuple[int, ...] = (p - 1,)
    if p <= ONE_STAGE_MOST:
        cut = _pays(nbytes, p, r)
    else:
        ways = [most_received(p, radix) for radix in RADICES]
        costs = [sum(way) * max(nbytes, LEAST_BYTES) + len(way) * r for way in ways]
        counts = ways[costs.index(min(costs))]
        cut = 2 * ((p - 1) * max(nbytes / p, LEAST_BYTES) + r) < min(costs)
    return None if cut else counts


def combined(m: float, k: float, p: int, r: float) -> tuple[float, int]:
    """Return h and supersteps where all processes get the combination of all values."""
    stages = _stages(m, k, p, r)
    if stages is None:
        return 2 * (p - 1) * _piece(m, k, p), 2
    return sum(stages) * m, len(stages)


def prefixed(m: float, k: float, p: int, r: float) -> tuple[float, int]:
    """Return h and supersteps where each process but the first gets an exclusive prefix."""
    stages = _stages(m, k, p, r)
    if stages is not None:
        return sum(stages) * m, len(stages)
    longest, first = _piece(m, k, p), _shortest(m, k, p)
    others_shortest = longest if round(m / k) % p == p - 1 else first
    return (p - 1) * longest + max(m - others_shortest, (p - 2) * longest, (p - 1) * first), 2


def reduced(m: float, k: float, p: int, r: float) -> tuple[float, int]:
    """Return h and supersteps where process 0 gets the combination of all values."""
    if _pays(8 * m / k, p, r):
        return (p - 1) * _piece(m, k, p) + m - _shortest(m, k, p), 2
    return (p - 1) * m, 1


def spread(m: float, k: float, p: int, r: float) -> tuple[float, int]:
    """Return h and supersteps where process 0 sends a value to all others."""
    if _pays(m, p, r):
        # Then a process receives all but its own piece, which is short unless all but one are long.
        are_long = round(m / k) % p == p - 1
        own = _piece(m, k, p) if are_long else _shortest(m, k, p)
        sent = (p - 2) * _piece(m, k, p)  # by who has a longest piece, and root has all
        return m - _shortest(m, k, p) + max(m - own, sent), 2
    return (p - 1) * m, 1


def reduced_to_last(m: float, k: float, p: int, r: float) -> tuple[float, int]:
    """Return h and supersteps where the last process gets the combination of all values."""
    return _at_last(m, k, p, _pays(8 * m / k, p, r))


def spread_from_last(m: float, k: float, p: int, r: float) -> tuple[float, int]:
    """Return h and supersteps where the last process sends a value to all others."""
    return _at_last(m, k, p, _pays(m, p, r))


def _at_last(m: float, k: float, p: int, is_cut: bool) -> tuple[float, int]:
    """Return h and supersteps of an exchange of pieces, of which the root has a longest one."""
    return (m + (p - 2) * _piece(m, k, p), 2) if is_cut else ((p - 1) * m, 1)


_Cost = Callable[[float, float, int, float], tuple[float, int]]
COSTS: dict[str, _Cost] = {
    "combined": combined,
    "prefixed": prefixed,
    "reduced": reduced,
    "reduced_to_last": reduced_to_last,
    "spread": spread,
    "spread_from_last": spread_from_last,
}


def _over_arrays(cost: _Cost, place: int) -> Callable[..., Any]:
    def of_one(m: float, k: float, p: float, r: float) -> float:
        is_finite = all(map(math.isfinite, (m, k, p, r)))
        return float(cost(m, k, int(p), r)[place]) if is_finite else math.nan

    return np.vectorize(of_one, otypes=[float])


def rows(p: int) -> int:
    """Return the rows of a grid of p processes: the greatest divisor that is at most sqrt(p)."""
    return next(count for count in range(math.isqrt(max(p, 1)), 0, -1) if p % count == 0)


COST_FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{quantity}_{name}": _over_arrays(cost, place)
    for name, cost in COSTS.items()
    for place, quantity in enumerate(("h", "steps"))
}
"""By name, functions of four arrays; not a number where an argument is none."""
ROWS: Callable[..., Any] = np.vectorize(lambda p: float(rows(int(p))), otypes=[float])
"""The function ``grid_rows`` of formulas, of an array."""
