"""The trade-off of a parameter: which cost centres cost more, and which gain balance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bsplib.profiler import format as fmt
from bsplib.profiler.models.prediction import TimeParts
from bsplib.profiler.summary import Summary
from bsplib.profiler.tune.sweep import MODEL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bsplib.profiler.callgraph import Node
    from bsplib.profiler.tune.sweep import Point

_LEAST_TREND = 0.5
"""Kendall's tau from which on an amount counts as rising with the parameter."""
_LEAST_CHANGE = 0.02
"""Least change that counts, as a fraction of the least total; smaller ones may be noise."""
METRICS = ("h", "comp")
"""What may become more balanced: the h-relation and the computation."""


class Centre(NamedTuple):
    """A cost centre that is the same in all runs."""

    function: str
    """The function that contains the sync."""
    line: str
    """File and line, as in ``sort.py line 31``."""
    sync: str
    """``sync``, ``oblsync`` or ``end``."""

    def __str__(self) -> str:
        where = f"{self.line}, end" if self.sync == "end" else self.line
        return f"{self.function} ({where})"


class Costs(NamedTuple):
    """The cost of one or several cost centres with one value."""

    h: Summary
    """h in bytes."""
    comp: Summary
    """Computation in seconds."""
    seconds: float
    """On the Machine of the run: w + g h + l."""

    def imbalance(self, metric: str) -> float:
        """Return maximum / average of ``h`` or ``comp``; 1 if both are 0."""
        summary: Summary = getattr(self, metric)
        return summary.maximum / summary.average if summary.average else 1.0


@dataclass(frozen=True)
class Trade:
    """The cost centres that cost more, and those that become more balanced.

    Both as the parameter grows.
    """

    values: tuple[int, ...]
    costs: dict[Centre, tuple[Costs, ...]]
    """The costs of each centre for each value; centres are in the order of execution."""
    pays: tuple[Centre, ...]
    """The centres that cost more."""
    evened: dict[str, tuple[Centre, ...]]
    """The centres whose h-relation (``h``) or computation (``comp``) becomes more balanced."""

    @property
    def gains(self) -> tuple[Centre, ...]:
        """The centres that become more balanced in either metric."""
        even = {centre for centres in self.evened.values() for centre in centres}
        return tuple(centre for centre in self.costs if centre in even)

    def of(self, centres: Iterable[Centre]) -> list[Costs]:
        """Add up the costs of some centres, for each value."""
        chosen = [self.costs[centre] for centre in centres]
        return [_sum(costs) for costs in zip(*chosen, strict=True)] or [_sum(())] * len(self.values)

    @property
    def rest(self) -> tuple[Centre, ...]:
        """The centres that neither cost more nor become more balanced."""
        return tuple(
            centre for centre in self.costs if centre not in self.pays and centre not in self.gains
        )


def find_trade(points: Sequence[Point]) -> Trade:
    """Find out which cost centres pay for a greater parameter, and which gain by it.

    A centre pays if the maximum of its computation or of its h-relation rises with the
    parameter. It gains if the imbalance (maximum - average) of one of them falls. If both
    are true, the greater change counts.

    Source: Jarvis et al. 2002, section 4.3: stages 2 and 3 against 6 and 7 of the sort.
    """
    found = [_costs(point) for point in points]
    order = list(dict.fromkeys(centre for costs in found for centre in costs))
    costs = {centre: tuple(each.get(centre, _sum(())) for each in found) for centre in order}
    totals = {
        metric: min(sum(getattr(cost, metric).maximum for cost in each.values()) for each in found)
        for metric in METRICS
    }
    pays: list[Centre] = []
    evened: dict[str, tuple[Centre, ...]] = dict.fromkeys(METRICS, ())
    for centre, series in costs.items():
        risen = max(_rise(series, metric, totals[metric], _maximum) for metric in METRICS)
        fallen = {metric: _rise(series, metric, totals[metric], _evenness) for metric in METRICS}
        if risen > 0 and risen >= max(fallen.values()):
            pays.append(centre)
            continue
        for metric in METRICS:
            if fallen[metric] > 0:
                evened[metric] += (centre,)
    values = tuple(point.value for point in points)
    return Trade(values, costs, tuple(pays), evened)


def _maximum(summary: Summary) -> float:
    return summary.maximum


def _evenness(summary: Summary) -> float:
    return summary.average - summary.maximum


def _rise(
    series: Sequence[Costs], metric: str, total: float, what: Callable[[Summary], float]
) -> float:
    """Return the rise of an amount with the parameter, divided by the total; 0 if not clear."""
    amounts = np.array([what(getattr(cost, metric)) for cost in series])
    third = -(-len(amounts) // 3)
    change = float(amounts[-third:].mean() - amounts[:third].mean())
    if not total or change < _LEAST_CHANGE * total or trend(amounts) < _LEAST_TREND:
        return 0.0
    return change / total


def trend(amounts: NDArray[np.float64]) -> float:
    """Return Kendall's tau of amounts over their positions: 1 if all rise, -1 if all fall."""
    differences = np.sign(amounts[None, :] - amounts[:, None])[np.triu_indices(len(amounts), 1)]
    return float(differences.mean()) if len(differences) else 0.0


def _costs(point: Point) -> dict[Centre, Costs]:
    """Return the costs of the cost centres of a run, in the order of execution."""
    graph = point.prediction.callgraph.graph
    seconds = point.prediction.nodes[MODEL]
    costs: dict[Centre, list[Costs]] = {}
    for name, node in graph.nodes(data="node"):
        if node.kind == "cost_centre":
            cost = graph.nodes[name]["cost"]
            centre = _centre(node, [graph.nodes[caller]["node"] for caller in graph.pred[name]])
            costs.setdefault(centre, []).append(
                Costs(cost.h, cost.comp, seconds.get(name, TimeParts(0, 0, 0)).total_s)
            )
    return {centre: _sum(each) for centre, each in costs.items()}


def _centre(node: Node, callers: Sequence[Node]) -> Centre:
    function = ", ".join(sorted({fmt.visible(caller.name) for caller in callers}))
    return Centre(function, fmt.visible(node.name), node.sync)


def _sum(costs: Sequence[Costs]) -> Costs:
    return Costs(
        _sum_summaries([cost.h for cost in costs]),
        _sum_summaries([cost.comp for cost in costs]),
        sum(cost.seconds for cost in costs),
    )


def _sum_summaries(summaries: Sequence[Summary]) -> Summary:
    """Add the summaries of centres, which are executed one after another."""
    return Summary(
        sum(summary.maximum for summary in summaries),
        sum(summary.average for summary in summaries),
        sum(summary.minimum for summary in summaries),
        (),
    )
