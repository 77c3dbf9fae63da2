"""The seventeen critical paths: from ``main`` to the cost centre with the greatest score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bsplib.profiler.costs import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler.callgraph import CallGraph, Cost

MEASURES = ("abs", "imb", "rel", "weighted")
"""The maximum; maximum - average; 1 - average / maximum; the product of the last two."""

PATHS = ("sync", *(f"{metric}-{measure}" for metric in METRICS for measure in MEASURES))
"""Names of the critical paths; ``sync`` is the number of supersteps."""

LOSS = "loss"
"""Name of the view of losses, in seconds; see :mod:`bsplib.profiler.loss`."""
VIEWS = (LOSS, *PATHS)
"""The views of a call graph: the losses, with which a page opens, and the critical paths."""

METRIC_TITLES = {
    "comp": "computation",
    "comm": "communication",
    "idle": "idle time",
    "h": "h-relation",
}
"""Names of the metrics in texts for users."""

MEASURE_TITLES = {
    "abs": "absolute",
    "imb": "absolute imbalance",
    "rel": "relative imbalance",
    "weighted": "weighted imbalance",
}

TITLES = {"sync": "number of supersteps"} | {
    f"{metric}-{measure}": f"{METRIC_TITLES[metric]}, {MEASURE_TITLES[measure]}"
    for metric in METRICS
    for measure in MEASURES
}
"""Names of the paths in texts for users."""


def check_path(path: str) -> None:
    """Raise ValueError if there is no critical path of this name."""
    if path not in TITLES:
        raise ValueError(f"no critical path is called {path!r}; they are {', '.join(PATHS)}")


def score(cost: Cost, path: str) -> float:
    """Return how bad a cost is under a critical path; never negative.

    Args:
        cost: the cost of a node, an edge or a path.
        path: one of ``PATHS``.

    Returns:
        Supersteps for ``sync``; for ``abs`` and ``imb`` seconds, or bytes of h; for
        ``rel`` a fraction, 0 where the maximum is 0; for ``weighted`` imb times rel.

    Raises:
        ValueError: there is no such path.

    Source: Jarvis et al. 2002, section 3.4.
    """
    check_path(path)
    if path == "sync":
        return float(cost.count)
    metric, measure = path.split("-")
    summary = cost[metric]
    imbalance = summary.maximum - summary.average
    relative = imbalance / summary.maximum if summary.maximum else 0.0
    scores = {
        "abs": summary.maximum,
        "imb": imbalance,
        "rel": relative,
        "weighted": imbalance * relative,
    }
    return scores[measure]


def shades(callgraph: CallGraph, path: str) -> dict[str, float]:
    """Return how red each node is: the square root of its score on the scale of the path.

    The scale means something for every program, so that a balanced one is white in its
    imbalance views, however its nodes rank among each other.

    Returns:
        By node id, 0 (white) to 1 (red); all 0 if the scale is 0.

    Raises:
        ValueError: there is no such path.
    """
    costs = dict(callgraph.graph.nodes(data="cost"))
    greatest = scale(costs.values(), path)
    return {
        name: math.sqrt(score(cost, path) / greatest) if greatest else 0.0
        for name, cost in costs.items()
    }


def scale(costs: Iterable[Cost], path: str) -> float:
    """Return the score that is shown as red.

    Args:
        costs: the costs of all nodes.
        path: one of ``PATHS``.

    Returns:
        For ``rel`` 1; for ``sync`` the greatest count; otherwise the greatest maximum of
        the metric among the nodes, in seconds or bytes, also for the imbalances.

    Raises:
        ValueError: there is no such path.
    """
    check_path(path)
    if path.endswith("-rel"):
        return 1.0
    size = "sync" if path == "sync" else f"{path.partition('-')[0]}-abs"
    return max(score(cost, size) for cost in costs)


def critical_path(callgraph: CallGraph, path: str) -> list[str]:
    """Follow the greatest score from ``main`` to a cost centre.

    At each node only the costs that passed through the path so far count, so that the
    costs of other callers have no influence. Among equal scores, the greater maximum of
    the metric is chosen, and then the stack that was recorded first.

    Returns:
        Node ids from the root to a leaf; empty if the score of the root is 0, since
        nothing is critical then.

    Raises:
        ValueError: there is no such path.
    """
    chain = [callgraph.root]
    if score(callgraph.graph.nodes[callgraph.root]["cost"], path) == 0:
        return []
    size = "sync" if path == "sync" else f"{path.partition('-')[0]}-abs"
    while following := callgraph.onward(chain):
        rank = {name: (score(cost, path), score(cost, size)) for name, cost in following.items()}
        chain.append(max(rank, key=rank.__getitem__))
    return chain
