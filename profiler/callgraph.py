"""The call graph of a run: one node for each function and each cost centre.

Every record belongs to a site, a call stack with the kind of sync at its end, and
whatever the graph says of a node, an edge or a path is the cost of the records at
the sites that pass there. Nothing is estimated, and nothing is divided among callers.
Functions of bsplib itself are left out, so that a cost centre is a line of the program.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import networkx

from profiler._ledger import Ledger
from profiler.limits import check_graph
from profiler.summary import Cost, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bsplib.recording.records import Run, Stack
    from bsplib.sync_kinds import Kind

__all__ = ["CallGraph", "Cost", "Node", "Summary", "build"]

COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
"""Frames that Python makes inside a function: their calls are the function's."""


@dataclass(frozen=True)
class Node:
    """A function, or a cost centre: the line of the program that ended a superstep."""

    id: str
    """Made from the other fields: the same in every run in which they are the same."""
    kind: str
    """``function`` or ``cost_centre``."""
    name: str
    """Qualified name of a function. Of a cost centre ``sort.py line 31``, and where that
    line called no sync but, say, a collective, ``cg.py line 12 · allreduce``."""
    file: str
    line: int
    """First line of a function; line of the call that ended the superstep."""
    sync: str
    """``sync``, ``oblsync`` or ``end`` (the end of ``main``) of a cost centre, else empty."""


@dataclass(frozen=True)
class CallGraph:
    """The functions that lead to syncs, and what they cost."""

    graph: networkx.DiGraph
    """Nodes are the ids, with attributes ``node`` (a Node) and ``cost`` (a Cost);
    edges have the ``cost`` of that part of the callee that came through this caller.

    Of the edges into a node the pies and averages add up to those of the node, and so
    do maximum, minimum and count where all that a superstep of the root group contains
    has one stack. On a stack where a function recurs it has one caller, that of the
    outermost call."""
    root: str
    """Id of ``main``."""
    run: Run
    _ledger: Ledger = field(repr=False)
    _ways: tuple[tuple[str, ...], ...] = field(repr=False)
    """For each site of the ledger the nodes from the root to its leaf."""
    _passing: dict[str, frozenset[int]] = field(repr=False)
    """For each node the sites of the ledger that pass there."""

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

    def id(self) -> str:
        """Return the id of the node, fit for DOT, HTML and addresses."""
        text = "\0".join(map(str, self)).encode(errors="surrogatepass")
        return "n" + hashlib.blake2b(text, digest_size=8).hexdigest()


_Callers = dict[_Key, _Key | None]
"""The nodes of a site, ``main`` first and the leaf last, each with its caller."""


def build(run: Run, *, library: bool = False) -> CallGraph:
    """Build the call graph of a run.

    Args:
        run: as ``bsplib.recording.trace.read_trace`` returns it, or as well formed.
        library: also show the functions of bsplib, such as a collective, as nodes;
            cost centres are then the lines that called sync, wherever they stand.

    Returns:
        The graph, with at least a root: where a run has no records, or its stacks do
        not all begin with one function, that is a node named ``main`` without a place.

    Raises:
        TooLargeError: it would take gigabytes of memory.

    Source: Jarvis et al. 2002, sections 3.1 and 3.3.
    """
    ledger = Ledger(run)
    callers = [_callers(run.stacks[stack], kind, library) for stack, kind in ledger.sites]
    root, callers = _rooted(callers)
    passing: defaultdict[_Key, set[int]] = defaultdict(set, {root: set()})
    parts: defaultdict[tuple[_Key, _Key], set[int]] = defaultdict(set)
    for site, nodes in enumerate(callers):
        for key, caller in nodes.items():
            passing[key].add(site)
            if caller is not None:
                parts[caller, key].add(site)

    check_graph(len(passing) + len(parts), run, ledger.levels)
    graph = networkx.DiGraph()
    for key in _down_the_tree(root, parts):
        cost = ledger.cost(frozenset(passing[key]))
        graph.add_node(key.id(), node=Node(key.id(), *key), cost=cost)
    for (caller, key), sites in parts.items():
        graph.add_edge(caller.id(), key.id(), cost=ledger.cost(frozenset(sites)))
    ways = tuple(tuple(key.id() for key in _way(nodes)) for nodes in callers)
    under = {key.id(): frozenset(sites) for key, sites in passing.items()}
    return CallGraph(graph, root.id(), run, ledger, ways, under)


def _callers(stack: Stack, kind: Kind, library: bool) -> _Callers:
    """Nodes that a stack passes. Where a function recurs its first caller stays."""
    shown = stack if library else _of_program(stack)
    callers: _Callers = {}
    caller = None
    for frame in shown:
        if frame.function.rpartition(".")[2] not in COMPREHENSIONS:
            key = _Key("function", frame.function, frame.file, frame.first_line, "")
            callers.setdefault(key, caller)
            caller = key
    callers[_cost_centre(stack, shown, kind)] = caller
    return callers


def _of_program(stack: Stack) -> Stack:
    """Return the calls of a stack that are not bsplib's; all if ``main`` is bsplib's."""
    return tuple(frame for frame in stack if not frame.library) or stack


def _cost_centre(stack: Stack, shown: Stack, kind: Kind) -> _Key:
    """Return the leaf of a stack: the innermost line that is shown, and what it called."""
    leaf = shown[-1]
    name = f"{posixpath.basename(leaf.file)} line {leaf.line}"
    below = len(stack) - stack[::-1].index(leaf)
    if below < len(stack):
        name += f" · {stack[below].function.rpartition('.')[2]}"
    return _Key("cost_centre", name, leaf.file, leaf.line, kind.name.lower())


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


def _down_the_tree(root: _Key, edges: Iterable[tuple[_Key, _Key]]) -> list[_Key]:
    """Return the nodes in the order of the call tree."""
    tree = networkx.DiGraph(list(edges))
    tree.add_node(root)
    return list(networkx.dfs_preorder_nodes(tree, root))


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
