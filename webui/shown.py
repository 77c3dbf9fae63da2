"""Which nodes of a large call graph are shown at first, and the lines between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler.costs import METRICS
from profiler.critical import PATHS, critical_path
from webui.layout import Link

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import networkx

    from profiler.callgraph import CallGraph

MOST_SHOWN = 80
"""About so many nodes can be read on a screen."""
NEGLIGIBLE = 0.001
"""Part of the cost of a run below which the end of ``main`` is not shown."""


def first_shown(callgraph: CallGraph) -> list[str]:
    """Return the nodes that are shown at first, in the order of the call graph.

    These are all nodes of the critical paths and then those that cost most, ``MOST_SHOWN``
    of them. The stretch from the last superstep to the end of ``main`` is left out where it
    costs nothing to speak of.
    """
    graph = callgraph.graph
    costs = {name: _seconds(graph, name) for name in graph}
    chosen = {callgraph.root}
    for path in PATHS:
        chosen.update(critical_path(callgraph, path))
    for name in sorted(graph, key=costs.__getitem__, reverse=True):
        if len(chosen) >= MOST_SHOWN:
            break
        if graph.nodes[name]["node"].sync != "end" or costs[name] > _least(costs):
            chosen.add(name)
    return [name for name in graph if name in chosen]


def dropped(callgraph: CallGraph, shown: Collection[str]) -> str:
    """Return a sentence that says what is not shown; empty if that is nothing."""
    graph = callgraph.graph
    others = [name for name in graph if name not in set(shown)]
    whole = max((_seconds(graph, name) for name in graph), default=0.0)
    if not others or not whole:
        return ""
    most = max(_seconds(graph, name) for name in others)
    nodes = "1 node is" if len(others) == 1 else f"{len(others)} of {len(graph)} nodes are"
    part = f"{100 * most / whole:.2g}%"
    return f"{nodes} folded into dashed lines; none of them costs more than {part} of the run."


def links(graph: networkx.DiGraph, shown: Collection[str]) -> list[Link]:
    """Return the lines between nodes: the edges, and calls through nodes that are not shown.

    Args:
        graph: the call graph; nodes and edges are numbered in its order.
        shown: ids of the nodes that are shown.
    """
    number = {name: position for position, name in enumerate(graph)}
    edges = {edge: position for position, edge in enumerate(graph.edges)}
    kept = set(shown)
    return [
        Link(number[caller], number[callee], edges.get((caller, callee)))
        for caller in shown
        for callee in _reached(graph, caller, kept)
    ]


def _reached(graph: networkx.DiGraph, caller: str, shown: Collection[str]) -> Iterator[str]:
    """Yield each shown node that is called directly or through nodes that are not shown."""
    seen = {caller}
    waiting = list(graph.successors(caller))[::-1]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in shown:
            yield name
        else:
            waiting.extend(graph.successors(name))


def _seconds(graph: networkx.DiGraph, name: str) -> float:
    """Return a bound of the time that a node takes: computation, communication and waiting."""
    cost = graph.nodes[name]["cost"]
    return sum(float(cost[metric].maximum) for metric in METRICS if metric != "h")


def _least(costs: dict[str, float]) -> float:
    return NEGLIGIBLE * max(costs.values())
