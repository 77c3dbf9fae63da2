"""A directed graph with data at nodes and edges: as much of one as call graphs need.

It is read as a ``networkx.DiGraph`` is. To import that package takes longer than to report on a
usual trace; it is imported where a graph is given to the user, or drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Edge = tuple[str, str]
Data = dict[str, Any]


class NodeData(Mapping[str, Data]):
    """The nodes of a graph in the order in which they were added, with their data."""

    def __init__(self, found: dict[str, Data]) -> None:
        self._found = found

    def __getitem__(self, node: str) -> Data:
        return self._found[node]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __call__(self, data: str | bool) -> NodeValues:
        """Return pairs of a node and what it has under a name; all its data with ``True``."""
        return NodeValues(self._found, data)


class NodeValues:
    """One value of each node: pairs, in which the value of a node can be looked up."""

    def __init__(self, found: dict[str, Data], data: str | bool) -> None:
        self._found, self._data = found, data

    def __getitem__(self, node: str) -> Any:
        found = self._found[node]
        return found[self._data] if isinstance(self._data, str) else found

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((node, self[node]) for node in self._found)

    def __len__(self) -> int:
        return len(self._found)


class EdgeData(Mapping[Edge, Data]):
    """The edges of a graph, those of one caller after those of another, with their data."""

    def __init__(self, onward: dict[str, dict[str, Data]]) -> None:
        self._onward = onward

    def __getitem__(self, edge: Edge) -> Data:
        return self._onward[edge[0]][edge[1]]

    def __iter__(self) -> Iterator[Edge]:
        return ((caller, callee) for caller, below in self._onward.items() for callee in below)

    def __len__(self) -> int:
        return sum(map(len, self._onward.values()))

    def __call__(self, data: str) -> Iterator[tuple[str, str, Any]]:
        """Yield caller, callee, and what their edge has under a name."""
        return (
            (caller, callee, found[data])
            for caller, below in self._onward.items()
            for callee, found in below.items()
        )


class DirectedGraph:
    """A directed graph; nodes are texts."""

    def __init__(self) -> None:
        self._data: dict[str, Data] = {}
        self.succ: dict[str, dict[str, Data]] = {}
        """For each node those that it leads to, with the data of the edges."""
        self.pred: dict[str, dict[str, Data]] = {}
        """For each node those that lead to it, with the data of the edges."""

    def add_node(self, node: str, /, **data: Any) -> None:
        """Add a node with its data, or add to the data of a node."""
        self._data.setdefault(node, {}).update(data)
        self.succ.setdefault(node, {})
        self.pred.setdefault(node, {})

    def add_edge(self, caller: str, callee: str, /, **data: Any) -> None:
        """Add an edge with its data, and its nodes where they are not there."""
        self.add_node(caller)
        self.add_node(callee)
        self.succ[caller][callee] = self.pred[callee][caller] = data

    def __contains__(self, node: object) -> bool:
        return node in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def nodes(self) -> NodeData:
        """The nodes with their data."""
        return NodeData(self._data)

    @property
    def edges(self) -> EdgeData:
        """The edges with their data."""
        return EdgeData(self.succ)

    def has_edge(self, caller: str, callee: str) -> bool:
        """Tell whether an edge is there."""
        return callee in self.succ.get(caller, ())

    def successors(self, node: str) -> Iterator[str]:
        """Yield the nodes that a node leads to."""
        return iter(self.succ[node])

    def predecessors(self, node: str) -> Iterator[str]:
        """Yield the nodes that lead to a node."""
        return iter(self.pred[node])

    def out_degree(self, node: str) -> int:
        """Return how many nodes a node leads to."""
        return len(self.succ[node])

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
