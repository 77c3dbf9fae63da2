"""A run on other Machines: what every node costs there, and where the order of the nodes changes.

A superstep costs ``max w + h g + l``. With other g, l and speed the same records are priced
anew; the program does not run again. Between two values of one of these figures another
node may become the one that costs most, and another loss the greatest: a *crossover*.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bsplib.profiler.kinds import CORE
from bsplib.profiler.losses import book

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph
    from bsplib.profiler.losses import Ledger
    from bsplib.profiler.rates import Rates

FIGURES = ("g", "l", "ratio")
"""The figures of :class:`bsplib.profiler.rates.Rates` that can be varied."""

LEADERS = 5
"""Nodes are compared that are among this number of costliest ones, at either end."""
LEAST_SHARE = 0.01
"""Nodes are compared where they cost at least this part of the run."""

_EQUAL = 1e-9
"""Two costs are equal if they differ by this part of them."""
_NARROW = 1e-4
"""A crossover is known well enough if it lies in an interval of this relative width."""

Item = TypeVar("Item", bound=Hashable)
Costs = Callable[[float], Mapping[Item, float]]


class Overtaking(NamedTuple):
    """From a value of a figure on, one cost centre costs more than another."""

    value: float
    """Value of the figure: seconds per byte for g, seconds for l, a fraction for ratio."""
    node: str
    """Id of the cost centre that costs more above the value."""
    other: str
    """Id of the cost centre that costs more below the value."""
    leads: bool
    """Whether ``node`` costs most of all above the value."""


class LossAt(NamedTuple):
    """What a loss is at all rates."""

    kind: str
    """One of ``bsplib.profiler.kinds.KINDS``."""
    chain: tuple[str, ...]
    """Ids of the nodes from ``main`` to the cost centre."""


class NewLoss(NamedTuple):
    """From a value of a figure on, another loss is the greatest."""

    value: float
    """As in :class:`Overtaking`."""
    before: LossAt
    after: LossAt


@dataclass(frozen=True)
class Scan:
    """What changes while one figure grows and the others stay."""

    figure: str
    """One of ``FIGURES``."""
    low: float
    high: float
    rule: str
    """For h: ``max`` or ``sum``."""
    overtakings: tuple[Overtaking, ...]
    """By rising value."""
    new_losses: tuple[NewLoss, ...]
    """By rising value."""


def scan(callgraph: CallGraph, rates: Rates, figure: str, low: float, high: float) -> Scan:
    """Find the crossovers while a figure grows.

    Args:
        callgraph: the call graph of the run.
        rates: the other figures, and the rule for h.
        figure: one of ``FIGURES``.
        low: where the figure begins, not negative: seconds per byte for g, seconds for l,
            and for ratio the time of a computation divided by the recorded time.
        high: where it ends; greater than ``low``.
    """

    @functools.cache
    def priced(value: float) -> Ledger:
        return book(callgraph, replace(rates, **{figure: value}))  # type: ignore[arg-type]

    overtakings = sorted(_overtakings(callgraph, priced, low, high))
    new_losses = crossings(lambda value: _losses(priced(value)), low, high)
    return Scan(
        figure,
        low,
        high,
        rates.rule,
        tuple(overtakings),
        tuple(NewLoss(*crossing) for crossing in new_losses),
    )


def _overtakings(
    callgraph: CallGraph, priced: Callable[[float], Ledger], low: float, high: float
) -> Iterator[Overtaking]:
    """Yield the crossovers of the cost centres that cost most at either end."""
    leaves = callgraph.leaves()
    leading = [_leading(priced(value), leaves) for value in (low, high)]
    for pair in combinations(dict.fromkeys(leading[0] + leading[1]), 2):
        for value, other, node in crossings(lambda value: _of(priced(value), pair), low, high):  # noqa: B023  # called at once
            ledger = priced(value)
            cost_s = ledger.nodes[node].cost_s
            if cost_s >= LEAST_SHARE * ledger.cost_s:
                rivals = (leaf for leaf in leaves if leaf not in pair)
                leads = all(ledger.nodes[leaf].cost_s <= cost_s for leaf in rivals)
                yield Overtaking(value, node, other, leads)


def _leading(ledger: Ledger, leaves: Sequence[str]) -> list[str]:
    return sorted(leaves, key=lambda leaf: -ledger.nodes[leaf].cost_s)[:LEADERS]


def _of(ledger: Ledger, nodes: Sequence[str]) -> dict[str, float]:
    return {node: ledger.nodes[node].cost_s for node in nodes}


def _losses(ledger: Ledger) -> dict[LossAt, float]:
    """Return the seconds of the losses that depend on the Machine."""
    smallest_first = reversed(ledger.losses)  # of losses with one key, the greatest comes last
    return {
        LossAt(loss.kind, tuple(loss.chain)): loss.seconds
        for loss in smallest_first
        if loss.kind != CORE
    }


def crossings(
    costs: Costs[Item], low: float, high: float, *, halve: bool = False
) -> list[tuple[float, Item, Item]]:
    """Return where another item becomes the greatest, as an argument grows.

    Exact where the costs are linear; otherwise within ``_NARROW``. An item that is the
    greatest at both ends is taken to be the greatest between them, as it is if the costs
    are linear.

    Args:
        costs: the items and their costs at an argument; a missing item costs 0.
        low: the least argument.
        high: the greatest argument.
        halve: try the middle first, and not where straight lines would cross.

    Returns:
        Tuples of the argument, the item that is the greatest before, and the one after it.
    """
    at_low, at_high = costs(low), costs(high)
    if not at_low or not at_high:
        return []
    before, after = (max(at, key=at.__getitem__) for at in (at_low, at_high))
    ahead = at_low[before] - at_low.get(after, 0.0)
    behind = at_high[after] - at_high.get(before, 0.0)
    if not ahead or not behind:  # the same item, or items that are equal at an end
        return []
    middle = low + (high - low) * (0.5 if halve else ahead / (ahead + behind))
    if high - low <= _NARROW * high or _are_greatest(costs(middle), before, after):
        return [(middle, before, after)]
    return [
        *crossings(costs, low, middle, halve=not halve),
        *crossings(costs, middle, high, halve=not halve),
    ]


def _are_greatest(at: Mapping[Item, float], *items: Item) -> bool:
    """Tell whether these items all have the greatest cost."""
    top = max(at.values(), default=0.0)
    return all(top - at.get(item, 0.0) <= _EQUAL * top for item in items)
