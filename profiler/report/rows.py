"""Which nodes a report shows, and in which order; all functions are pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx

from bsplib.profiler.costs import METRICS

if TYPE_CHECKING:
    from bsplib.profiler.callgraph import CallGraph, Cost
    from bsplib.profiler.losses import Booked
    from bsplib.profiler.profile import RunProfile

TREE = "tree"
"""Order of the call tree: each node under its nearest caller."""
SORTS = ("loss", "cost", *METRICS, "supersteps", "name", TREE)
"""The orders of rows: by greatest loss, cost, maximum of a metric or supersteps; by name."""

MOST_ROWS = 40
"""Rows that are shown unless a user asks for more."""


@dataclass(frozen=True)
class RowChoice:
    """Which nodes are shown, and in which order."""

    sort: str = "loss"
    """One of ``SORTS``."""
    top: int | None = None
    """Greatest number of rows; None: all."""
    depth: int | None = None
    """Greatest number of calls from ``main`` to a node; None: any."""

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise ValueError(f"no order is called {self.sort!r}; they are {', '.join(SORTS)}")

    @property
    def column(self) -> str:
        """Key of the column that matters most in this order."""
        return "loss" if self.sort in {"name", TREE} else self.sort


class NodeRow(NamedTuple):
    """A node, or the part of it that came through an edge."""

    node: str
    """Its id."""
    depth: int
    """Number of calls from ``main``."""
    cost: Cost
    booked: Booked


class Rest(NamedTuple):
    """The nodes that are not shown."""

    nodes: int
    loss_s: float
    """Loss of the cost centres among them; functions would count it twice."""
    cost_s: float
    """Cost of the cost centres among them."""


def choose(profile: RunProfile, choice: RowChoice) -> tuple[list[NodeRow], Rest]:
    """Return the rows to show, in order, and the sum of the others."""
    rows = [row for row in tree_rows(profile) if not _is_empty_end(profile.callgraph, row)]
    chosen = [row for row in rows if choice.depth is None or row.depth <= choice.depth]
    chosen = ordered(profile.callgraph, chosen, choice.sort)[: choice.top]
    shown = {row.node for row in chosen}
    return chosen, _rest(profile.callgraph, [row for row in rows if row.node not in shown])


def ordered(callgraph: CallGraph, rows: list[NodeRow], sort: str) -> list[NodeRow]:
    """Return rows in an order; of equals, those nearer to ``main`` come first."""
    if sort == TREE:
        return rows
    near = sorted(rows, key=lambda row: row.depth)
    if sort == "name":
        names = callgraph.graph.nodes(data="node")
        return sorted(near, key=lambda row: names[row.node].name)
    return sorted(near, key=_SIZES[sort], reverse=True)


_SIZES: dict[str, Callable[[NodeRow], float]] = {
    "loss": lambda row: row.booked.lost_s,
    "cost": lambda row: row.booked.cost_s,
    "supersteps": lambda row: row.cost.count,
    "comp": lambda row: row.cost.comp.maximum,
    "comm": lambda row: row.cost.comm.maximum,
    "idle": lambda row: row.cost.idle.maximum,
    "h": lambda row: row.cost.h.maximum,
}


def tree_rows(profile: RunProfile) -> list[NodeRow]:
    """Return all nodes in the order of the call tree, each under its nearest caller."""
    graph, root = profile.callgraph.graph, profile.callgraph.root
    booked = profile.ledger().nodes
    tree: Any = networkx.bfs_tree(graph, root)
    depth = networkx.single_source_shortest_path_length(tree, root)
    return [
        NodeRow(name, depth[name], graph.nodes[name]["cost"], booked[name])
        for name in networkx.dfs_preorder_nodes(tree, root)
    ]


def _is_empty_end(callgraph: CallGraph, row: NodeRow) -> bool:
    """Tell whether a row is the end of ``main``, and nothing was done there."""
    ends = callgraph.graph.nodes[row.node]["node"].sync == "end"
    return ends and not any(row.cost[metric].maximum for metric in METRICS)


def _rest(callgraph: CallGraph, rows: list[NodeRow]) -> Rest:
    nodes = callgraph.graph.nodes(data="node")
    leaves = [row.booked for row in rows if nodes[row.node].kind == "cost_centre"]
    loss_s = sum(booked.lost_s for booked in leaves)
    return Rest(len(rows), loss_s, sum(booked.cost_s for booked in leaves))
