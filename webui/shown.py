"""Which nodes of a large call graph the page shows at first, and what is said of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bsplib.profiler import shown
from bsplib.profiler.critical import PATHS, critical_path
from bsplib.webui.layout import Link

if TYPE_CHECKING:
    from collections.abc import Collection

    import networkx

    from bsplib.profiler.losses import Ledger

NEGLIGIBLE = 0.001
"""Part of the cost of a run below which the end of ``main`` is not shown."""


def first_shown(ledger: Ledger) -> list[str]:
    """Return the nodes that are shown at first, in the order of the call graph.

    These are all nodes of the critical paths and then those that lose most, about 80. The
    stretch from the last superstep to the end of ``main`` is left out where it costs nothing
    to speak of.
    """
    callgraph = ledger.callgraph
    graph = callgraph.graph
    ranks = {name: (booked.lost_s, booked.cost_s) for name, booked in ledger.nodes.items()}
    always = {callgraph.root, *ledger.path()}
    for path in PATHS:
        always.update(critical_path(callgraph, path))
    chosen = shown.chosen(graph, ranks, always)
    return [name for name in chosen if name in always or not _is_idle_end(ledger, name)]


def _is_idle_end(ledger: Ledger, name: str) -> bool:
    """Tell whether a node is the end of ``main`` and costs next to nothing."""
    node = ledger.callgraph.graph.nodes[name]["node"]
    return node.sync == "end" and ledger.nodes[name].cost_s <= NEGLIGIBLE * ledger.cost_s


def dropped(ledger: Ledger, names: Collection[str]) -> str:
    """Return a sentence that says what is not shown; empty if that is nothing of interest."""
    others = {name for name in set(ledger.nodes) - set(names) if not _is_idle_end(ledger, name)}
    if not others or not ledger.cost_s:
        return ""
    most = max(ledger.nodes[name].cost_s for name in others) / ledger.cost_s
    count = len(ledger.nodes)
    if len(others) == 1:
        return f"1 of {count} nodes is not shown: it takes {_percent(most)} of the time."
    return (
        f"{len(others)} of {count} nodes are folded into dashed lines: "
        f"each takes {_percent(most)} of the time, or less."
    )


def _percent(part: float) -> str:
    return f"{100 * part:.2g}%" if part >= NEGLIGIBLE else "less than 0.1%"


def links(graph: networkx.DiGraph, names: Collection[str]) -> list[Link]:
    """Return the lines between nodes: the edges, and calls through nodes that are not shown.

    Args:
        graph: the call graph; nodes and edges are numbered in its order.
        names: ids of the nodes that are shown.
    """
    number = {name: position for position, name in enumerate(graph)}
    edges = {edge: position for position, edge in enumerate(graph.edges)}
    return [
        Link(number[caller], number[callee], edges.get((caller, callee)))
        for caller, callee, _ in shown.links(graph, names)
    ]
