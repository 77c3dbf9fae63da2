"""The call graph of a run: one node for each function and each cost centre.

Every record belongs to a site, a call stack with the kind of sync at its end, and
whatever the graph says of a node, an edge or a path is the cost of the records at
the sites that pass there. Nothing is estimated, and nothing is divided among callers.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import networkx

from profiler._ledger import Ledger
from profiler.summary import Cost, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.records import Kind, Run, Stack

__all__ = ["CallGraph", "Cost", "Node", "Summary", "build"]

COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
"""Frames that Python makes inside a function: their calls are the function's."""


@dataclass(frozen=True)
class Node:
    """A function, or a cost centre: the line of a sync."""

    id: str
    """``n0``, ``n1``, ... down the call tree; ``n0`` is the root."""
    kind: str
    """``function`` or ``cost_centre``."""
    name: str
    """Qualified name of a function; ``sort.py line 31`` of a cost centre."""
    file: str
    line: int
    """First line of a function; line of the sync."""
    sync: str
    """``sync``, ``oblsync`` or ``end`` (the end of ``main``) of a cost centre, else empty."""


@dataclass(frozen=True)
class CallGraph:
    """The functions that lead to syncs, and what they cost."""

    graph: networkx.DiGraph
    """Nodes are the ids, with attributes ``node`` (a Node) and ``cost`` (a Cost);
    edges have the ``cost`` of that part of the callee that came through this caller.

    Of the edges into a node the pies add up to the pie of the node, and so do maximum,
    average, minimum and count where all that a superstep of the root group contains
    has one stack. On a stack where a function recurs it has one caller, that of the
    outermost call."""
    root: str
    """Id of ``main``."""
    run: Run
    _ledger: Ledger = field(repr=False)
    _ways: tuple[tuple[str, ...], ...] = field(repr=False)
    """For each site of the ledger the nodes from the root to its leaf."""

    def onward(self, way: Sequence[str]) -> dict[str, Cost]:
        """What came through a way from the root, by the node it went to next.

        Args:
            way: ids of nodes that follow one another, beginning with the root.

        Returns:
            Cost by id; empty where the way ends at a leaf.
        """
        depth = len(way)
        sites: defaultdict[str, set[int]] = defaultdict(set)
        for site, nodes in enumerate(self._ways):
            if len(nodes) > depth and nodes[:depth] == tuple(way):
                sites[nodes[depth]].add(site)
        return {node: self._ledger.cost(frozenset(through)) for node, through in sites.items()}


class _Key(NamedTuple):
    """What makes a node one: all of it but its id."""

    kind: str
    name: str
    file: str
    line: int
    sync: str


_Callers = dict[_Key, _Key | None]
"""The nodes of a site, ``main`` first and the leaf last, each with its caller."""


def build(run: Run) -> CallGraph:
    """Build the call graph of a run.

    Args:
        run: as ``bsplib.trace.read_trace`` returns it, or as well formed.

    Returns:
        The graph, with at least a root: where a run has no records, or its stacks do
        not all begin with one function, that is a node named ``main`` without a place.

    Source: Jarvis et al. 2002, sections 3.1 and 3.3.
    """
    ledger = Ledger(run)
    root, callers = _rooted([_callers(run.stacks[stack], kind) for stack, kind in ledger.sites])
    passing: defaultdict[_Key, set[int]] = defaultdict(set, {root: set()})
    parts: defaultdict[tuple[_Key, _Key], set[int]] = defaultdict(set)
    for site, nodes in enumerate(callers):
        for key, caller in nodes.items():
            passing[key].add(site)
            if caller is not None:
                parts[caller, key].add(site)

    ids = _ids(root, parts)
    graph = networkx.DiGraph()
    for key, name in ids.items():
        graph.add_node(name, node=Node(name, *key), cost=ledger.cost(frozenset(passing[key])))
    for (caller, key), sites in parts.items():
        graph.add_edge(ids[caller], ids[key], cost=ledger.cost(frozenset(sites)))
    ways = tuple(tuple(ids[key] for key in _way(nodes)) for nodes in callers)
    return CallGraph(graph, ids[root], run, ledger, ways)


def _callers(stack: Stack, kind: Kind) -> _Callers:
    """Nodes that a stack passes. Where a function recurs its first caller stays."""
    callers: _Callers = {}
    caller = None
    for frame in stack:
        if frame.function.rpartition(".")[2] not in COMPREHENSIONS:
            key = _Key("function", frame.function, frame.file, frame.first_line, "")
            callers.setdefault(key, caller)
            caller = key
    file, line = stack[-1].file, stack[-1].line
    name = f"{posixpath.basename(file)} line {line}"
    callers[_Key("cost_centre", name, file, line, kind.name.lower())] = caller
    return callers


def _rooted(callers: list[_Callers]) -> tuple[_Key, list[_Callers]]:
    """Find the function that all begin with; if there is none, put one above them."""
    tops = [next(iter(nodes)) for nodes in callers]
    if len(set(tops)) == 1 and tops[0].kind == "function":
        return tops[0], callers
    root = _Key("function", "main", "", 0, "")
    # The root comes last once more in case a stack passes a function of just that key.
    return root, [
        {root: None} | nodes | {top: root, root: None}
        for top, nodes in zip(tops, callers, strict=True)
    ]


def _ids(root: _Key, edges: Iterable[tuple[_Key, _Key]]) -> dict[_Key, str]:
    """Name the nodes in the order of the call tree."""
    tree = networkx.DiGraph(list(edges))
    tree.add_node(root)
    order = networkx.dfs_preorder_nodes(tree, root)
    return {key: f"n{number}" for number, key in enumerate(order)}


def _way(callers: _Callers) -> list[_Key]:
    """From the root to the leaf, caller by caller.

    Where functions call each other in a circle this leaves out those that are
    not needed to come to the leaf.
    """
    leaf = list(callers)[-1]
    way = [leaf]
    while (caller := callers[way[-1]]) is not None:
        way.append(caller)
    return way[::-1]
