"""Which value is best, which ones cannot be told from it, and what moves as a value grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import NamedTuple

from bsplib.profiler.sweep.points import METRICS, Centre, Costs, Key, added

NEAR = 0.02
"""Less than this part is no difference, of medians and of what changes in the whole run: the tables
show two digits."""
_LEAST_TREND = 0.5
"""Kendall's tau from which on an amount rises or falls with the parameter."""


class Judgement(NamedTuple):
    """The value with the least median, and what is not told from it."""

    best: Key
    alike: tuple[Key, ...]
    medians: dict[Key, float]

    @property
    def others(self) -> list[float]:
        """By which part the values take longer that are told from the best, in order."""
        least = self.medians[self.best]
        return sorted(
            seconds / least - 1
            for key, seconds in self.medians.items()
            if key not in (self.best, *self.alike)
        )


def judge(samples: Mapping[Key, Sequence[float]]) -> Judgement:
    """Compare the times of some values.

    One is told from the best if its least time is above the greatest of the best, as the table
    shows both, and its median by more than 2%.

    Args:
        samples: the times of each value.
    """
    medians = {key: median(times) for key, times in samples.items()}
    best = min(medians, key=lambda key: medians[key])
    alike = tuple(
        key
        for key, times in samples.items()
        if key != best
        and (min(times) <= max(samples[best]) or medians[key] <= medians[best] * (1 + NEAR))
    )
    return Judgement(best, alike, medians)


class Move(NamedTuple):
    """A quantity of a cost centre that rises or falls with the parameter."""

    centre: Centre
    quantity: str
    """``h`` or ``comp``, whose max/avg changes, or ``seconds``."""
    change: float
    """As a part of the quantity in the whole run."""
    first: float
    last: float


def moves(series: Sequence[Mapping[Centre, Costs]]) -> list[Move]:
    """Return what changes as the parameter grows: of each quantity most of all, h first.

    Of the balance of h and of computation the greatest change of maximum - average counts, of
    time the greatest rise and the greatest fall.

    Args:
        series: the costs for each value, in order.

    Source: Jarvis et al. 2002, section 4.3: stages 2 and 3 against 6 and 7 of the sort.
    """
    totals = [added(each.values()) for each in series]
    centres = list(dict.fromkeys(centre for each in series for centre in each))
    found: dict[tuple[str, bool], Move] = {}
    for centre in centres:
        costs = [each.get(centre, Costs()) for each in series]
        for quantity in (*METRICS, "seconds"):
            if quantity == "seconds":
                whole = min(each.seconds for each in totals)
                shown = amounts = [each.seconds for each in costs]
            else:
                whole = min(each.maximum(quantity) for each in totals)
                amounts = [each.excess(quantity) for each in costs]
                shown = [each.ratio(quantity) for each in costs]
            change = rise(amounts) / whole if whole else 0.0
            if abs(change) < NEAR or f"{shown[0]:.2g}" == f"{shown[-1]:.2g}":
                continue
            kind = quantity, change > 0 and quantity == "seconds"
            move = Move(centre, quantity, change, shown[0], shown[-1])
            found[kind] = max(found.get(kind, move), move, key=lambda each: abs(each.change))
    order = [(quantity, rises) for quantity in (*METRICS, "seconds") for rises in (False, True)]
    return [found[kind] for kind in order if kind in found]


def rise(amounts: Sequence[float]) -> float:
    """Return the last third less the first, on average; 0 if there is no clear trend."""
    third = -(-len(amounts) // 3)
    pairs = [(b > a) - (b < a) for at, a in enumerate(amounts) for b in amounts[at + 1 :]]
    if not pairs or abs(mean(pairs)) < _LEAST_TREND:
        return 0.0
    return mean(amounts[-third:]) - mean(amounts[:third])
