"""A directed graph with data at nodes and edges: as much of one as call graphs need.

It is read as a ``networkx.DiGraph`` is. To import that package takes longer than to report on a
usual trace; it is imported where a graph is given to the user, or drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Edge = tuple[str, str]
Data = dict[str, Any]


class NodeData(dict[str, Data]):
    """The nodes of a graph in the order in which they were added, with their data."""

    def __call__(self, data: str | bool) -> NodeValues:
        """Return pairs of a node and what it has under a name; all its data with ``True``."""
        return NodeValues(self, data)


class NodeValues:
    """One value of each node: pairs, in which the value of a node can be looked up."""

    def __init__(self, nodes: NodeData, data: str | bool) -> None:
        self._nodes, self._data = nodes, data

    def __getitem__(self, node: str) -> Any:
        found = self._nodes[node]
        return found[self._data] if isinstance(self._data, str) else found

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((node, self[node]) for node in self._nodes)


class EdgeData(dict[Edge, Data]):
    """The edges of a graph, those of one caller after those of another, with their data."""

    def __call__(self, data: str) -> Iterator[tuple[str, str, Any]]:
        """Yield caller, callee, and what their edge has under a name."""
        return ((*edge, found[data]) for edge, found in self.items())


class DirectedGraph:
    """A directed graph; nodes are texts."""

    def __init__(self) -> None:
        self.nodes = NodeData()
        """The nodes with their data."""
        self.succ: dict[str, dict[str, Data]] = {}
        """For each node those that it leads to, with the data of the edges."""
        self.pred: dict[str, dict[str, Data]] = {}
        """For each node those that lead to it, with the data of the edges."""

    def add_node(self, node: str, /, **data: Any) -> None:
        """Add a node with its data, or add to the data of a node."""
        self.nodes.setdefault(node, {}).update(data)
        self.succ.setdefault(node, {})
        self.pred.setdefault(node, {})

    def add_edge(self, caller: str, callee: str, /, **data: Any) -> None:
        """Add an edge with its data, and its nodes where they are not there."""
        self.add_node(caller)
        self.add_node(callee)
        self.succ[caller][callee] = self.pred[callee][caller] = data

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def edges(self) -> EdgeData:
        """The edges with their data."""
        return EdgeData(
            ((caller, callee), data)
            for caller, below in self.succ.items()
            for callee, data in below.items()
        )

    def has_edge(self, caller: str, callee: str) -> bool:
        """Tell whether an edge is there."""
        return callee in self.succ.get(caller, ())

    def successors(self, node: str) -> Iterator[str]:
        """Yield the nodes that a node leads to."""
        return iter(self.succ[node])

    def predecessors(self, node: str) -> Iterator[str]:
        """Yield the nodes that lead to a node."""
        return iter(self.pred[node])

    def leaves(self) -> list[str]:
        """Return the nodes that lead to no other."""
        return [node for node, below in self.succ.items() if not below]

    def ancestors(self, node: str) -> set[str]:
        """Return all nodes that lead to a node, itself left out."""
        found: set[str] = set()
        waiting = [node]
        while waiting:
            new = self.pred[waiting.pop()].keys() - found
            found |= new
            waiting += new
        return found - {node}

    def depths(self, root: str) -> dict[str, int]:
        """Return how many edges away from a node the others are, the nearest ones first."""
        return {node: depth for node, (depth, _) in self._nearest(root).items()}

    def _nearest(self, root: str) -> dict[str, tuple[int, str | None]]:
        """Return for all nodes below one their depth, and from which node they were found first."""
        found: dict[str, tuple[int, str | None]] = {root: (0, None)}
        waiting = [root]
        for node in waiting:  # it grows meanwhile
            for below in self.succ[node]:
                if below not in found:
                    found[below] = found[node][0] + 1, node
                    waiting.append(below)
        return found

    def nearest_tree(self, root: str) -> DirectedGraph:
        """Return the tree in which each node below one is under the nearest node above it."""
        tree = DirectedGraph()
        tree.add_node(root)
        for node, (_, above) in self._nearest(root).items():
            if above is not None:
                tree.add_edge(above, node)
        return tree


def downwards(root: Any, below: Mapping[Any, Iterable[Any]]) -> Iterator[tuple[Any, int]]:
    """Yield the nodes below one in depth-first order, each before those that it leads to.

    Args:
        root: with which to begin.
        below: for each node those that it leads to.

    Yields:
        A node, and how many edges lead to it on the way that was taken.
    """
    seen = {root}
    yield root, 0
    waiting = [iter(below.get(root, ()))]
    while waiting:
        node = next((each for each in waiting[-1] if each not in seen), None)
        if node is None:
            waiting.pop()
            continue
        seen.add(node)
        yield node, len(waiting)
        waiting.append(iter(below.get(node, ())))
