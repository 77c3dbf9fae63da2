"""Which nodes a report shows, in which order, and the node that a user names."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bsplib.errors import UsageError
from bsplib.profiler import format as fmt
from bsplib.profiler.costs import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bsplib.profiler.book import Time
    from bsplib.profiler.callgraph import CallGraph, Cost, Node
    from bsplib.profiler.profile import RunProfile

TREE = "tree"
"""Order of the call tree: each node under its nearest caller."""
SORTS = ("loss", "time", *METRICS, "supersteps", "name", TREE)
"""The orders of rows: by greatest loss, time, maximum of a metric or supersteps; by name."""

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
        if self.sort == "cost":
            raise ValueError("the order cost is called time now: what is booked at a node")
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
    time: Time


class Rest(NamedTuple):
    """The nodes that are not shown."""

    nodes: int
    loss_s: float
    """Loss of the cost centres among them; functions would count it twice."""
    time_s: float
    """Time of the cost centres among them."""


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
    "loss": lambda row: row.time.loss_ns,
    "time": lambda row: row.time.ns,
    "supersteps": lambda row: row.cost.count,
    "comp": lambda row: row.cost.comp.maximum,
    "comm": lambda row: row.cost.comm.maximum,
    "idle": lambda row: row.cost.idle.maximum,
    "h": lambda row: row.cost.h.maximum,
}


def tree_rows(profile: RunProfile) -> list[NodeRow]:
    """Return all nodes in the order of the call tree, each under its nearest caller."""
    costs, times = profile.callgraph.graph.nodes(data="cost"), profile.book().nodes
    return [
        NodeRow(name, depth, costs[name], times[name])
        for name, depth in profile.callgraph.depths().items()
    ]


def _is_empty_end(callgraph: CallGraph, row: NodeRow) -> bool:
    """Tell whether a row is the end of ``main``, and nothing was done there."""
    ends = callgraph.graph.nodes[row.node]["node"].sync == "end"
    return ends and not any(row.cost[metric].maximum for metric in METRICS)


def _rest(callgraph: CallGraph, rows: list[NodeRow]) -> Rest:
    nodes = callgraph.graph.nodes(data="node")
    leaves = [row.time for row in rows if nodes[row.node].kind == "cost_centre"]
    loss_s = sum(time.loss_s for time in leaves)
    return Rest(len(rows), loss_s, sum(time.time_s for time in leaves))


# -- find a node by what a user calls it ----------------------------------------------------------


_MOST_NAMED = 4


def find(callgraphs: Iterable[CallGraph], text: str) -> str:
    """Return the id of the node that a text names.

    Args:
        callgraphs: the call graphs of some runs; a node may be missing in some of them.
        text: id or name of the node, such as ``relax`` or ``sort.py line 31``; the last part
            of a qualified name; file and line, such as ``sort.py:31``; or a part of the
            name. Of these, in this order, the first that fits counts.

    Raises:
        UsageError: no node has this name, or several have it.
    """
    graphs = [callgraph.graph for callgraph in callgraphs]
    nodes = list(
        {name: node for graph in graphs for name, node in graph.nodes(data="node")}.values()
    )
    for names in (_ids, _exact, _places, _last_parts):
        found = [node for node in nodes if text in names(node)]
        if found:
            return _only(text, found)
    found = [node for node in nodes if text.lower() in fmt.label(node).lower()]
    if text and found:
        return _only(text, found)
    close = difflib.get_close_matches(text, [fmt.label(node) for node in nodes], n=3)
    hint = f"; close to it are {', '.join(close)}" if close else "; bsp report lists them"
    raise UsageError(f"no node is called '{fmt.visible(text)}'{hint}")


def _ids(node: Node) -> list[str]:
    return [node.id]


def _exact(node: Node) -> list[str]:
    return [node.name, fmt.label(node)]


def _places(node: Node) -> list[str]:
    return [f"{node.file}:{node.line}", f"{posixpath.basename(node.file)}:{node.line}"]


def _last_parts(node: Node) -> list[str]:
    return [node.name.rpartition(".")[2]]


def _only(text: str, found: list[Node]) -> str:
    """Return the id of the only node found."""
    if len(found) == 1:
        return found[0].id
    named = [f"{fmt.label(node)} = {node.id} ({_places(node)[1]})" for node in found[:_MOST_NAMED]]
    rest = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    raise UsageError(
        f"'{fmt.visible(text)}' may be {len(found)} nodes: {', '.join(named)}{rest}; give an id"
    )
