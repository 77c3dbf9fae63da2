"""The seventeen critical paths: from ``main`` to the cost centre with the greatest score."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from bsplib.profiler.costs import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bsplib.profiler.callgraph import CallGraph, Cost

Part = TypeVar("Part")

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
    if path not in TITLES:
        raise ValueError(f"no critical path is called {path!r}; they are {', '.join(PATHS)}")
    if path == "sync":
        return float(cost.count)
    metric, measure = path.split("-")
    summary = cost[metric]
    imbalance = summary.maximum - summary.average
    relative = imbalance / summary.maximum if summary.maximum else 0.0
    scores = summary.maximum, imbalance, relative, imbalance * relative
    return scores[MEASURES.index(measure)]


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
    if path.endswith("-rel"):
        return 1.0
    return max(score(cost, size_path(path)) for cost in costs)


def size_path(path: str) -> str:
    """Return the path that compares the whole cost where this one compares its imbalance."""
    return path if path == "sync" else f"{path.partition('-')[0]}-abs"


def descend(
    root: str,
    whole: Part,
    onward: Callable[[Sequence[str]], Mapping[str, Part]],
    rank: Callable[[Part], tuple[float, float]],
) -> list[tuple[str, Part]]:
    """Follow the greatest rank from the root to a cost centre.

    Args:
        root: id of the root.
        whole: what the root has.
        onward: returns what came through a call chain, by the next node below it.
        rank: what is compared; of equals, the stack that was recorded first is chosen.

    Returns:
        Nodes from the root to a leaf, each with what came through the path until there; empty if
        the rank of the root begins with 0, since nothing is critical then.
    """
    if not rank(whole)[0]:
        return []
    path = [(root, whole)]
    while following := onward([name for name, _ in path]):
        path.append(max(following.items(), key=lambda each: rank(each[1])))
    return path


def critical_path(callgraph: CallGraph, path: str) -> list[str]:
    """Return the ids of the nodes of :func:`critical_steps`."""
    return [name for name, _ in critical_steps(callgraph, path)]


def critical_steps(callgraph: CallGraph, path: str) -> list[tuple[str, Cost]]:
    """Follow the greatest score from ``main`` to a cost centre.

    At each node only the costs that passed through the path so far count, so that the
    costs of other callers have no influence. Among equal scores, the greater maximum of
    the metric is chosen.

    Raises:
        ValueError: there is no such path.
    """
    whole: Cost = callgraph.graph.nodes[callgraph.root]["cost"]
    size = size_path(path)
    return descend(
        callgraph.root,
        whole,
        callgraph.onward,
        lambda cost: (score(cost, path), score(cost, size)),
    )
