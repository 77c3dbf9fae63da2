"""The seventeen critical paths: what is worst, and how one gets there from ``main``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.costs import METRICS

if TYPE_CHECKING:
    from profiler.callgraph import CallGraph, Cost

MEASURES = ("abs", "imb", "rel", "weighted")
"""Maximum; maximum - average; 1 - average / maximum; the product of the last two."""

PATHS = ("sync", *(f"{metric}-{measure}" for metric in METRICS for measure in MEASURES))
"""Names of the critical paths; ``sync`` is the number of supersteps."""

METRIC_TITLES = {
    "comp": "computation",
    "comm": "communication",
    "idle": "idle time",
    "h": "h-relation",
}
"""What to call each metric before people."""

_MEASURE_TITLES = {
    "abs": "absolute",
    "imb": "absolute imbalance",
    "rel": "relative imbalance",
    "weighted": "weighted imbalance",
}

TITLES = {"sync": "number of supersteps"} | {
    f"{metric}-{measure}": f"{METRIC_TITLES[metric]}, {_MEASURE_TITLES[measure]}"
    for metric in METRICS
    for measure in MEASURES
}
"""What to call each path before people."""


def check_path(path: str) -> None:
    """Raise ValueError where there is no such critical path."""
    if path not in TITLES:
        raise ValueError(f"no critical path is called {path!r}; they are {', '.join(PATHS)}")


def score(cost: Cost, path: str) -> float:
    """How bad a cost is under a critical path; never negative.

    Args:
        cost: of a node, an edge or a path.
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
    """How red each node is: its score over the greatest score in the graph.

    Returns:
        By node id, 0 (white) to 1 (red); all 0 where no node scores.

    Raises:
        ValueError: there is no such path.
    """
    scores = {name: score(cost, path) for name, cost in callgraph.graph.nodes(data="cost")}
    greatest = max(scores.values())
    return {name: value / greatest if greatest else 0.0 for name, value in scores.items()}


def critical_path(callgraph: CallGraph, path: str) -> list[str]:
    """Follow the greatest score from ``main`` to a cost centre.

    At each node only that part of the costs counts that came through the path so far,
    so that no caller is blamed for another's. Of equal scores the greater maximum of
    the metric wins, and then the stack that was recorded first.

    Returns:
        Node ids from the root to a leaf; empty where the root scores 0, since then
        nothing is critical.

    Raises:
        ValueError: there is no such path.
    """
    way = [callgraph.root]
    if score(callgraph.graph.nodes[callgraph.root]["cost"], path) == 0:
        return []
    size = "sync" if path == "sync" else f"{path.partition('-')[0]}-abs"
    while following := callgraph.onward(way):
        rank = {name: (score(cost, path), score(cost, size)) for name, cost in following.items()}
        way.append(max(rank, key=rank.__getitem__))
    return way
